/* code.c: which of an artifact's fused kernels run here: those compiled for
 * the widest instruction set the CPU has. Where there is none the kernels'
 * native twins run.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/descriptor.h"

static const char *const level_names[] = {
#define LEVEL(id, name, options) [BYI_CODE_##id] = (name),
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
};

static bool can_run(uint32_t level)
{
#if defined(__x86_64__)
    switch (level) {
    case BYI_CODE_SSE42:
        return __builtin_cpu_supports("sse4.2");
    case BYI_CODE_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case BYI_CODE_AVX512:
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("fma");
    default:
        return false;
    }
#else
    return level == BYI_CODE_BASE;
#endif
}

/* BYOC_MAX_ISA=avx2 keeps to lesser instruction sets: to compare them, and
 * for tests. */
static bool is_allowed(uint32_t level)
{
    const char *most = getenv("BYOC_MAX_ISA");
    for (uint32_t i = 0; most && i < BYI_N_CODE_LEVELS; i++)
        if (strcmp(most, level_names[i]) == 0)
            return level <= i;
    return !most || !*most;
}

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
    while (level > 0 && !(can_run(level - 1) && is_allowed(level - 1)))
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
    model->code_level = level_names[level - 1];
    return BYOC_OK;
}
