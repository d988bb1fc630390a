/* code.c: which of an artifact's fused kernels run here: those compiled for
 * the widest instruction set in use (core/isa.h). Where there is none the
 * kernels' native twins run.
 */
#include "plan.h"

#include <string.h>

#include "core/descriptor.h"
#include "core/isa.h"

static const struct {
    enum byi_isa isa;
    const char *name;
} levels[] = {
#define LEVEL(id, name, options) {BYI_ISA_##id, name},
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
};

static enum byoc_status odd_code(struct byoc_error *err, const char *what)
{
    return byi_fail(err, BYOC_EPARSE,
                    "the fused kernels' code %s; copy or compile the artifact "
                    "again",
                    what);
}

enum byoc_status byi_code_bind(struct byoc_model *model,
                               const struct byi_image *image,
                               struct byoc_error *err)
{
    const struct byi_code_table *code = image->code;
    const uint32_t n = model->plan->n_kernels;
    BYI_TRY(byi_isa_check(err));
    model->kernels = byi_alloc(n + 1u, sizeof *model->kernels);
    if (!model->kernels)
        return byi_fail(err, BYOC_ENOMEM, "no memory for %u kernels", n);
    if (!code || n == 0)
        return BYOC_OK;
    if (image->code_bytes < sizeof *code || code->n_kernels != n ||
        code->n_levels > BYI_N_CODE_LEVELS ||
        image->code_bytes - sizeof *code <
            code->n_levels * sizeof code->levels[0])
        return odd_code(err, "is not what the plan lists");
    uint32_t level = code->n_levels;
    while (level > 0 && levels[level - 1].isa > byi_isa_widest())
        level--;
    if (level == 0)
        return BYOC_OK;
    const byi_fused_fn *table =
        (const void *)((const char *)code + code->levels[level - 1]);
    for (uint32_t k = 0; k < n; k++) {
        const uintptr_t at = (uintptr_t)table[k];
        if (at < (uintptr_t)image->text ||
            at - (uintptr_t)image->text >= image->text_bytes)
            return odd_code(err, "lies outside its section");
        model->kernels[k] = table[k];
    }
    model->code_level = levels[level - 1].name;
    return BYOC_OK;
}
