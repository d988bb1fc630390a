/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c: loads modules, compiles their fused groups, and times them in
 * turn. */
#include "measure.h"

#include "compile/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/temp.h"

enum byoc_status byi_meter_passes(const struct byi_meter *meter,
                                  struct byi_module *m,
                                  struct byi_backends *backends,
                                  struct byoc_error *err)
{
    struct byi_pass_context ctx = *meter->ctx;
    byi_context_put(&ctx, byi_backends_entry(backends));
    byi_context_put(&ctx, byi_ledger_entry(NULL));
    ctx.instruments = NULL;
    ctx.n_instruments = 0;
    ctx.stop_after = NULL;
    ctx.verify = false;
    const struct byi_pass *const *passes = byi_passes_pipeline() + 1;
    uint32_t n = 0;
    while (passes[n])
        n++;
    return byi_run_passes(m, passes, n, &ctx, err);
}

/* --- compiled groups ------------------------------------------------------ */

/* Write an artifact with these kernels and without weights. It is never loaded
 * as a model, so its plan may have any entry function. */
static enum byoc_status write_code(const struct byi_meter *meter,
                                   const struct byi_module *m,
                                   const struct byi_kernels *kernels,
                                   const char *path, struct byoc_error *err)
{
    struct byi_built_model built = {0};
    struct byi_text manifest = {0};
    enum byoc_status status = byi_built_model_make(m, meter->found, kernels,
                                                   meter->arena, &built, err);
    if (status == BYOC_OK) {
        struct byi_image image = byi_built_model_image(&built);
        image.weights_bytes = 0;
        image.n_spans = 0;
        image.source = kernels->source.at;
        image.source_bytes = kernels->source.n;
        image.n_kernels = kernels->list.n;
        status = byi_built_model_manifest(m, meter->found, &image, true,
                                          meter->arena, &manifest, err);
        image.manifest = manifest.at;
        image.manifest_bytes = manifest.n;
        if (status == BYOC_OK)
            status = byi_artifact_write(path, &image, meter->cc, err);
    }
    byi_text_free(&manifest);
    byi_built_model_free(&built);
    return status;
}

static enum byoc_status compile_groups(const struct byi_meter *meter,
                                       const struct byi_module *m,
                                       struct byi_compiled_groups *groups,
                                       struct byoc_error *err)
{
    const char *base = secure_getenv("TMPDIR");
    struct byi_temp *listed = NULL;
    char *folder = byi_arena_printf(meter->arena, "%s/byoc-XXXXXX",
                                    base && *base ? base : "/tmp");
    if (!byi_temp_folder(folder, &listed))
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot create this folder: %s; set TMPDIR to a "
                        "folder that can be written",
                        folder, strerror(errno));
    const char *path = byi_arena_printf(meter->arena, "%s/code.so", folder);
    enum byoc_status status = write_code(meter, m, &groups->kernels, path, err);
    if (status == BYOC_OK)
        status = byoc_internal_code_open(path, &groups->library, err);
    unlink(path); /* the mapping stays valid */
    rmdir(folder);
    byi_temp_done(&listed);
    return status;
}

void byi_meter_compile(struct byi_meter *meter, const struct byi_module *m,
                       struct byi_compiled_groups *groups)
{
    struct byoc_error err;
    byi_kernels_write(m, &groups->kernels);
    if (!groups->kernels.list.n || meter->no_compiler)
        return;
    if (compile_groups(meter, m, groups, &err) == BYOC_OK) {
        groups->has_code = true;
        return;
    }
    meter->no_compiler = true;
    byi_text_addf(&meter->compiler_error, "%s", err.text);
}

void byi_compiled_groups_free(struct byi_compiled_groups *groups)
{
    byoc_internal_code_close(&groups->library);
    byi_kernels_free(&groups->kernels);
    groups->has_code = false;
}

/* --- alternatives --------------------------------------------------------- */

static enum byoc_status load_alternative(
    const struct byi_meter *meter, const struct byi_compiled_groups *groups,
    struct byi_alternative *a, struct byoc_error *err)
{
    struct byi_image image = byi_built_model_image(&a->built);
    if (groups->has_code) {
        const struct byi_image *code = &groups->library.artifact.image;
        image.code = code->code;
        image.code_bytes = code->code_bytes;
        image.text = code->text;
        image.text_bytes = code->text_bytes;
    }
    const struct byoc_load_params params = {.threads = meter->threads,
                                            .plugins = meter->plugins,
                                            .require_backends = true};
    BYI_TRY(byoc_internal_model_open(&image, &params, &a->model, err));
    BYI_TRY(byoc_state_new(a->model, &a->state, err));
    a->n_outputs = byoc_model_n_outputs(a->model);
    a->outputs =
        byi_arena_calloc(meter->arena, a->n_outputs + 1u, sizeof *a->outputs);
    return BYOC_OK;
}

