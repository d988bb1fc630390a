/* SPDX-License-Identifier: Apache-2.0 */
/* Inline: replace calls by the bodies of their functions.
 * requires: nothing
 * breaks:   ToBasicBlockNormalForm, ToANormalForm
 * leaves:   no direct call of a @global or function literal that is marked
 *           Inline=1 or has a single call in the module. Exceptions: recursive
 *           functions; regions, composites and fused groups; bodies of
 *           more than max_nodes nodes, counting nested and inlined ones, or
 *           with which the module would exceed MAX_MODULE nodes; bodies with
 *           certain nested literals if an argument has another type than its
 *           parameter (renames_sizes); bodies that do not type-check at the
 *           call; and bodies whose result has another type than the call,
 *           unless it only has more static dims and no node refers to the
 *           caller. Functions without calls stay (RemoveUnusedFunctions drops
 *           them); values without readers are dropped.
 *
 *   def @f(%a) { exp(%a) }
 *   def @main(%x) { abs(@f(%x)) }    ==>    def @main(%x) { abs(exp(%x)) }
 */
#include "transform.h"

#include "call_graph.h"
#include "rewrite.h"

enum { MAX_MODULE = 4 << 20 /* nodes; the limit of the text form */ };

static const struct byi_pass_option options[] = {
    {"max_nodes", BYI_ATTR_INT, "10000", "the largest body that is inlined"},
    {.name = NULL},
};

enum inline_frame_kind {
    BODY,   /* the function that is rebuilt                            */
    CALLEE, /* a body that replaces a call in the frame below           */
    NESTED  /* a function literal of a CALLEE, which is cloned          */
};

/* A function that is being copied. */
struct inline_frame {
    enum inline_frame_kind kind;
    uint32_t func;       /* the function that is copied */
    uint32_t clone;      /* NESTED: the clone of `func` */
    struct byi_func *to; /* receives the copies */
    byi_id *map;         /* for each node of `func`: its copy in `to` */
    byi_id at;           /* the next node of `func` */
    byi_id place;        /* the call or literal in the frame below */
    bool is_only_copy;   /* the original is dropped: symbols keep their names */
    /* CALLEE: nodes of `to` before the inlining, to undo it */
    uint32_t nodes_before;
};

/* The state of the pass. */
struct inliner {
    struct byi_module *m;
    struct byi_arena *scratch;
    struct byi_call_graph graph;
    /* for each function: reads of its literals and globals; direct calls among
     * them
     */
    uint32_t *reads, *calls;
    BYI_VEC(uint64_t) size; /* for each function: nodes, nested ones included */
    uint64_t max_nodes;
    uint64_t total;   /* nodes of the module, with the inlined ones */
    bool equal_types; /* a result must have the same type as its call */
    BYI_VEC(struct inline_frame) frames;
};

static struct inline_frame *innermost(struct inliner *s)
{
    return &s->frames.at[s->frames.n - 1];
}

/* --- the calls to inline -------------------------------------------------- */

static void count_reads(struct inliner *s, const struct byi_func *f)
{
    if (!f->refers)
        return;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 0; i < node->n_args; i++) {
            const struct byi_node *arg = &f->nodes.at[node->args[i]];
            if (!byi_node_refers(arg))
                continue;
            s->reads[arg->index]++;
            s->calls[arg->index] += node->kind == BYI_CALL && i == 0;
        }
    }
    if (byi_node_refers(&f->nodes.at[f->result]))
        s->reads[f->nodes.at[f->result].index]++;
}

static bool should_inline(const struct inliner *s, const struct byi_func *f,
                          const struct byi_node *call)
{
    if (call->kind != BYI_CALL)
        return false;
    const struct byi_node *callee = &f->nodes.at[call->args[0]];
    if (!byi_node_refers(callee))
        return false;
    const uint32_t g = callee->index;
    if (s->graph.closed[g] || s->graph.recursive[g] ||
        s->size.at[g] > s->max_nodes || s->total + s->size.at[g] > MAX_MODULE)
        return false;
    return s->m->funcs.at[g]->attr.inlined ||
           (s->calls[g] == 1 && s->reads[g] == 1);
}

/* Whether an argument has another type than its parameter while the body has a
 * literal with nested literals or with parameters. The types of these
 * parameters may name the same symbols. */
