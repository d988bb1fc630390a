/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c: generates one C file from the fused groups of a module. A group of
 * two operators or more becomes a kernel, named after the model's nodes, unless
 * its loops would be slow. A single resize or grid_sample of an image becomes a
 * kernel, too. Groups with the same C share a kernel. Other groups run operator
 * by operator.
 */
#include "codegen_c.h"

#include "group.h"
#include "image.h"

#include <ctype.h>
#include <string.h>

enum {
    MIN_OPERATORS = 2, /* operators of a group besides views */
    /* bytes of a kernel's name and its NUL, before a number makes it unique */
    MAX_NAME = 64,
    MAX_DOMAINS = 64,  /* of a group */
    MAX_KERNELS = 1024 /* bounds the time of the C compiler */
};

/* The state of byi_kernels_write. */
struct kernel_writer {
    const struct byi_module *m;
    struct byi_kernels *out;
    BYI_VEC(const char *)
    bodies;                   /* the kernels' C, in the order of out->list */
    struct byi_text refusals; /* C comments on groups without a kernel */
};

/* --- names -------------------------------------------------------------- */

/* The last component of a node's name. Exporters name nodes by paths, such as
 * "/features/features.0/features.0.1/Mul". */
static const char *last_component(const char *source)
{
    const char *slash = strrchr(source, '/');
    return slash && slash[1] ? slash + 1 : source;
}

/* The last components of a path: at most MAX_PATH characters, if the last
 * component is not longer. */
static const char *short_path(const char *source)
{
    enum { MAX_PATH = 40 };
    const size_t n = strlen(source);
    const char *cut =
        n > MAX_PATH ? strchr(source + n - MAX_PATH, '/') : source;
    return cut ? cut : last_component(source);
}

/* Make a name from the group's nodes of the model, or from its operators if it
 * has none. Runs of characters that are not letters or digits become '_'. */
static void make_name(const struct kernel_writer *w, const struct byi_func *f,
                      const struct byi_sources *sources, char *name, size_t n)
{
    struct byi_text text = {0};
    byi_text_addf(&text, "fused");
    for (uint32_t i = 0; i < sources->n; i++) {
        const char *source = w->m->sources.at[sources->at[i]].name;
        byi_text_addf(&text, "_%s",
                      i ? last_component(source) : short_path(source));
    }
    for (byi_id id = 0; id < f->nodes.n && !sources->n; id++)
        if (f->nodes.at[id].kind == BYI_CALL_OP)
            byi_text_addf(&text, "_%s", byi_op(f->nodes.at[id].op)->name);
    size_t k = 0;
    for (const char *c = text.at; *c && k + 1 < n; c++) {
        const bool word = isalnum((unsigned char)*c);
        if (word || (k > 0 && name[k - 1] != '_'))
            name[k++] = word ? *c : '_';
    }
    while (k > 0 && name[k - 1] == '_')
        k--;
    name[k] = '\0';
    byi_text_free(&text);
}

static bool is_taken(const struct kernel_writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->out->list.n; i++)
        if (strcmp(w->out->list.at[i].symbol, name) == 0)
            return true;
    return false;
}

static const char *unique_name(const struct kernel_writer *w,
                               const struct byi_func *f,
                               const struct byi_sources *sources)
{
    char base[MAX_NAME], name[MAX_NAME + 16];
    make_name(w, f, sources, base, sizeof base);
    snprintf(name, sizeof name, "%s", base);
    for (uint32_t i = 2; is_taken(w, name); i++)
        snprintf(name, sizeof name, "%s_%u", base, i);
    return byi_arena_str(w->out->arena, name);
}

/* --- a group ------------------------------------------------------------ */

/* Whether to try to generate a kernel for f. */
static bool is_group(const struct byi_module *m, const struct byi_func *f)
{
    uint32_t work = 0;
    if (f->dead || !f->attr.primitive || f->attr.compiler || f->n_captures ||
        byi_epilogue_head(f) != BYI_NO_ID)
        return false;
    for (byi_id id = 0; id < f->nodes.n; id++)
        work += f->nodes.at[id].kind == BYI_CALL_OP &&
                !byi_op_has(f->nodes.at[id].op, BYI_TRAIT_VIEW);
    return work >= MIN_OPERATORS || byi_kernels_accept_alone(m, f, f->result);
}

static void print_ops(struct byi_text *to, const struct byi_func *f)
{
    const char *comma = "";
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind != BYI_CALL_OP)
            continue;
        byi_text_addf(to, "%s%s", comma, byi_op(node->op)->name);
        comma = ", ";
    }
}

static void print_signature(struct kernel_writer *w, const struct byi_func *f,
                            const char *name)
{
    struct byi_text *to = &w->out->source;
    byi_text_addf(to, "\n/* ");
    print_ops(to, f);
    byi_text_addf(
        to, " */\nstatic void %s(void *const *buffers, int threads)\n", name);
}

/* Whether two groups have the same types. Element types with the same C type,
 * such as bool and uint8, still differ in the plan. */
static bool have_same_types(const struct byi_func *a, const struct byi_func *b)
{
    bool same = a->params.n == b->params.n &&
                byi_type_equal(a->nodes.at[a->result].type,
                               b->nodes.at[b->result].type);
    for (uint32_t i = 0; same && i < a->params.n; i++)
        same = byi_type_equal(a->nodes.at[a->params.at[i]].type,
                              b->nodes.at[b->params.at[i]].type);
    return same;
}

