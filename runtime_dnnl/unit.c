/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/unit.c: loads a region that is a unit of C (write.c). The calls
 * of the unit build the same program as walk.c builds from a graph. */
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

/* The state of loading a unit, which the unit's code passes on. */
struct byi_load {
    struct byi_program *program;
    struct byoc_error *err;
};

/* --- the unit's calls ----------------------------------------------------- */

#define OPERATOR(name)                                                         \
    static int make_##name(struct byi_load *load,                              \
                           const struct byi_dnnl_##name *p,                    \
                           const struct byi_posts *posts)                      \
    {                                                                          \
        struct byi_program *program = load->program;                           \
        struct byi_prim *prim = NULL;                                          \
        enum byoc_status status =                                              \
            byi_prim_new_##name(program->lib, p, posts, &prim, load->err);     \
        if (status == BYOC_OK)                                                 \
            status = byi_dn_program_prim(program, prim, load->err);            \
        return (int)status;                                                    \
    }
BYI_OPERATORS(OPERATOR)

static int make_pack(struct byi_load *load, const struct byi_pack *p)
{
    const struct byi_program *program = load->program;
    if (p->step >= program->prims.n)
        return (int)byi_fail(load->err, BYOC_EINVAL,
                             "%s: found weights for step %u, which has no "
                             "primitive yet, expected one of the first %u",
                             program->name, p->step, program->prims.n);
    return (int)byi_dn_make_pack(load->program, p, program->prims.at[p->step],
                                 load->err);
}

#define MAKER(name, spec)                                                      \
    static int make_##name(struct byi_load *load, const struct spec *p)        \
    {                                                                          \
        return (int)byi_dn_make_##name(load->program, p, load->err);           \
    }
MAKER(copy, byi_copy)
MAKER(fill, byi_fill)
MAKER(integers, byi_integers)
MAKER(bytes, byi_bytes)
MAKER(gate_weights, byi_gates)
MAKER(gate_biases, byi_gates)

static int drop_const(struct byi_load *load, uint32_t computed)
{
    if (computed >= load->program->computed.n)
        return (int)byi_fail(load->err, BYOC_EINVAL,
                             "%s: found constant %u, which does not exist yet, "
                             "expected one of the first %u",
                             load->program->name, computed,
                             load->program->computed.n);
    byi_dn_drop_computed(load->program, computed);
    return 0;
}

#define ENTRY(name) .name = make_##name,
static const struct byi_operators makers = {
    BYI_OPERATORS(ENTRY).pack = make_pack,
    .copy = make_copy,
    .fill = make_fill,
    .integers = make_integers,
    .bytes = make_bytes,
    .gate_weights = make_gate_weights,
    .gate_biases = make_gate_biases,
    .drop = drop_const,
};

/* --- loading -------------------------------------------------------------- */

/* Check that the unit has these declarations. `size` and `id` are first in
 * every version of the struct. */
static enum byoc_status check_unit(const struct byi_dnnl_unit *unit,
                                   struct byoc_error *err)
{
    if (unit && unit->size == sizeof *unit && unit->id == byi_dn_unit_id)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINCOMPATIBLE,
                    "found the region's C compiled with declarations %08x of "
                    "%u bytes, expected this plug-in's, %08x of %zu bytes; "
                    "compile the model again",
                    unit ? unit->id : 0, unit ? unit->size : 0, byi_dn_unit_id,
                    sizeof *unit);
}

static enum byoc_status check_count(const struct byi_dnnl_unit *unit,
                                    const char *what, uint32_t found,
                                    uint32_t expected, struct byoc_error *err)
{
    if (found == expected)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found %u %s, expected %u; compile the model again",
                    unit->name, found, what, expected);
}

static enum byoc_status check_consts(const struct byi_dnnl_unit *unit,
                                     uint32_t n_consts,
                                     const struct byoc_view *consts,
                                     struct byoc_error *err)
{
    BYI_TRY(check_count(unit, "constants in the artifact", n_consts,
                        unit->n_consts, err));
    for (uint32_t i = 0; i < n_consts; i++)
        if (consts[i].bytes != unit->const_bytes[i])
            return byi_fail(err, BYOC_EINVAL,
                            "%s: found constant %u with %llu bytes, expected "
                            "%llu; compile the model again",
                            unit->name, i, (unsigned long long)consts[i].bytes,
                            (unsigned long long)unit->const_bytes[i]);
    return BYOC_OK;
}

/* Called through byi_guarded. */
static enum byoc_status build_from_unit(void *arg, struct byoc_error *err)
{
    struct byi_program *p = arg;
    const struct byi_dnnl_unit *unit = p->unit;
    struct byi_load load = {.program = p, .err = err};
    p->name = unit->name;
    p->n_inputs = unit->n_inputs;
    p->n_outputs = unit->n_outputs;
    p->input_bytes = unit->input_bytes;
    p->output_bytes = unit->output_bytes;
    p->temp_bytes = unit->temp_bytes;
    BYI_TRY((enum byoc_status)unit->build(&makers, &load));
    BYI_TRY(byi_dn_exec_list(p, err));
    byi_dn_bands_end(p);
    BYI_TRY(check_count(unit, "primitives made by the region's C", p->prims.n,
                        unit->n_steps, err));
    BYI_TRY(check_count(unit, "steps run by the region's C", p->steps.n,
                        unit->n_steps, err));
    return check_count(unit, "constants made by the region's C", p->computed.n,
                       unit->n_computed, err);
}

enum byoc_status byi_dn_unit_load(const struct byi_dnnl *lib,
                                  const struct byoc_host *host,
                                  const struct byoc_region *region,
                                  struct byi_program **program,
                                  struct byoc_error *err)
{
    const struct byi_dnnl_unit *unit =
        ((const struct byi_dnnl_unit *(*)(void))region->code)();
    struct byi_program *p = NULL;
    BYI_TRY(check_unit(unit, err));
    BYI_TRY(check_consts(unit, region->n_consts, region->consts, err));
    BYI_TRY(byi_dn_program_new(lib, host, BYI_TO_RUN, region, &p, err));
    struct byi_guard guard;
    p->unit = unit;
    const enum byoc_status status =
        byi_guarded(&guard, build_from_unit, p, err);
    if (status != BYOC_OK)
        byi_dn_program_free(&p);
    else
        *program = p;
    byi_guard_leave(&guard);
    return status;
}
