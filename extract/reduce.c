/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: reduces a program by delta debugging. Tries one change after the
 * other, and keeps a change if the test still fails with the same exit code.
 * Ends when no change can be kept, or after max_tests tests.
 */
#include "extract.h"

#include "core/base/child.h"
#include "core/base/temp.h"
#include "interp/interp.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that is being reduced. */
struct reduced_program {
    struct byi_module *m;
    struct byi_arena *arena;
    uint32_t n_in;
    struct byi_tensor *in;
};

/* A change to make when the program is rewritten. A node that is BYI_NO_ID
 * stands for no change. */
struct edit {
    byi_id result; /* the new result */
    byi_id input;  /* this node becomes an input */
    /* readers of `replaced` read `replacement` */
    byi_id replaced, replacement;
    int64_t from, to;  /* size `from` becomes `to`; from 0: none */
    bool in_values;    /* also replace `from` in int64 constants */
    byi_id simplified; /* this parameter or constant gets simpler values */
    double value;      /* value of its elements; NAN: round them */
};

static const struct edit no_edit = {.result = BYI_NO_ID,
                                    .input = BYI_NO_ID,
                                    .replaced = BYI_NO_ID,
                                    .replacement = BYI_NO_ID,
                                    .simplified = BYI_NO_ID};

/* The state of byi_extract_reduce. */
struct reducer {
    struct byi_region_reduction *r;
    const struct byi_extract *x;    /* the region to reduce */
    struct reduced_program program; /* the result so far */
    struct byoc_error *err;
    enum byoc_status status; /* an error that ends the reduction */
};

static const struct byi_func *main_of(const struct reduced_program *s)
{
    return s->m->funcs.at[byi_func_find(s->m, "main")];
}

static void free_program(struct reduced_program *s)
{
    byi_module_free(&s->m);
    byi_arena_free(&s->arena);
}

/* --- the test ------------------------------------------------------------- */

/* Run the test in the folder. Returns its exit code, 128 + a signal, or -1 and
 * an error if it did not start or did not end in time. */
