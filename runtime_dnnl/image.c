/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/image.c: describes data with channels. The graph's dims are in
 * the order of the operator's layout attribute; oneDNN's are always (N, C,
 * spatial...), and strides say where the channels are. Inside a region, data of
 * either layout are channels-last in memory, so that a change of layout between
 * operators moves no data. */
#include "runtime_dnnl/build.h"

#include <byoc/graph.h>

struct byi_image_axes byi_dn_image(uint32_t rank, bool last)
{
    struct byi_image_axes image = {.channel = last ? rank - 1 : 1,
                                   .last = last};
    image.order[1] = image.channel;
    for (uint32_t i = 2; i < rank; i++)
        image.order[i] = last ? i - 1 : i;
    return image;
}

enum byoc_status byi_dn_image_read(struct byi_build *b, const char *name,
                                   uint32_t rank, struct byi_image_axes *image)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const char *layout = byoc_graph_string(step, name, NULL);
    const int channel = layout ? byoc_graph_axis(layout, 'C') : 1;
    if (channel < 0)
        return byi_dn_refuse(b,
                             "%s: %s is %s, expected a layout without blocks, "
                             "since oneDNN chooses its own",
                             step->name, name, layout);
    if (rank < 3 || rank > 5)
        return byi_dn_refuse(b, "%s: found rank %u, expected 3 to 5",
                             step->name, rank);
    *image = byi_dn_image(rank, channel > 1);
    return BYOC_OK;
}

struct byi_desc byi_dn_image_desc(const struct byi_build *b,
                                  const struct byi_image_axes *image,
                                  uint32_t rank, const int64_t *dims)
{
    const enum byoc_dtype dtype = byi_dn_result(b)->dtype;
    if (image->last || b->keeps_layouts)
        return byi_dn_dense(dtype, rank, dims, NULL);
    return byi_dn_channels_last(dtype, rank, dims);
}

struct byi_desc byi_dn_image_permute(const struct byi_image_axes *image,
                                     const struct byi_desc *desc)
{
    return byi_dn_permute_desc(desc, image->order);
}

enum byoc_status byi_dn_get_image(struct byi_build *b,
                                  struct byi_dnnl_value *value,
                                  const struct byi_image_axes *image,
                                  struct byi_dnnl_view *view)
{
    const struct byi_desc *main = &value->views[0].desc;
    if (main->dtype != byi_dn_result(b)->dtype)
        return byi_dn_refuse(
            b, "%s: found data of type %s, expected %s, the result's type",
            byi_dn_step0(b)->name, byoc_dtype_name(main->dtype),
            byoc_dtype_name(byi_dn_result(b)->dtype));
    const struct byi_desc layout =
        byi_dn_image_desc(b, image, main->rank, main->dims);
    BYI_TRY(byi_dn_get_view(b, value, &layout, view));
    view->desc = byi_dn_image_permute(image, &view->desc);
    return BYOC_OK;
}
