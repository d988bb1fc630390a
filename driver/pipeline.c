/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c: compiles a model: imports it, runs the passes, builds what the
 * runtime loads (struct byi_image), and reverts the regions that their backend
 * cannot build.
 */
#include "compiled.h"

#include "compile/image.h"
#include "compile/passes.h"
#include "frontend_onnx/onnx.h"
#include "partition/partition.h"
#include "report/gates.h"
#include "runtime/internal.h"
#include "runtime_native/native.h"
#include "transform/transform.h"
#include "tuner/by_cost.h"

#include <string.h>

/* --- passes --------------------------------------------------------------- */

/* Set c->pass_list to the passes to run: those of params->passes, otherwise the
 * pipeline's, with params->add_passes after the clean-up passes. */
static enum byoc_status list_passes(struct byoc_compiled *c,
                                    const struct byoc_compile_params *params,
                                    struct byoc_error *err)
{
    const struct byi_pass *const *pipeline = byi_passes_pipeline();
    const char *const *lists = params->passes;
    if (!lists) {
        BYI_PUSH(&c->pass_list.passes, *pipeline++); /* the clean-up passes */
        lists = params->add_passes;
    }
    for (; lists && *lists; lists++)
        BYI_TRY(byi_passes_parse(*lists, c->arena, &c->pass_list, err));
    if (!params->passes)
        c->n_added = c->pass_list.passes.n - 1;
    for (; !params->passes && *pipeline; pipeline++)
        BYI_PUSH(&c->pass_list.passes, *pipeline);
    return BYOC_OK;
}

/* Returns the pass options of a compile, then the user's; only the user's if
 * the caller lists the passes. With the defaults, FuseOps may fuse epilogues
 * into the native kernels of convolutions and products, but must not put
 * operators without generated C into other groups. */
static const char *const *list_options(struct byoc_compiled *c,
                                       const struct byoc_compile_params *params)
{
    static const char *const defaults[] = {"FuseOps.anchors=false",
                                           "FuseOps.epilogues=true",
                                           "FuseOps.generated=true"};
    static const char *const weights[] = {
        [BYOC_WEIGHTS_FP16] = "NarrowWeights.to=fp16",
        [BYOC_WEIGHTS_BF16] = "NarrowWeights.to=bf16",
        [BYOC_WEIGHTS_INT8] = "NarrowWeights.to=int8",
        [BYOC_WEIGHTS_INT4] = "NarrowWeights.to=int4",
    };
    static const char *const precisions[] = {
        [BYOC_PRECISION_FP16] = "ToMixedPrecision.to=fp16",
        [BYOC_PRECISION_BF16] = "ToMixedPrecision.to=bf16",
    };
    BYI_VEC(const char *) list = {0};
    for (size_t i = 0; i < BYI_COUNT(defaults) && !params->passes; i++)
        BYI_PUSH(&list, defaults[i]);
    if (params->weights && !params->passes)
        BYI_PUSH(&list, weights[params->weights]);
    if (params->precision && !params->passes)
        BYI_PUSH(&list, precisions[params->precision]);
    for (uint32_t i = 0; params->options && params->options[i]; i++)
        BYI_PUSH(&list, params->options[i]);
    BYI_PUSH(&list, NULL);
    const char *const *copy =
        byi_arena_copy(c->arena, list.at, list.n * sizeof *list.at);
    byi_vec_free(list.at);
    return copy;
}

/* Returns, in c's arena, the names of the passes that run at any level: the
 * caller's list and the passes that the caller adds. */
static const char *const *list_required(
    struct byoc_compiled *c, const struct byoc_compile_params *params)
{
    BYI_VEC(const char *) list = {0};
    for (uint32_t i = 0; params->require && params->require[i]; i++)
        BYI_PUSH(&list, params->require[i]);
    for (uint32_t i = 0; i < c->n_added; i++)
        BYI_PUSH(&list, c->pass_list.passes.at[1 + i]->name);
    BYI_PUSH(&list, NULL);
    const char *const *copy =
        byi_arena_copy(c->arena, list.at, list.n * sizeof *list.at);
    byi_vec_free(list.at);
    return copy;
}