static bool renames_sizes(const struct inliner *s, const struct byi_func *f,
                          const struct byi_node *call)
{
    const struct byi_node *callee = &f->nodes.at[call->args[0]];
    const struct byi_func *body = s->m->funcs.at[callee->index];
    bool same = true;
    for (uint32_t i = 1; i < call->n_args; i++)
        same =
            same && byi_type_equal(f->nodes.at[call->args[i]].type,
                                   body->nodes.at[body->params.at[i - 1]].type);
    for (byi_id id = 0; !same && id < body->nodes.n; id++) {
        const struct byi_node *fn = &body->nodes.at[id];
        if (fn->kind != BYI_FN)
            continue;
        const struct byi_func *inner = s->m->funcs.at[fn->index];
        if (inner->params.n > inner->n_captures)
            return true;
        for (byi_id k = 0; k < inner->nodes.n; k++)
            if (inner->nodes.at[k].kind == BYI_FN)
                return true;
    }
    return false;
}

/* --- frames --------------------------------------------------------------- */

static byi_id *new_map(struct inliner *s, uint32_t func)
{
    const uint32_t n = s->m->funcs.at[func]->nodes.n;
    return byi_arena_calloc(s->scratch, (size_t)n + 1, sizeof(byi_id));
}

static void open_callee(struct inliner *s, byi_id place)
{
    const struct inline_frame *outer = innermost(s);
    const struct byi_func *f = s->m->funcs.at[outer->func];
    const struct byi_node *call = &f->nodes.at[place];
    const struct byi_node *callee = &f->nodes.at[call->args[0]];
    const struct byi_func *body = s->m->funcs.at[callee->index];
    struct inline_frame frame = {
        .kind = CALLEE,
        .func = callee->index,
        .to = outer->to,
        .map = new_map(s, callee->index),
        .place = place,
        .is_only_copy = s->reads[callee->index] == 1,
        .nodes_before = outer->to->nodes.n,
    };
    const uint32_t n_declared = call->n_args - 1;
    for (uint32_t i = 0; i < n_declared; i++)
        frame.map[body->params.at[i]] = outer->map[call->args[i + 1]];
    for (uint32_t i = 0; callee->kind == BYI_FN && i < callee->n_args; i++)
        frame.map[body->params.at[n_declared + i]] =
            outer->map[callee->args[i]];
    BYI_PUSH(&s->frames, frame);
}

static void open_nested(struct inliner *s, byi_id place)
{
    const struct inline_frame *outer = innermost(s);
    const struct byi_node *fn = &s->m->funcs.at[outer->func]->nodes.at[place];
    struct inline_frame frame = {.kind = NESTED,
                                 .func = fn->index,
                                 .clone = byi_func_new(s->m, NULL),
                                 .map = new_map(s, fn->index),
                                 .place = place,
                                 .is_only_copy = outer->is_only_copy};
    const struct byi_func *from = s->m->funcs.at[fn->index];
    const uint32_t n_declared = from->params.n - from->n_captures;
    frame.to = byi_func_like(s->m, from, frame.map);
    if (!frame.is_only_copy)
        frame.to->origin = NULL;
    for (uint32_t i = 0; i < fn->n_args; i++)
        frame.to->nodes.at[frame.to->params.at[n_declared + i]].type =
            outer->to->nodes.at[outer->map[fn->args[i]]].type;
    s->m->funcs.at[frame.clone]->type = from->type;
    BYI_PUSH(&s->size, s->size.at[fn->index]);
    BYI_PUSH(&s->frames, frame);
}

/* --- results -------------------------------------------------------------- */

/* The callee's body is complete: replace the call by its result, if the types
 * allow it. */
static bool close_callee(struct inliner *s)
{
    const struct inline_frame frame = *innermost(s);
    struct inline_frame *outer = &s->frames.at[s->frames.n - 2];
    const struct byi_node *call =
        &s->m->funcs.at[outer->func]->nodes.at[frame.place];
    const byi_id id = frame.map[s->m->funcs.at[frame.func]->result];
    struct byi_node *result = &outer->to->nodes.at[id];
    if (!byi_type_equal(result->type, call->type) &&
        (s->equal_types || !byi_type_refines(result->type, call->type)))
        return false;
    if (id >= frame.nodes_before && result->kind != BYI_PARAM) {
        result->sources =
            byi_sources_join(s->m, result->sources, call->sources);
        result->let = result->let || (call->let && result->kind != BYI_CONST &&
                                      result->kind != BYI_GLOBAL);
    }
    outer->map[frame.place] = id;
    outer->at++;
    s->frames.n--;
    s->total += s->size.at[frame.func];
    return true;
}