/* Find the kernel with this body and these types, or add it. */
static uint32_t find_kernel(struct kernel_writer *w, uint32_t func,
                            const struct byi_sources *sources, const char *body)
{
    const struct byi_func *f = w->m->funcs.at[func];
    for (uint32_t i = 0; i < w->bodies.n; i++)
        if (strcmp(w->bodies.at[i], body) == 0 &&
            have_same_types(f, w->m->funcs.at[w->out->list.at[i].func]))
            return i;
    const char *copy = byi_arena_str(w->out->arena, body);
    const struct byi_plan_fused kernel = {unique_name(w, f, sources), func};
    print_signature(w, f, kernel.symbol);
    byi_text_addf(&w->out->source, "%s", body);
    BYI_PUSH(&w->bodies, copy);
    BYI_PUSH(&w->out->list, kernel);
    return w->bodies.n - 1;
}

/* Read a group over as many domains as necessary, and return their number. If
 * no kernel can be generated, sets *refusal to the reason. */
static uint32_t read_domains(const struct kernel_writer *w, uint32_t func,
                             struct byi_arena *arena, struct byi_group *domains,
                             const char **refusal)
{
    struct byi_group_domain open[MAX_DOMAINS] = {{.n_loops = 0}};
    uint32_t n_open = 1, n = 0;
    while (n_open > 0 && !*refusal) {
        struct byi_group *g = &domains[n];
        const struct byi_group_domain *domain = &open[--n_open];
        *g = (struct byi_group){
            .m = w->m, .f = w->m->funcs.at[func], .arena = arena};
        memcpy(g->loops, domain->loops, sizeof g->loops);
        g->n_loops = domain->n_loops;
        byi_group_read(g);
        if (g->cut && n + n_open + 2 > MAX_DOMAINS) {
            *refusal = "too many domains";
        } else if (g->cut) {
            byi_group_cut(g, &open[n_open + 1], &open[n_open]);
            byi_vec_free(g->values.at);
            n_open += 2;
            continue;
        }
        n++;
        *refusal = *refusal     ? *refusal
                   : g->refusal ? g->refusal
                                : byi_nest_refuse(g);
    }
    return n;
}

/* Generate the kernel of a group, or a comment that says why there is none. */
static void write_group(struct kernel_writer *w, uint32_t func,
                        const struct byi_sources *sources)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_group *domains =
        byi_arena_calloc(arena, MAX_DOMAINS, sizeof *domains);
    struct byi_text body = {0};
    const char *refusal = NULL;
    const struct byi_func *f = w->m->funcs.at[func];
    const bool is_image_op = byi_kernels_accept_alone(w->m, f, f->result);
    const uint32_t n =
        is_image_op ? 0 : read_domains(w, func, arena, domains, &refusal);
    if (w->out->list.n == MAX_KERNELS)
        refusal = "too many kernels";
    if (!refusal) {
        if (is_image_op)
            byi_image_op_print(w->m, f, &body);
        else
            byi_nest_print(domains, n, &body);
        w->out->kernel_of[func] = 1 + find_kernel(w, func, sources, body.at);
    } else {
        char name[MAX_NAME];
        make_name(w, f, sources, name, sizeof name);
        byi_text_addf(&w->refusals, "\n/* %s runs operator by operator (",
                      name);
        print_ops(&w->refusals, f);
        byi_text_addf(&w->refusals, "): %s */\n", refusal);
    }
    for (uint32_t i = 0; i < n; i++)
        byi_vec_free(domains[i].values.at);
    byi_text_free(&body);
    byi_arena_free(&arena);
}

/* --- all groups --------------------------------------------------------- */

/* Generate kernels for the groups that f calls. */
static void write_calls(struct kernel_writer *w, const struct byi_func *f)
{
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind != BYI_CALL)
            continue;
        const struct byi_node *callee = &f->nodes.at[node->args[0]];
        if (callee->kind == BYI_FN && !w->out->kernel_of[callee->index] &&
            is_group(w->m, w->m->funcs.at[callee->index]))
            write_group(w, callee->index, node->sources);
    }
}

static void print_table(struct byi_kernels *k)
{
    byi_text_addf(&k->source,
                  "\nextern void (*const BYOC_KERNELS[])(void *const *, int)\n"
                  "    __attribute__((visibility(\"hidden\")));\n"
                  "void (*const BYOC_KERNELS[])(void *const *, int) = {\n");
    for (uint32_t i = 0; i < k->list.n; i++)
        byi_text_addf(&k->source, "    %s,\n", k->list.at[i].symbol);
    byi_text_addf(&k->source, "};\n");
}

void byi_kernels_write(const struct byi_module *m, struct byi_kernels *kernels)
{
    *kernels = (struct byi_kernels){.arena = byi_arena_new()};
    struct kernel_writer w = {.m = m, .out = kernels};
    kernels->kernel_of = byi_arena_calloc(kernels->arena, m->funcs.n + 1,
                                          sizeof *kernels->kernel_of);
    byi_text_addf(&kernels->source, "%s", byi_prelude);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead && !m->funcs.at[i]->attr.primitive)
            write_calls(&w, m->funcs.at[i]);
    print_table(kernels);
    if (w.refusals.n)
        byi_text_add(&kernels->source, w.refusals.at, w.refusals.n);
    byi_text_free(&w.refusals);
    byi_vec_free(w.bodies.at);
    if (kernels->list.n == 0)
        byi_kernels_free(kernels);
}

void byi_kernels_free(struct byi_kernels *kernels)
{
    byi_vec_free(kernels->list.at);
    byi_text_free(&kernels->source);
    byi_arena_free(&kernels->arena);
    *kernels = (struct byi_kernels){0};
}