/* The requested built-in instruments, then the caller's. The members `printing`
 * and `dump` are the state of the built-in ones. */
struct instruments {
    struct byi_printing printing;
    struct byi_dump dump;
    BYI_VEC(struct byoc_instrument) list;
};

static void list_instruments(struct byoc_compiled *c,
                             const struct byoc_compile_params *params,
                             struct instruments *in)
{
    in->printing = (struct byi_printing){.before = params->print_before,
                                         .after = params->print_after,
                                         .print = params->print,
                                         .ctx = params->print_ctx};
    in->dump = (struct byi_dump){.folder = params->dump_passes};
    BYI_PUSH(&in->list, byi_timing_instrument(&c->timing));
    if (params->print)
        BYI_PUSH(&in->list, byi_printing_instrument(&in->printing));
    if (params->dump_passes)
        BYI_PUSH(&in->list, byi_dump_instrument(&in->dump));
    for (uint32_t i = 0; i < params->n_instruments; i++)
        BYI_PUSH(&in->list, params->instruments[i]);
}

/* Returns the level of passes, 0 to 3. */
static int pass_level(enum byoc_opt opt)
{
    return opt ? (int)opt - (int)BYOC_O0 : 2;
}

/* An action that runs with a pass context; `arg` is the argument that
 * with_context passes on. */
typedef enum byoc_status (*context_action)(struct byoc_compiled *c, void *arg,
                                           struct byi_pass_context *ctx,
                                           struct byoc_error *err);

/* Call work() with the pass context of this compile. */
static enum byoc_status with_context(struct byoc_compiled *c,
                                     const struct byoc_compile_params *params,
                                     context_action work, void *arg,
                                     struct byoc_error *err)
{
    struct instruments in = {0};
    list_instruments(c, params, &in);
    struct byi_pass_context ctx = {
        .opt_level = pass_level(params->opt_level),
        .disabled = params->disable,
        .required = list_required(c, params),
        .options = list_options(c, params),
        .known = byi_passes_known(),
        .stop_after = params->stop_after,
        .runs_all = params->passes != NULL,
        .instruments = in.list.at,
        .n_instruments = in.list.n,
        .verify = params->verify != 0,
        .eval = byi_kernel_eval,
        .generates = byi_kernels_accept,
        .generates_alone = byi_kernels_accept_alone,
        .sizes = &c->found.sizes,
        .entries = {byi_ledger_entry(c->ledger),
                    byi_backends_entry(&c->found.backends),
                    byi_narrow_list_entry(&c->narrowing),
                    byi_mixed_precision_entry(&c->precision)}};
    const enum byoc_status status = work(c, arg, &ctx, err);
    byi_vec_free(in.list.at);
    return status;
}

static enum byoc_status run_passes(struct byoc_compiled *c, void *arg,
                                   struct byi_pass_context *ctx,
                                   struct byoc_error *err)
{
    (void)arg;
    return byi_run_passes(c->m, c->pass_list.passes.at, c->pass_list.passes.n,
                          ctx, err);
}

/* Let AssignByCost decide the placement if partition_by is `estimated` or
 * `measured`. */
static enum byoc_status set_partition_by(struct byoc_compiled *c,
                                         const struct byoc_compile_params *p,
                                         struct byoc_error *err)
{
    if (p->partition_by <= BYOC_PARTITION_GREEDY)
        return BYOC_OK;
    const bool measured = p->partition_by == BYOC_PARTITION_MEASURED;
    if (measured && p->isolate)
        return byi_fail(err, BYOC_EINVAL,
                        "partition-by: found 'measured' with isolation, "
                        "expected one of the two, since 'measured' runs "
                        "backends in this process; use 'estimated' or compile "
                        "without isolation");
    c->by_cost = (struct byi_cost_partition){.found = &c->found,
                                             .arena = c->arena,
                                             .ledger = c->ledger,
                                             .threads = p->threads,
                                             .plugins = p->plugins,
                                             .cc = c->cc,
                                             .table = p->cost_table,
                                             .seconds = p->measure_seconds,
                                             .progress = p->progress,
                                             .progress_ctx = p->progress_ctx};
    c->found.backends.decide =
        measured ? byi_decide_by_measurement : byi_decide_by_estimate;
    c->found.backends.decide_ctx = &c->by_cost;
    return BYOC_OK;
}

