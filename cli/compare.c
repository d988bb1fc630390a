/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: `byoc compare`: compares a model's outputs with expected ones, or
 * with the outputs of native kernels.
 */
#include "cli.h"

#include "driver/feed.h"
#include "report/report.h"

#include "runtime/internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { NOT_GIVEN = -1 }; /* a tolerance: use the default */

/* The type that float32 values were computed in. It is a narrower type if that
 * type can represent all of them and their magnitudes span more bits than its
 * significand has. The second condition excludes integers and dequantised
 * numbers, which are multiples of one step. */
static enum byoc_dtype computed_in(const struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    int top = INT_MIN, low = INT_MAX, precision = 0;
    if (t->dtype != BYOC_F32)
        return t->dtype;
    for (int64_t i = 0; i < n; i++) {
        const float x = ((const float *)t->data)[i];
        int exponent, bits = 24; /* x = 2^(exponent - bits) * an odd integer */
        if (x == 0 || !isfinite(x))
            continue;
        uint32_t integer = (uint32_t)fabsf(ldexpf(frexpf(x, &exponent), bits));
        for (; integer % 2 == 0; integer /= 2)
            bits--;
        if (bits > 11) /* float16's */
            return BYOC_F32;
        precision = bits > precision ? bits : precision;
        top = exponent > top ? exponent : top;
        low = exponent - bits < low ? exponent - bits : low;
    }
    if (precision == 0 || top - low < 12 || top - low < precision + 3)
        return BYOC_F32;
    return precision <= 8            ? BYOC_BF16
           : top <= 16 && low >= -24 ? BYOC_F16
                                     : BYOC_F32;
}

/* The tolerance for results of this type. The defaults allow for the unit
 * roundoff of the type as it accumulates over the layers of a network: 2^-24
 * for float32, 2^-11 for float16, 2^-8 for bfloat16. */
static struct byi_tolerance tolerance_of_type(const struct byi_tolerance *given,
                                              enum byoc_dtype dtype)
{
    static const struct byi_tolerance for_f32 = {.rtol = 1e-3, .stol = 1e-4},
                                      for_f16 = {.rtol = 1e-2, .stol = 2e-3},
                                      for_bf16 = {.rtol = 5e-2, .stol = 2e-2};
    const struct byi_tolerance *defaults = dtype == BYOC_F16    ? &for_f16
                                           : dtype == BYOC_BF16 ? &for_bf16
                                                                : &for_f32;
    struct byi_tolerance t = *given;
    if (t.rtol == NOT_GIVEN)
        t.rtol = defaults->rtol;
    if (t.stol == NOT_GIVEN)
        t.stol = defaults->stol;
    return t;
}

static struct byi_tolerance tolerance_for(const struct byi_tolerance *given,
                                          const struct byi_tensor *expected)
{
    return tolerance_of_type(given, computed_in(expected));
}

/* Read from the model's ledger how it was compiled. If it computes in 16 bits,
 * the defaults of *tolerance become those for results of the type. Sets
 * *narrow_weights to whether it has weights that --weights narrowed. */
static void read_precision(const struct byi_open_model *open,
                           struct byi_tolerance *tolerance,
                           bool *narrow_weights)
{
    size_t n = 0;
    const char *ledger = open->compiled ? byoc_compiled_ledger(open->compiled)
                                        : byoc_model_ledger(open->model, &n);
    struct byi_report report;
    struct byoc_error ignored;
    if (!ledger || byi_report_read(ledger, open->compiled ? strlen(ledger) : n,
                                   &report, &ignored) != BYOC_OK)
        return;
    if (report.precision.to)
        *tolerance = tolerance_of_type(
            tolerance,
            strcmp(report.precision.to, "fp16") == 0 ? BYOC_F16 : BYOC_BF16);
    for (uint32_t i = 0; i < report.n_weights; i++)
        *narrow_weights = *narrow_weights || !*report.weights[i].kept;
    byi_report_free(&report);
}

/* The options of `byoc compare`. */
struct compare {
    struct byi_feed_params feed;
    struct byi_tolerance tolerance;
    struct byi_arena *arena;
};

/* The result of each step on native kernels, and the first step whose result
 * differs in the run with backends. */
