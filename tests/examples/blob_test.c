/* SPDX-License-Identifier: Apache-2.0 */
/* blob_test.c: tests the blobs of examples/blob: the results of compile() run,
 * and any other bytes are refused or stay within their memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#undef fail /* a member of struct byoc_host */

/* the program also contains oneDNN's backend, whose functions have these names
 */
#define byoc_backend_query_v1 blob_query
#define byoc_backend_descriptor_v1 blob_descriptor
#include "examples/blob/blob.c"

#include "region/graph.h"

/* --- a host --------------------------------------------------------------- */

struct byoc_fail {
    uint32_t code;
    char text[256];
};

static void *acquire(void *ctx, uint64_t bytes)
{
    (void)ctx;
    return aligned_alloc(64, (bytes + 64) / 64 * 64);
}

static void release(void *ctx, void *memory)
{
    (void)ctx;
    free(memory);
}

static struct byoc_fail *make_fail(void *ctx, uint32_t code, const char *text)
{
    static struct byoc_fail last;
    (void)ctx;
    last.code = code;
    snprintf(last.text, sizeof last.text, "%s", text);
    return &last;
}

static uint32_t two_threads(void *ctx)
{
    (void)ctx;
    return 2;
}

static void one_by_one(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                       void *arg)
{
    (void)ctx;
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
}

static const struct byoc_host host = {.struct_size = sizeof host,
                                      .abi = BYOC_BACKEND_ABI,
                                      .acquire = acquire,
                                      .release = release,
                                      .fail = make_fail,
                                      .threads = two_threads,
                                      .parallel_for = one_by_one,
                                      .graph_open = byi_graph_open,
                                      .graph_close = byi_graph_close};

/* --- a region: relu(x * 0.5 + y), and x itself ---------------------------- */

enum { COUNT = 600, BYTES = COUNT * sizeof(float) };

#define TYPE "{'dtype':'float32','shape':[600]}"
static const char text[] =
    "{'format':'byoc-graph','version':1,'symbol':'blob_0','nodes':["
    "{'op':'input','name':'x','out':[" TYPE "]},"
    "{'op':'input','name':'y','out':[" TYPE "]},"
    "{'op':'const','data':0,'out':[{'dtype':'float32','shape':[]}]},"
    "{'op':'kernel','pattern':'blob.binary','operands':{'a':[0,0],'b':[2,0]},"
    "'name':'multiply','args':['a','b'],'attrs':{},'type':" TYPE ","
    "'post_ops':[],'out':[" TYPE "],'source':[]},"
    "{'op':'kernel','pattern':'blob.binary','operands':{'a':[3,0],'b':[1,0]},"
    "'name':'add','args':['a','b'],'attrs':{},'type':" TYPE ","
    "'post_ops':[],'out':[" TYPE "],'source':[]},"
    "{'op':'kernel','pattern':'blob.unary','operands':{'a':[4,0]},"
    "'name':'nn.relu','args':['a'],'attrs':{},'type':" TYPE ","
    "'post_ops':[],'out':[" TYPE "],'source':[]}],"
    "'inputs':[0,1],'outputs':[[5,0],[0,0]]}";

static float half = 0.5f;
static const struct byoc_view constant = {
    .dtype = BYOC_F32, .data = &half, .bytes = sizeof half};

static struct byoc_region region_of(const void *bytes, uint64_t n)
{
    return (struct byoc_region){.struct_size = sizeof(struct byoc_region),
                                .n_consts = 1,
                                .json = bytes,
                                .json_bytes = n,
                                .consts = &constant};
}

/* Set *blob to the result of compile() for the region's JSON, in which each
 * `from` is replaced by `to`. */
static struct byoc_fail *make(const char *from, const char *to,
                              struct byoc_blob *blob)
{
    char json[4096];
    const char *rest = text, *at;
    int n = 0;
    assert_non_null(strstr(text, from));
    for (; (at = strstr(rest, from)); rest = at + strlen(from))
        n += snprintf(json + n, sizeof json - (size_t)n, "%.*s%s",
                      (int)(at - rest), rest, to);
    n += snprintf(json + n, sizeof json - (size_t)n, "%s", rest);
    for (int i = 0; i < n; i++)
        json[i] = json[i] == '\'' ? '"' : json[i];
    const struct byoc_region region = region_of(json, (uint64_t)n);
    *blob = (struct byoc_blob){.struct_size = sizeof *blob};
    return compile(&host, &region, blob);
}

/* Load bytes and run them; every buffer is exactly as large as its size. */
static struct byoc_fail *try_run(const void *bytes, uint64_t n,
                                 float *const in[2], float *const out[2])
{
    const struct byoc_region region = region_of(bytes, n);
    const struct byoc_view inputs[2] = {{.data = in[0], .bytes = BYTES},
                                        {.data = in[1], .bytes = BYTES}};
    const struct byoc_view outputs[2] = {{.data = out[0], .bytes = BYTES},
                                         {.data = out[1], .bytes = BYTES}};
    const struct byoc_run_args args = {.struct_size = sizeof args,
                                       .n_inputs = 2,
                                       .n_outputs = 2,
                                       .inputs = inputs,
                                       .outputs = outputs};
    void *compiled = NULL;
    struct byoc_fail *why = load(&host, &region, &compiled);
    if (why) {
        assert_null(compiled);
        return why;
    }
    float *state = malloc(state_bytes(&host, compiled) + 1);
    assert_non_null(state);
    why = run(&host, compiled, state, &args);
    free(state);
    unload(&host, compiled);
    return why;
}