/* Returns the passes of c->pass_list and their members, up to `stop_after`
 * (NULL: all); if `members`, only the members of sequences. The caller frees
 * passes.at with byi_vec_free. */
static struct byi_pass_list list_passes_to_run(const struct byoc_compiled *c,
                                               bool members,
                                               const char *stop_after)
{
    struct byi_pass_list to_run = {0};
    bool continues = true;
    for (uint32_t i = 0; i < c->pass_list.passes.n && continues; i++) {
        const struct byi_pass *pass = c->pass_list.passes.at[i];
        if (!members)
            continues = byi_passes_add_all(&to_run, pass, stop_after);
        for (uint32_t k = 0; members && pass->sequence && pass->sequence[k];
             k++)
            byi_passes_add_all(&to_run, pass->sequence[k], NULL);
    }
    return to_run;
}

/* Check that `pass` is one of the passes that run. `members`: these are only
 * the members of sequences. */
static enum byoc_status check_pass_runs(const char *option, const char *pass,
                                        const struct byi_pass_list *to_run,
                                        bool members, struct byoc_error *err)
{
    struct byi_text names = {0};
    for (uint32_t i = 0; i < to_run->passes.n; i++) {
        const char *name = to_run->passes.at[i]->name;
        if (strcmp(name, pass) == 0) {
            byi_text_free(&names);
            return BYOC_OK;
        }
        if (byi_pass_find(name)) /* not a sequence in brackets */
            byi_text_addf(&names, "%s%s", names.n ? ", " : "", name);
    }
    enum byoc_status status =
        byi_fail(err, BYOC_EINVAL, "%s '%s': %s, expected %s%s", option, pass,
                 members ? "no sequence of `passes` has this pass"
                         : "this pass does not run here",
                 names.n ? "one of " : "a pass of a sequence in brackets",
                 names.n ? names.at : "");
    byi_text_free(&names);
    return status;
}

/* Refuse options that name passes that do not exist, or that do not run: they
 * would have no effect. */
static enum byoc_status check_passes(const struct byoc_compiled *c,
                                     const struct byoc_compile_params *p,
                                     struct byoc_error *err)
{
    enum form { NAME, NAME_OR_ALL, OPTION }; /* OPTION: "PASS.NAME=VALUE" */
    const char *before[] = {p->print_before, NULL};
    const char *after[] = {p->print_after, NULL};
    const char *stop[] = {p->stop_after, NULL};
    const struct {
        const char *option;
        const char *const *names;
        enum form form;
        /* only members of sequences in `passes` can be disabled */
        bool members;
        /* the last pass that may be named; NULL: any pass, since advice.c
         * compiles only up to partitioning but keeps the user's options, which
         * may name later passes */
        const char *stop_after;
    } lists[] = {
        {"disable-pass", p->disable, NAME, p->passes != NULL, NULL},
        {"require-pass", p->require, NAME, p->passes != NULL, NULL},
        {"pass-option", p->options, OPTION, false, NULL},
        {"stop-after", stop, NAME, false, NULL},
        {"print-before", before, NAME_OR_ALL, false, p->stop_after},
        {"print-after", after, NAME_OR_ALL, false, p->stop_after},
    };
    enum byoc_status status = BYOC_OK;
    for (size_t i = 0; i < BYI_COUNT(lists) && status == BYOC_OK; i++) {
        const char *const *name = lists[i].names;
        const enum form form = lists[i].form;
        struct byi_pass_list to_run = {0};
        if (name && *name)
            to_run =
                list_passes_to_run(c, lists[i].members, lists[i].stop_after);
        for (; name && *name && status == BYOC_OK; name++) {
            const size_t n = strcspn(*name, form == OPTION ? "." : "");
            const char *pass = byi_arena_strn(c->arena, *name, n);
            if (byi_pass_find(pass))
                status = check_pass_runs(lists[i].option, pass, &to_run,
                                         lists[i].members, err);
            else if (form == NAME ||
                     (form == NAME_OR_ALL && strcmp(pass, "all") != 0))
                status = byi_pass_named(lists[i].option, pass, err)
                             ? BYOC_OK
                             : BYOC_EINVAL;
        }
        byi_vec_free(to_run.passes.at);
    }
    return status;
}

