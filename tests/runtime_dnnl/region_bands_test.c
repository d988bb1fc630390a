/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/region_bands_test.c: runs blocks of mobile networks in
 * bands: one step computes several convolutions, with the results of the native
 * kernels. Blocks for which bands would be wrong or slow must not run in bands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/conv.h"
#include "region.inc"

#define NONE UINT32_MAX
#define IDS(...)                                                               \
    BYI_COUNT(((uint32_t[]){__VA_ARGS__})), (uint32_t[])                       \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static const double tolerance = 2e-5;

/* An image of 64 channels that is larger than any second-level cache, with
 * lines so narrow that the cache can hold several. */
enum { HEIGHT = 4000, WIDTH = 16, CHANNELS = 8, MIDDLE = 64 };

static uint32_t image(struct region *g)
{
    region_open(g);
    return region_input(g, 1, CHANNELS, HEIGHT, WIDTH, -1);
}

/* A convolution with a bias and, if it is not the last, ReLU. */
static uint32_t conv(struct region *g, uint32_t x, int64_t from, int64_t to,
                     const char *attrs)
{
    const bool depthwise = from == to;
    const uint32_t w = region_const(g, to, depthwise ? 1 : from,
                                    depthwise ? 3 : 1, depthwise ? 3 : 1, -1);
    const uint32_t b = region_const(g, to, 1, 1, -1);
    region_kernel(g, "nn.conv2d", attrs, IDS(x, w));
    region_post(g, "add", "{}", b, false);
    if (to == MIDDLE)
        region_post(g, "nn.relu", "{}", NONE, false);
    return region_end(g);
}

static uint32_t widen(struct region *g, uint32_t x)
{
    return conv(g, x, CHANNELS, MIDDLE, "{}");
}

static uint32_t depthwise(struct region *g, uint32_t x)
{
    return conv(g, x, MIDDLE, MIDDLE, "{\"padding\":[1,1,1,1],\"groups\":64}");
}

static uint32_t narrow(struct region *g, uint32_t x)
{
    return conv(g, x, MIDDLE, CHANNELS, "{}");
}

/* Run the region, compare its results with native kernels, and check that a
 * step whose name and implementation are `bands` ran; NULL, or kernels that
 * have no bands: no step ran in bands. Closes the region. */
static void expect(struct region *g, uint32_t n, const uint32_t *outs,
                   const char *bands)
{
    struct region_report r;
    const char *why = region_check(g, n, outs, tolerance, &r);
    if (why)
        fail_msg("%s", why);
    if (byi_f32_kernels()->rows < 6)
        bands = NULL;
    if (bands ? !strstr(r.trace, bands) : strstr(r.trace, ":bands:") != NULL)
        fail_msg("expected %s, found %s", bands ? bands : "no bands", r.trace);
    region_close(g);
}

static void test_block(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    const uint32_t out = narrow(&g, depthwise(&g, widen(&g, image(&g))));
    expect(&g, 1, &out,
           "nn.conv2d+add+nn.relu+nn.conv2d+add+nn.relu+nn.conv2d+add:bands:");
}

/* The block's input is added to its result. The result must not overwrite the
 * input, whose lines the next band reads. */
static void test_residual(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    const uint32_t x = conv(&g, image(&g), CHANNELS, CHANNELS + 1, "{}");
    const uint32_t wide = conv(&g, x, CHANNELS + 1, MIDDLE, "{}");
    const uint32_t w = region_const(&g, CHANNELS + 1, MIDDLE, 1, 1, -1);
    region_kernel(&g, "nn.conv2d", "{}", IDS(depthwise(&g, wide), w));
    region_post(&g, "add", "{}", x, false);
    const uint32_t out = region_end(&g);
    expect(&g, 1, &out,
           "nn.conv2d+add+nn.relu+nn.conv2d+add+nn.relu+nn.conv2d+add:bands:");
}

/* The result of the depthwise convolution is read twice. */
static void test_middle_read_twice(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    const uint32_t middle = depthwise(&g, widen(&g, image(&g)));
    const uint32_t outs[] = {narrow(&g, middle), narrow(&g, middle)};
    expect(&g, 2, outs, "nn.conv2d+add+nn.relu+nn.conv2d+add+nn.relu:bands:");
}

/* With AVX2, oneDNN runs a pointwise convolution whose outputs do not fill
 * panels, unless it ends a block; `bands` are then those in front of it. */
static void expect_either(struct region *g, uint32_t out, const char *avx512,
                          const char *bands)
{
    expect(g, 1, &out, byi_f32_kernels()->rows > 6 ? avx512 : bands);
}

static void test_first_depthwise(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    region_open(&g);
    const uint32_t x = region_input(&g, 1, MIDDLE, HEIGHT, WIDTH, -1);
    expect_either(&g, narrow(&g, depthwise(&g, x)),
                  "nn.conv2d+add+nn.relu+nn.conv2d+add:bands:", NULL);
}

/* The first convolution of a network reads an image of 3 channels. */
static void test_first_convolution(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    region_open(&g);
    const uint32_t x = region_input(&g, 1, 3, 2 * HEIGHT, 2 * WIDTH, -1);
    const uint32_t w = region_const(&g, MIDDLE, 3, 3, 3, -1);
    region_kernel(&g, "nn.conv2d", "{\"strides\":[2,2],\"padding\":[1,1,1,1]}",
                  IDS(x, w));
    const uint32_t wide = region_end(&g);
    expect_either(&g, narrow(&g, depthwise(&g, wide)),
                  "nn.conv2d+nn.conv2d+add+nn.relu+nn.conv2d+add:bands:",
                  "nn.conv2d+nn.conv2d+add+nn.relu:bands:");
}

/* Regions whose convolutions must not run in bands. */
static void test_no_bands(void **state)
{
    (void)state;
    needs_kernels();
    struct region g;
    /* the wide image is a result of the region */
    const uint32_t wide = widen(&g, image(&g));
    const uint32_t outs[] = {wide, depthwise(&g, wide)};
    expect(&g, 2, outs, NULL);
    /* none is depthwise */
    region_open(&g);
    const uint32_t x = region_input(&g, 1, CHANNELS, HEIGHT, WIDTH, -1);
    const uint32_t out = narrow(&g, widen(&g, x));
    expect(&g, 1, &out, NULL);
    /* the wide image stays in the cache */
    region_open(&g);
    const uint32_t small = region_input(&g, 1, CHANNELS, 14, 14, -1);
    const uint32_t end = narrow(&g, depthwise(&g, widen(&g, small)));
    expect(&g, 1, &end, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_middle_read_twice),
        cmocka_unit_test(test_no_bands),
        cmocka_unit_test(test_first_depthwise),
        cmocka_unit_test(test_first_convolution),
        cmocka_unit_test(regions_as_c),
    };
    /* with AVX2, and with all instruction sets of this machine */
    setenv("BYOC_MAX_ISA", "avx2", 1);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unsetenv("BYOC_MAX_ISA");
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
