/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c: processes a program in several ways, and checks the results. The
 * interpreter's results on random inputs are the expected ones; the tolerance
 * is found by running jittered copies of the program (jitter.c).
 */
#include "programs.h"

#include <byoc/byoc.h>

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compile/passes.h"
#include "core/base/clock.h"
#include "interp/interp.h"
#include "partition/partition.h"
#include "runtime_native/native.h"
#include "tests/compare.h"
#include "tests/fixture.h"
#include "tests/folder.h"

enum { MAX_IN = 8, SAMPLE = 16, SPREAD = 16, FEW_COPIES = 2, MANY_COPIES = 16 };

char program_place[128];

/* A program under test, its inputs, and the expected results. */
struct program_case {
    const struct program *p;
    struct byi_arena *arena;
    struct byi_tensor in[MAX_IN], expected[PROGRAM_MAX_RESULTS];
    double *tolerance[PROGRAM_MAX_RESULTS]; /* of every element */
    uint32_t n_in, n_expected;
    struct byi_module *m; /* the module of the stage */
    bool sample;          /* check whether passes change the program */
    bool has_many_copies; /* the tolerances are from MANY_COPIES */
};

/* Passes that do not change rounding: results are the same to the last bit. */
static const char *const exact[] = {
    "FoldConstant",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "RemoveUnusedFunctions",
    "Inline",
    "LambdaLift",
    "ToANormalForm",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
    "FuseOps",
    "MergeComposite",
    "AnnotateTarget",
    "MergeRegions",
    "PartitionGraph",
};

/* Passes that need a form, or do nothing without it, and the pass that makes
 * the form. */
static const struct {
    const char *name, *first;
} forms[] = {
    {"CheckBasicBlockNormalForm", "ToBasicBlockNormalForm"},
    {"AnnotateTarget", "MergeComposite"},
    {"MergeRegions", "AnnotateTarget"},
    {"PartitionGraph", "MergeRegions"},
};

static bool is_exact(const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(exact); i++)
        if (strcmp(exact[i], name) == 0)
            return true;
    return false;
}

enum byoc_status program_build(const struct program *p, struct byi_module **m,
                               struct byoc_error *err)
{
    if (p->text)
        return byi_parse_module(p->text, p->n, p->file ? p->file : "program",
                                p->side, m, err);
    *m = program_make(p->seed, p->size);
    return BYOC_OK;
}

/* --- comparing --------------------------------------------------- */

/* Compare results with the expected ones; scale 0: bit by bit. */
static enum byoc_status compare_one(const struct program_case *c, uint32_t r,
                                    const struct byi_tensor *found,
                                    double scale, struct byoc_error *err)
{
    const struct byi_tensor *expected = &c->expected[r];
    char a[128], b[128];
    if (found->dtype != expected->dtype ||
        !byi_dims_equal(found->rank, found->dims, expected->rank,
                        expected->dims)) {
        if (isinf(c->tolerance[r][0]) && found->dtype == expected->dtype &&
            found->rank == expected->rank)
            return BYOC_OK; /* sizes that depend on a close comparison */
        return byi_fail(
            err, BYOC_EINTERNAL, "result %u is %s %s, expected %s %s", r,
            byoc_dtype_name(found->dtype),
            byi_dims_text(a, sizeof a, found->rank, found->dims),
            byoc_dtype_name(expected->dtype),
            byi_dims_text(b, sizeof b, expected->rank, expected->dims));
    }
    const int64_t n = byi_elements(expected->rank, expected->dims);
    for (int64_t i = 0; i < n; i++) {
        const double x = byi_tensor_float(found, i);
        const double y = byi_tensor_float(expected, i);
        const double bound = scale > 0 ? c->tolerance[r][i] * scale : 0.0;
        if (x == y || (isnan(x) && isnan(y)) || isinf(bound) ||
            fabs(x - y) <= bound)
            continue;
        return byi_fail(err, BYOC_EINTERNAL,
                        "result %u: element %lld is %.9g, expected %.9g "
                        "within %.3g",
                        r, (long long)i, x, y, bound);
    }
    return BYOC_OK;
}