enum byoc_status byi_alternative_open(const struct byi_meter *meter,
                                      const struct byi_module *m,
                                      const struct byi_compiled_groups *groups,
                                      struct byi_alternative *a,
                                      struct byoc_error *err)
{
    *a = (struct byi_alternative){0};
    enum byoc_status status = byi_built_model_make(
        m, meter->found, groups->has_code ? &groups->kernels : NULL,
        meter->arena, &a->built, err);
    if (status == BYOC_OK)
        status = load_alternative(meter, groups, a, err);
    if (status != BYOC_OK)
        byi_alternative_close(a);
    return status;
}

void byi_alternative_close(struct byi_alternative *a)
{
    byoc_state_free(&a->state);
    byoc_model_free(&a->model);
    byi_built_model_free(&a->built);
}

/* --- inputs --------------------------------------------------------------- */

/* Knuth's MMIX generator, whose upper bits are the most random. */
static uint32_t draw_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Make a random input in `arena`, with the generator's state *seed: floats in
 * [-1, 1), integers 0 or 1. Symbolic dims are `size`. */
static enum byoc_status make_random(const struct byoc_io *io, int64_t size,
                                    struct byi_arena *arena, uint64_t *seed,
                                    DLTensor *view, struct byoc_error *err)
{
    struct byi_tensor t = {.dtype = io->dtype, .rank = io->rank};
    int64_t *dims = byi_arena_calloc(arena, io->rank + 1u, sizeof *dims);
    for (uint32_t d = 0; d < io->rank; d++)
        t.dims[d] = dims[d] = io->dims[d] < 0 ? size : io->dims[d];
    const uint64_t bytes = byi_tensor_bytes(&t);
    if (io->dtype == BYOC_STRING)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "input \"%.100s\": found dtype string, expected "
                        "numbers or bools",
                        io->name);
    if (bytes >= SIZE_MAX - BYI_ALIGN)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "input \"%.100s\": found dims whose tensor does not "
                        "fit in memory, expected smaller ones",
                        io->name);
    const uintptr_t at =
        (uintptr_t)byi_arena_alloc(arena, (size_t)bytes + BYI_ALIGN);
    t.data = (void *)((at + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN);
    const int64_t n = byi_elements(t.rank, t.dims);
    const bool is_float = byi_dtype_is_float(io->dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t r = draw_bits(seed);
        byi_tensor_set(&t, i, is_float ? r / 1073741824.0 - 1 : r >> 30);
    }
    *view = byi_tensor_dlpack(&t);
    view->shape = dims;
    return BYOC_OK;
}

/* --- timing --------------------------------------------------------------- */

enum {
    ROUNDS_IF_CLEAR = 3, /* enough if there is a clear winner */
    MIN_ROUNDS = 7,      /* otherwise, even if the time is over */
    MAX_ROUNDS = 301
};

/* The times of one alternative, by round. */
struct round_times {
    uint32_t repeats; /* runs in a row, so that the clock is fine enough */
    double us[MAX_ROUNDS];
};

/* The state of byi_alternatives_time. */
struct comparison {
    struct byi_alternative *const *alternatives;
    uint32_t n, rounds; /* alternatives; rounds that were run */
    DLTensor *inputs;
    uint32_t n_inputs;
    struct round_times *round_times; /* indexed by alternative */
};

/* The times and sleeps of this thread, as the operating system counts them. */
struct usage {
    double wall, cpu; /* seconds */
    long sleeps;      /* voluntary context switches */
};

static struct usage thread_usage_now(void)
{
    struct rusage usage;
    struct timespec t;
    getrusage(RUSAGE_THREAD, &usage);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (struct usage){.wall = byi_now(),
                          .cpu = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec,
                          .sleeps = usage.ru_nvcsw};
}

/* Run alternative i `repeats` times; *us: the time of one run. It is CPU time
 * of this thread, so that other processes do not add to it. The thread computes
 * a part of every OpenMP region and spins while it waits for the other threads.
 * If the thread slept, it waited for a device or for other threads: then *us is
 * wall time. */
static enum byoc_status run_once(const struct comparison *r, uint32_t i,
                                 uint32_t repeats, double *us,
                                 struct byoc_error *err)
{
    struct byi_alternative *a = r->alternatives[i];
    const struct usage start = thread_usage_now();
    for (uint32_t k = 0; k < repeats; k++) {
        for (uint32_t o = 0; o < a->n_outputs; o++)
            a->outputs[o].data = NULL;
        BYI_TRY(byoc_run(a->state, r->inputs, r->n_inputs, a->outputs,
                         a->n_outputs, err));
    }
    const struct usage end = thread_usage_now();
    *us = 1e6 / repeats *
          (end.sleeps > start.sleeps ? end.wall - start.wall
                                     : end.cpu - start.cpu);
    return BYOC_OK;
}

/* Run each alternative once or more, and set its `repeats`. */
static enum byoc_status warm_up(struct comparison *r, uint32_t *failed,
                                struct byoc_error *err)
{
    /* repeat shorter runs to take this long; run longer ones only once */
    const double batch_us = 100, slow_us = 50000;
    for (uint32_t i = 0; i < r->n; i++) {
        double us = 0;
        *failed = i;
        BYI_TRY(run_once(r, i, 1, &us, err));
        if (us < slow_us)
            BYI_TRY(run_once(r, i, 1, &us, err));
        if (us < batch_us)
            BYI_TRY(run_once(r, i, 5, &us, err));
        r->round_times[i].repeats =
            us < batch_us ? 1 + (uint32_t)(batch_us / (us + 0.1)) : 1;
    }
    return BYOC_OK;
}

