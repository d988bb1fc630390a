/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: compiles a mutant of a model, loads it, and runs it if it is small
 * enough.
 */
#include <byoc/byoc.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "runtime/state.h"

enum {
    MAX_BYTES = 8 << 20,  /* of the inputs and outputs of a model that runs */
    MAX_FLOPS = 20 << 20, /* of a model that runs */
    MAX_CALLS = 2000      /* in a run, since a mutant may recurse without end */
};

static double flops(const char *ledger)
{
    cJSON *root = cJSON_Parse(ledger);
    const cJSON *s = cJSON_GetObjectItemCaseSensitive(root, "summary");
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(s, "flops");
    double count = cJSON_IsNumber(n) ? n->valuedouble : 0;
    cJSON_Delete(root);
    return count;
}

/* Whether inputs and outputs are small if symbolic dims are `size`. */
static bool is_small(const struct byoc_model *m, int64_t size)
{
    uint64_t bytes = 0;
    uint32_t n_in = byoc_model_n_inputs(m), n = n_in + byoc_model_n_outputs(m);
    for (uint32_t i = 0; i < n; i++) {
        const struct byoc_io *io =
            i < n_in ? byoc_model_input(m, i) : byoc_model_output(m, i - n_in);
        struct byi_tensor t = {.dtype = io->dtype, .rank = io->rank};
        for (uint32_t k = 0; k < io->rank; k++)
            t.dims[k] = io->dims[k] < 0 ? size : io->dims[k];
        uint64_t value_bytes = byi_tensor_bytes(&t);
        if (value_bytes > MAX_BYTES || !byoc_dtype_size(io->dtype))
            return false;
        bytes += value_bytes;
    }
    return bytes <= MAX_BYTES;
}

static DLTensor make_input(struct fuzz_case *c, const struct byoc_io *io,
                           int64_t size, struct byi_arena *arena)
{
    struct byi_tensor *t = byi_arena_alloc(arena, sizeof *t);
    *t = (struct byi_tensor){.dtype = io->dtype, .rank = io->rank};
    for (uint32_t k = 0; k < io->rank; k++)
        t->dims[k] = io->dims[k] < 0 ? size : io->dims[k];
    t->data = byi_acquire(byi_tensor_bytes(t) + 1);
    byi_arena_defer(arena, byi_release, t->data);
    bool real = byi_dtype_is_float(t->dtype);
    bool complex = t->dtype == BYOC_C64 || t->dtype == BYOC_C128;
    int64_t n = complex ? 0 : byi_elements(t->rank, t->dims);
    memset(t->data, 0, byi_tensor_bytes(t));
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(t, i,
                       real ? (double)fuzz_below(&c->rng, 2001) / 1000 - 1
                            : (double)fuzz_below(&c->rng, 4));
    return (DLTensor){.data = t->data,
                      .device = {kDLCPU, 0},
                      .ndim = (int)t->rank,
                      .dtype = byoc_dtype_dlpack(t->dtype),
                      .shape = t->dims};
}

/* Copies of the floating-point outputs of a run. Other outputs may differ much
 * if floats differ in their last bits. */
struct results {
    uint32_t n;
    struct byi_tensor *at;
    struct byi_arena *arena;
};

static void keep(struct results *r, const DLTensor *out, uint32_t n)
{
    r->at = byi_arena_calloc(r->arena, n, sizeof *r->at);
    r->n = n;
    for (uint32_t i = 0; i < n; i++) {
        struct byi_tensor *t = &r->at[i];
        *t = (struct byi_tensor){.dtype = byi_dtype_of_dlpack(out[i].dtype),
                                 .rank = (uint32_t)out[i].ndim};
        for (uint32_t k = 0; k < t->rank; k++)
            t->dims[k] = out[i].shape[k];
        t->data =
            byi_arena_copy(r->arena, (char *)out[i].data + out[i].byte_offset,
                           byi_tensor_bytes(t));
    }
}

/* Whether a result differs too much from the reference. Integers are not
 * compared, nor are tensors in which both have an infinity or NaN at one place,
 * or that contain huge numbers. */
