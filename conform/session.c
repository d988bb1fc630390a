/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: calls a plug-in as the runtime does, but on guarded memory, and
 * makes the arguments inaccessible after every call.
 */
#include "kit.h"

#include "interp/interp.h"

#include <math.h>
#include <string.h>

static uint64_t element_bytes(const struct byi_type *type)
{
    return byoc_dtype_size(type->dtype);
}

/* Copy `n` bytes to a new read-only zone. */
static struct byi_zone *copy_to_zone(struct byi_kit *kit, const void *from,
                                     uint64_t n, uint64_t align,
                                     const char *what)
{
    struct byi_zone *z = byi_zone_new(kit, n, align, what);
    if (n)
        memcpy(byi_zone_data(z), from, n);
    byi_zone_lend(z, BYI_LENT_READ);
    return z;
}

static struct byoc_view view_of(enum byoc_dtype dtype, uint32_t rank,
                                const struct byi_zone *dims,
                                const struct byi_zone *data, uint64_t bytes)
{
    return (struct byoc_view){.dtype = (uint32_t)dtype,
                              .rank = rank,
                              .dims = byi_zone_data(dims),
                              .data = byi_zone_data(data),
                              .bytes = bytes};
}

/* --- regions -------------------------------------------------------------- */

/* The zone of constant i, created on first use. drop_consts() makes it
 * inaccessible. */
static struct byi_zone *const_zone(struct byi_kit *kit, struct byi_session *s,
                                   uint32_t i)
{
    const struct byi_sample *sample = s->sample;
    const struct byi_const *c = &sample->m->consts.at[sample->consts[i]];
    char what[40];
    snprintf(what, sizeof what, "constant %u", i);
    if (!s->consts[i])
        s->consts[i] = copy_to_zone(kit, c->data, c->bytes, BYI_ALIGN, what);
    return s->consts[i];
}

static void drop_consts(struct byi_session *s)
{
    for (uint32_t i = 0; i < s->sample->n_consts; i++)
        if (s->consts[i]) {
            byi_zone_lend(s->consts[i], BYI_LENT_GONE);
            s->consts[i] = NULL;
        }
}

struct byi_lent_region byi_session_lend(struct byi_kit *kit,
                                        struct byi_session *s, const void *text,
                                        uint64_t bytes, const char *symbol,
                                        byi_unit_fn code)
{
    const struct byi_sample *sample = s->sample;
    struct byi_lent_region lent = {0};
    struct byoc_view views[BYI_KIT_MAX_IO];
    for (uint32_t i = 0; i < sample->n_consts; i++) {
        const struct byi_const *c = &sample->m->consts.at[sample->consts[i]];
        struct byi_zone *dims = copy_to_zone(
            kit, c->type->dims, c->type->rank * sizeof *c->type->dims, 8,
            "the dims of a constant");
        lent.zones[lent.n++] = dims;
        views[i] = view_of(c->type->dtype, c->type->rank, dims,
                           const_zone(kit, s, i), c->bytes);
    }
    struct byi_zone *list =
        copy_to_zone(kit, views, sample->n_consts * sizeof *views, 8,
                     "the list of constants");
    struct byi_zone *json =
        copy_to_zone(kit, text, bytes, 0, "the region's text");
    struct byi_zone *name = symbol
                                ? copy_to_zone(kit, symbol, strlen(symbol) + 1,
                                               0, "the region's symbol")
                                : NULL;
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = sample->n_consts,
                                       .json = byi_zone_data(json),
                                       .json_bytes = bytes,
                                       .consts = byi_zone_data(list),
                                       .symbol =
                                           name ? byi_zone_data(name) : NULL,
                                       .code = code};
    struct byi_zone *region_zone =
        copy_to_zone(kit, &region, sizeof region, 8, "struct byoc_region");
    lent.region = byi_zone_data(region_zone);
    lent.zones[lent.n++] = list;
    lent.zones[lent.n++] = json;
    lent.zones[lent.n++] = region_zone;
    if (name)
        lent.zones[lent.n++] = name;
    return lent;
}

