/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/program.c: creates and frees programs. walk.c fills a program
 * from a graph, unit.c from the calls of a unit of C. */
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

enum byoc_status byi_dn_program_new(const struct byi_dnnl *lib,
                                    const struct byoc_host *host,
                                    enum byi_purpose purpose,
                                    const struct byoc_region *region,
                                    struct byi_program **program,
                                    struct byoc_error *err)
{
    struct byi_program *p = byi_own_try(1, sizeof *p, NULL);
    if (!p)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a program");
    p->lib = lib;
    p->host = host;
    p->purpose = purpose;
    p->arena = byi_arena_new();
    p->n_consts = region->n_consts;
    p->consts = byi_arena_calloc(p->arena, p->n_consts, sizeof *p->consts);
    for (uint32_t i = 0; i < p->n_consts; i++)
        p->consts[i] = (struct byoc_view){.data = region->consts[i].data,
                                          .bytes = region->consts[i].bytes};
    p->codes = (const struct byoc_region_codes *)byoc_ext_find(
        region->ext, BYOC_EXT_CODES, sizeof *p->codes);
    *program = p;
    return BYOC_OK;
}

const void *byi_dn_const(struct byi_program *program, uint32_t index)
{
    struct byoc_view *c = &program->consts[index];
    const struct byoc_region_codes *codes = program->codes;
    if (!c->data && codes && codes->at[index].at)
        c->data = (void *)(uintptr_t)codes->widen(codes->ctx, index);
    return c->data;
}

bool byi_dn_consts_end(struct byi_program *program)
{
    for (uint32_t i = 0; program->codes && i < program->steps.n; i++) {
        const struct byi_dnnl_step *step = &program->steps.at[i];
        for (uint32_t k = 0; k < step->n_slots; k++)
            if (step->slots[k].at.kind == BYI_BUF_CONST &&
                !byi_dn_const(program, step->slots[k].at.index))
                return false;
    }
    program->codes = NULL;
    return true;
}

void byi_dn_program_free(struct byi_program **program)
{
    struct byi_program *p = *program;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->prims.n; i++)
        byi_prim_free(&p->prims.at[i]);
    for (uint32_t i = 0; i < p->computed.n; i++)
        if (p->computed.at[i].shared)
            byi_dn_share_release(p->computed.at[i].shared);
        else if (!p->computed.at[i].borrowed)
            byi_dn_computed_free(p->host, p->computed.at[i].data);
    byi_dn_computed_end(p);
    byi_vec_free(p->prims.at);
    byi_vec_free(p->steps.at);
    byi_vec_free(p->computed.at);
    byi_vec_free(p->creations.at);
    byi_arena_free(&p->arena);
    byi_vec_free(p);
    *program = NULL;
}

enum byoc_status byi_dn_program_prim(struct byi_program *program,
                                     struct byi_prim *prim,
                                     struct byoc_error *err)
{
    if (program->purpose == BYI_TO_RUN) {
        const enum byoc_status status = byi_prim_build(prim, err);
        if (status != BYOC_OK) {
            byi_prim_free(&prim);
            return status;
        }
    }
    if (byi_prim_scratch(prim) > program->scratch_bytes)
        program->scratch_bytes = byi_prim_scratch(prim);
    BYI_PUSH(&program->prims, prim);
    return BYOC_OK;
}
