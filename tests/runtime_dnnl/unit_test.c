/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/unit_test.c: tests regions as C: compares the text with
 * goldens, and tests units that loading must refuse. units.inc compares the
 * results of C and JSON, for every region of the other tests.
 *
 * Run with BYOC_BLESS=1 to accept what is written now.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "region.inc"
#include "runtime_dnnl/build.h"

#define NONE UINT32_MAX
#define IDS(...)                                                               \
    BYI_COUNT(((uint32_t[]){__VA_ARGS__})), (uint32_t[])                       \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* --- regions -------------------------------------------------------------- */

static uint32_t conv_bias_relu(struct region *g)
{
    region_open(g);
    const uint32_t x = region_input(g, 1, 3, 8, 8, -1);
    const uint32_t w = region_const(g, 4, 3, 3, 3, -1);
    const uint32_t b = region_const(g, 4, 1, 1, -1);
    region_kernel(g, "nn.conv2d", "{\"padding\":[1,1,1,1]}", IDS(x, w));
    region_post(g, "add", "{}", b, false);
    region_post(g, "nn.relu", "{}", NONE, false);
    return region_end(g);
}

static uint32_t matmul_bias_gelu(struct region *g)
{
    region_open(g);
    const uint32_t x = region_input(g, 3, 8, -1);
    const uint32_t w = region_const(g, 8, 16, -1);
    const uint32_t b = region_const(g, 16, -1);
    const uint32_t s = region_input(g, 3, 16, -1);
    region_kernel(g, "nn.matmul", "{}", IDS(x, w));
    region_post(g, "add", "{}", b, false);
    region_post(g, "nn.gelu", "{}", NONE, false);
    region_post(g, "multiply", "{}", s, false);
    return region_end(g);
}

/* Call compile() for the region. */
static struct byoc_fail *compile(struct region *g, const char *json,
                                 const char *symbol, struct byoc_blob *blob)
{
    struct job *job = calloc(1, sizeof *job);
    fill_job(g, job, json);
    job->region.symbol = symbol;
    *blob = (struct byoc_blob){.struct_size = sizeof *blob};
    struct byoc_fail *fail =
        region_backend()->compile(region_host(), &job->region, blob);
    free(job);
    return fail;
}

/* The C of the region, in its arena. */
static char *source_of(struct region *g, const char *json)
{
    struct byoc_blob blob;
    const struct byoc_fail *fail = compile(g, json, "byoc_region", &blob);
    if (fail)
        fail_msg("%s", fail->text);
    assert_int_equal(blob.kind, BYOC_BLOB_C);
    char *text = byi_arena_strn(g->arena, blob.data, blob.bytes);
    byi_release(blob.data);
    return text;
}

/* --- the C that is written ------------------------------------------------ */

/* The part of the source after the declarations, whose hash depends on all of
 * them. */
static char *part_after_declarations(char *source)
{
    char *part = strstr(source, "#include <math.h>");
    assert_non_null(part);
    char *id = strstr(part, ".id = 0x");
    assert_non_null(id);
    memset(id + strlen(".id = 0x"), '0', 8);
    return part;
}

static void check_golden(struct region *g, uint32_t id, const char *name)
{
    char path[400], golden[20000] = "";
    char *part = part_after_declarations(source_of(g, region_json(g, 1, &id)));
    snprintf(path, sizeof path, "%s/runtime_dnnl/%s.golden", TEST_DIR, name);
    const bool bless = getenv("BYOC_BLESS") != NULL;
    FILE *file = fopen(path, bless ? "w" : "r");
    assert_non_null(file);
    if (bless)
        fputs(part, file);
    else
        golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
    fclose(file);
    if (!bless && strcmp(golden, part) != 0)
        fail_msg("%s differs from the C that is written now:\n%s", path, part);
    region_close(g);
}

static void test_golden(void **state)
{
    struct region g;
    (void)state;
    needs_kernels();
    uint32_t id = conv_bias_relu(&g);
    check_golden(&g, id, "conv_bias_relu");
    id = matmul_bias_gelu(&g);
    check_golden(&g, id, "matmul_bias_gelu");
}