/* Check that each name of a list is a node of the model or an operator of the
 * model or of the IR. A misspelt name would silently have no effect. */
static enum byoc_status check_node_names(const struct byi_module *m,
                                         const char *option,
                                         const char *const *list,
                                         struct byoc_error *err)
{
    for (; list && *list; list++) {
        bool found = byi_op_of_name(*list, strlen(*list)) != NULL;
        for (uint32_t i = 0; !found && i < m->sources.n; i++)
            found = !strcmp(m->sources.at[i].name, *list) ||
                    !strcmp(m->sources.at[i].op, *list);
        if (!found)
            return byi_fail(err, BYOC_EINVAL,
                            "%s '%s': the model has no node and no operator of "
                            "that name; `byoc check --all` lists its nodes",
                            option, *list);
    }
    return BYOC_OK;
}

static enum byoc_status check_percent(const char *option, double percent,
                                      struct byoc_error *err)
{
    if (percent >= 0 && percent <= 100)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found %s, expected a percentage from 0 to 100", option,
                    BYI_FLOAT_TEXT(percent));
}

/* --- import --------------------------------------------------------------- */

/* Parse a module in text form; its constants are in the file X.consts beside
 * X.ir. */
static enum byoc_status parse_text(const char *path, const void *text, size_t n,
                                   struct byi_module **m,
                                   struct byoc_error *err)
{
    struct byi_text side = {0};
    byi_text_add(&side, path, strlen(path) - strlen(".ir"));
    byi_text_addf(&side, ".consts");
    enum byoc_status status =
        byi_parse_module(text ? text : "", n, path, side.at, m, err);
    byi_text_free(&side);
    return status;
}

static enum byoc_status import_text(const struct byi_model_source *source,
                                    struct byi_module **m,
                                    struct byoc_error *err)
{
    const void *text;
    size_t n;
    if (source->data)
        return parse_text(source->path, source->data, (size_t)source->bytes, m,
                          err);
    BYI_TRY(byi_map_file(source->path, &text, &n, err));
    const enum byoc_status status = parse_text(source->path, text, n, m, err);
    byi_unmap(text, n);
    return status;
}

/* If a module in text form has no provenance at all, name each call of an
 * operator as a node of the model, so that the ledger can count it. */
static void name_operators(struct byi_module *m)
{
    if (m->sources.n)
        return;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; id < f->nodes.n; id++) {
            struct byi_node *node = &f->nodes.at[id];
            if (node->kind != BYI_CALL_OP)
                continue;
            const char *op = byi_op(node->op)->name;
            const char *name = byi_arena_printf(m->arena, "%s/%s",
                                                f->name ? f->name : "fn", op);
            node->sources = byi_sources_one(m, byi_source_new(m, name, op));
        }
    }
}

/* For byi_onnx_params.find: find a custom operator of a plug-in. */
static bool find_operator(void *ctx, const char *domain, const char *type,
                          int64_t opset, struct byi_onnx_custom *custom)
{
    const struct byi_found_backends *found = ctx;
    custom->op =
        byi_find_custom_operator(found, domain, type, opset, &custom->plugin);
    return custom->op != NULL;
}