struct step_table {
    struct byi_arena *arena;
    const struct byi_tolerance *tolerance;
    BYI_VEC(struct byi_tensor) native; /* in the order of execution */
    uint32_t next;                     /* index of the next step to compare */
    bool recorded;                     /* `native` is complete */
    struct byi_text first; /* the first step that differs; empty: none */
    /* an earlier 8-bit result was rounded differently, so that later results
     * may differ by rounding too */
    bool rounded;
};

static void record_step(struct step_table *s, const struct byi_tensor *value)
{
    struct byi_tensor copy = *value;
    uint64_t bytes = byi_tensor_bytes(value);
    copy.data = byi_acquire(bytes ? bytes : 1);
    if (copy.data) {
        byi_arena_defer(s->arena, byi_release, copy.data);
        memcpy(copy.data, value->data, bytes);
    }
    BYI_PUSH(&s->native, copy);
}

/* Whether results differ by no more than rounding to 8 bits explains. Different
 * roundings add up over layers: after the fifty layers of mobilenet_v2,
 * elements differ by up to a tenth of the largest one, on average by 0.8% of
 * it. `probed`: the largest differences that the rounding probe (below) found
 * in the same result; NULL if it did not run. */
static bool is_rounding(const struct byi_difference *d,
                        const struct byi_difference *probed)
{
    return d->max_abs <= d->largest / 8 && d->mean_abs <= d->largest / 64 &&
           (!probed ||
            (d->max_abs <= probed->max_abs && d->mean_abs <= probed->mean_abs));
}

/* Record a step's result, or compare it with the recorded one. */
static void watch_step(void *ctx, const struct byi_watched *step,
                       const struct byi_tensor *value)
{
    struct step_table *s = ctx;
    struct byi_difference d;
    if (!step->in_main)
        return;
    if (!s->recorded) {
        record_step(s, value);
        return;
    }
    if (s->next >= s->native.n || s->first.n || !s->native.at[s->next].data) {
        s->next++;
        return;
    }
    const struct byi_tensor *native = &s->native.at[s->next++];
    struct byi_tolerance tolerance = tolerance_for(s->tolerance, native);
    struct byoc_error err;
    tolerance.integer_steps = true;
    const bool comparable =
        byi_compare_tensors(value, native, &tolerance, &d, &err) == BYOC_OK;
    if (comparable && d.max_abs > 0 && (d.step > 0 || s->rounded))
        s->rounded = is_rounding(&d, NULL);
    if (comparable && (!d.n_bad || s->rounded))
        return;
    byi_text_addf(&s->first, "%s%s%s: ", step->step,
                  *step->sources ? ", from " : "", step->sources);
    if (comparable)
        byi_text_addf(&s->first,
                      "max abs %.3g (element %lld: found %.9g, expected %.9g), "
                      "%lld elements outside the tolerance",
                      d.max_abs, (long long)d.worst, d.found, d.expected,
                      (long long)d.n_bad);
    else
        byi_text_addf(&s->first, "%s", err.text);
}

static enum byoc_status run_once(const struct byoc_model *model,
                                 const struct byi_feed *in,
                                 struct byi_feed *out, byi_watch_fn watch,
                                 void *ctx, struct byoc_state **state,
                                 struct byoc_error *err)
{
    BYI_TRY(byoc_state_new(model, state, err));
    byoc_internal_state_watch(*state, watch, ctx);
    return byi_feed_run(*state, in, out, err);
}

/* Run the same model on native kernels only. */
static enum byoc_status run_native(
    const char *path, const struct byi_model_options *options,
    const struct byi_feed *in, struct byi_arena *arena, byi_watch_fn watch,
    void *ctx, struct byi_open_model *native, struct byoc_state **state,
    struct byi_feed *expected, struct byoc_error *err)
{
    struct byi_model_options o = *options;
    o.twins = true;
    BYI_TRY(byi_open_model(path, &o, native, err));
    *expected = byi_feed_outputs(native->model, arena);
    BYI_TRY(run_once(native->model, in, expected, watch, ctx, state, err));
    expected->at = byi_arena_calloc(arena, expected->n, sizeof *expected->at);
    for (uint32_t i = 0; i < expected->n; i++)
        if (byoc_model_output(native->model, i)->kind == BYOC_TENSOR)
            expected->at[i] = byi_feed_tensor(&expected->views[i]);
    return BYOC_OK;
}