static void test_same_bytes(void **state)
{
    struct region g;
    (void)state;
    needs_kernels();
    const uint32_t id = conv_bias_relu(&g);
    const char *json = region_json(&g, 1, &id);
    assert_string_equal(source_of(&g, json), source_of(&g, json));
    region_close(&g);
}

/* Names of a model may contain any characters. */
static void test_names(void **state)
{
    static const char special[] = "*/ #error \\\"/*\\n\\\\ ?\?/ %s \\u00e9";
    struct region g;
    (void)state;
    needs_kernels();
    const uint32_t id = conv_bias_relu(&g);
    char *json = region_json(&g, 1, &id), *name = strstr(json, "node_3");
    assert_non_null(name);
    json = byi_arena_printf(g.arena, "%.*s%s%s", (int)(name - json), json,
                            special, name + strlen("node_3"));
    struct byoc_error err = {0};
    struct byi_graph *graph = NULL;
    assert_int_equal(byi_graph_read(json, strlen(json), &graph, &err), 0);
    struct job *job = calloc(1, sizeof *job);
    struct region_report report = {0};
    fill_job(&g, job, json);
    assert_true(run_backend(&g, graph, job, &report));
    assert_non_null(
        strstr(report.trace, "*/ #error \"/*\n\\ ?\?/ %s \xc3\xa9"));
    assert_int_equal(units_check(), 1);
    byi_release(job->results[0].data);
    free(job);
    byi_graph_free(&graph);
    region_close(&g);
}

/* --- when it is not C ----------------------------------------------------- */

static void test_no_symbol_gives_json(void **state)
{
    struct region g;
    struct byoc_blob blob;
    (void)state;
    const uint32_t id = conv_bias_relu(&g);
    const char *json = region_json(&g, 1, &id);
    assert_null(compile(&g, json, NULL, &blob));
    assert_int_equal(blob.kind, BYOC_BLOB_DATA);
    assert_int_equal(blob.bytes, strlen(json));
    assert_memory_equal(blob.data, json, blob.bytes);
    byi_release(blob.data);
    region_close(&g);
}

/* Computed weights are packed on every run, in as many bytes as the primitive
 * needs. */