static enum byoc_status read_model(struct byoc_compiled *c,
                                   const struct byi_model_source *source,
                                   const struct byoc_compile_params *params,
                                   struct byi_module **m,
                                   struct byoc_error *err)
{
    const struct byi_onnx_params onnx = {.dims = params->dims,
                                         .shapes = params->shapes,
                                         .values = params->values,
                                         .eval = byi_kernel_eval,
                                         .data = source->data,
                                         .bytes = source->bytes,
                                         .find = find_operator,
                                         .find_ctx = &c->found};
    if (byi_path_ends_in(source->path, ".ir")) {
        if ((params->dims && *params->dims) ||
            (params->shapes && *params->shapes) ||
            (params->values && *params->values))
            return byi_fail(err, BYOC_EINVAL,
                            "%s: found dims, shapes or values for a model in "
                            "text form, expected them only for an ONNX model; "
                            "write the sizes and constants into the text",
                            source->path);
        return import_text(source, m, err);
    }
    return byi_onnx_import(source->path, &onnx, m, err);
}

static enum byoc_status import_model(struct byoc_compiled *c,
                                     const struct byi_model_source *source,
                                     const struct byoc_compile_params *params,
                                     struct byoc_error *err)
{
    BYI_TRY(read_model(c, source, params, &c->m, err));
    enum byoc_status status = byi_module_entry_set(
        c->m, params->function ? params->function : "main", source->path, err);
    if (status != BYOC_OK)
        byi_module_free(&c->m);
    return status;
}

/* --- the image ------------------------------------------------------------ */

/* For struct byi_build_check: build and load region `func` of m. Sets *why to
 * the reason if the backend cannot, otherwise to NULL. */
static enum byoc_status try_build(void *ctx, const struct byi_module *m,
                                  uint32_t func, const char **why,
                                  struct byoc_error *err)
{
    struct byoc_compiled *c = ctx;
    return byi_try_region(m, func, &c->found, c->arena, why, err);
}

/* Set list[0..*n-1] to the regions that have a fault. Before the `last` round,
 * split those that their backend cannot build, so that only a part of them is
 * reverted; in the last round they are reverted whole. */
static enum byoc_status list_reverts(struct byoc_compiled *c, bool last,
                                     struct byi_arena *scratch,
                                     struct byi_revert *list, uint32_t *n,
                                     struct byoc_error *err)
{
    const struct byi_build_check builds = {try_build, c};
    for (uint32_t i = 0; i < c->built.regions.n; i++) {
        const struct byi_built_region *r = &c->built.regions.at[i];
        if (!r->fault)
            continue;
        struct byi_revert *revert = &list[(*n)++];
        *revert = (struct byi_revert){
            .func = r->func, .reason = r->reason, .detail = r->fault};
        if (!last && r->reason == BYI_REASON_NOT_BUILT)
            BYI_TRY(byi_split_region(c->m, builds, scratch, revert, err));
    }
    return BYOC_OK;
}

/* A round of building the image. */
struct build_round {
    bool last;  /* revert all regions that have a fault; split none */
    bool again; /* a region had a fault, so the image must be rebuilt */
};

/* Split or revert the regions that have a fault, then remove dead code and
 * fuse. */
static enum byoc_status amend_regions(struct byoc_compiled *c, void *arg,
                                      struct byi_pass_context *ctx,
                                      struct byoc_error *err)
{
    const struct byi_pass *const after_revert[] = {
        &byi_pass_dead_code_elimination, &byi_pass_fuse_attention,
        &byi_pass_fuse_ops};
    struct build_round *build_round = arg;
    struct byi_arena *scratch = byi_arena_new();
    struct byi_revert *list =
        byi_arena_calloc(scratch, c->built.regions.n, sizeof *list);
    uint32_t n = 0;
    enum byoc_status status =
        list_reverts(c, build_round->last, scratch, list, &n, err);
    build_round->again = n > 0;
    if (status == BYOC_OK && n)
        status = byi_revert_regions(c->m, list, n, ctx, err);
    if (status == BYOC_OK && n)
        status = byi_run_passes(c->m, after_revert, BYI_COUNT(after_revert),
                                ctx, err);
    byi_arena_free(&scratch);
    return status;
}