void byi_session_take_back(struct byi_lent_region *lent)
{
    for (uint32_t i = 0; i < lent->n; i++)
        byi_zone_lend(lent->zones[i], BYI_LENT_GONE);
}

static bool writes_c(const struct byi_kit *kit, const struct byoc_backend *b)
{
    return kit->codegen == BYOC_CODEGEN_C ||
           (b->flags & BYOC_BACKEND_WRITES_C) != 0;
}

/* Check the kind of compile()'s result: data, or C if a symbol was given. */
static void check_kind(struct byi_kit *kit, const struct byoc_blob *blob,
                       const char *symbol)
{
    if (blob->kind != BYOC_BLOB_DATA && blob->kind != BYOC_BLOB_C)
        byi_kit_failed(
            kit, BYI_RULE_KIND,
            "compile() returned a blob of kind %u, expected BYOC_BLOB_DATA "
            "(%d) or BYOC_BLOB_C (%d)",
            blob->kind, BYOC_BLOB_DATA, BYOC_BLOB_C);
    if (blob->kind == BYOC_BLOB_C && !symbol)
        byi_kit_failed(kit, BYI_RULE_KIND,
                       "compile() returned C, but was given no symbol");
    if (blob->kind == BYOC_BLOB_DATA &&
        byi_kit_backend(kit)->flags & BYOC_BACKEND_WRITES_C)
        byi_kit_failed(kit, BYI_RULE_KIND,
                       "compile() returned data, but the backend has the flag "
                       "BYOC_BACKEND_WRITES_C");
}

/* Compile the C of compile() as byoc does, once for each source. */
static struct byi_code *compile_code(struct byi_kit *kit, const char *symbol,
                                     const struct byoc_blob *blob)
{
    struct byoc_error err;
    if (!kit->codes.arena)
        kit->codes.arena = byi_arena_new();
    byi_child_step(NULL, "compiling the C of compile()");
    struct byi_code *code =
        byi_code_get(&kit->codes, symbol, blob->data, blob->bytes);
    if (code->fault)
        byi_kit_failed(kit, BYI_RULE_SOURCE, "the C from compile(): %s",
                       code->fault);
    if (byi_code_map(code, &err) != BYOC_OK)
        byi_kit_end(kit, BYI_UNTESTED, 0, "%s", err.text);
    if (!code->function)
        byi_kit_end(kit, BYI_UNTESTED, 0,
                    "this machine supports no instruction set for which the C "
                    "from compile() was compiled");
    return code;
}

struct byoc_fail *byi_kit_compile(struct byi_kit *kit, struct byi_session *s,
                                  struct byoc_blob *blob)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    const struct byoc_host *host = byi_kit_host(kit);
    const struct byi_text *json = &s->sample->json;
    *blob = (struct byoc_blob){.struct_size = sizeof *blob};
    if (!b->compile) {
        blob->data = host->acquire(host->ctx, json->n);
        blob->bytes = json->n;
        if (blob->data)
            memcpy(blob->data, json->at, json->n);
        return blob->data ? NULL
                          : host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                                       "out of memory for the region");
    }
    const char *symbol = writes_c(kit, b) ? "byoc_conform_0" : NULL;
    struct byi_lent_region lent =
        byi_session_lend(kit, s, json->at, json->n, symbol, NULL);
    byi_child_step(NULL, "compile()");
    struct byoc_fail *fail = b->compile(host, lent.region, blob);
    byi_session_take_back(&lent);
    if (!fail)
        check_kind(kit, blob, symbol);
    if (!fail && (!blob->data || !blob->bytes))
        byi_kit_failed(kit, BYI_RULE_BUILDS,
                       "compile() succeeded without a blob (%llu bytes at %p)",
                       (unsigned long long)blob->bytes, blob->data);
    s->code = !fail && blob->kind == BYOC_BLOB_C
                  ? compile_code(kit, symbol, blob)
                  : NULL;
    byi_child_step(NULL, "the kit");
    return fail;
}

