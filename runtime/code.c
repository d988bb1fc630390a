/* SPDX-License-Identifier: Apache-2.0 */
/* code.c: selects the version of an artifact's code for the widest instruction
 * set in use (core/base/isa.h). This is the code of fused kernels and of
 * backends' C. If there is none, the native twins run.
 */
#include "plan.h"

#include <link.h>

#include "core/base/descriptor.h"
#include "core/base/isa.h"
#include "core/base/openmp.h"

/* Fail with the message "the OWNERS' code FAULT; copy or compile the artifact
 * again". */
static enum byoc_status fail_damaged(struct byoc_error *err, const char *owners,
                                     const char *fault)
{
    return byi_fail(err, BYOC_EPARSE,
                    "the %s' code %s; copy or compile the artifact again",
                    owners, fault);
}

static bool is_in_text(const struct byi_image *image, uintptr_t at)
{
    return at >= (uintptr_t)image->text &&
           at - (uintptr_t)image->text < image->text_bytes;
}

/* A range of addresses. */
struct range {
    uintptr_t at;
    uint64_t bytes;
};

/* Implements dl_iterate_phdr's callback: returns 1, which ends the walk, if a
 * readable segment of this library contains the range. */
static int find_segment(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const struct range *range = ctx;
    (void)size;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t offset = range->at - info->dlpi_addr - p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_R) &&
            offset <= p->p_memsz && range->bytes <= p->p_memsz - offset)
            return 1;
    }
    return 0;
}

/* Whether these bytes lie within one readable segment of a loaded library. */
static bool is_mapped(const void *at, uint64_t bytes)
{
    struct range range = {(uintptr_t)at, bytes};
    return byi_library_walk(find_segment, &range) != 0;
}

/* --- fused kernels -------------------------------------------------------- */

/* Pass the runtime's functions for parallel loops to the kernels, whose loops
 * then run on the workers. */
static enum byoc_status bind_openmp(const struct byi_image *image,
                                    struct byoc_error *err)
{
    const struct byi_code_table *code = image->code;
    const uint64_t bytes = image->code_bytes - sizeof *code;
    if (bytes < (code->n_levels + UINT64_C(1)) * sizeof code->levels[0])
        return BYOC_OK; /* an older artifact, whose table has no such entry */
    const byi_begin_fn begin =
        (byi_begin_fn)((uintptr_t)code +
                       (uintptr_t)code->levels[code->n_levels]);
    if (!is_in_text(image, (uintptr_t)begin))
        return fail_damaged(err, "fused kernels", "lies outside its section");
    begin(&byi_omp_calls);
    return BYOC_OK;
}

static enum byoc_status bind_kernels(struct byoc_model *model,
                                     const struct byi_image *image,
                                     struct byoc_error *err)
{
    static const char owners[] = "fused kernels";
    const struct byi_code_table *code = image->code;
    const uint32_t n = model->plan->n_kernels;
    model->kernels = byi_alloc(n + 1u, sizeof *model->kernels);
    if (!model->kernels)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for %u kernels", n);
    if (!code || n == 0)
        return BYOC_OK;
    if (image->code_bytes < sizeof *code || code->n_kernels != n ||
        code->n_levels > BYI_N_CODE_LEVELS ||
        image->code_bytes - sizeof *code <
            code->n_levels * sizeof code->levels[0])
        return fail_damaged(err, owners, "does not have the plan's kernels");
    BYI_TRY(bind_openmp(image, err));
    const uint32_t level = byi_code_levels(code->n_levels);
    if (level == 0)
        return BYOC_OK;
    const byi_fused_fn *table =
        (const void *)((uintptr_t)code + (uintptr_t)code->levels[level - 1]);
    if ((uintptr_t)table % _Alignof(byi_fused_fn) != 0 ||
        !is_mapped(table, n * sizeof *table))
        return fail_damaged(err, owners,
                            "lists its functions outside the file");
    for (uint32_t k = 0; k < n; k++) {
        if (!is_in_text(image, (uintptr_t)table[k]))
            return fail_damaged(err, owners, "lies outside its section");
        model->kernels[k] = table[k];
    }
    model->code_level = byi_code_level_name(level - 1);
    return BYOC_OK;
}

/* --- backends' units ------------------------------------------------------ */

static uint32_t count_units(const struct byi_plan_tables *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_regions; i++)
        n += plan->regions[i].code != NULL;
    return n;
}

static enum byoc_status bind_units(struct byoc_model *model,
                                   const struct byi_image *image,
                                   struct byoc_error *err)
{
    static const char owners[] = "regions";
    const struct byi_plan_tables *plan = model->plan;
    const struct byi_unit_table *units = image->units;
    const uint32_t n = count_units(plan);
    model->functions =
        byi_alloc(plan->n_regions + 1u, sizeof *model->functions);
    if (!model->functions)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for %u regions",
                        plan->n_regions);
    for (uint32_t i = 0; image->functions && i < plan->n_regions; i++)
        model->functions[i] = image->functions[i];
    if (!units || n == 0)
        return BYOC_OK;
    if (image->units_bytes < sizeof *units || units->n_units != n ||
        units->n_levels > BYI_N_CODE_LEVELS ||
        (image->units_bytes - sizeof *units) / sizeof units->places[0] <
            (uint64_t)units->n_levels * n)
        return fail_damaged(err, owners, "does not have the plan's regions");
    const uint32_t level = byi_code_levels(units->n_levels);
    const int64_t *place =
        level ? &units->places[(uint64_t)(level - 1) * n] : NULL;
    for (uint32_t i = 0; place && i < plan->n_regions; i++) {
        if (!plan->regions[i].code)
            continue;
        const uintptr_t at = (uintptr_t)units + (uintptr_t)*place++;
        if (!is_in_text(image, at))
            return fail_damaged(err, owners, "lies outside its section");
        model->functions[i] = (byi_unit_fn)at;
    }
    return BYOC_OK;
}

enum byoc_status byi_code_bind(struct byoc_model *model,
                               const struct byi_image *image,
                               struct byoc_error *err)
{
    BYI_TRY(byi_isa_check(err));
    BYI_TRY(bind_kernels(model, image, err));
    return bind_units(model, image, err);
}