static int run_test(const struct byi_region_reduction *r, const char *folder,
                    struct byoc_error *err)
{
    const double seconds = r->seconds > 0 ? r->seconds : 60;
    struct byi_temp *entry = NULL;
    int status = 0;
    bool ended = false;
    const pid_t child = byi_temp_fork(true, &entry);
    const int error = errno;
    if (child == 0) {
        const int null_fd = open("/dev/null", O_WRONLY);
        if (chdir(folder) != 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
            dup2(null_fd, STDERR_FILENO) < 0)
            _exit(125);
        execl("/bin/sh", "sh", "-c", r->test, (char *)NULL);
        _exit(125);
    }
    if (child > 0) {
        const struct byi_child_time time = byi_child_time(seconds);
        ended = byi_child_wait(child, true, &time, &status);
    }
    byi_temp_done(&entry);
    if (child < 0)
        byi_fail(err, byi_io_status(error), "cannot start the test '%s': %s",
                 r->test, strerror(error));
    else if (!ended)
        byi_fail(err, BYOC_EINVAL,
                 "the test '%s' did not end within %g seconds, expected one "
                 "that fails; try a larger --test-seconds",
                 r->test, seconds);
    if (!ended)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Run the test on a program. Returns its exit code, or -1 and an error if the
 * program cannot be written or the test does not start or end in time. If no
 * temporary folder can be made, d->status has the error, which ends the
 * reduction. */
static int try_program(struct reducer *d, const struct reduced_program *s,
                       struct byoc_error *err)
{
    const char *base = secure_getenv("TMPDIR");
    struct byi_temp *entry = NULL;
    char parent[4096], folder[4096 + 20];
    if (snprintf(parent, sizeof parent, "%s/byoc-reduce.XXXXXX",
                 base ? base : "/tmp") >= (int)sizeof parent ||
        !byi_temp_folder(parent, &entry)) {
        d->status = byi_fail(d->err, byi_io_status(errno),
                             "cannot create a folder for a test in %s: %s",
                             base ? base : "/tmp", strerror(errno));
        return -1;
    }
    int code = -1;
    const struct byi_extract x = {
        .m = s->m, .n_in = s->n_in, .in = s->in, .backend = d->x->backend};
    snprintf(folder, sizeof folder, "%s/region", parent);
    if (byi_extract_write(&x, folder, err) == BYOC_OK)
        code = run_test(d->r, folder, err);
    byi_folder_remove(folder);
    rmdir(parent);
    byi_temp_done(&entry);
    d->r->n_tests++;
    return code;
}

/* --- rewriting a program -------------------------------------------------- */

/* A program that is being copied with an edit. */
struct program_rewrite {
    const struct reduced_program *from;
    const struct byi_func *f;
    const struct edit *edit;
    struct reduced_program to;
    struct byi_func *main; /* @main of `to` */
    byi_id *map;           /* from old to new nodes */
    bool *used;            /* old nodes that the result depends on */
};

static int64_t new_size(const struct edit *e, int64_t size)
{
    return e->from && size == e->from ? e->to : size;
}

/* Copy the elements of `t` that are within the new sizes. `simplifies`: replace
 * them by the edit's simpler values. `constant`: the edit may also replace
 * sizes among the values. */
static struct byi_tensor new_tensor(struct program_rewrite *w,
                                    const struct byi_tensor *t, bool simplifies,
                                    bool constant)
{
    const struct edit *e = w->edit;
    struct byi_tensor out = {.dtype = t->dtype, .rank = t->rank};
    for (uint32_t i = 0; i < t->rank; i++)
        out.dims[i] = new_size(e, t->dims[i]);
    const uint64_t bytes = byi_tensor_bytes(&out);
    out.data = byi_arena_alloc(w->to.arena, bytes + BYI_ALIGN);
    const int64_t n = byi_elements(out.rank, out.dims);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (uint32_t d = t->rank; d-- > 0;) {
            at += rest % out.dims[d] * step;
            rest /= out.dims[d];
            step *= t->dims[d];
        }
        double x = byi_tensor_float(t, at);
        if (constant && e->in_values && t->dtype == BYOC_I64)
            x = (double)new_size(e, (int64_t)x);
        if (simplifies)
            x = isnan(e->value) ? round(x) : e->value;
        byi_tensor_set(&out, i, x);
    }
    return out;
}

static const struct byi_type *type_of(struct program_rewrite *w,
                                      const struct byi_tensor *t)
{
    return byi_type_tensor(w->to.m->arena, t->dtype, t->rank, t->dims);
}

static bool add_input(struct program_rewrite *w, const struct byi_tensor *t,
                      byi_id *id, struct byoc_error *err)
{
    char name[24];
    if (w->to.n_in + 1 >= BYI_EXTRACT_MAX_IO)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found %d or more inputs, expected fewer",
                        BYI_EXTRACT_MAX_IO) == BYOC_OK;
    snprintf(name, sizeof name, "input%u", w->to.n_in);
    w->to.in[w->to.n_in++] = *t;
    *id = byi_add_param(w->to.m, w->main, byi_arena_str(w->to.m->arena, name),
                        type_of(w, t));
    return true;
}

/* Compute the value of one node, a tensor, with native kernels. */
static bool value_of(const struct reduced_program *s, byi_id id,
                     struct byi_arena *arena, struct byi_tensor *out,
                     struct byoc_error *err)
{
    struct byi_func *f = s->m->funcs.at[byi_func_find(s->m, "main")];
    const byi_id result = f->result;
    uint32_t n = 0;
    f->result = id;
    const bool succeeded =
        byi_interp_run(s->m, byi_func_find(s->m, "main"), s->in, s->n_in, arena,
                       out, 1, &n, err) == BYOC_OK;
    f->result = result;
    return succeeded && n == 1;
}

/* The node that is read instead of `id`. */
static byi_id source_of(const struct program_rewrite *w, byi_id id)
{
    return id == w->edit->replaced ? w->edit->replacement : id;
}