static void close_nested(struct inliner *s)
{
    const struct inline_frame frame = *innermost(s);
    struct inline_frame *outer = &s->frames.at[s->frames.n - 2];
    const struct byi_node fn =
        s->m->funcs.at[outer->func]->nodes.at[frame.place];
    byi_id *args = byi_arena_calloc(s->scratch, fn.n_args, sizeof *args);
    for (uint32_t i = 0; i < fn.n_args; i++)
        args[i] = outer->map[fn.args[i]];
    frame.to->result = frame.map[s->m->funcs.at[frame.func]->result];
    byi_func_replace(s->m, frame.clone, frame.to);
    const byi_id id =
        byi_add_fn(s->m, outer->to, frame.clone, args, fn.n_args, fn.sources);
    outer->to->nodes.at[id].let = fn.let;
    outer->to->nodes.at[id].backend = fn.backend;
    outer->to->nodes.at[id].region = fn.region;
    outer->map[frame.place] = id;
    outer->at++;
    s->frames.n--;
}

/* The callee's body does not type-check here: undo the inlining and keep the
 * call. */
static enum byoc_status undo_callee(struct inliner *s, struct byoc_error *err)
{
    while (innermost(s)->kind == NESTED)
        s->frames.n--;
    const struct inline_frame frame = *innermost(s);
    s->frames.n--;
    frame.to->nodes.n = frame.nodes_before;
    struct inline_frame *outer = innermost(s);
    BYI_TRY(byi_add_copy(s->m, outer->to, s->m->funcs.at[outer->func],
                         outer->at, outer->map, &outer->map[outer->at], err));
    outer->at++;
    return BYOC_OK;
}

/* --- copying nodes -------------------------------------------------------- */

/* In a clone, self references refer to the clone. */
static byi_id copy_self(struct inliner *s, const struct byi_node *old)
{
    struct inline_frame *frame = innermost(s);
    struct byi_node node = *old;
    byi_id *args = byi_args_new(s->m, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++)
        args[i] = frame->map[old->args[i]];
    node.args = args;
    node.index = frame->clone;
    return byi_add_node(frame->to, node);
}

static enum byoc_status copy_node(struct inliner *s, struct byoc_error *err)
{
    struct inline_frame *frame = innermost(s);
    const struct byi_func *from = s->m->funcs.at[frame->func];
    const bool moves = frame->kind == CALLEE && frame->is_only_copy;
    const enum byoc_status status = (moves ? byi_add_moved : byi_add_copy)(
        s->m, frame->to, from, frame->at, frame->map, &frame->map[frame->at],
        err);
    frame->at += status == BYOC_OK;
    return status;
}

/* Whether the captures of a literal still fit its parameters: an inlined result
 * may have more precise dims than the call had. */
static bool captures_fit(const struct inliner *s,
                         const struct inline_frame *frame,
                         const struct byi_node *fn)
{
    const struct byi_func *inner = s->m->funcs.at[fn->index];
    const uint32_t n_declared = inner->params.n - inner->n_captures;
    for (uint32_t i = 0; i < fn->n_args; i++)
        if (!byi_type_equal(
                frame->to->nodes.at[frame->map[fn->args[i]]].type,
                inner->nodes.at[inner->params.at[n_declared + i]].type))
            return false;
    return true;
}

/* Process a node of the innermost frame. A failing callee is undone; only the
 * function itself can fail the pass. */
static enum byoc_status process_node(struct inliner *s, struct byoc_error *err)
{
    struct inline_frame *frame = innermost(s);
    const struct byi_func *from = s->m->funcs.at[frame->func];
    const struct byi_node *node = &from->nodes.at[frame->at];
    if (node->kind == BYI_PARAM) {
        frame->at++;
        return BYOC_OK;
    }
    if (frame->kind == BODY && node->kind == BYI_FN &&
        !captures_fit(s, frame, node))
        return byi_fail(err, BYOC_ETYPE,
                        "a function literal captures a value whose type has "
                        "more static dims than the literal's parameter, "
                        "expected equal types");
    if (frame->kind == BODY) {
        if (!should_inline(s, from, node) || renames_sizes(s, from, node))
            return copy_node(s, err);
        open_callee(s, frame->at);
        return BYOC_OK;
    }
    if (node->kind == BYI_FN && node->index == frame->func) {
        frame->map[frame->at] = copy_self(s, node);
        frame->at++;
        return BYOC_OK;
    }
    if (node->kind == BYI_FN) {
        open_nested(s, frame->at);
        return BYOC_OK;
    }
    return copy_node(s, NULL) == BYOC_OK ? BYOC_OK : undo_callee(s, err);
}