/* --- rounding to 8 bits ----------------------------------------------------
 */

/* Two engines round some sums of an 8-bit model to different steps: one with
 * float32 sums rounds about 1 of 10^5 elements differently from one with exact
 * sums. Each layer spreads these differences, and after some layers they no
 * longer depend on how many there were at first. The probe measures this: it
 * runs the native kernels PROBE_RUNS times, and moves random elements of each
 * 8-bit result by one step, 1 of PROBE_GAP. These are more elements than two
 * engines round differently, so the largest of the differences is a bound. */
enum { PROBE_GAP = 1024, PROBE_RUNS = 4 };

struct rounding_probe {
    const char *path;
    const struct byi_model_options *options;
    const struct byi_feed *in;
    struct byi_arena *arena;
    uint64_t random;                /* the state of the generator */
    struct byi_difference *outputs; /* the largest differences; NULL: not run */
};

/* Returns a number from 0 to n - 1, by Knuth's MMIX generator. */
static int64_t draw(struct rounding_probe *p, int64_t n)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((p->random >> 33) % (uint64_t)n);
}

/* Move random elements of an 8-bit result by one step, at least one of them.
 * They stay between the least and the largest element, since these may be the
 * bounds of an activation. */
static void move_steps(void *ctx, const struct byi_watched *step,
                       const struct byi_tensor *value)
{
    struct rounding_probe *p = ctx;
    struct byoc_error err;
    double unit = 0, low = INFINITY, high = -INFINITY;
    /* qnn.dequantize: its operand was moved before. If the step cannot be
     * found, moving nothing makes the bound smaller, which is safe. */
    if (!step->owns || strcmp(step->step, "qnn.dequantize") == 0 ||
        byi_quantisation_step(value, true, &unit, &err) != BYOC_OK || unit == 0)
        return;
    const int64_t n = byi_elements(value->rank, value->dims);
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, byi_tensor_float(value, i));
        high = fmax(high, byi_tensor_float(value, i));
    }
    struct byi_tensor moved = *value;
    for (int64_t i = draw(p, n < PROBE_GAP ? n : PROBE_GAP); i < n;
         i += 1 + draw(p, 2 * PROBE_GAP)) {
        const double x = byi_tensor_float(value, i),
                     to = x + (draw(p, 2) ? unit : -unit);
        byi_tensor_set(&moved, i, to < low || to > high ? 2 * x - to : to);
    }
}

/* Run the probe once on a native model with the outputs `base`. */
static enum byoc_status probe_once(struct rounding_probe *p,
                                   const struct byoc_model *native,
                                   const struct byi_feed *base,
                                   struct byoc_error *err)
{
    static const struct byi_tolerance none = {0};
    struct byoc_state *state = NULL;
    struct byi_feed out = byi_feed_outputs(native, p->arena);
    enum byoc_status status =
        run_once(native, p->in, &out, move_steps, p, &state, err);
    for (uint32_t i = 0; status == BYOC_OK && i < out.n; i++) {
        struct byi_difference d, *most = &p->outputs[i];
        struct byoc_error varying; /* sizes that depend on data may differ */
        if (byoc_model_output(native, i)->kind != BYOC_TENSOR)
            continue;
        const struct byi_tensor found = byi_feed_tensor(&out.views[i]);
        if (byi_compare_tensors(&found, &base->at[i], &none, &d, &varying) !=
            BYOC_OK)
            continue;
        most->max_abs = fmax(most->max_abs, d.max_abs);
        most->mean_abs = fmax(most->mean_abs, d.mean_abs);
    }
    byoc_state_free(&state);
    return status;
}

/* Set p->outputs, unless an earlier call did. */
static enum byoc_status probe_rounding(struct rounding_probe *p,
                                       struct byoc_error *err)
{
    struct byi_open_model native = {0};
    struct byoc_state *state = NULL;
    struct byi_feed base;
    if (p->outputs)
        return BYOC_OK;
    enum byoc_status status =
        run_native(p->path, p->options, p->in, p->arena, NULL, NULL, &native,
                   &state, &base, err);
    if (status == BYOC_OK)
        p->outputs = byi_arena_calloc(p->arena, base.n, sizeof *p->outputs);
    for (int i = 0; status == BYOC_OK && i < PROBE_RUNS; i++)
        status = probe_once(p, native.model, &base, err);
    byoc_state_free(&state);
    byi_close_model(&native);
    return status;
}