/* Mark the nodes that the result depends on. */
static void mark_used(struct program_rewrite *w, byi_id result)
{
    w->used[result] = true;
    for (byi_id id = w->f->nodes.n; id-- > 0;) {
        const struct byi_node *n = &w->f->nodes.at[id];
        if (w->used[id] && id != w->edit->input)
            for (uint32_t a = 0; a < n->n_args; a++)
                w->used[source_of(w, n->args[a])] = true;
    }
}

/* Copy node `id` with the edit. */
static bool add_node(struct program_rewrite *w, byi_id id,
                     struct byoc_error *err)
{
    const struct byi_node *n = &w->f->nodes.at[id];
    struct byi_tensor t;
    byi_id args[BYI_EXTRACT_MAX_IO];
    if (id == w->edit->input) {
        return value_of(w->from, id, w->to.arena, &t, err) &&
               add_input(w, &t, &w->map[id], err);
    }
    if (n->n_args > BYI_EXTRACT_MAX_IO)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found an operator with %u operands, expected at most "
                        "%d",
                        n->n_args, BYI_EXTRACT_MAX_IO) == BYOC_OK;
    for (uint32_t a = 0; a < n->n_args; a++)
        args[a] = w->map[source_of(w, n->args[a])];
    switch (n->kind) {
    case BYI_PARAM:
        t = new_tensor(w, &w->from->in[n->index], id == w->edit->simplified,
                       false);
        return add_input(w, &t, &w->map[id], err);
    case BYI_CONST:
        if (!byi_const_view(w->from->m, w->f, id, &t))
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "found a constant that is not in memory, expected "
                            "one that is") == BYOC_OK;
        t = new_tensor(w, &t, id == w->edit->simplified, true);
        w->map[id] = byi_add_const(
            w->to.m, w->main,
            byi_const_add(w->to.m, type_of(w, &t), t.data, false), NULL);
        return true;
    case BYI_CALL_OP:
        return byi_add_op(w->to.m, w->main, n->op, args, n->n_args,
                          byi_attrs_copy(w->to.m->arena, n->attrs), NULL,
                          &w->map[id], err) == BYOC_OK;
    case BYI_MAKE_TUPLE:
        w->map[id] = byi_add_tuple(w->to.m, w->main, args, n->n_args, NULL);
        return true;
    case BYI_GET:
        return byi_add_get(w->to.m, w->main, args[0], n->index, NULL,
                           &w->map[id], err) == BYOC_OK;
    case BYI_CALL:
    case BYI_GLOBAL:
    case BYI_FN:
    case BYI_IF:
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found a function or an `if`, expected operators and "
                        "tuples only") == BYOC_OK;
    }
    return false;
}

/* Apply the edit to a program. Returns false and an error if the result is not
 * a valid program. */
static bool rewrite_program(const struct reduced_program *from,
                            const struct edit *edit,
                            struct reduced_program *out, struct byoc_error *err)
{
    struct byi_arena *scratch = byi_arena_new();
    struct program_rewrite w = {.from = from, .f = main_of(from), .edit = edit};
    const byi_id result =
        edit->result != BYI_NO_ID ? edit->result : w.f->result;
    w.to = (struct reduced_program){.m = byi_module_new(),
                                    .arena = byi_arena_new()};
    w.to.in = byi_arena_calloc(w.to.arena, BYI_EXTRACT_MAX_IO, sizeof *w.to.in);
    const uint32_t func = byi_func_new(w.to.m, "main");
    w.main = w.to.m->funcs.at[func];
    w.map = byi_arena_calloc(scratch, w.f->nodes.n, sizeof *w.map);
    w.used = byi_arena_calloc(scratch, w.f->nodes.n, sizeof *w.used);
    mark_used(&w, result);
    bool succeeded = true;
    for (byi_id id = 0; succeeded && id < w.f->nodes.n; id++)
        if (w.used[id])
            succeeded = add_node(&w, id, err);
    if (succeeded)
        w.main->result = w.map[result];
    byi_arena_free(&scratch);
    if (!succeeded)
        free_program(&w.to);
    *out = w.to;
    return succeeded;
}