static void test_packed_on_every_run(void **state)
{
    struct region g;
    struct byoc_blob blob;
    (void)state;
    region_open(&g);
    const uint32_t x = region_input(&g, 1, 16, 9, 9, -1);
    const uint32_t w = region_input(&g, 16, 16, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", "{}", IDS(x, w));
    const uint32_t id = region_end(&g);
    assert_null(compile(&g, region_json(&g, 1, &id), "region", &blob));
    assert_int_equal(blob.kind, BYOC_BLOB_DATA);
    byi_release(blob.data);
    region_close(&g);
}

static void test_refused_symbols(void **state)
{
    static const char *const symbols[] = {"", "9lives", "a-b", "f(void);",
                                          "caf\xc3\xa9"};
    struct region g;
    struct byoc_blob blob;
    (void)state;
    const uint32_t id = conv_bias_relu(&g);
    const char *json = region_json(&g, 1, &id);
    for (size_t i = 0; i < BYI_COUNT(symbols); i++) {
        const struct byoc_fail *fail = compile(&g, json, symbols[i], &blob);
        assert_non_null(fail);
        assert_int_equal(fail->code, BYOC_FAIL_INVALID);
        assert_non_null(strstr(fail->text, "expected a C identifier"));
        assert_null(blob.data);
    }
    const struct byoc_fail *fail = compile(&g, "{}", "region", &blob);
    assert_non_null(fail);
    assert_int_equal(fail->code, BYOC_FAIL_INVALID);
    region_close(&g);
}

/* --- when it is loaded ---------------------------------------------------- */

/* A handwritten unit: relu of four numbers. A bit selects each way to break it.
 */
enum {
    FAILS_TO_BUILD = 1,
    PACKS_TOO_EARLY = 2,
    PACKS_OUTSIDE_CONSTANT = 4,
    DROPS_MISSING_CONSTANT = 8,
    RUNS_TWICE = 16,
    RUNS_ANOTHER_STEP = 32,
    READS_OUTSIDE_BUFFERS = 64,
    RUNS_NOTHING = 128,
    NO_SUCH_PRIMITIVE = 256
};
static unsigned faults;
static const struct byi_desc vector = {BYI_DESC_STRIDED, BYOC_F32, 1, {4}, {1}};

static int build(const struct byi_operators *dn, struct byi_load *load)
{
    const struct byi_dnnl_eltwise relu = {.alg = BYI_ELT_RELU, .src = vector};
    const struct byi_dnnl_reorder bad_reorder = {.src = vector};
    const struct byi_pack early_pack = {
        .from = {BYI_BUF_CONST, 0, 0}, .src = vector, .step = 7};
    const struct byi_pack outside_pack = {
        .from = {BYI_BUF_CONST, 0, 8}, .src = vector, .arg = BYI_ARG_SRC};
    if (faults & FAILS_TO_BUILD)
        return BYOC_EINTERNAL;
    if (faults & PACKS_TOO_EARLY)
        return dn->pack(load, &early_pack);
    if (faults & DROPS_MISSING_CONSTANT)
        return dn->drop(load, 0);
    if (faults & NO_SUCH_PRIMITIVE)
        return dn->reorder(load, &bad_reorder, NULL);
    const int bad = dn->eltwise(load, &relu, NULL);
    return bad                               ? bad
           : faults & PACKS_OUTSIDE_CONSTANT ? dn->pack(load, &outside_pack)
                                             : 0;
}

static int run(const struct byi_operators *dn, struct byi_exec *exec)
{
    static const struct byi_dnnl_slot in = {BYI_ARG_SRC, {BYI_BUF_INPUT, 0, 0}};
    static const struct byi_dnnl_slot out = {BYI_ARG_DST,
                                             {BYI_BUF_OUTPUT, 0, 0}};
    static struct byi_dnnl_slot slots[2];
    static struct byi_dnnl_step step;
    slots[0] = in;
    slots[1] = out;
    step = (struct byi_dnnl_step){.name = "relu", .n_slots = 2, .slots = slots};
    if (faults & RUNS_NOTHING)
        return 0;
    if (faults & RUNS_ANOTHER_STEP)
        step.index = 1;
    if (faults & READS_OUTSIDE_BUFFERS)
        slots[0].at.offset = 16;
    const int bad = dn->run(exec, &step);
    return bad || !(faults & RUNS_TWICE) ? bad : dn->run(exec, &step);
}

static const uint64_t vector_bytes[] = {16};
static struct byi_dnnl_unit unit;

static const struct byi_dnnl_unit *unit_code(void)
{
    return &unit;
}

static const struct byi_dnnl_unit *no_unit(void)
{
    return NULL;
}

/* Check that loading the unit `code` fails with this code, and a message that
 * contains `message`, or an empty one if `message` is empty. */
static void check_refused(void (*code)(void), uint32_t n_consts,
                          enum byoc_fail_code kind, const char *message)
{
    float numbers[4] = {0};
    const struct byoc_view consts[] = {{.data = numbers, .bytes = 16},
                                       {.data = numbers, .bytes = 12}};
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = n_consts ? 1 : 0,
                                       .consts = &consts[n_consts > 1],
                                       .symbol = "region",
                                       .code = code};
    void *compiled = NULL;
    const struct byoc_fail *fail =
        region_backend()->load(region_host(), &region, &compiled);
    if (!fail)
        fail_msg("found a loaded unit, expected '%s'", message);
    const bool has_message =
        *message ? strstr(fail->text, message) != NULL : !*fail->text;
    if (fail->code != kind || !has_message)
        fail_msg("expected '%s', found '%s' (%d)", message, fail->text,
                 (int)fail->code);
    assert_null(compiled);
}

static void reset_unit(void)
{
    faults = 0;
    unit = (struct byi_dnnl_unit){.size = sizeof unit,
                                  .id = byi_dn_unit_id,
                                  .name = "by_hand",
                                  .n_steps = 1,
                                  .n_inputs = 1,
                                  .n_outputs = 1,
                                  .n_consts = 1,
                                  .input_bytes = vector_bytes,
                                  .output_bytes = vector_bytes,
                                  .const_bytes = vector_bytes,
                                  .build = build,
                                  .run = run};
}