/* Print the tolerances; defaults are those of the first output. */
static void print_tolerance(const struct byi_feed *expected,
                            const char *against,
                            const struct byi_tolerance *given)
{
    const struct byi_tolerance t = expected->n
                                       ? tolerance_for(given, &expected->at[0])
                                       : tolerance_of_type(given, BYOC_F32);
    printf("against %s, atol %s, rtol %s, stol %s, steps %s\n", against,
           BYI_FLOAT_TEXT(t.atol), BYI_FLOAT_TEXT(t.rtol),
           BYI_FLOAT_TEXT(t.stol), BYI_FLOAT_TEXT(t.steps));
}

/* Print a line about an output. `probed`: what the rounding probe found, if
 * that explains the difference; otherwise NULL. */
static void print_difference(const char *name, const struct byi_difference *d,
                             const struct byi_difference *probed)
{
    const char *verdict = probed ? "rounded" : d->n_bad ? "DIFFERENT" : "same";

    printf("%-9s %s: max abs %.3g, mean abs %.3g, max rel %.3g", verdict, name,
           d->max_abs, d->mean_abs, d->max_rel);
    if (d->worst >= 0)
        printf(" (element %lld: found %.9g, expected %.9g)",
               (long long)d->worst, d->found, d->expected);
    if (d->n_bad)
        printf(", %lld elements outside the tolerance", (long long)d->n_bad);
    if (d->n_steps)
        printf(", %lld elements differ by a few quantisation steps of %.3g",
               (long long)d->n_steps, d->step);
    if (probed)
        printf(", which rounding to 8 bits explains: single steps of random "
               "8-bit values change it by up to %.3g, mean abs %.3g",
               probed->max_abs, probed->mean_abs);
    printf("\n");
}

/* Compare two values, and set *worst to the largest difference of their
 * tensors. The recursion is as deep as sequences and optionals are nested in
 * the signature. */
static enum byoc_status compare_values(const struct byoc_value *found,
                                       const struct byoc_value *expected,
                                       const struct byi_tolerance *tolerance,
                                       struct byi_difference *worst,
                                       struct byoc_error *err)
{
    static const char *const kinds[] = {[BYOC_TENSOR] = "a tensor",
                                        [BYOC_SEQUENCE] = "a sequence",
                                        [BYOC_OPTIONAL] = "an optional"};
    struct byi_difference d;
    if (found->kind != expected->kind)
        return byi_fail(err, BYOC_ETYPE, "found %s, expected %s",
                        kinds[found->kind], kinds[expected->kind]);
    if (found->n != expected->n)
        return byi_fail(err, BYOC_ETYPE, "found %u values, expected %u",
                        found->n, expected->n);
    for (uint32_t i = 0; i < found->n; i++)
        BYI_TRY(compare_values(&found->elements[i], &expected->elements[i],
                               tolerance, worst, err));
    if (found->kind != BYOC_TENSOR)
        return BYOC_OK;
    const struct byi_tensor f = byi_feed_tensor(&found->tensor);
    const struct byi_tensor e = byi_feed_tensor(&expected->tensor);
    const struct byi_tolerance limits = tolerance_for(tolerance, &e);
    BYI_TRY(byi_compare_tensors(&f, &e, &limits, &d, err));
    d.n_bad += worst->n_bad;
    if (worst->worst < 0 || d.max_abs > worst->max_abs)
        *worst = d;
    worst->n_bad = d.n_bad;
    return BYOC_OK;
}

/* Compare output i of a model with the expected one. */
static enum byoc_status compare_output(const struct byoc_io *io, uint32_t i,
                                       const struct byi_feed *out,
                                       const struct byi_feed *expected,
                                       const struct byi_tolerance *tolerance,
                                       struct byi_difference *d,
                                       struct byoc_error *err)
{
    *d = (struct byi_difference){.worst = -1};
    if (io->kind != BYOC_TENSOR)
        return compare_values(&out->values[i], &expected->values[i], tolerance,
                              d, err);
    struct byi_tensor found = byi_feed_tensor(&out->views[i]);
    if (io->dtype == BYOC_BOOL)
        found.dtype = BYOC_BOOL;
    const struct byi_tolerance limits =
        tolerance_for(tolerance, &expected->at[i]);
    return byi_compare_tensors(&found, &expected->at[i], &limits, d, err);
}