/* Try the edit; keep it if the test still fails in the same way. */
static bool try_edit(struct reducer *d, const struct edit *edit)
{
    struct reduced_program next;
    struct byoc_error why;
    const uint32_t max_tests = d->r->max_tests ? d->r->max_tests : 500;
    if (d->status != BYOC_OK || d->r->n_tests >= max_tests ||
        !rewrite_program(&d->program, edit, &next, &why))
        return false;
    if (try_program(d, &next, &why) != d->r->code) {
        free_program(&next);
        return false;
    }
    free_program(&d->program);
    d->program = next;
    return true;
}

/* --- the changes ---------------------------------------------------------- */

/* Tell the caller the size of the program; `what` is the change that was kept.
 */
static void report_size(const struct reducer *d, const char *what)
{
    const struct byi_func *f = main_of(&d->program);
    char line[160];
    uint32_t ops = 0;
    int64_t elements = 0;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *n = &f->nodes.at[id];
        ops += n->kind == BYI_CALL_OP;
        if (n->kind == BYI_PARAM || n->kind == BYI_CONST)
            elements += byi_elements(n->type->rank, n->type->dims);
    }
    snprintf(line, sizeof line,
             "%s: %u operator%s, %u input%s, %lld element%s of inputs and "
             "constants, after %u test%s",
             what, ops, byi_plural(ops), d->program.n_in,
             byi_plural(d->program.n_in), (long long)elements,
             byi_plural((double)elements), d->r->n_tests,
             byi_plural(d->r->n_tests));
    if (d->r->progress)
        d->r->progress(d->r->progress_ctx, line);
}

/* End the program at an earlier node: at the first one with which the test
 * still fails. */
static bool end_earlier(struct reducer *d)
{
    const struct byi_func *f = main_of(&d->program);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        struct edit e = no_edit;
        const enum byi_node_kind kind = f->nodes.at[id].kind;
        e.result = id;
        if ((kind != BYI_CALL_OP && kind != BYI_GET) || id == f->result ||
            f->nodes.at[id].type->kind != BYI_TENSOR)
            continue;
        if (try_edit(d, &e))
            return true;
    }
    return false;
}

/* Let the program begin later: make a node an input, the last one with which
 * the test still fails. */
static bool begin_later(struct reducer *d)
{
    const struct byi_func *f = main_of(&d->program);
    for (byi_id id = f->nodes.n; id-- > 0;) {
        struct edit e = no_edit;
        const enum byi_node_kind kind = f->nodes.at[id].kind;
        e.input = id;
        if ((kind == BYI_CALL_OP || kind == BYI_GET) && id != f->result &&
            f->nodes.at[id].type->kind == BYI_TENSOR && try_edit(d, &e))
            return true;
    }
    return false;
}

/* Replace a node by an operand of the same type. */
static bool skip_node(struct reducer *d)
{
    const struct byi_func *f = main_of(&d->program);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *n = &f->nodes.at[id];
        for (uint32_t a = 0; n->kind == BYI_CALL_OP && a < n->n_args; a++) {
            struct edit e = no_edit;
            if (id == f->result ||
                !byi_type_equal(n->type, f->nodes.at[n->args[a]].type))
                continue;
            e.replaced = id;
            e.replacement = n->args[a];
            if (try_edit(d, &e))
                return true;
        }
    }
    return false;
}

/* The largest size below `under` of a parameter or constant; 0: none. */
static int64_t next_size(const struct reducer *d, int64_t under)
{
    const struct byi_func *f = main_of(&d->program);
    int64_t largest = 0;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *n = &f->nodes.at[id];
        for (uint32_t i = 0; n->type->kind == BYI_TENSOR && i < n->type->rank &&
                             (n->kind == BYI_PARAM || n->kind == BYI_CONST);
             i++)
            if (n->type->dims[i] < under && n->type->dims[i] > largest)
                largest = n->type->dims[i];
    }
    return largest;
}

