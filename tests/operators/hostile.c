/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.c: one model of each operator with one fault at a time.
 *
 * Every integer of a node (attributes, elements of lists, constant operands,
 * sizes of operands) is replaced by each of `extremes`. Every name that a node
 * or a body graph reads, makes or declares is left out, or replaced by an
 * unknown one. The model is then imported and goes through the passes of a
 * compile. It may be refused; it must not crash, overflow (under the
 * sanitizers) or take more than MAX_BYTES.
 */
#include "fuzz.h"

#include "compile/passes.h"
#include "runtime_native/native.h"
#include "tests/folder.h"
#include "tests/share.h"
#include "tests/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { MAX_SECONDS = 20 };
#define MAX_BYTES ((uint64_t)3 << 30)

static const int64_t extremes[] = {
    INT64_MIN,
    INT64_MIN + 1,
    INT64_MAX,
    INT64_MAX - 1,
    INT64_MIN / 2,
    INT64_MAX / 2,
    INT32_MIN,
    INT32_MAX,
    UINT32_MAX,
    1000000007,
    65536,
    -1,
    0,
    1,
};

/* The current mutation, in memory that the parent reads after a crash. */
struct hostile_site {
    long number;    /* (number of the site) * BYI_COUNT(extremes) + value */
    long done;      /* mutations that byoc accepted or refused */
    char text[200]; /* names the site */
};

/* A walk over a model, which counts its sites in a fixed order, and mutates the
 * site `wanted`. */
struct walk {
    struct draw *d;
    struct hostile_site *site;
    long wanted, count;
    uint32_t value; /* which of the extremes */
    bool integer;   /* the wanted site is a number */
};

static bool is_wanted(struct walk *w, const char *kind, const char *name,
                      size_t index, bool integer)
{
    if (w->count++ != w->wanted)
        return false;
    w->integer = integer;
    snprintf(w->site->text, sizeof w->site->text, "%s %s[%zu]", kind,
             name ? name : "", index);
    return true;
}

static void visit_int(struct walk *w, const char *kind, const char *name,
                      size_t index, int64_t *value)
{
    if (is_wanted(w, kind, name, index, true))
        *value = extremes[w->value];
}

static void visit_name(struct walk *w, const char *kind, size_t index,
                       char **name)
{
    if (is_wanted(w, kind, *name, index, false))
        *name = w->value ? byi_arena_str(w->d->arena, "missing") : NULL;
    if (!*name)
        *name = byi_arena_str(w->d->arena, "");
}

static void visit_tensor(struct walk *w, Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->n_dims; i++)
        visit_int(w, "initializer's dims", t->name, i, &t->dims[i]);
    for (size_t i = 0; i < t->n_int64_data; i++)
        visit_int(w, "int64_data", t->name, i, &t->int64_data[i]);
    if (t->data_type == BYOC_I64)
        for (size_t i = 0; i < t->raw_data.len / 8 && i < 16; i++) {
            int64_t value;
            memcpy(&value, t->raw_data.data + 8 * i, 8);
            visit_int(w, "element of", t->name, i, &value);
            memcpy(t->raw_data.data + 8 * i, &value, 8);
        }
}

static void visit_value(struct walk *w, const char *kind, size_t index,
                        Onnx__ValueInfoProto *v)
{
    visit_name(w, kind, index, &v->name);
    if (!v->type ||
        v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !v->type->tensor_type->shape)
        return;
    Onnx__TensorShapeProto *shape = v->type->tensor_type->shape;
    for (size_t i = 0; i < shape->n_dim; i++)
        visit_int(w, kind, v->name, i, &shape->dim[i]->dim_value);
}

static void visit_graph(struct walk *w, Onnx__GraphProto *g);

static void visit_attribute(struct walk *w, Onnx__AttributeProto *a)
{
    if (a->has_i)
        visit_int(w, "attribute", a->name, 0, &a->i);
    for (size_t i = 0; i < a->n_ints; i++)
        visit_int(w, "attribute", a->name, i, &a->ints[i]);
    if (a->t)
        visit_tensor(w, a->t);
    if (a->g)
        visit_graph(w, a->g);
}

static void visit_node(struct walk *w, Onnx__NodeProto *n)
{
    for (size_t i = 0; i < n->n_input; i++)
        visit_name(w, "operand", i, &n->input[i]);
    for (size_t i = 0; i < n->n_output; i++)
        visit_name(w, "result", i, &n->output[i]);
    for (size_t i = 0; i < n->n_attribute; i++)
        visit_attribute(w, n->attribute[i]);
    if (n->n_input && is_wanted(w, "number of operands of", n->op_type, 0, 0))
        n->n_input--;
    if (n->n_output && is_wanted(w, "number of results of", n->op_type, 0, 0))
        n->n_output--;
    if (n->n_attribute && is_wanted(w, "attributes of", n->op_type, 0, 0))
        n->n_attribute--;
}