/* If rounding to 8 bits explains the difference of output i, which is outside
 * the tolerance, set *probed to what the rounding probe found; otherwise leave
 * it. */
static enum byoc_status explain_output(struct rounding_probe *p, uint32_t i,
                                       const struct byoc_io *io,
                                       const struct byi_difference *d,
                                       const struct byi_difference **probed,
                                       struct byoc_error *err)
{
    if (io->kind != BYOC_TENSOR || !is_rounding(d, NULL))
        return BYOC_OK;
    BYI_TRY(probe_rounding(p, err));
    if (is_rounding(d, &p->outputs[i]))
        *probed = &p->outputs[i];
    return BYOC_OK;
}

/* Compare every output; at the end, print which one differs first. Sets *code
 * to the exit code. */
static enum byoc_status compare_all(const struct byoc_model *model,
                                    const struct byi_feed *out,
                                    const struct byi_feed *expected,
                                    const struct byi_tolerance *tolerance,
                                    struct rounding_probe *p, int *code,
                                    struct byoc_error *err)
{
    const char *first = NULL;
    for (uint32_t i = 0; i < out->n; i++) {
        const struct byoc_io *io = byoc_model_output(model, i);
        const struct byi_difference *probed = NULL;
        struct byi_difference d;
        struct byoc_error why;
        const bool comparable = compare_output(io, i, out, expected, tolerance,
                                               &d, &why) == BYOC_OK;
        if (comparable && d.n_bad && tolerance->steps > 0)
            BYI_TRY(explain_output(p, i, io, &d, &probed, err));
        if (comparable)
            print_difference(io->name, &d, probed);
        else
            printf("DIFFERENT %s: %s\n", io->name, why.text);
        if ((!comparable || (d.n_bad && !probed)) && !first)
            first = io->name;
    }
    *code = first ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
    if (first)
        fprintf(stderr, "byoc compare: '%s' is the first output that differs\n",
                first);
    return BYOC_OK;
}

/* A step that differs makes the verdict negative even if all outputs are equal:
 * the outputs of comparisons and ArgMax may be equal by chance. */
static int judge_steps(const struct step_table *steps, int code)
{
    if (!steps->first.n)
        return code;
    printf("DIFFERENT step %s\n", steps->first.at);
    fprintf(stderr, "byoc compare: the first step that differs is %.*s%s\n",
            (int)strcspn(steps->first.at, ":"), steps->first.at,
            code == BYI_EXIT_OK ? ", although every output is the same" : "");
    return BYI_EXIT_VERDICT;
}

/* Print a note if no region runs on a backend: the comparison of native kernels
 * with themselves then says nothing about the backend. */
static void note_no_region(const struct byoc_model *model)
{
    const char *name, *fault = NULL;
    for (uint32_t i = 0; (name = byoc_internal_region_name(model, i)); i++) {
        const char *why = byoc_internal_region_fault(model, i);
        if (!why)
            return;
        fault = fault ? fault : why;
    }
    fprintf(stderr,
            "byoc compare: no region runs on a backend, so native kernels are "
            "compared with themselves; %s%s\n",
            fault ? "the first region's fault: "
                  : "`byoc check` has the reasons",
            fault ? fault : "");
}

static void note_narrow_weights(void)
{
    fputs("byoc compare: the differences include the error of weights that "
          "--weights narrowed; set --rtol and --stol to allow for it\n",
          stderr);
}