static enum byoc_status compare(const struct program_case *c,
                                const struct byi_tensor *found, uint32_t n,
                                double scale, struct byoc_error *err)
{
    if (n != c->n_expected)
        return byi_fail(err, BYOC_EINTERNAL, "found %u results, expected %u", n,
                        c->n_expected);
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(compare_one(c, i, &found[i], scale, err));
    return BYOC_OK;
}

static enum byoc_status interpret(const struct program_case *c,
                                  const struct byi_module *m,
                                  struct byi_tensor *out, uint32_t *n,
                                  struct byoc_error *err)
{
    return byi_interp_run(m, byi_func_find(m, "main"), c->in, c->n_in, c->arena,
                          out, PROGRAM_MAX_RESULTS, n, err);
}

static enum byoc_status interpret_and_compare(const struct program_case *c,
                                              double scale,
                                              struct byoc_error *err)
{
    struct byi_tensor found[PROGRAM_MAX_RESULTS];
    uint32_t n = 0;
    BYI_TRY(interpret(c, c->m, found, &n, err));
    return compare(c, found, n, scale, err);
}

/* --- expected results -------------------------------------------- */

static double largest(const struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    double maximum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(byi_tensor_float(t, i));
        maximum = v > maximum ? v : maximum; /* false for NaN */
    }
    return maximum;
}

/* Widen the tolerance of result r by the changes of a jittered run. */
static void widen(struct program_case *c, uint32_t r,
                  const struct byi_tensor *jittered)
{
    const struct byi_tensor *expected = &c->expected[r];
    const int64_t n = byi_elements(expected->rank, expected->dims);
    const double size = largest(expected);
    const bool real = byi_dtype_is_float(expected->dtype);
    double *tolerance = c->tolerance[r];
    const bool same = byi_dims_equal(jittered->rank, jittered->dims,
                                     expected->rank, expected->dims);
    if (!same)
        tolerance[0] = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double y = byi_tensor_float(expected, i);
        const double x = same ? byi_tensor_float(jittered, i) : NAN;
        double difference = fabs(x - y);
        if (x == y || (isnan(x) && isnan(y) && same))
            difference = 0;
        else if (!real || !(difference <= 1e-3 * fmax(1.0, size)))
            difference = INFINITY;
        difference = SPREAD * difference + (real ? 4e-6 + 4e-6 * size : 0.0);
        tolerance[i] = fmax(tolerance[i], difference);
    }
}

static enum byoc_status run_jittered(struct program_case *c, uint64_t seed,
                                     struct byoc_error *err)
{
    struct byi_module *m = NULL;
    struct byi_tensor jittered[PROGRAM_MAX_RESULTS];
    uint32_t n = 0;
    BYI_TRY(program_build(c->p, &m, err));
    program_jitter(m, seed);
    enum byoc_status status = byi_verify(m, err);
    if (status == BYOC_OK)
        status = interpret(c, m, jittered, &n, err);
    for (uint32_t i = 0; status == BYOC_OK && i < n; i++)
        widen(c, i, &jittered[i]);
    byi_module_free(&m);
    return status;
}

static enum byoc_status make_inputs(struct program_case *c,
                                    struct byoc_error *err)
{
    const uint32_t func = byi_func_find(c->m, "main");
    if (func == UINT32_MAX)
        return byi_fail(err, BYOC_EINVAL, "found no function @main");
    const struct byi_func *f = c->m->funcs.at[func];
    for (uint32_t i = 0; i < f->params.n; i++)
        if (i == MAX_IN ||
            !byi_interp_random(f->nodes.at[f->params.at[i]].type,
                               c->p->seed + i, c->arena, &c->in[i]))
            return byi_fail(err, BYOC_EINVAL, "parameter %u is not a tensor",
                            i);
    c->n_in = f->params.n;
    return BYOC_OK;
}

/* Verify the unchanged program, and run it for the expected results. Sets *runs
 * to whether it runs without an error. */