/* Replace a size by a smaller one, the largest size first. */
static bool shrink_size(struct reducer *d)
{
    for (int64_t size = next_size(d, INT64_MAX); size > 1;
         size = next_size(d, size)) {
        const int64_t to[] = {1, 2, size / 2, size - 1};
        for (uint32_t i = 0; i < 2 * BYI_COUNT(to); i++) {
            struct edit e = no_edit;
            e.from = size;
            e.to = to[i / 2];
            e.in_values = i % 2;
            if (e.to > 0 && e.to < size && (i < 2 || e.to > to[i / 2 - 1]) &&
                try_edit(d, &e))
                return true;
        }
    }
    return false;
}

/* Whether all elements equal `value`; if it is NAN, whether they are integers.
 */
static bool is_simple(const struct reduced_program *s, byi_id id, double value)
{
    const struct byi_func *f = main_of(s);
    struct byi_tensor t;
    if (f->nodes.at[id].kind == BYI_PARAM)
        t = s->in[f->nodes.at[id].index];
    else if (!byi_const_view(s->m, f, id, &t))
        return true;
    for (int64_t i = byi_elements(t.rank, t.dims); i-- > 0;) {
        const double x = byi_tensor_float(&t, i);
        if (isnan(value) ? x != round(x) : x != value)
            return false;
    }
    return true;
}

/* Replace the elements of a float tensor by 0, 1, or integers. */
static bool simplify_values(struct reducer *d)
{
    static const double values[] = {0.0, 1.0, NAN};
    const struct byi_func *f = main_of(&d->program);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *n = &f->nodes.at[id];
        if ((n->kind != BYI_PARAM && n->kind != BYI_CONST) ||
            !byi_dtype_is_float(n->type->dtype))
            continue;
        for (size_t i = 0; i < BYI_COUNT(values); i++) {
            struct edit e = no_edit;
            e.simplified = id;
            e.value = values[i];
            if (is_simple(&d->program, id, e.value))
                break; /* the values are as simple as this already */
            if (try_edit(d, &e))
                return true;
        }
    }
    return false;
}

/* The kinds of changes, those that drop most first. `try` keeps one change and
 * returns true, or returns false if the test does not fail with any. */
static const struct {
    const char *description;
    bool (*try)(struct reducer *d);
} changes[] = {
    {"dropped operators at the end", end_earlier},
    {"dropped operators at the beginning", begin_later},
    {"skipped an operator", skip_node},
    {"reduced a size", shrink_size},
    {"simplified values", simplify_values},
};

enum byoc_status byi_extract_reduce(struct byi_extract *x,
                                    struct byi_region_reduction *r,
                                    struct byoc_error *err)
{
    struct reducer d = {.r = r, .x = x, .err = err};
    const struct reduced_program region = {
        .m = x->m,
        .n_in = x->n_in,
        .in = (struct byi_tensor *)(uintptr_t)x->in};
    struct byoc_error why;
    r->n_tests = 0;
    if (!rewrite_program(&region, &no_edit, &d.program, &why))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "the region cannot be reduced: %s", why.text);
    r->code = try_program(&d, &d.program, &why);
    if (d.status == BYOC_OK && r->code < 0)
        d.status =
            byi_fail(err, why.status, "on the whole region: %s", why.text);
    else if (d.status == BYOC_OK && r->code == 0)
        d.status = byi_fail(err, BYOC_EINVAL,
                            "the test succeeds on the whole region, expected "
                            "one that fails: '%s'",
                            r->test);
    if (d.status == BYOC_OK)
        report_size(&d, "whole region");
    for (size_t i = 0; d.status == BYOC_OK && i < BYI_COUNT(changes);)
        if (changes[i].try(&d)) {
            report_size(&d, changes[i].description);
            i = 0;
        } else {
            i++;
        }
    if (d.status != BYOC_OK) {
        free_program(&d.program);
        return d.status;
    }
    byi_module_free(&x->m);
    byi_arena_free(&x->arena);
    x->m = d.program.m;
    x->arena = d.program.arena;
    x->in = d.program.in;
    x->n_in = d.program.n_in;
    x->json = NULL;
    return BYOC_OK;
}