static void test_other_declarations(void **state)
{
    void (*const code)(void) = (void (*)(void))unit_code;
    (void)state;
    reset_unit();
    unit.id ^= 1;
    check_refused(code, 1, BYOC_FAIL_INCOMPATIBLE, "compile the model again");
    reset_unit();
    unit.size += 8;
    check_refused(code, 1, BYOC_FAIL_INCOMPATIBLE, "compile the model again");
    check_refused((void (*)(void))no_unit, 1, BYOC_FAIL_INCOMPATIBLE,
                  "compile the model again");
}

static void test_faulty_units(void **state)
{
    static const struct {
        unsigned fault;
        enum byoc_fail_code kind;
        const char *message;
    } cases[] = {
        {FAILS_TO_BUILD, BYOC_FAIL_INTERNAL, ""},
        {PACKS_TOO_EARLY, BYOC_FAIL_INVALID,
         "step 7, which has no primitive yet"},
        {PACKS_OUTSIDE_CONSTANT, BYOC_FAIL_INVALID, "constant 0 has 16 bytes"},
        {DROPS_MISSING_CONSTANT, BYOC_FAIL_INVALID,
         "constant 0, which does not exist yet"},
        {RUNS_TWICE, BYOC_FAIL_INVALID,
         "found another step, expected at most 1"},
        {RUNS_ANOTHER_STEP, BYOC_FAIL_INVALID,
         "found step 1, expected step 0 of 1"},
        {READS_OUTSIDE_BUFFERS, BYOC_FAIL_INVALID,
         "argument 0 of step 0 outside of every buffer"},
        {RUNS_NOTHING, BYOC_FAIL_INVALID,
         "found 0 steps run by the region's C, expected 1"},
        {NO_SUCH_PRIMITIVE, BYOC_FAIL_UNSUPPORTED, "oneDNN"},
    };
    void (*const code)(void) = (void (*)(void))unit_code;
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        reset_unit();
        faults = cases[i].fault;
        check_refused(code, 1, cases[i].kind, cases[i].message);
    }
    reset_unit();
    check_refused(code, 0, BYOC_FAIL_INVALID,
                  "found 0 constants in the artifact, expected 1");
    check_refused(code, 2, BYOC_FAIL_INVALID,
                  "found constant 0 with 12 bytes, expected 16");
}

/* The unit without faults runs. */
static void test_valid_unit(void **state)
{
    float in[4] = {-1, 2, -3, 4}, out[4] = {0}, consts[4] = {0};
    const struct byoc_host *host = region_host();
    const struct byoc_view inputs = {.data = in, .bytes = sizeof in};
    const struct byoc_view outputs = {.data = out, .bytes = sizeof out};
    const struct byoc_view views = {.data = consts, .bytes = sizeof consts};
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = 1,
                                       .consts = &views,
                                       .symbol = "region",
                                       .code = (void (*)(void))unit_code};
    struct byoc_run_args args = {.struct_size = sizeof args,
                                 .n_inputs = 1,
                                 .n_outputs = 1,
                                 .inputs = &inputs,
                                 .outputs = &outputs};
    void *compiled = NULL, *memory = NULL;
    (void)state;
    reset_unit();
    assert_null(region_backend()->load(host, &region, &compiled));
    assert_null(region_backend()->state_new(host, compiled, &memory));
    args.scratch = host->acquire(
        host->ctx, region_backend()->scratch_bytes(host, compiled));
    assert_null(region_backend()->run(host, compiled, memory, &args));
    assert_true(out[0] == 0 && out[1] == 2 && out[2] == 0 && out[3] == 4);
    args.n_inputs = 0;
    const struct byoc_fail *fail =
        region_backend()->run(host, compiled, memory, &args);
    assert_non_null(fail);
    assert_non_null(strstr(fail->text, "by_hand: found 0 inputs"));
    host->release(host->ctx, args.scratch);
    region_backend()->state_free(host, compiled, memory);
    region_backend()->unload(host, compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_symbol_gives_json),
        cmocka_unit_test(test_packed_on_every_run),
        cmocka_unit_test(test_refused_symbols),
        cmocka_unit_test(test_other_declarations),
        cmocka_unit_test(test_faulty_units),
        cmocka_unit_test(test_valid_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