static enum byoc_status begin(struct program_case *c,
                              struct program_totals *totals, bool *runs,
                              struct byoc_error *err)
{
    BYI_TRY(program_build(c->p, &c->m, err));
    BYI_TRY(byi_verify(c->m, err));
    BYI_TRY(make_inputs(c, err));
    for (uint32_t i = 0; i < c->m->funcs.n; i++)
        totals->nodes += c->m->funcs.at[i]->nodes.n;
    *runs = true;
    BYI_TRY(interpret(c, c->m, c->expected, &c->n_expected, err));
    for (uint32_t i = 0; i < c->n_expected;
         i++) /* may be the module's constants */
        c->expected[i].data = byi_arena_copy(c->arena, c->expected[i].data,
                                             byi_tensor_bytes(&c->expected[i]));
    return BYOC_OK;
}

static enum byoc_status run_copies(struct program_case *c, uint64_t from,
                                   uint64_t to, struct byoc_error *err)
{
    for (uint64_t i = from; i < to; i++)
        BYI_TRY(run_jittered(c, c->p->seed * MANY_COPIES + i, err));
    return BYOC_OK;
}

static enum byoc_status find_tolerances(struct program_case *c,
                                        struct program_totals *totals,
                                        struct byoc_error *err)
{
    for (uint32_t r = 0; r < c->n_expected; r++) {
        const int64_t n =
            byi_elements(c->expected[r].rank, c->expected[r].dims);
        c->tolerance[r] =
            byi_arena_calloc(c->arena, (size_t)n + 1, sizeof *c->tolerance[r]);
    }
    BYI_TRY(run_copies(c, 0, FEW_COPIES, err));
    for (uint32_t r = 0; r < c->n_expected; r++) {
        const int64_t n =
            byi_elements(c->expected[r].rank, c->expected[r].dims);
        bool bounded = true;
        for (int64_t i = 0; i < n; i++)
            bounded = bounded && !isinf(c->tolerance[r][i]);
        totals->results++;
        totals->bounded += bounded;
    }
    return BYOC_OK;
}

/* --- text -------------------------------------------------------- */

/* Whether a function does not read one of its captures, which the text form
 * then does not keep. */
static bool has_unread_captures(const struct byi_module *m)
{
    bool unread = false;
    for (uint32_t i = 0; i < m->funcs.n && !unread; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (uint32_t p = f->params.n - f->n_captures;
             !f->dead && p < f->params.n && !unread; p++) {
            bool read = f->result == f->params.at[p];
            for (byi_id id = 0; id < f->nodes.n && !read; id++)
                for (uint32_t k = 0; k < f->nodes.at[id].n_args; k++)
                    read |= f->nodes.at[id].args[k] == f->params.at[p];
            unread = !read;
        }
    }
    return unread;
}

/* Parse the module from `text`. The constants go through a file without a name.
 */
static enum byoc_status print_and_parse(struct program_case *c,
                                        struct byi_text *text,
                                        struct byoc_error *err)
{
    char side[48];
    const int fd = memfd_create("consts", MFD_CLOEXEC);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!stream)
        return byi_fail(err, BYOC_EIO, "no memory file");
    byi_print_module(c->m, text, stream);
    fflush(stream);
    byi_module_free(&c->m);
    snprintf(side, sizeof side, "/proc/self/fd/%d", fd);
    const enum byoc_status status =
        byi_parse_module(text->at, text->n, "printed", side, &c->m, err);
    fclose(stream);
    return status;
}

static enum byoc_status compare_texts(const char *a, const char *b,
                                      struct byoc_error *err)
{
    size_t line = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        line = a[i] == '\n' ? i + 1 : line;
    if (a[i] == b[i])
        return BYOC_OK;
    return byi_fail(err, BYOC_EINTERNAL,
                    "'%.*s' is printed as '%.*s' after parsing",
                    (int)strcspn(a + line, "\n"), a + line,
                    (int)strcspn(b + line, "\n"), b + line);
}

/* Check that the program gives the same results and the same text after it is
 * printed and parsed twice. */
