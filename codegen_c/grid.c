/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c: generates C for image.grid_sample with a small constant grid. The C
 * has tables of the indices and weights of every position. It calls the loop in
 * runtime_native/sample.inc, which the prelude contains. For larger constant
 * grids the runtime computes the tables when it loads the model.
 */
#include "image.h"

#include <string.h>

#include "core/ops/sample.h"

enum {
    MAX_NUMBERS = 1 << 16, /* in the tables of a kernel */
    PER_LINE = 8,          /* numbers per line */
};

static struct byi_sampler sampler_of(const struct byi_node *node,
                                     const struct byi_type *type)
{
    struct byi_tensor x = {.dtype = type->dtype, .rank = type->rank};
    memcpy(x.dims, type->dims, type->rank * sizeof *x.dims);
    return byi_sampler_read(node->attrs, &x);
}

bool byi_grid_accepts(const struct byi_module *m, const struct byi_func *f,
                      const struct byi_node *node)
{
    const struct byi_type *x = f->nodes.at[node->args[0]].type;
    struct byi_tensor grid;
    if (!byi_is_image_type(node->type) || !byi_is_image_type(x) ||
        !byi_const_view(m, f, node->args[1], &grid) || grid.dtype != BYOC_F32)
        return false;
    const struct byi_sampler s = sampler_of(node, x);
    return s.plane <= INT32_MAX && byi_elements(grid.rank, grid.dims) <=
                                       MAX_NUMBERS / (int64_t)s.points;
}

static void print_tables(const int32_t *at, const float *weight, int64_t n,
                         struct byi_text *out)
{
    byi_text_addf(out, "    static const int32_t at[] = {");
    for (int64_t j = 0; j < n; j++)
        byi_text_addf(out, "%s%d,", j % PER_LINE ? " " : "\n        ",
                      (int)at[j]);
    byi_text_addf(out, "\n    };\n    static const float weight[] = {");
    for (int64_t j = 0; j < n; j++)
        byi_text_addf(out, "%s%af,", j % PER_LINE ? " " : "\n        ",
                      (double)weight[j]);
    byi_text_addf(out, "\n    };\n");
}

void byi_grid_print(const struct byi_module *m, const struct byi_func *f,
                    const struct byi_node *node, struct byi_text *out)
{
    const struct byi_type *x = f->nodes.at[node->args[0]].type;
    const struct byi_sampler s = sampler_of(node, x);
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor grid;
    byi_const_view(m, f, node->args[1], &grid);
    const int64_t n = byi_elements(grid.rank - 2, grid.dims + 1);
    const int64_t points = s.points;
    const int64_t entries = grid.dims[0] * n * points;
    int32_t *at = byi_arena_calloc(arena, (size_t)entries, sizeof *at);
    float *weight = byi_arena_calloc(arena, (size_t)entries, sizeof *weight);
    for (int64_t i = 0; i < grid.dims[0]; i++)
        byi_sampler_list(&s, &grid, i * n, n, n, at + i * n * points,
                         weight + i * n * points);
    const int64_t planes = x->dims[0] * x->dims[1];
    const int64_t team = planes * n * points / BYI_SMALL_WORK;
    byi_text_addf(out, "{\n");
    print_tables(at, weight, entries, out);
    byi_text_addf(
        out,
        "    enum { PLANES = %lld, CHANNELS = %lld, IN = %lld, OUT = %lld,\n"
        "        POINTS = %lld, TEAM = %lld };\n"
        "    const float *x = buffers[0];\n"
        "    float *y = buffers[1];\n"
        "    const int parts = threads < TEAM ? threads : TEAM;\n"
        "    PARALLEL(omp parallel for num_threads(parts) if (parts > 1))\n"
        "    for (int64_t i = 0; i < PLANES; i++) {\n"
        "        const int64_t from = i / CHANNELS * POINTS * OUT;\n"
        "        sample_points(POINTS, at + from, weight + from, OUT, "
        "x + i * IN,\n"
        "                      y + i * OUT, OUT);\n"
        "    }\n"
        "}\n",
        (long long)planes, (long long)x->dims[1], (long long)s.plane,
        (long long)n, (long long)points,
        (long long)(team < 1        ? 1
                    : team < planes ? team
                                    : planes));
    byi_arena_free(&arena);
}