static bool differ(const struct byi_tensor *a, const struct byi_tensor *b)
{
    int64_t n = byi_elements(b->rank, b->dims);
    double largest = 0, worst = 0;
    if (!byi_dims_equal(a->rank, a->dims, b->rank, b->dims))
        return true;
    if (a->dtype != BYOC_F32 && a->dtype != BYOC_F64)
        return false;
    for (int64_t i = 0; i < n; i++) {
        double x = byi_tensor_float(a, i), y = byi_tensor_float(b, i);
        if (!isfinite(x) && !isfinite(y))
            return false;
        largest = fmax(largest, fabs(y));
        worst = fmax(worst, fabs(x - y));
    }
    return largest < 1e6 && !(worst <= 1e-3 * largest + 1e-4);
}

static bool run(struct fuzz_case *c, const struct byoc_model *model,
                struct results *results)
{
    struct byoc_error err;
    int64_t size = 1 + (int64_t)fuzz_below(&c->rng, 3);
    if (!is_small(model, size))
        return true;
    struct byoc_state *state = NULL;
    if (byoc_state_new(model, &state, &err) != BYOC_OK)
        return fuzz_refused(c, "state", &err);
    state->max_calls = MAX_CALLS;
    struct byi_arena *arena = byi_arena_new();
    uint32_t n_in = byoc_model_n_inputs(model);
    uint32_t n_out = byoc_model_n_outputs(model);
    DLTensor *in = byi_arena_calloc(arena, n_in, sizeof *in);
    DLTensor *out = byi_arena_calloc(arena, n_out, sizeof *out);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = make_input(c, byoc_model_input(model, i), size, arena);
    bool good = true;
    for (int i = 0; i < 2 && good;
         i++) /* the second run uses memory of the first */
        if (byoc_run(state, in, n_in, out, n_out, &err) != BYOC_OK)
            good = fuzz_refused(c, "run", &err);
        else
            c->accepted = true;
    if (good && c->accepted && results)
        keep(results, out, n_out);
    byoc_state_free(&state);
    byi_arena_free(&arena);
    return good;
}

bool fuzz_run(struct fuzz_case *c, const struct byoc_model *model)
{
    return run(c, model, NULL);
}

static const char *const no_backends[] = {NULL};

/* Compile and run. Sets *results, unless it is NULL, if the model ran. */
static bool attempt(struct fuzz_case *c, const char *path, bool native,
                    int opt_level, struct results *results)
{
    const struct byoc_compile_params params = {
        .backends = native ? no_backends : NULL,
        .plugins = native ? NULL : BUILD_DIR "/libbyoc_backend_dnnl.so",
        .opt_level = (enum byoc_opt)((int)BYOC_O0 + opt_level),
        .threads = 1,
        .verify = 1};
    const struct byoc_load_params load = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .threads = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    struct byoc_error err;
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        return fuzz_refused(c, "compile", &err);
    bool good = true;
    if (flops(byoc_compiled_ledger(compiled)) <= MAX_FLOPS) {
        if (byoc_compiled_load(compiled, &load, &model, &err) != BYOC_OK)
            good = fuzz_refused(c, "load", &err);
        else
            good = run(c, model, results);
        byoc_model_free(&model);
    }
    byoc_compiled_free(&compiled);
    return good;
}

/* Check that the model gives the same results without optimisation and
 * backends.
 */
static bool compare(struct fuzz_case *c, const char *path, struct fuzz_rng rng,
                    const struct results *found)
{
    struct results reference = {.arena = byi_arena_new()};
    c->rng = rng;
    bool good = attempt(c, path, true, 0, &reference);
    for (uint32_t i = 0; good && i < reference.n && i < found->n; i++)
        if (differ(&found->at[i], &reference.at[i])) {
            snprintf(c->why, sizeof c->why,
                     "output %u differs from a run without passes", i);
            good = false;
        }
    byi_arena_free(&reference.arena);
    return good;
}

bool fuzz_compile_and_run(struct fuzz_case *c, const char *path)
{
    bool native = fuzz_below(&c->rng, 3) != 0;
    int opt_level = (int)fuzz_below(&c->rng, 4);
    struct fuzz_rng rng = c->rng;
    struct results found = {.arena = byi_arena_new()};
    bool good = attempt(c, path, native, opt_level, &found);
    if (good && c->compare && found.n)
        good = compare(c, path, rng, &found);
    byi_arena_free(&found.arena);
    return good;
}
