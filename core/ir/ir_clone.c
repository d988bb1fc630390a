/* SPDX-License-Identifier: Apache-2.0 */
/* ir_clone.c: copies a module, so that passes can be tried on the copy. */
#include "ir.h"

#include <assert.h>

#define COPY_VEC(to, from)                                                     \
    do {                                                                       \
        for (uint32_t i_ = 0; i_ < (from).n; i_++)                             \
            BYI_PUSH(&(to), (from).at[i_]);                                    \
    } while (0)

static void clone_func(struct byi_module *to, const struct byi_func *f)
{
    const uint32_t index = byi_func_new(to, f->name);
    struct byi_func *g = to->funcs.at[index];

    COPY_VEC(g->nodes, f->nodes);
    COPY_VEC(g->params, f->params);
    COPY_VEC(g->param_names, f->param_names);
    COPY_VEC(g->result_names, f->result_names);
    g->n_captures = f->n_captures;
    g->result = f->result;
    g->attr = f->attr;
    g->type = f->type;
    g->refers = f->refers;
    g->dead = f->dead;
}

struct byi_module *byi_module_clone(const struct byi_module *m)
{
    struct byi_module *to = byi_module_new();

    for (uint32_t i = 0; i < m->symbols.n; i++)
        byi_symbol(to, m->symbols.at[i]);
    for (uint32_t i = 0, backend; i < m->backends.n; i++)
        (void)byi_backend_add(to, m->backends.at[i], &backend, NULL);
    for (uint32_t i = 0; i < m->sources.n; i++)
        byi_source_new(to, m->sources.at[i].name, m->sources.at[i].op);
    for (uint32_t i = 0; i < m->consts.n; i++) {
        const struct byi_const *c = &m->consts.at[i];
        const uint32_t same = byi_const_add(to, c->type, c->data, true);
        assert(same == i);
        (void)same;
    }
    for (uint32_t i = 0; i < m->funcs.n; i++)
        clone_func(to, m->funcs.at[i]);
    to->entry = m->entry;
    to->model_const_bytes = m->model_const_bytes;
    to->pass_const_bytes = m->pass_const_bytes;
    return to;
}