static void visit_graph(struct walk *w, Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        visit_node(w, g->node[i]);
    for (size_t i = 0; i < g->n_initializer; i++)
        visit_tensor(w, g->initializer[i]);
    for (size_t i = 0; i < g->n_input; i++)
        visit_value(w, "input", i, g->input[i]);
    for (size_t i = 0; i < g->n_output; i++)
        visit_value(w, "output", i, g->output[i]);
    if (g->n_input && is_wanted(w, "number of inputs", g->name, 0, 0))
        g->n_input--;
    if (g->n_output && is_wanted(w, "number of outputs", g->name, 0, 0))
        g->n_output--;
    if (g->n_node && is_wanted(w, "number of nodes", g->name, 0, 0))
        g->n_node--;
}

/* Import the model, and run all passes. Returns false if byoc refuses without a
 * message, or with BYOC_EINTERNAL; the test accepts all other refusals.
 */
static bool survives(const char *path, char *why, size_t why_bytes)
{
    const struct byi_onnx_params params = {.eval = byi_kernel_eval};
    const struct byi_pass *const *passes = byi_passes_pipeline();
    struct byi_pass_context ctx = {.opt_level = 2,
                                   .verify = true,
                                   .known = byi_passes_known(),
                                   .eval = byi_kernel_eval};
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    uint32_t n = 0;

    while (passes[n])
        n++;
    enum byoc_status status = byi_onnx_import(path, &params, &m, &err);
    if (status == BYOC_OK)
        status = byi_run_passes(m, passes, n, &ctx, &err);
    byi_module_free(&m);
    if (status == BYOC_OK)
        return true;
    if (status != BYOC_EINTERNAL && err.text[0])
        return true;
    snprintf(why, why_bytes, "%.900s", err.text);
    return false;
}

/* Apply mutation `site->number`. Returns false if there are no more. */
static bool run_mutation(enum byoc_dtype dtype, struct hostile_site *site,
                         const char *path)
{
    struct draw d;
    char why[1024];
    size_t n = 0;
    struct walk w = {.d = &d,
                     .site = site,
                     .wanted = site->number / (long)BYI_COUNT(extremes),
                     .value =
                         (uint32_t)(site->number % (long)BYI_COUNT(extremes))};

    draw_begin(&d, 1, op_now->op, op_now->opset, op_now->domain, dtype, false,
               op_now->results);
    op_now->make(&d);
    if (!d.placed)
        draw_place_node(&d);
    visit_graph(&w, d.graph);
    const bool more = w.count > w.wanted;
    /* every name, and of each number a share of the extremes, which differs
     * from site to site */
    const bool selected =
        w.integer ? (w.wanted + w.value) % test_share() == 0 : w.value < 2;
    if (more && selected) {
        const uint8_t *bytes = draw_pack(&d, &n);
        unlink(path); /* truncating a file makes ext4 write it to the disk */
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
            _exit(2);
        watch_process(MAX_SECONDS);
        if (!survives(path, why, sizeof why)) {
            printf("%s: %s: %s\n", op_now->op, site->text, why);
            fflush(stdout);
            _exit(1);
        }
        site->done++;
    }
    draw_end(&d);
    return more;
}

static void run_child(enum byoc_dtype dtype, struct hostile_site *site,
                      const char *path)
{
    const struct rlimit memory = {MAX_BYTES, MAX_BYTES};

    if (!SANITIZED && setrlimit(RLIMIT_AS, &memory) != 0)
        _exit(2);
    while (run_mutation(dtype, site, path))
        site->number++;
    fflush(stdout);
    _exit(0);
}

long hostile_run(enum byoc_dtype dtype, long *done)
{
    char path[TEST_PATH + 8];
    struct hostile_site *site = mmap(NULL, sizeof *site, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    long failed = 0;

    snprintf(path, sizeof path, "%s/m.onnx", make_test_folder(NULL));
    if (site == MAP_FAILED)
        exit(2);
    *site = (struct hostile_site){0};
    for (;; site->number++) {
        int status = 0;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            run_child(dtype, site, path);
        if (child < 0 || waitpid(child, &status, 0) != child ||
            (WIFEXITED(status) && WEXITSTATUS(status) == 2))
            exit(2);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            break;
        printf("%s %s: %s = %lld: %s %d\n", op_now->op, byoc_dtype_name(dtype),
               site->text,
               (long long)extremes[site->number % (long)BYI_COUNT(extremes)],
               WIFSIGNALED(status) ? "signal" : "exit",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed++;
    }
    *done += site->done;
    munmap(site, sizeof *site);
    return failed;
}
