/* SPDX-License-Identifier: Apache-2.0 */
/* allocation_test.c: tests that a run allocates nothing if all shapes are
 * fixed, or were used before, and that large memory begins at a page. The
 * linker redirects the runtime's heap functions to this program.
 */
#include "tests/fixture.h"

#include "runtime/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t n_calls; /* calls of heap functions since the start */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    n_calls++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    n_calls++;
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    n_calls++;
    return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    n_calls++;
    return __real_aligned_alloc(alignment, bytes);
}

static const char network[] =
    "def @main(%x: Tensor[(1, 3, 9, 9), float32]) {\n"
    "  %0 = nn.conv2d(%x, random[(8, 3, 3, 3), float32, seed=7],\n"
    "                 padding=[1, 1, 1, 1]);\n"
    "  %1 = nn.relu(%0);\n"
    "  %2 = nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2]);\n"
    "  %3 = nn.flatten(%2);\n"
    "  %4 = nn.dense(%3, random[(10, 128), float32, seed=8]);\n"
    "  nn.softmax(%4)\n"
    "}\n";

/* Run a model `runs` times with `rows` rows. Returns how often the runs call
 * heap functions; *setup is how often making the state does. */
static uint64_t count_runs(const char *ir, int64_t rows, int runs,
                           uint64_t *setup)
{
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    static float values[1024];
    int64_t dims[] = {rows, 3, 9, 9};
    const DLTensor in = {.data = values,
                         .device = {kDLCPU, 0},
                         .ndim = 4,
                         .dtype = byoc_dtype_dlpack(BYOC_F32),
                         .shape = dims};
    DLTensor out = {0};
    if (fixture_open(&x, ir, &err) != BYOC_OK ||
        byoc_internal_model_open(&x.image, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    *setup = n_calls;
    assert_int_equal(byoc_state_new(model, &state, &err), BYOC_OK);
    *setup = n_calls - *setup;
    const uint64_t n_before = n_calls;
    for (int i = 0; i < runs; i++) {
        out.data = NULL;
        assert_int_equal(byoc_run(state, &in, 1, &out, 1, &err), BYOC_OK);
    }
    const uint64_t calls = n_calls - n_before;
    byoc_state_free(&state);
    byoc_model_free(&model);
    fixture_close(&x);
    return calls;
}

static void a_run_of_fixed_shapes_allocates_nothing(void **state)
{
    (void)state;
    uint64_t setup;
    assert_int_equal(count_runs(network, 1, 100, &setup), 0);
    assert_true(setup > 0); /* the calls are redirected */
}

static const char varying[] = "def @main(%x: Tensor[(N, 3, 9, 9), float32]) {\n"
                              "  %0 = exp(%x);\n"
                              "  %1 = nn.flatten(%0);\n"
                              "  nn.relu(%1)\n"
                              "}\n";

/* Only the first run of each size allocates. */
static void a_run_of_known_sizes_allocates_nothing(void **state)
{
    (void)state;
    uint64_t setup;
    const uint64_t first = count_runs(varying, 2, 1, &setup);
    assert_true(first > 0);
    assert_int_equal(count_runs(varying, 2, 100, &setup), first);
}

/* Large memory begins at offset 0 of a page, unlike inputs from malloc(): see
 * runtime/memory.c. */
static void large_memory_begins_at_a_page(void **state)
{
    (void)state;
    for (uint64_t bytes = 1 << 16; bytes <= 8 << 20; bytes = bytes * 3 + 8) {
        void *at = byi_memory_allocate(NULL, bytes);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 4096, 0);
        memset(at, 1, bytes);
        assert_int_equal(byi_memory_release(NULL, at), bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_fixed_shapes_allocates_nothing),
        cmocka_unit_test(a_run_of_known_sizes_allocates_nothing),
        cmocka_unit_test(large_memory_begins_at_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