void byi_kit_blob_free(struct byi_kit *kit, struct byoc_blob *blob)
{
    const struct byoc_host *host = byi_kit_host(kit);
    byi_child_step(NULL, "the release of a blob");
    host->release(host->ctx, blob->data);
    blob->data = NULL;
}

struct byoc_fail *byi_kit_load(struct byi_kit *kit, struct byi_session *s,
                               const struct byoc_blob *blob)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    struct byi_lent_region lent = byi_session_lend(
        kit, s, blob->data, blob->bytes, s->code ? s->code->unit.symbol : NULL,
        s->code ? s->code->function : NULL);
    byi_child_step(NULL, "load()");
    struct byoc_fail *fail =
        b->load(byi_kit_host(kit), lent.region, &s->compiled);
    byi_session_take_back(&lent);
    byi_child_step(NULL, "the kit");
    return fail;
}

/* Handle the failure of `call` to build a sample. The plug-in may refuse a
 * region of several kernels; then returns the reason. Otherwise ends the case,
 * since the function that `accepted_by` names has accepted the sample. */
static const char *report_not_built(struct byi_kit *kit,
                                    const struct byi_sample *sample,
                                    struct byoc_fail *fail,
                                    const char *accepted_by, const char *call)
{
    uint32_t code;
    const char *reason = byi_kit_read_and_free_fail(fail, &code);
    if (!sample->joined || code != BYOC_FAIL_UNSUPPORTED || !*reason)
        byi_kit_failed(kit, BYI_RULE_BUILDS,
                       "%s failed after %s succeeded: %.900s", call,
                       accepted_by, reason);
    return reason;
}

/* A byoc_trace_fn that checks a step of describe(). */
static void check_described_step(void *ctx, const char *name, const char *impl,
                                 const char *sources, uint64_t begin,
                                 uint64_t end)
{
    (void)begin, (void)end;
    if (!name || !*name || !impl || !*impl || !sources)
        byi_kit_failed(ctx, BYI_RULE_OPINION,
                       "describe() passed a step with name '%.99s', "
                       "implementation '%.99s' and sources %s, expected a "
                       "name, an implementation and sources",
                       name ? name : "NULL", impl ? impl : "NULL",
                       sources ? "set" : "NULL");
}

static void ask_description(struct byi_kit *kit, const struct byi_session *s)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    if (!b->describe)
        return;
    byi_child_step(NULL, "describe()");
    b->describe(byi_kit_host(kit), s->compiled, check_described_step, kit);
    byi_child_step(NULL, "the kit");
}

bool byi_session_try(struct byi_kit *kit, const struct byi_sample *sample,
                     struct byi_session *s, const char **why)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    const char *accepted_by = b->probe ? "probe()" : "accept()";
    struct byoc_blob blob;
    *s = (struct byi_session){.sample = sample};
    struct byoc_fail *fail = byi_kit_compile(kit, s, &blob);
    if (fail) {
        *why = report_not_built(kit, sample, fail, accepted_by, "compile()");
        return false;
    }
    fail = byi_kit_load(kit, s, &blob);
    byi_kit_blob_free(kit, &blob);
    if (!fail) {
        ask_description(kit, s);
        return true;
    }
    *why = report_not_built(kit, sample, fail,
                            b->compile ? "compile()" : accepted_by, "load()");
    drop_consts(s);
    return false;
}

void byi_session_open(struct byi_kit *kit, const struct byi_sample *sample,
                      struct byi_session *s)
{
    const char *why;
    if (!byi_session_try(kit, sample, s, &why))
        byi_kit_end(kit, BYI_REFUSED, 0, "%s", why);
}