static enum byoc_status check_text(struct program_case *c,
                                   const struct program_stage *stage,
                                   struct byoc_error *err)
{
    struct byi_text text[2] = {0};
    (void)stage;
    BYI_TRY(program_build(c->p, &c->m, err));
    enum byoc_status status = BYOC_OK;
    if (has_unread_captures(c->m)) {
        status = print_and_parse(c, &text[0], err);
        byi_text_free(&text[0]);
    }
    for (uint32_t i = 0; i < 2 && status == BYOC_OK; i++)
        status = print_and_parse(c, &text[i], err);
    if (status == BYOC_OK)
        status = compare_texts(text[0].at, text[1].at, err);
    if (status == BYOC_OK)
        status = interpret_and_compare(c, 0, err);
    byi_text_free(&text[0]);
    byi_text_free(&text[1]);
    return status;
}

/* --- passes ------------------------------------------------------ */

static enum byoc_status run_list(struct byi_module *m,
                                 const struct byi_pass *const *passes,
                                 uint32_t n, struct byoc_error *err)
{
    struct byi_pass_context ctx = {
        .opt_level = 3,
        .verify = true,
        .known = byi_passes_known(),
        .eval = byi_kernel_eval,
        .entries = {byi_backends_entry(program_backends())}};
    return byi_run_passes(m, passes, n, &ctx, err);
}

static const char *find_form(const char *name)
{
    for (size_t i = 0; i < BYI_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0)
            return forms[i].first;
    return NULL;
}

static enum byoc_status run_stage(struct byi_module *m,
                                  const struct program_stage *stage,
                                  struct byoc_error *err)
{
    const struct byi_pass *const *pipeline = byi_passes_pipeline();
    const struct byi_pass *list[BYI_COUNT(forms) + 1];
    uint32_t n = 0, first = BYI_COUNT(list);
    while (!stage->pass && pipeline[n])
        n++;
    if (!stage->pass)
        return run_list(m, pipeline, n, err);
    list[--first] = stage->pass;
    for (const char *form = find_form(stage->name); form && first > 0;
         form = find_form(form))
        list[--first] = byi_pass_find(form);
    return run_list(m, list + first, (uint32_t)BYI_COUNT(list) - first, err);
}

static enum byoc_status check_pass(struct program_case *c,
                                   const struct program_stage *stage,
                                   struct byoc_error *err)
{
    BYI_TRY(program_build(c->p, &c->m, err));
    BYI_TRY(run_stage(c->m, stage, err));
    return interpret_and_compare(c, is_exact(stage->name) ? 0 : 1.0, err);
}

void program_print_after(const struct program *p,
                         const struct program_stage *stage,
                         struct byi_text *out)
{
    struct byi_module *m = NULL;
    struct byoc_error err;
    if (program_build(p, &m, &err) != BYOC_OK)
        return;
    if (run_stage(m, stage, &err) != BYOC_OK)
        byi_text_addf(out, "// %s\n", err.text);
    byi_print_module(m, out, NULL);
    byi_module_free(&m);
}

/* --- the runtime ------------------------------------------------- */

static enum byoc_status run_state(struct program_case *c,
                                  struct byoc_state *state, double scale,
                                  struct byoc_error *err)
{
    DLTensor in[MAX_IN], out[PROGRAM_MAX_RESULTS] = {0};
    struct byi_tensor found[PROGRAM_MAX_RESULTS];
    for (uint32_t i = 0; i < c->n_in; i++)
        in[i] = view_of(&c->in[i]);
    BYI_TRY(byoc_run(state, in, c->n_in, out, c->n_expected, err));
    for (uint32_t i = 0; i < c->n_expected; i++) {
        const DLDataType expected = byoc_dtype_dlpack(c->expected[i].dtype);
        found[i] = (struct byi_tensor){
            .data = (char *)out[i].data + out[i].byte_offset,
            .dtype = memcmp(&out[i].dtype, &expected, sizeof expected) == 0
                         ? c->expected[i].dtype /* bools are bytes there */
                         : byi_dtype_of_dlpack(out[i].dtype),
            .rank = (uint32_t)out[i].ndim};
        memcpy(found[i].dims, out[i].shape, found[i].rank * sizeof(int64_t));
    }
    return compare(c, found, c->n_expected, scale, err);
}