static enum byoc_status run_round(struct comparison *r, uint32_t *failed,
                                  struct byoc_error *err)
{
    for (uint32_t k = 0; k < r->n; k++) {
        /* the alternatives take turns to run first */
        const uint32_t i = (r->rounds + k) % r->n;
        *failed = i;
        BYI_TRY(run_once(r, i, r->round_times[i].repeats,
                         &r->round_times[i].us[r->rounds], err));
    }
    r->rounds++;
    return BYOC_OK;
}

/* The minimum and the quartiles of an alternative's times. Other processes that
 * use the caches and the memory only make runs slower, so the lower quartile
 * counts. */
struct time_spread {
    double min, low, high;
};

static struct time_spread spread_of(const struct comparison *r, uint32_t i)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, r->round_times[i].us, r->rounds * sizeof *sorted);
    qsort(sorted, r->rounds, sizeof *sorted, byi_compare_doubles);
    return (struct time_spread){sorted[0], sorted[(r->rounds - 1) / 4],
                                sorted[3 * (r->rounds - 1) / 4]};
}

/* Whether there is a clear winner: every round of the other alternatives is
 * slower, by more than `margin`, than three quarters of the winner's rounds. */
static bool has_clear_winner(const struct comparison *r, double margin)
{
    struct time_spread best = spread_of(r, 0);
    uint32_t winner = 0;
    for (uint32_t i = 1; i < r->n; i++) {
        const struct time_spread s = spread_of(r, i);
        if (s.low < best.low) {
            best = s;
            winner = i;
        }
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (i != winner && spread_of(r, i).min < (1 + margin) * best.high)
            return false;
    return true;
}

/* Run rounds until there is a clear winner or the time is over, and set the
 * alternatives' times. */
static enum byoc_status compare_alternatives(struct comparison *r,
                                             double seconds, uint32_t *failed,
                                             struct byoc_error *err)
{
    const double margin = 0.1;
    const double start = byi_now();
    double elapsed = 0;
    while (r->rounds < MAX_ROUNDS &&
           (r->rounds < MIN_ROUNDS || elapsed < seconds) &&
           !(r->rounds >= ROUNDS_IF_CLEAR && has_clear_winner(r, margin))) {
        BYI_TRY(run_round(r, failed, err));
        elapsed = byi_now() - start;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const struct time_spread s = spread_of(r, i);
        r->alternatives[i]->us = s.low;
        r->alternatives[i]->noise = s.high / s.low - 1;
    }
    return BYOC_OK;
}

bool byi_alternatives_are_decided(struct byi_alternative *const *at, uint32_t n)
{
    const double busy_noise =
        0.25; /* more noise means that the machine is busy */
    const struct byi_alternative *best = at[0];
    for (uint32_t i = 1; i < n; i++)
        best = at[i]->us < best->us ? at[i] : best;
    for (uint32_t i = 0; i < n; i++) {
        const double noise =
            at[i]->noise > best->noise ? at[i]->noise : best->noise;
        if (at[i] != best && noise > busy_noise &&
            at[i]->us < (1 + noise) * best->us)
            return false;
    }
    return true;
}

/* Make random inputs whose symbolic dims are `size`, and run each alternative
 * once or more. */
static enum byoc_status begin_comparison(struct comparison *r, int64_t size,
                                         struct byi_arena *arena,
                                         uint32_t *failed,
                                         struct byoc_error *err)
{
    uint64_t seed = 1;
    *failed = 0;
    for (uint32_t i = 0; i < r->n_inputs; i++)
        BYI_TRY(make_random(byoc_model_input(r->alternatives[0]->model, i),
                            size, arena, &seed, &r->inputs[i], err));
    return warm_up(r, failed, err);
}

enum byoc_status byi_alternatives_time(struct byi_alternative *const *at,
                                       uint32_t n, double seconds,
                                       uint32_t *failed, struct byoc_error *err)
{
    static const int64_t sizes[] = {1, 2, 64};
    struct byi_arena *arena = byi_arena_new();
    struct comparison r = {.alternatives = at,
                           .n = n,
                           .n_inputs = byoc_model_n_inputs(at[0]->model)};
    r.inputs = byi_arena_calloc(arena, r.n_inputs + 1u, sizeof *r.inputs);
    r.round_times = byi_arena_calloc(arena, n, sizeof *r.round_times);
    enum byoc_status status =
        begin_comparison(&r, sizes[0], arena, failed, err);
    for (size_t i = 1; i < BYI_COUNT(sizes); i++)
        if (status != BYOC_OK && status != BYOC_ENOMEM)
            status = begin_comparison(&r, sizes[i], arena, failed, err);
    if (status == BYOC_OK)
        status = compare_alternatives(&r, seconds, failed, err);
    byi_arena_free(&arena);
    return status;
}