void byi_session_close(struct byi_kit *kit, struct byi_session *s)
{
    byi_child_step(NULL, "unload()");
    byi_kit_backend(kit)->unload(byi_kit_host(kit), s->compiled);
    drop_consts(s);
    byi_child_step(NULL, "the kit");
}

/* --- states and scratch memory ------------------------------------------- */

/* Call `call`, the backend's function `name`, twice. Returns its result, in
 * bytes; ends the case if the second result differs. */
static uint64_t call_bytes_twice(struct byi_kit *kit,
                                 const struct byi_session *s, const char *name,
                                 uint64_t (*call)(const struct byoc_host *host,
                                                  const void *compiled))
{
    const struct byoc_host *host = byi_kit_host(kit);
    byi_child_step(NULL, "%s", name);
    const uint64_t bytes = call(host, s->compiled);
    const uint64_t again = call(host, s->compiled);
    if (again != bytes)
        byi_kit_failed(
            kit, BYI_RULE_RUNS,
            "%s returned %llu at first, and %llu when it was called again",
            name, (unsigned long long)bytes, (unsigned long long)again);
    return bytes;
}

void *byi_kit_scratch_open(struct byi_kit *kit, struct byi_session *s)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    if (!b->scratch_bytes)
        return NULL;
    const uint64_t bytes =
        call_bytes_twice(kit, s, "scratch_bytes()", b->scratch_bytes);
    struct byi_zone *z =
        byi_zone_new(kit, bytes, BYI_ALIGN, "the scratch memory");
    memset(byi_zone_data(z), 0x7f, (size_t)bytes);
    byi_child_step(NULL, "the kit");
    return byi_zone_data(z);
}

void byi_kit_scratch_close(struct byi_kit *kit, void *scratch)
{
    if (scratch)
        byi_zone_free(kit, scratch);
}

struct byoc_fail *byi_kit_state_new(struct byi_kit *kit, struct byi_session *s,
                                    void **state)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    const struct byoc_host *host = byi_kit_host(kit);
    struct byoc_fail *fail = NULL;
    *state = NULL;
    if (b->state_bytes) {
        const uint64_t bytes =
            call_bytes_twice(kit, s, "state_bytes()", b->state_bytes);
        struct byi_zone *z =
            byi_zone_new(kit, bytes, BYI_ALIGN, "the state's memory");
        *state = byi_zone_data(z);
        memset(*state, 0, (size_t)bytes);
    } else if (b->state_new) {
        byi_child_step(NULL, "state_new()");
        fail = b->state_new(host, s->compiled, state);
    }
    byi_child_step(NULL, "the kit");
    return fail;
}

void *byi_kit_state_open(struct byi_kit *kit, struct byi_session *s)
{
    void *state;
    struct byoc_fail *fail = byi_kit_state_new(kit, s, &state);
    if (fail)
        byi_kit_failed(kit, BYI_RULE_RUNS, "state_new() failed: %.900s",
                       byi_kit_read_and_free_fail(fail, NULL));
    return state;
}

void byi_kit_state_close(struct byi_kit *kit, struct byi_session *s,
                         void *state)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    byi_child_step(NULL, "state_free()");
    if (b->state_bytes)
        byi_zone_free(kit, state);
    else if (b->state_free)
        b->state_free(byi_kit_host(kit), s->compiled, state);
    byi_child_step(NULL, "the kit");
}

/* --- expected results ----------------------------------------------------- */

/* Run the sample on native kernels. `perturbation` says how to perturb the
 * results of every operator; NULL: not at all. */
static void run_native(struct byi_kit *kit, const struct byi_sample *sample,
                       const struct byi_tensor *in,
                       struct byi_perturbation *perturbation,
                       struct byi_arena *arena, struct byi_tensor *out)
{
    struct byoc_error err;
    uint32_t n;
    if (byi_interp_perturbed(sample->m, sample->func, in, sample->n_in, arena,
                             perturbation ? byi_kit_perturb : NULL,
                             perturbation, out, BYI_KIT_MAX_IO, &n,
                             &err) != BYOC_OK)
        byi_kit_end(kit, BYI_UNTESTED, 0,
                    "the native kernels cannot run it: %s", err.text);
}

