/* SPDX-License-Identifier: Apache-2.0 */
/* tanh_gelu.c: a pass in a shared library. It replaces the exact GELU by its
 * tanh approximation (Hendrycks, Gimpel: "Gaussian Error Linear Units", 2016),
 * which some accelerators support. The two differ by at most 1e-3.
 *
 *     cc -shared -fPIC -o tanh_gelu.so tanh_gelu.c
 *     byoc opt model.onnx --pass-plugin $PWD/tanh_gelu.so --passes=TanhGelu
 *     byoc compile model.onnx --pass-plugin $PWD/tanh_gelu.so --pass TanhGelu
 */
#include <byoc/pass.h>

#include <stddef.h>
#include <string.h>

static byoc_node use_tanh(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    const struct byoc_attr attrs[] = {
        {.name = "approximate", .n = 1, .string = "tanh"}};
    const char *form = rw->string(rw, at, "approximate");
    const byoc_node x = rw->arg(rw, at, 0);

    (void)ctx;
    if (!form || strcmp(form, "none") != 0)
        return BYOC_NO_NODE;
    return rw->call(rw, "nn.gelu", &x, 1, attrs, 1);
}

static const struct byoc_rule rules[] = {{"nn.gelu", use_tanh}};
static const struct byoc_pass tanh_gelu = {
    .struct_size = sizeof tanh_gelu,
    .name = "TanhGelu",
    .summary = "the tanh form of GELU instead of the exact one",
    .opt_level = 1,
    .rules = rules,
    .n_rules = 1,
};

__attribute__((visibility("default"))) const struct byoc_pass *const *
byoc_passes(uint32_t abi);

const struct byoc_pass *const *byoc_passes(uint32_t abi)
{
    static const struct byoc_pass *const passes[] = {&tanh_gelu, NULL};

    return abi == BYOC_PASS_ABI ? passes : NULL;
}
