/* SPDX-License-Identifier: Apache-2.0 */
/* ConvertLayout: convert a network to other layouts.
 * requires: nothing; best after SimplifyInference, which leaves fewer operators
 * leaves:   every operator in `desired` in the given layout, if its shapes
 *           allow it; constant weights stored in that layout; the remaining
 *           transposes where they move the fewest bytes
 *
 *   %0 = nn.conv2d(%x, const[w]);                %0 = transpose(%x, ...);
 *   %1 = nn.relu(%0);              ==>           %1 = nn.conv2d(%0, const[w'],
 *   nn.conv2d(%1, const[v])                          data_layout="NHWC", ...);
 *                                                %2 = nn.relu(%1);
 *                                                %3 = nn.conv2d(%2, ...);
 *                                                transpose(%3, ...)
 *
 * The given operators are pinned to their layouts; all others take the layout
 * that is cheapest next to them: relayout.h.
 */
#include "transform.h"

#include <string.h>

#include "relayout.h"

#include "core/ops/layout.h"

/* One item of `desired`: "nn.conv2d=NHWC:OHWI". */
struct desired_layout {
    const struct byi_op *op;
    const char *data;
    const char *kernel; /* NULL: the operator has no weights */
};

/* Returns the plain layout with channels first: the default of the attribute,
 * which the operators' table has in quotes. NULL if `op` has no such attribute.
 */
static const char *first_layout(const struct byi_op *op, const char *attr,
                                struct byi_arena *arena)
{
    const struct byi_attr_def *def = byi_op_attr(op, attr);
    return def ? byi_arena_strn(arena, def->default_text + 1,
                                strlen(def->default_text) - 2)
               : NULL;
}

/* Put the channels of a channels-first layout last: "NCHW" (`is_data`) becomes
 * "NHWC"; the weights' "OIHW" and "IOHW" become "HWIO". */
static const char *move_channels_last(const char *first, bool is_data,
                                      struct byi_arena *arena)
{
    return is_data ? byi_arena_printf(arena, "%c%s%c", first[0], first + 2,
                                      first[1])
                   : byi_arena_printf(arena, "%sIO", first + 2);
}

/* Fail because `op`, which is called `name` in the option, has no layout, or
 * because there is no operator of that name. */
static enum byoc_status report_bad_op(const struct byi_op *op, const char *name,
                                      size_t n, struct byi_arena *arena,
                                      struct byoc_error *err)
{
    struct byi_text text = {0};
    for (uint32_t id = 1; id < BYI_N_OPS; id++)
        if (byi_op(id)->layout == BYI_LAYOUT_SENSITIVE)
            byi_text_addf(&text, "%s%s", text.n ? ", " : "", byi_op(id)->name);
    const char *list = byi_arena_str(arena, text.at);
    byi_text_free(&text);
    return byi_fail(
        err, BYOC_EINVAL, "desired: '%.*s' %s, expected one of %s", (int)n,
        name, op ? "has no layout attribute" : "is not an operator", list);
}

static enum byoc_status check_data(struct desired_layout *desired,
                                   struct byi_arena *arena,
                                   struct byoc_error *err)
{
    struct byi_layout layout;
    const char *first = first_layout(desired->op, "layout", arena);
    if (!first)
        first = first_layout(desired->op, "data_layout", arena);
    if (byi_layout_parse(desired->data, &layout) == NULL &&
        byi_layout_is_data(&layout, first))
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "desired: %s has no layout '%s', expected %s, %s or blocks "
                    "of channels such as %s16c",
                    desired->op->name, desired->data, first,
                    move_channels_last(first, true, arena), first);
}

/* Check the desired weight layout. If there is none and the data have their
 * channels last, the weights get their channels last too. */