/* Build the image until all its regions load. The first round splits regions
 * that fail into smaller ones that were tried alone, so these should build.
 * Later rounds revert the regions that still fail. */
static enum byoc_status build_image(struct byoc_compiled *c,
                                    const struct byoc_compile_params *params,
                                    struct byoc_error *err)
{
    struct build_round build_round = {.again = true};
    for (; build_round.again; build_round.last = true) {
        BYI_TRY(byi_built_model_make(c->m, &c->found, NULL, c->arena, &c->built,
                                     err));
        BYI_TRY(byi_try_regions(c, params, err));
        BYI_TRY(with_context(c, params, amend_regions, &build_round, err));
    }
    return BYOC_OK;
}

/* --- the ledger ----------------------------------------------------------- */

static enum byoc_status open_ledger(struct byoc_compiled *c, const char *path,
                                    const struct byoc_compile_params *params,
                                    struct byoc_error *err)
{
    const struct byi_backends *v = &c->found.backends;
    const char *name = strrchr(path, '/');
    struct byi_ledger_backend *backends =
        byi_arena_calloc(c->arena, v->n, sizeof *backends);
    struct byi_ledger_facts facts = {
        .model = name ? name + 1 : path,
        .cpu = c->found.machine == byi_machine_host() ? byoc_internal_cpu()
                                                      : c->found.machine->name,
        .native = byoc_version(),
        .n_backends = v->n,
        .backends = backends};
    for (uint32_t i = 0; i < v->n; i++)
        backends[i] = (struct byi_ledger_backend){
            .name = v->at[i].name, .version = v->at[i].api->version};
    BYI_TRY(byoc_internal_threads(params->threads, &facts.threads, err));
    byi_ledger_set_facts(c->ledger, &facts);
    byi_ledger_open(c->ledger, c->m);
    return BYOC_OK;
}

/* Record in the ledger which weights NarrowWeights narrowed. */
static void record_weights(struct byoc_compiled *c)
{
    for (uint32_t i = 0; i < c->narrowing.weights.n; i++) {
        const struct byi_narrowed_weight *w = &c->narrowing.weights.at[i];
        const struct byi_ledger_weight weight = {.to = w->to,
                                                 .sources = w->sources,
                                                 .bytes = w->bytes,
                                                 .narrow = w->narrow,
                                                 .largest = w->largest,
                                                 .rms = w->rms,
                                                 .kept = w->kept};
        byi_ledger_add_weight(c->ledger, &weight);
    }
}

/* Record in the ledger what ToMixedPrecision did. */
static void record_precision(struct byoc_compiled *c)
{
    const struct byi_ledger_precision precision = {
        c->precision.to, c->precision.narrow, c->precision.float32};
    if (precision.to)
        byi_ledger_set_precision(c->ledger, &precision);
}

static void close_ledger(struct byoc_compiled *c,
                         const struct byoc_compile_params *params)
{
    const struct byi_pass_context ctx = {.eval = byi_kernel_eval,
                                         .sizes = &c->found.sizes};
    byi_ledger_close(c->ledger, c->m, byi_samples_new(c->m, &ctx, c->arena));
    record_weights(c);
    record_precision(c);
    byi_gates_check(c->ledger, params);
    byi_ledger_write_json(c->ledger, &c->ledger_json);
    c->verdict = byi_gates_verdict(&c->ledger_json, c->arena);
    c->coverage = *byi_ledger_coverage(c->ledger);
}

/* --- parameters ----------------------------------------------------------- */