static enum byoc_status compare(const char *path,
                                const struct byi_model_options *o,
                                const struct compare *c, int *code,
                                struct byoc_error *err)
{
    struct byi_open_model open = {0}, native = {0};
    struct byoc_state *state = NULL, *native_state = NULL;
    struct byi_feed in, expected, out = {0};
    struct byi_tolerance tolerance = c->tolerance;
    struct step_table steps = {.arena = c->arena, .tolerance = &tolerance};
    bool found = false, narrow_weights = false;
    enum byoc_status status = byi_open_model(path, o, &open, err);
    struct byi_feed_params feed = c->feed;
    feed.dims = open.dims;
    if (status == BYOC_OK)
        read_precision(&open, &tolerance, &narrow_weights);
    if (status == BYOC_OK)
        status = byi_feed_inputs(open.model, &feed, c->arena, &in, err);
    if (status == BYOC_OK)
        status = byi_feed_expected(open.model, &c->feed, c->arena, &expected,
                                   &found, err);
    if (status == BYOC_OK && !found)
        status = run_native(path, o, &in, c->arena, watch_step, &steps, &native,
                            &native_state, &expected, err);
    steps.recorded = true;
    if (status == BYOC_OK) {
        out = byi_feed_outputs(open.model, c->arena);
        status = run_once(open.model, &in, &out, found ? NULL : watch_step,
                          &steps, &state, err);
    }
    if (status == BYOC_OK) {
        struct rounding_probe probe = {
            .path = path, .options = o, .in = &in, .arena = c->arena};
        print_tolerance(&expected, found ? c->feed.data : "the native kernels",
                        &tolerance);
        if (!found && !o->native)
            note_no_region(open.model);
        status = compare_all(open.model, &out, &expected, &tolerance, &probe,
                             code, err);
    }
    if (status == BYOC_OK) {
        if (found && narrow_weights && *code == BYI_EXIT_VERDICT)
            note_narrow_weights();
        *code = judge_steps(&steps, *code);
        *code = *code == BYI_EXIT_OK ? open.gate : *code;
    }
    byi_text_free(&steps.first);
    byi_vec_free(steps.native.at);
    byoc_state_free(&state);
    byoc_state_free(&native_state);
    byi_close_model(&open);
    byi_close_model(&native);
    return status;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_compare};
    struct compare c = {
        .feed = {.seed = 1},
        .tolerance = {.rtol = NOT_GIVEN, .stol = NOT_GIVEN, .steps = 2}};
    const char *path;
    uint32_t n;
    const struct byi_option options[] = {
        {"data", 0, BYI_OPTION_TEXT, &c.feed.data, "DIR|PREFIX.",
         "read input_K and output_K, .npy or .pb"},
        {"input", 'i', BYI_OPTION_LIST, &c.feed.inputs, "NAME=FILE",
         "read an input from a .npy or .pb file"},
        {"npz", 0, BYI_OPTION_TEXT, &c.feed.npz, "FILE",
         "read all inputs from an .npz; its keys are their names"},
        {"seed", 0, BYI_OPTION_COUNT, &c.feed.seed, "N",
         "seed of inputs without a file (default: 1)"},
        {"atol", 0, BYI_OPTION_TOLERANCE, &c.tolerance.atol, "X",
         "absolute tolerance (default: 0; inf: any values are equal)"},
        {"rtol", 0, BYI_OPTION_NUMBER, &c.tolerance.rtol, "X",
         "relative to |expected| (default: 1e-3, float16 1e-2, bfloat16 5e-2)"},
        {"stol", 0, BYI_OPTION_NUMBER, &c.tolerance.stol, "X",
         "relative to max |expected| (default: 1e-4, float16 2e-3, bfloat16 "
         "2e-2)"},
        {"steps", 0, BYI_OPTION_NUMBER, &c.tolerance.steps, "N",
         "quantisation steps that outputs may differ by (default: 2; 0: none)"},
        BYI_MODEL_OPTIONS(o),
    };
    int code =
        byi_parse_options(&byi_command_compare, options, BYI_COUNT(options),
                          argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    c.feed.seeded = byi_option_is_given("seed");
    c.arena = byi_arena_new();
    struct byoc_error err;
    if (compare(path, &o, &c, &code, &err) != BYOC_OK)
        code = byi_cli_print_error(&byi_command_compare, &err);
    byi_arena_free(&c.arena);
    return code;
}

const struct byi_command byi_command_compare = {
    .name = "compare",
    .usage = "MODEL.so|MODEL.onnx [--data DIR|PREFIX.] [OPTIONS]",
    .summary = "compare a model's outputs with files, or with native kernels",
    .example = "byoc compare digits.so --data batch0.\n"
               "byoc compare digits.onnx\n",
    .steps = BYI_COMPILES | BYI_LOADS,
    .run = run,
};