static enum byoc_status read_kernel(struct desired_layout *desired,
                                    struct byi_arena *arena,
                                    struct byoc_error *err)
{
    struct byi_layout layout;
    const char *first = first_layout(desired->op, "kernel_layout", arena);
    const size_t n = strlen(desired->data);
    if (!first && !desired->kernel)
        return BYOC_OK;
    if (!first)
        return byi_fail(err, BYOC_EINVAL,
                        "desired: found weight layout '%s' for %s, which has "
                        "no weights, expected %s=LAYOUT",
                        desired->kernel, desired->op->name, desired->op->name);
    if (!desired->kernel)
        desired->kernel = desired->data[n - 1] == 'C'
                              ? move_channels_last(first, false, arena)
                              : first;
    if (byi_layout_parse(desired->kernel, &layout) == NULL &&
        byi_layout_is_kernel(&layout, first))
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "desired: %s has no weight layout '%s', expected %s, its "
                    "letters in another order, or blocks of them",
                    desired->op->name, desired->kernel, first);
}

/* Read "NAME=DATA" or "NAME=DATA:KERNEL", n characters. */
static enum byoc_status read_desired(const char *text, size_t n,
                                     struct byi_arena *arena,
                                     struct desired_layout *desired,
                                     struct byoc_error *err)
{
    const char *copy = byi_arena_strn(arena, text, n);
    const size_t name = strcspn(copy, "="), data = strcspn(copy, ":");
    if (copy[name] == '\0' || data < name)
        return byi_fail(err, BYOC_EINVAL,
                        "desired: found '%s', expected OPERATOR=LAYOUT or "
                        "OPERATOR=LAYOUT:KERNEL_LAYOUT",
                        copy);
    desired->op = byi_op_of_name(copy, name);
    if (!desired->op || desired->op->layout != BYI_LAYOUT_SENSITIVE)
        return report_bad_op(desired->op, copy, name, arena, err);
    desired->data = byi_arena_strn(arena, copy + name + 1, data - name - 1);
    desired->kernel = copy[data] ? copy + data + 1 : NULL;
    BYI_TRY(check_data(desired, arena, err));
    return read_kernel(desired, arena, err);
}

/* Read all items of `text` into of_op, indexed by operator id. */
static enum byoc_status read_all_desired(const char *text,
                                         struct byi_arena *arena,
                                         struct desired_layout *of_op,
                                         struct byoc_error *err)
{
    for (; *text; text += strcspn(text, ","), text += *text == ',') {
        struct desired_layout desired = {0};
        BYI_TRY(read_desired(text, strcspn(text, ","), arena, &desired, err));
        of_op[desired.op->id] = desired;
    }
    return BYOC_OK;
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    const struct byi_func *f = m->funcs.at[func];
    struct byi_relayout rl;
    if (f->attr.compiler || f->attr.composite || f->attr.primitive)
        return BYOC_OK; /* a function of a backend, or a fused one */
    struct desired_layout *of_op =
        byi_arena_calloc(scratch, BYI_N_OPS, sizeof *of_op);
    BYI_TRY(read_all_desired(byi_option_string(ctx, "ConvertLayout.desired"),
                             scratch, of_op, err));
    byi_relayout_init(&rl, m, func, ctx, scratch);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const struct desired_layout *desired = &of_op[node->op];
        if (node->kind == BYI_CALL_OP && desired->op)
            byi_relayout_pin(&rl, id, desired->data, desired->kernel);
    }
    const enum byoc_status status = byi_relayout_run(&rl, func, err);
    byi_relayout_free(&rl);
    return status;
}

static const struct byi_pass_option options[] = {
    {"desired", BYI_ATTR_STRING,
     "nn.conv1d=NWC,nn.conv2d=NHWC,nn.conv3d=NDHWC,nn.conv1d_transpose=NWC,"
     "nn.conv2d_transpose=NHWC,nn.conv3d_transpose=NDHWC",
     "layouts by operator, as nn.conv2d=NHWC,nn.conv1d=NWC:OWI; the layout "
     "after a colon is the weights'"},
    {0},
};

const struct byi_pass byi_pass_convert_layout = {
    .name = "ConvertLayout",
    .summary = "convert the network to other layouts",
    .opt_level = 2,
    .options = options,
    .run_func = run,
};