enum byoc_status byi_compile_params_read(
    struct byoc_compile_params *params, const struct byoc_compile_params *given,
    struct byoc_error *err)
{
    BYI_TRY(byi_params_read(params,
                            BYI_PARAMS_SIZE(byoc_compile_params, isolate_bytes),
                            given, err));
    const struct {
        const char *name;
        uint32_t value, last;
    } enums[] = {
        {"opt_level", params->opt_level, BYOC_O3},
        {"codegen", params->codegen, BYOC_CODEGEN_JSON},
        {"partition_by", params->partition_by, BYOC_PARTITION_MEASURED},
        {"weights", params->weights, BYOC_WEIGHTS_INT4},
        {"precision", params->precision, BYOC_PRECISION_BF16},
    };
    for (size_t i = 0; i < BYI_COUNT(enums); i++)
        BYI_TRY(
            byi_enum_check(enums[i].name, enums[i].value, enums[i].last, err));
    return BYOC_OK;
}

/* --- compiling ------------------------------------------------------------ */

static enum byoc_status compile_model(struct byoc_compiled *c,
                                      const struct byi_model_source *source,
                                      const struct byoc_compile_params *params,
                                      struct byoc_error *err)
{
    for (const char *const *p = params->pass_plugins; p && *p; p++)
        BYI_TRY(byi_passes_load(*p, err));
    if (params->weights && params->passes)
        return byi_fail(err, BYOC_EINVAL,
                        "weights: has no effect on a list of passes; give the "
                        "pass NarrowWeights and its option 'to'");
    if (params->precision && params->passes)
        return byi_fail(err, BYOC_EINVAL,
                        "precision: has no effect on a list of passes; give "
                        "the pass ToMixedPrecision and its option 'to'");
    BYI_TRY(check_percent("require-offload", params->require_offload, err));
    BYI_TRY(check_percent("require-offload-nodes",
                          params->require_offload_nodes, err));
    BYI_TRY(list_passes(c, params, err));
    BYI_TRY(check_passes(c, params, err));
    BYI_TRY(byi_find_backends(&c->found, c->arena, params, err));
    BYI_TRY(import_model(c, source, params, err));
    if (!params->passes && !params->stop_after)
        name_operators(c->m);
    BYI_TRY(check_node_names(c->m, "exclude", params->exclude, err));
    BYI_TRY(check_node_names(c->m, "only", params->only, err));
    BYI_TRY(byi_find_warm(&c->found, c->m, params->warm, c->arena, err));
    BYI_TRY(set_partition_by(c, params, err));
    BYI_TRY(open_ledger(c, source->path, params, err));
    BYI_TRY(with_context(c, params, run_passes, NULL, err));
    if (!params->stop_after && !params->passes) {
        BYI_TRY(build_image(c, params, err));
        byi_record_implementations(c);
    }
    close_ledger(c, params);
    return BYOC_OK;
}

struct byoc_compiled *byi_compiled_new(const struct byoc_compile_params *params)
{
    struct byi_arena *arena = byi_arena_new();
    struct byoc_compiled *c = byi_arena_alloc(arena, sizeof *c);
    c->arena = arena;
    c->ledger = byi_ledger_new();
    c->cc = params->cc ? byi_arena_str(arena, params->cc) : NULL;
    c->keep_c = params->keep_c ? byi_arena_str(arena, params->keep_c) : NULL;
    c->store = params->weights == BYOC_WEIGHTS_FP16   ? BYOC_F16
               : params->weights == BYOC_WEIGHTS_BF16 ? BYOC_BF16
                                                      : BYOC_NONE;
    return c;
}

enum byoc_status byi_compile_here(const struct byi_model_source *source,
                                  const struct byoc_compile_params *params,
                                  const struct byi_crashed_backend *crashed,
                                  uint32_t n_crashed, struct byoc_compiled **c,
                                  struct byoc_error *err)
{
    *c = byi_compiled_new(params);
    (*c)->found.crashed = crashed;
    (*c)->found.n_crashed = n_crashed;
    BYI_TRY(compile_model(*c, source, params, err));
    byi_warn_excluded_backends(&(*c)->found, &(*c)->warnings);
    if ((*c)->by_cost.notes.n)
        byi_text_add(&(*c)->warnings, (*c)->by_cost.notes.at,
                     (*c)->by_cost.notes.n);
    return BYOC_OK;
}