static enum byoc_status run_frames(struct inliner *s, struct byoc_error *err)
{
    for (;;) {
        struct inline_frame *frame = innermost(s);
        if (frame->at < s->m->funcs.at[frame->func]->nodes.n) {
            BYI_TRY(process_node(s, err));
            continue;
        }
        if (frame->kind == BODY)
            return BYOC_OK;
        if (frame->kind == NESTED)
            close_nested(s);
        else if (!close_callee(s))
            BYI_TRY(undo_callee(s, err));
    }
}

static enum byoc_status rebuild(struct inliner *s, uint32_t func,
                                struct byoc_error *err)
{
    const struct byi_func *old = s->m->funcs.at[func];
    struct inline_frame body = {
        .kind = BODY, .func = func, .map = new_map(s, func)};
    body.to = byi_func_like(s->m, old, body.map);
    s->frames.n = 0;
    BYI_PUSH(&s->frames, body);
    BYI_TRY(run_frames(s, err));
    body.to->result = body.map[old->result];
    byi_sweep(s->m, body.to, s->scratch);
    byi_func_replace(s->m, func, body.to);
    return BYOC_OK;
}

static bool has_calls_to_inline(const struct inliner *s,
                                const struct byi_func *f)
{
    for (byi_id id = 0; f->refers && id < f->nodes.n; id++)
        if (should_inline(s, f, &f->nodes.at[id]))
            return true;
    return false;
}

/* Inline calls in the body of `func`. If no node refers to `func`, results may
 * get more static dims; if that fails, the types must stay equal. */
static enum byoc_status inline_into(struct inliner *s, uint32_t func,
                                    struct byoc_error *err)
{
    s->equal_types = s->graph.n_fns[func] + s->graph.n_globals[func] > 0;
    if (!has_calls_to_inline(s, s->m->funcs.at[func]))
        return BYOC_OK;
    enum byoc_status status = rebuild(s, func, s->equal_types ? err : NULL);
    if (status != BYOC_OK && !s->equal_types) {
        s->equal_types = true;
        status = rebuild(s, func, err);
    }
    return status;
}

static void measure_body(struct inliner *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    s->size.at[func] = f->nodes.n;
    for (byi_id id = 0; f->refers && id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_FN && node->index != func)
            s->size.at[func] += s->size.at[node->index];
    }
}

/* Drop literals whose only call was inlined, and undone clones. */
static void drop_orphans(struct inliner *s)
{
    const struct byi_call_graph graph = byi_call_graph(s->m, s->scratch);
    for (uint32_t i = 0; i < s->m->funcs.n; i++)
        if (!graph.reached[i] && !s->m->funcs.at[i]->name)
            s->m->funcs.at[i]->dead = true;
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    const uint32_t n = m->funcs.n;
    struct inliner s = {
        .m = m,
        .scratch = scratch,
        .graph = byi_call_graph(m, scratch),
        .reads = byi_arena_calloc(scratch, n, sizeof *s.reads),
        .calls = byi_arena_calloc(scratch, n, sizeof *s.calls),
    };
    const int64_t max_nodes = byi_option_int(ctx, "Inline.max_nodes");
    s.max_nodes = max_nodes < 0 ? 0 : (uint64_t)max_nodes;
    for (uint32_t i = 0; i < n; i++)
        BYI_PUSH(&s.size, m->funcs.at[i]->nodes.n);
    for (uint32_t i = 0; i < s.graph.n; i++) {
        count_reads(&s, m->funcs.at[s.graph.order[i]]);
        s.total += m->funcs.at[s.graph.order[i]]->nodes.n;
    }
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < s.graph.n && status == BYOC_OK; i++) {
        const uint32_t func = s.graph.order[i];
        if (!s.graph.closed[func])
            status = inline_into(&s, func, err);
        measure_body(&s, func);
    }
    drop_orphans(&s);
    byi_vec_free(s.frames.at);
    byi_vec_free(s.size.at);
    return status;
}

/* A body may read fewer values than its call. */
static const char *const breaks[] = {"ToBasicBlockNormalForm", "ToANormalForm",
                                     NULL};

const struct byi_pass byi_pass_inline = {
    .name = "Inline",
    .summary = "replace calls by the bodies of their functions",
    .opt_level = 1,
    .breaks = breaks,
    .options = options,
    .run_module = run,
};