/* A copy of `t` with each float perturbed by 32 units of its precision. */
static struct byi_tensor perturb_input(const struct byi_tensor *t,
                                       struct byi_arena *arena,
                                       struct byi_perturbation *perturbation)
{
    enum { UNITS = 32 };
    struct byi_tensor perturbed = *t;
    if (!byi_dtype_is_float(t->dtype))
        return perturbed;
    const double change = UNITS * byi_kit_epsilon(t->dtype);
    perturbed.data = byi_arena_copy(arena, t->data, byi_tensor_bytes(t));
    for (int64_t i = byi_elements(t->rank, t->dims); i-- > 0;)
        byi_tensor_set(&perturbed, i,
                       byi_tensor_float(t, i) *
                           (byi_perturbation_draw_up(perturbation)
                                ? 1 + change
                                : 1 - change));
    return perturbed;
}

/* The distance of x and y. Infinite if it is not finite, or if one number is
 * large and the other is less than half of it. Then no digit is significant, as
 * after a division by a number that may be zero. */
static double distance(double x, double y)
{
    const double d = fabs(x - y), larger = fmax(fabs(x), fabs(y));
    if (x == y)
        return 0.0;
    return !isfinite(d) || (larger > 1e4 && d > 0.5 * larger) ? INFINITY : d;
}

/* Run on perturbed numbers, and increase e->slack to at least twice the
 * distance that each result moves. */
static void widen_slack(struct byi_kit *kit, const struct byi_sample *sample,
                        struct byi_perturbation perturbation,
                        struct byi_arena *arena, const struct byi_expected *e)
{
    enum { FACTOR = 2 };
    struct byi_tensor in[BYI_KIT_MAX_IO], out[BYI_KIT_MAX_IO];
    for (uint32_t i = 0; i < sample->n_in; i++)
        in[i] = perturb_input(&e->in[i], arena, &perturbation);
    run_native(kit, sample, in, &perturbation, arena, out);
    for (uint32_t k = 0; k < sample->n_out; k++)
        for (int64_t i = byi_elements(out[k].rank, out[k].dims); i-- > 0;) {
            const double x = byi_tensor_float(&out[k], i);
            const double y = byi_tensor_float(&e->out[k], i);
            const double d = perturbation.undefined ? INFINITY : distance(x, y);
            if (FACTOR * d > e->slack[k][i])
                e->slack[k][i] = FACTOR * d;
        }
}

/* Set e->slack from three perturbations: to zero, in random directions, and in
 * the opposite directions. (If only one direction leaves a function's domain or
 * crosses a pole, a random one may miss it.) */
static void add_slack(struct byi_kit *kit, const struct byi_sample *sample,
                      struct byi_arena *arena, struct byi_expected *e)
{
    static const struct byi_perturbation perturbations[] = {
        {.state = 1, .zeros = true},
        {.state = 2},
        {.state = 2, .mirrored = true}};
    for (uint32_t k = 0; k < sample->n_out; k++)
        e->slack[k] = byi_arena_calloc(
            arena, (size_t)byi_elements(e->out[k].rank, e->out[k].dims) + 1,
            sizeof *e->slack[k]);
    for (size_t i = 0; i < BYI_COUNT(perturbations); i++)
        widen_slack(kit, sample, perturbations[i], arena, e);
}