/* Run twice on one state: the first run must not affect the second. */
static enum byoc_status run_model(struct program_case *c,
                                  struct byoc_model *model, double scale,
                                  struct byoc_error *err)
{
    struct byoc_state *state = NULL;
    enum byoc_status status = byoc_state_new(model, &state, err);
    for (uint32_t i = 0; status == BYOC_OK && i < 2; i++)
        status = run_state(c, state, scale, err);
    byoc_state_free(&state);
    return status;
}

/* Run a plan in memory. Frees the module. */
static enum byoc_status run_plan(struct program_case *c, double scale,
                                 struct byoc_error *err)
{
    const struct byoc_load_params load = {.threads = 1, .native_only = 1};
    struct byoc_model *model = NULL;
    struct fixture x;
    BYI_TRY(fixture_open_module(&x, &c->m, err));
    enum byoc_status status =
        byoc_internal_model_open(&x.image, &load, &model, err);
    if (status == BYOC_OK)
        status = run_model(c, model, scale, err);
    byoc_model_free(&model);
    fixture_close(&x);
    return status;
}

static enum byoc_status check_plan(struct program_case *c,
                                   const struct program_stage *stage,
                                   struct byoc_error *err)
{
    (void)stage;
    BYI_TRY(program_build(c->p, &c->m, err));
    return run_plan(c, 1.0, err);
}

static enum byoc_status check_executor(struct program_case *c,
                                       const struct program_stage *stage,
                                       struct byoc_error *err)
{
    BYI_TRY(program_build(c->p, &c->m, err));
    BYI_TRY(run_stage(c->m, stage, err));
    return run_plan(c, 1.0, err);
}

/* Compile to an artifact as `byoc compile` does, with oneDNN, and run it. */
static enum byoc_status compile_and_run(struct program_case *c,
                                        const char *folder,
                                        struct byoc_error *err)
{
    const struct byoc_compile_params params = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .verify = 1};
    const struct byoc_load_params load = {.plugins = params.plugins,
                                          .threads = 1};
    char path[3][TEST_PATH + 16];
    static const char *const ends[] = {"ir", "consts", "so"};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    FILE *files[2];
    for (uint32_t i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/p.%s", folder, ends[i]);
    for (uint32_t i = 0; i < 2; i++)
        if (!(files[i] = fopen(path[i], "w")))
            return byi_fail(err, BYOC_EIO, "cannot write %s", path[i]);
    struct byi_text text = {0};
    byi_print_module(c->m, &text, files[1]);
    fwrite(text.at, 1, text.n, files[0]);
    byi_text_free(&text);
    fclose(files[0]);
    fclose(files[1]);
    enum byoc_status status = byoc_compile(path[0], &params, &compiled, err);
    if (status == BYOC_OK)
        status = byoc_compiled_write(compiled, path[2], err);
    if (status == BYOC_OK)
        status = byoc_model_load(path[2], &load, &model, err);
    if (status == BYOC_OK)
        status = run_model(c, model, 8.0, err);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
    for (uint32_t i = 0; i < 3; i++)
        unlink(path[i]);
    return status;
}

static enum byoc_status check_artifact(struct program_case *c,
                                       const struct program_stage *stage,
                                       struct byoc_error *err)
{
    char folder[TEST_PATH];
    (void)stage;
    BYI_TRY(program_build(c->p, &c->m, err));
    if (!make_inner_folder(folder))
        return byi_fail(err, BYOC_EIO, "cannot make a folder");
    const enum byoc_status status = compile_and_run(c, folder, err);
    rmdir(folder);
    return status;
}

/* --- all of it --------------------------------------------------- */

uint32_t program_stages(struct program_stage stages[PROGRAM_MAX_STAGES])
{
    const struct byi_pass *const *pass = byi_passes_known();
    uint32_t n = 0;
    stages[n++] =
        (struct program_stage){.name = "text", .check = check_text, .every = 1};
    for (; *pass && n + 4 < PROGRAM_MAX_STAGES; pass++)
        stages[n++] = (struct program_stage){.name = (*pass)->name,
                                             .pass = *pass,
                                             .check = check_pass,
                                             .every = 1};
    stages[n++] = (struct program_stage){
        .name = "pipeline", .check = check_pass, .every = 1};
    stages[n++] =
        (struct program_stage){.name = "plan", .check = check_plan, .every = 1};
    stages[n++] = (struct program_stage){
        .name = "executor", .check = check_executor, .every = 1};
    stages[n++] =
        (struct program_stage){.name = "artifact", .check = check_artifact};
    return n;
}

