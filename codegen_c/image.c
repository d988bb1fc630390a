/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: generates C for image.resize of static shape. The C has tables of
 * the indices and weights of every position. It calls the loops in
 * runtime_native/resample.inc, which the prelude contains.
 */
#include "codegen_c.h"
#include "image.h"

#include <assert.h>
#include <string.h>

#include "core/ops/resample.h"

enum {
    MAX_NUMBERS = 1 << 16, /* in the tables of a kernel */
    MAX_FLOATS = 1 << 16,  /* floats of scratch on a thread's stack */
    PER_LINE = 8,          /* numbers per line */
};

/* A resize, with its tables. */
struct resize_kernel {
    struct byi_resample r;
    struct byi_tensor x, y;   /* the types of operand and result */
    struct byi_tensor target; /* the constant sizes or scales */
    struct byi_planes planes;
};

static struct byi_tensor tensor_of(const struct byi_type *type)
{
    struct byi_tensor t = {.dtype = type->dtype, .rank = type->rank};
    memcpy(t.dims, type->dims, type->rank * sizeof *t.dims);
    return t;
}

/* Compute the tables of a resize, in `arena`. Returns false if C cannot be
 * generated for it. */
static bool read_image(const struct byi_module *m, const struct byi_func *f,
                       byi_id id, struct byi_arena *arena,
                       struct resize_kernel *image)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct byi_planes steps[BYI_MAX_RANK];
    struct byoc_error err;
    if (node->kind != BYI_CALL_OP || node->op != BYI_OP_RESIZE ||
        !byi_is_image_type(node->type) ||
        !byi_is_image_type(f->nodes.at[node->args[0]].type) ||
        !byi_const_view(m, f, node->args[1], &image->target))
        return false;
    image->x = tensor_of(f->nodes.at[node->args[0]].type);
    image->y = tensor_of(node->type);
    image->r = (struct byi_resample){.op = node->op,
                                     .attrs = node->attrs,
                                     .x = &image->x,
                                     .y = &image->y,
                                     .target = &image->target};
    const uint64_t bytes = byi_resample_plan(&image->r, NULL);
    if (bytes > MAX_NUMBERS * sizeof(double))
        return false;
    byi_resample_plan(&image->r, byi_arena_alloc(arena, (size_t)bytes));
    if (byi_resample_fill(&image->r, &err) != BYOC_OK || image->r.any_outside ||
        byi_resample_steps(&image->r, 2, steps) != 1)
        return false;
    image->planes = steps[0];
    return image->planes.floats <= MAX_FLOATS;
}

bool byi_kernels_accept_alone(const struct byi_module *m,
                              const struct byi_func *f, byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct resize_kernel image;
    if (node->kind != BYI_CALL_OP)
        return false;
    if (node->op == BYI_OP_GRID_SAMPLE)
        return byi_grid_accepts(m, f, node);
    if (node->op != BYI_OP_RESIZE)
        return false;
    struct byi_arena *arena = byi_arena_new();
    const bool accepted = read_image(m, f, id, arena, &image);
    byi_arena_free(&arena);
    return accepted;
}

/* --- tables --------------------------------------------------------------- */

static void print_table(const struct byi_taps *a, const char *name,
                        struct byi_text *out)
{
    const int64_t pitch = (a->out + 15) / 16 * 16;
    byi_text_addf(out, "    static const int32_t %s_first[] = {", name);
    for (int64_t j = 0; j < pitch; j++)
        byi_text_addf(out, "%s%d,", j % PER_LINE ? " " : "\n        ",
                      (int)a->first[j]);
    byi_text_addf(out, "\n    };\n");
    if (!a->weight)
        return;
    byi_text_addf(out, "    static const float %s_weight[] = {", name);
    for (int64_t j = 0; j < pitch * a->n; j++)
        byi_text_addf(out, "%s%af,", j % PER_LINE ? " " : "\n        ",
                      (double)a->weight[j]);
    byi_text_addf(out, "\n    };\n");
}

static void print_taps(const struct byi_taps *a, const char *name,
                       struct byi_text *out)
{
    byi_text_addf(out, "        .%s = {.in = %lld, .out = %lld", name,
                  (long long)a->in, (long long)a->out);
    if (a->n)
        byi_text_addf(out, ", .n = %lld, .first = %s_first", (long long)a->n,
                      name);
    if (a->n && a->weight)
        byi_text_addf(out, ",\n            .weight = %s_weight", name);
    if (a->n)
        byi_text_addf(out,
                      ",\n            .stride_j = %lld, .stride_t = %lld, "
                      ".fits = %u",
                      (long long)a->stride_j, (long long)a->stride_t, a->fits);
    byi_text_addf(out, "},\n");
}

void byi_image_op_print(const struct byi_module *m, const struct byi_func *f,
                        struct byi_text *out)
{
    if (f->nodes.at[f->result].op == BYI_OP_GRID_SAMPLE) {
        byi_grid_print(m, f, &f->nodes.at[f->result], out);
        return;
    }
    struct byi_arena *arena = byi_arena_new();
    struct resize_kernel image;
    const bool found = read_image(m, f, f->result, arena, &image);
    assert(found);
    (void)found;
    const struct byi_planes *p = &image.planes;
    const struct byi_taps *high = &p->high, *wide = &p->wide;
    const int64_t rows = p->planes * high->out;
    const int64_t work = rows * wide->out * p->inner * (high->n + wide->n);
    const int64_t team =
        work / BYI_SMALL_WORK < rows ? work / BYI_SMALL_WORK : rows;
    byi_text_addf(out, "{\n");
    if (high->n)
        print_table(high, "high", out);
    if (wide->n)
        print_table(wide, "wide", out);
    byi_text_addf(out, "    static const struct byi_planes planes = {\n");
    print_taps(high, "high", out);
    print_taps(wide, "wide", out);
    byi_text_addf(out,
                  "        .planes = %lld, .inner = %lld, .floats = %lld, "
                  ".high_first = %d};\n",
                  (long long)p->planes, (long long)p->inner,
                  (long long)p->floats, p->high_first);
    byi_text_addf(out,
                  "    enum { TEAM = %lld, ROWS = %lld };\n"
                  "    const int64_t parts = threads < TEAM ? threads : TEAM;\n"
                  "    PARALLEL(omp parallel for num_threads((int)parts) "
                  "if (parts > 1))\n"
                  "    for (int64_t i = 0; i < parts; i++) {\n"
                  "        _Alignas(64) float buffer[%lld];\n"
                  "        resample_rows(&planes, buffers[0], buffers[1], "
                  "ROWS * i / parts,\n"
                  "                      ROWS * (i + 1) / parts, buffer);\n"
                  "    }\n"
                  "}\n",
                  (long long)(team > 1 ? team : 1), (long long)rows,
                  (long long)(p->floats > 0 ? p->floats : 1));
    byi_arena_free(&arena);
}