void byi_kit_expect(struct byi_kit *kit, const struct byi_sample *sample,
                    uint64_t seed, struct byi_arena *arena,
                    struct byi_expected *e)
{
    const struct byi_func *f = sample->m->funcs.at[sample->func];
    for (uint32_t i = 0; i < sample->n_in; i++) {
        if (!byi_interp_random(sample->in[i], 1, arena, &e->in[i]))
            byi_kit_end(kit, BYI_UNTESTED, 0,
                        "input %u: found type %s, expected numbers", i,
                        byoc_dtype_name(sample->in[i]->dtype));
        byi_domain_fill(&e->in[i], byi_domain_of_param(f, i), seed * 64 + i);
    }
    e->cancel = NULL;
    run_native(kit, sample, e->in, NULL, arena, e->out);
    add_slack(kit, sample, arena, e);
}

/* --- runs ----------------------------------------------------------------- */

/* The arguments of one run, in zones. */
struct lent_run {
    struct byi_zone *zones[2 * BYI_KIT_MAX_IO], *dims[2 * BYI_KIT_MAX_IO];
    struct byi_zone *in, *out, *args;
    uint32_t n;
};

/* Copy n tensors of these types to zones, and set views[] to them. If `data` is
 * NULL, they are for results, and filled with 0x7f. `align`: as in
 * byi_kit_run. */
static void lend_tensors(struct byi_kit *kit, struct lent_run *lent,
                         const struct byi_type *const *types,
                         const struct byi_tensor *data, uint32_t n,
                         uint64_t align, const char *name,
                         struct byoc_view *views)
{
    for (uint32_t i = 0; i < n; i++) {
        char what[40];
        const uint64_t bytes = byi_type_bytes(types[i]);
        const uint64_t at = align ? align : element_bytes(types[i]);
        snprintf(what, sizeof what, "%s %u", name, i);
        struct byi_zone *dims =
            copy_to_zone(kit, types[i]->dims,
                         types[i]->rank * sizeof *types[i]->dims, 8, "dims");
        struct byi_zone *z =
            data ? copy_to_zone(kit, data[i].data, bytes, at, what)
                 : byi_zone_new(kit, bytes, at, what);
        if (!data && bytes)
            memset(byi_zone_data(z), 0x7f, bytes);
        lent->dims[lent->n] = dims;
        lent->zones[lent->n++] = z;
        views[i] = view_of(types[i]->dtype, types[i]->rank, dims, z, bytes);
    }
}

/* Check the zones of a run, and make them inaccessible. */
static void take_back_run(struct byi_kit *kit, struct lent_run *lent)
{
    for (uint32_t i = 0; i < lent->n; i++) {
        byi_zone_check(kit, lent->zones[i]);
        byi_zone_lend(lent->zones[i], BYI_LENT_GONE);
        byi_zone_lend(lent->dims[i], BYI_LENT_GONE);
    }
    byi_zone_lend(lent->in, BYI_LENT_GONE);
    byi_zone_lend(lent->out, BYI_LENT_GONE);
    byi_zone_lend(lent->args, BYI_LENT_GONE);
}

struct byoc_fail *byi_kit_run(struct byi_kit *kit, struct byi_session *s,
                              void *state, const struct byi_expected *expected,
                              uint64_t align, struct byi_arena *arena,
                              struct byi_tensor *found)
{
    const struct byi_sample *sample = s->sample;
    struct byoc_view in[BYI_KIT_MAX_IO], out[BYI_KIT_MAX_IO];
    struct lent_run lent = {.n = 0};
    lend_tensors(kit, &lent, sample->in, expected->in, sample->n_in, align,
                 "input", in);
    lend_tensors(kit, &lent, sample->out, NULL, sample->n_out, align, "output",
                 out);
    lent.in = copy_to_zone(kit, in, sample->n_in * sizeof *in, 8, "the inputs");
    lent.out =
        copy_to_zone(kit, out, sample->n_out * sizeof *out, 8, "the outputs");
    const struct byoc_run_args args = {.struct_size = sizeof args,
                                       .n_inputs = sample->n_in,
                                       .n_outputs = sample->n_out,
                                       .inputs = byi_zone_data(lent.in),
                                       .outputs = byi_zone_data(lent.out),
                                       .cancel = expected->cancel,
                                       .scratch = byi_kit_scratch_open(kit, s)};
    lent.args =
        copy_to_zone(kit, &args, sizeof args, 8, "struct byoc_run_args");
    byi_child_step(NULL, "run()");
    struct byoc_fail *fail = byi_kit_backend(kit)->run(
        byi_kit_host(kit), s->compiled, state, byi_zone_data(lent.args));
    for (uint32_t i = 0; !fail && i < sample->n_out; i++) {
        found[i] = expected->out[i];
        found[i].data =
            byi_arena_copy(arena, out[i].data, (size_t)out[i].bytes);
    }
    take_back_run(kit, &lent);
    byi_kit_scratch_close(kit, args.scratch);
    byi_child_step(NULL, "the kit");
    return fail;
}