/* Remove dead nodes, which most passes drop as well. */
static char *print_needed(struct byi_module *m, struct byi_text *text)
{
    const struct byi_pass *clean = byi_pass_find("DeadCodeElimination");
    if (run_list(m, &clean, 1, NULL) == BYOC_OK)
        byi_print_module(m, text, NULL);
    return text->at;
}

static bool has_changed(struct program_case *c)
{
    struct byi_module *m = NULL;
    struct byi_text before = {0}, after = {0};
    bool changed = false;
    if (program_build(c->p, &m, NULL) == BYOC_OK)
        changed =
            strcmp(print_needed(m, &before), print_needed(c->m, &after)) != 0;
    byi_module_free(&m);
    byi_text_free(&before);
    byi_text_free(&after);
    return changed;
}

/* Check a program on a stage. In a few jittered copies, equal numbers may stay
 * equal that a pass makes different. Before a result counts as wrong, many
 * copies determine the tolerance. */
static enum byoc_status check_with_copies(struct program_case *c,
                                          const struct program_stage *stage,
                                          struct byoc_error *err)
{
    const enum byoc_status status = stage->check(c, stage, err);
    if (status != BYOC_EINTERNAL || c->has_many_copies)
        return status;
    byi_module_free(&c->m);
    c->has_many_copies = true;
    BYI_TRY(run_copies(c, FEW_COPIES, MANY_COPIES, err));
    return stage->check(c, stage, err);
}

static bool run_one(struct program_case *c, struct program_stage *stage,
                    struct byoc_error *err)
{
    const double start = byi_now();
    snprintf(program_place, sizeof program_place, "seed %llu size %u: %s\n",
             (unsigned long long)c->p->seed, c->p->size, stage->name);
    const enum byoc_status status = check_with_copies(c, stage, err);
    stage->seconds += byi_now() - start;
    stage->runs++;
    if (status == BYOC_OK && c->sample && stage->pass) {
        stage->sampled++;
        stage->changed += has_changed(c);
    }
    byi_module_free(&c->m);
    if (status == BYOC_EUNSUPPORTED) {
        stage->skipped++;
        return true;
    }
    stage->failed += status != BYOC_OK;
    return status == BYOC_OK;
}

static void report_begin_failure(const struct program *p,
                                 struct byoc_error *err,
                                 program_failed_fn failed, void *ctx)
{
    static const struct program_stage first = {.name = "first run"};
    failed(ctx, p, &first, err);
}

uint32_t program_check(const struct program *p, struct program_stage *stages,
                       uint32_t n, struct program_totals *totals,
                       program_failed_fn failed, void *ctx)
{
    struct program_case c = {.p = p, .arena = byi_arena_new()};
    struct byoc_error err = {0};
    uint32_t n_failed = 0;
    c.sample = totals->programs++ % SAMPLE == 0;
    snprintf(program_place, sizeof program_place,
             "seed %llu size %u: first run\n", (unsigned long long)p->seed,
             p->size);
    bool runs = false;
    enum byoc_status status = begin(&c, totals, &runs, &err);
    byi_module_free(&c.m);
    if (status == BYOC_OK)
        status = find_tolerances(&c, totals, &err);
    if (status != BYOC_OK && runs) {
        totals->ended_in_error++; /* sizes that depend on data do not fit */
    } else if (status != BYOC_OK) {
        report_begin_failure(p, &err, failed, ctx);
        n_failed++;
    }
    for (uint32_t i = 0; status == BYOC_OK && i < n; i++) {
        if (!stages[i].every || (totals->programs - 1) % stages[i].every)
            continue;
        if (!run_one(&c, &stages[i], &err)) {
            failed(ctx, p, &stages[i], &err);
            n_failed++;
        }
    }
    byi_arena_free(&c.arena);
    return n_failed;
}