/* The inputs and outputs of a run, each of BYTES bytes. */
struct buffers {
    float *in[2], *out[2];
};

static struct buffers new_buffers(void)
{
    struct buffers b;
    for (int i = 0; i < 2; i++) {
        b.in[i] = malloc(BYTES);
        b.out[i] = malloc(BYTES);
        for (int k = 0; k < COUNT; k++)
            b.in[i][k] = (float)(k * (i ? -7 : 3) % 11);
    }
    return b;
}

static void free_buffers(struct buffers *b)
{
    for (int i = 0; i < 2; i++) {
        free(b->in[i]);
        free(b->out[i]);
    }
}

/* --- tests ---------------------------------------------------------------- */

static void computes_the_region(void **unused)
{
    (void)unused;
    struct byoc_blob blob;
    struct buffers b = new_buffers();
    assert_null(make("blob_0", "blob_0", &blob));
    assert_null(try_run(blob.data, blob.bytes, b.in, b.out));
    for (int k = 0; k < COUNT; k++) {
        const float sum = b.in[0][k] * 0.5f + b.in[1][k];
        assert_float_equal(b.out[0][k], sum < 0 ? 0 : sum, 0);
        assert_float_equal(b.out[1][k], b.in[0][k], 0);
    }
    free_buffers(&b);
    free(blob.data);
}

static void same_region_same_bytes(void **unused)
{
    (void)unused;
    struct byoc_blob a, b;
    assert_null(make("blob_0", "blob_0", &a));
    assert_null(make("blob_0", "blob_0", &b));
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.data, b.data, a.bytes);
    free(a.data);
    free(b.data);
}

static void refuses_regions(void **unused)
{
    (void)unused;
    static const struct {
        const char *from, *to, *why;
        uint32_t code;
    } cases[] = {
        {"'name':'add'", "'name':'divide'", "does not support",
         BYOC_FAIL_UNSUPPORTED},
        {"[0,0]]}", "[2,0]]}", "one number among", BYOC_FAIL_UNSUPPORTED},
        {"'y','out':[{'dtype':'float32','shape':[600]}]",
         "'y','out':[{'dtype':'float32','shape':[599]}]", "nodes[4]",
         BYOC_FAIL_INVALID},
        {"'y','out':[{'dtype':'float32'", "'y','out':[{'dtype':'float64'",
         "nodes[4]", BYOC_FAIL_INVALID},
        {"[600]", "[0]", "an empty tensor", BYOC_FAIL_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct byoc_blob blob;
        struct byoc_fail *why = make(cases[i].from, cases[i].to, &blob);
        assert_non_null(why);
        assert_int_equal(why->code, cases[i].code);
        if (!strstr(why->text, cases[i].why))
            assert_string_equal(why->text, cases[i].why);
    }
}

static void refuses_short_blobs(void **unused)
{
    (void)unused;
    struct byoc_blob blob;
    struct buffers b = new_buffers();
    assert_null(make("blob_0", "blob_0", &blob));
    for (uint64_t n = 0; n < blob.bytes; n++) {
        char *part = malloc(n + (n == 0)); /* ASan sees reads past it */
        memcpy(part, blob.data, n);
        struct byoc_fail *why = try_run(part, n, b.in, b.out);
        assert_non_null(why);
        assert_int_equal(why->code, BYOC_FAIL_INVALID);
        free(part);
    }
    free_buffers(&b);
    free(blob.data);
}

/* Blobs in which one to four random bytes are changed: many are refused, and
 * the others stay within their memory. */
static void survives_any_blob(void **unused)
{
    (void)unused;
    struct byoc_blob blob;
    struct buffers b = new_buffers();
    uint64_t seed = 1, refused = 0, tries = 20000;
    assert_null(make("blob_0", "blob_0", &blob));
    for (uint64_t i = 0; i < tries; i++) {
        unsigned char *changed = malloc(blob.bytes);
        memcpy(changed, blob.data, blob.bytes);
        for (uint64_t k = 0; k <= i % 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint64_t at = (seed >> 33) % blob.bytes;
            changed[at] = (unsigned char)((seed >> 56) % (i % 2 ? 8 : 255));
        }
        refused += try_run(changed, blob.bytes, b.in, b.out) != NULL;
        free(changed);
    }
    assert_true(refused > tries / 2 && refused < tries);
    free_buffers(&b);
    free(blob.data);
}

static void knows_its_versions(void **unused)
{
    (void)unused;
    static const char *const others[] = {"blob 2.0",  "blob 0.9",  "blob 1.1",
                                         "blob 1.0x", "blob 1.-1", "blob",
                                         "",          "dnnl 1.0"};
    assert_null(check_compat(&host, backend.compat));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct byoc_fail *why = check_compat(&host, others[i]);
        assert_non_null(why);
        assert_int_equal(why->code, BYOC_FAIL_INCOMPATIBLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_the_region),
        cmocka_unit_test(same_region_same_bytes),
        cmocka_unit_test(refuses_regions),
        cmocka_unit_test(refuses_short_blobs),
        cmocka_unit_test(survives_any_blob),
        cmocka_unit_test(knows_its_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