/* The first output that exceeds its tolerance; sample->n_out if none does. */
static uint32_t find_wrong(const struct byi_sample *sample,
                           const struct byi_expected *e,
                           const struct byi_tensor *found,
                           struct byoc_error *err)
{
    for (uint32_t i = 0; i < sample->n_out; i++) {
        const struct byi_precision bound =
            byi_precision_of(sample->m, sample->func, e->out[i].dtype);
        if (byi_kit_compare_output(&found[i], &e->out[i], e->slack[i], &bound,
                                   err) != BYOC_OK)
            return i;
    }
    return sample->n_out;
}

/* Like find_wrong, with more perturbations. In three perturbations, the errors
 * of several operators may cancel by chance, so try up to 64 more before an
 * output counts as wrong. */
static uint32_t find_wrong_closely(struct byi_kit *kit,
                                   const struct byi_sample *sample,
                                   const struct byi_expected *e,
                                   const struct byi_tensor *found,
                                   struct byoc_error *err)
{
    enum { MAX_RUNS = 64, FIRST_STATE = 100 };
    struct byi_arena *arena = byi_arena_new();
    uint32_t wrong = find_wrong(sample, e, found, err);
    for (uint32_t i = 0; i < MAX_RUNS && wrong < sample->n_out; i++) {
        widen_slack(kit, sample,
                    (struct byi_perturbation){.state = FIRST_STATE + i / 2,
                                              .mirrored = i % 2 != 0,
                                              .zeros = i / 2 % 4 == 0,
                                              .fractional = i / 4 % 2 != 0},
                    arena, e);
        wrong = find_wrong(sample, e, found, err);
    }
    byi_arena_free(&arena);
    return wrong;
}

void byi_kit_compare(struct byi_kit *kit, const struct byi_sample *sample,
                     const struct byi_expected *e,
                     const struct byi_tensor *found)
{
    struct byoc_error err;
    const uint32_t i = find_wrong_closely(kit, sample, e, found, &err);
    if (i == sample->n_out)
        return;
    struct byi_text text = {0};
    if (sample->joined)
        byi_kit_failed(kit, BYI_RULE_RESULT, "output %u: %s; in @%s", i,
                       err.text, sample->m->funcs.at[sample->func]->name);
    byi_print_module(sample->m, &text, NULL);
    byi_kit_failed(kit, BYI_RULE_RESULT, "output %u: %s; in\n%.700s", i,
                   err.text, text.at);
}

void byi_kit_run_checked(struct byi_kit *kit, struct byi_session *s,
                         void *state, uint64_t seed, uint64_t align)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_expected e;
    struct byi_tensor found[BYI_KIT_MAX_IO];
    byi_kit_expect(kit, s->sample, seed, arena, &e);
    struct byoc_fail *fail =
        byi_kit_run(kit, s, state, &e, align, arena, found);
    if (fail)
        byi_kit_failed(kit, BYI_RULE_RUNS, "run() failed: %.900s",
                       byi_kit_read_and_free_fail(fail, NULL));
    byi_kit_compare(kit, s->sample, &e, found);
    byi_arena_free(&arena);
}
