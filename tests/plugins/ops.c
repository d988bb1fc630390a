/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: operators of the domain "com.example" for tests/python/custom_test.py:
 * attributes of every kind, omitted inputs, several results, strings, sizes
 * that are known only after a run, two versions, and failures.
 */
#include <byoc/custom.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct byoc_fail *invalid(const struct byoc_host *host, const char *why)
{
    return host->fail(host->ctx, BYOC_FAIL_INVALID, why);
}

static void copy_type(struct byoc_result *y, const struct byoc_view *x)
{
    y->dtype = x->dtype;
    y->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++)
        y->dims[d] = x->dims[d];
}

/* --- Mix: factor x + bias + the sum of everything in the attributes ------ */

static const struct byoc_attr_row mix_attrs[] = {
    {"factor", BYOC_ATTR_FLOAT, 0, NULL},
    {"add", BYOC_ATTR_INT, 0, "3"},
    {"word", BYOC_ATTR_STRING, 0, "\"ab\""},
    {"ints", BYOC_ATTR_INTS, 0, "[1, 2]"},
    {"floats", BYOC_ATTR_FLOATS, 0, "[0.5]"},
    {"words", BYOC_ATTR_STRINGS, 0, "[\"c\", \"d\"]"},
    {"blob", BYOC_ATTR_BYTES, 0, ""},
    {"table", BYOC_ATTR_TENSOR, 0, ""},
};

static struct byoc_fail *mix_make(const struct byoc_host *host,
                                  const struct byoc_operator_call *call,
                                  void **made)
{
    float *sum = malloc(sizeof *sum);
    if (!sum)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    *sum = (float)call->attrs[1].ints[0];
    *sum += (float)strlen(call->attrs[2].strings[0]);
    for (uint32_t i = 0; i < call->attrs[3].n; i++)
        *sum += (float)call->attrs[3].ints[i];
    for (uint32_t i = 0; i < call->attrs[4].n; i++)
        *sum += (float)call->attrs[4].floats[i];
    *sum += (float)call->attrs[5].n;
    for (uint64_t i = 0; i < call->tensors[0].bytes; i++)
        *sum += ((const uint8_t *)call->tensors[0].data)[i];
    for (uint64_t i = 0; i < call->tensors[1].bytes / sizeof(float); i++)
        *sum += ((const float *)call->tensors[1].data)[i];
    *made = sum;
    return NULL;
}

static void mix_drop(const struct byoc_host *host, void *made)
{
    (void)host;
    free(made);
}

static struct byoc_fail *mix_shape(const struct byoc_host *host,
                                   const struct byoc_operator_call *call)
{
    if (call->inputs[0].dtype != BYOC_F32)
        return invalid(host, "x is not float32");
    copy_type(&call->results[0], &call->inputs[0]);
    return NULL;
}

static struct byoc_fail *mix_run(const struct byoc_host *host,
                                 const struct byoc_operator_call *call)
{
    const struct byoc_view *x = &call->inputs[0];
    const float *bias = NULL;
    if (!call->made)
        return invalid(host, "make() was not called");
    if (call->n_inputs > 2 && call->inputs[2].dtype == BYOC_F32)
        bias = call->inputs[2].data;
    for (uint64_t i = 0; i < x->bytes / sizeof(float); i++)
        ((float *)call->results[0].data)[i] =
            (float)call->attrs[0].floats[0] * ((const float *)x->data)[i] +
            *(const float *)call->made + (bias ? *bias : 0);
    return NULL;
}

static const struct byoc_operator mix = {
    .struct_size = sizeof mix,
    .since = 1,
    .domain = "com.example",
    .name = "Mix",
    .min_inputs = 1,
    .max_inputs = 3,
    .min_results = 1,
    .max_results = 1,
    .n_attrs = 8,
    .attrs = mix_attrs,
    .make = mix_make,
    .drop = mix_drop,
    .shape = mix_shape,
    .run = mix_run,
};

/* --- Positives: the positive elements of x, and their indices ------------ */

static struct byoc_fail *positives_shape(const struct byoc_host *host,
                                         const struct byoc_operator_call *call)
{
    const struct byoc_view *x = &call->inputs[0];
    if (x->rank != 1)
        return invalid(host, "x is not a vector");
    for (uint32_t i = 0; i < call->n_results; i++) {
        call->results[i].dtype = i ? BYOC_I64 : BYOC_F32;
        call->results[i].rank = 1;
        call->results[i].dims[0] = x->data ? x->dims[0] : BYOC_SIZE_UNKNOWN;
    }
    return NULL;
}

static struct byoc_fail *positives_run(const struct byoc_host *host,
                                       const struct byoc_operator_call *call)
{
    const float *x = call->inputs[0].data;
    int64_t n = 0;
    (void)host;
    for (int64_t i = 0; i < call->inputs[0].dims[0]; i++) {
        if (!(x[i] > 0))
            continue;
        ((float *)call->results[0].data)[n] = x[i];
        if (call->n_results > 1)
            ((int64_t *)call->results[1].data)[n] = i;
        n++;
    }
    for (uint32_t i = 0; i < call->n_results; i++)
        call->results[i].dims[0] = n;
    return NULL;
}

static const struct byoc_operator positives = {
    .struct_size = sizeof positives,
    .since = 1,
    .domain = "com.example",
    .name = "Positives",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_results = 1,
    .max_results = 2,
    .shape = positives_shape,
    .run = positives_run,
};

/* --- Twice: repeats each string, twice or, since version 2, three times -- */

static struct byoc_fail *twice_shape(const struct byoc_host *host,
                                     const struct byoc_operator_call *call)
{
    (void)host;
    copy_type(&call->results[0], &call->inputs[0]);
    return NULL;
}

static struct byoc_fail *repeat(const struct byoc_host *host,
                                const struct byoc_operator_call *call,
                                uint64_t times)
{
    const char *const *x = call->inputs[0].data;
    const char **y = call->results[0].data;
    for (uint64_t i = 0; i < call->inputs[0].bytes / sizeof *x; i++) {
        const size_t n = strlen(x[i]);
        char *text = call->text(call, times * n);
        if (!text)
            return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
        for (uint64_t k = 0; k < times; k++)
            memcpy(text + k * n, x[i], n);
        y[i] = text;
    }
    return NULL;
}

static struct byoc_fail *twice_run(const struct byoc_host *host,
                                   const struct byoc_operator_call *call)
{
    return repeat(host, call, 2);
}

static struct byoc_fail *thrice_run(const struct byoc_host *host,
                                    const struct byoc_operator_call *call)
{
    return repeat(host, call, 3);
}

#define TWICE(since_, run_)                                                    \
    {                                                                          \
        .struct_size = sizeof(struct byoc_operator), .since = (since_),        \
        .domain = "com.example", .name = "Twice", .min_inputs = 1,             \
        .max_inputs = 1, .min_results = 1, .max_results = 1,                   \
        .shape = twice_shape, .run = (run_)                                    \
    }
static const struct byoc_operator twice = TWICE(1, twice_run);
static const struct byoc_operator thrice = TWICE(2, thrice_run);

/* --- Fail: fails in shape() or run(), or returns invalid sizes ----------- */

static const struct byoc_attr_row fail_attrs[] = {
    {"where", BYOC_ATTR_STRING, 0, NULL},
};

static bool fails_in(const struct byoc_operator_call *call, const char *where)
{
    return strcmp(call->attrs[0].strings[0], where) == 0;
}

static struct byoc_fail *fail_shape(const struct byoc_host *host,
                                    const struct byoc_operator_call *call)
{
    if (fails_in(call, "shape"))
        return invalid(host, "it was told to fail");
    copy_type(&call->results[0], &call->inputs[0]);
    if (fails_in(call, "size"))
        call->results[0].dims[0] = -77777;
    if (fails_in(call, "rank"))
        call->results[0].rank = 99;
    if (fails_in(call, "dtype"))
        call->results[0].dtype = 0;
    return NULL;
}

static struct byoc_fail *fail_run(const struct byoc_host *host,
                                  const struct byoc_operator_call *call)
{
    if (fails_in(call, "grow")) {
        memset(call->results[0].data, 0, call->results[0].bytes);
        call->results[0].dims[0]++;
        return NULL;
    }
    return invalid(host, "it was told to fail");
}

static const struct byoc_operator failing = {
    .struct_size = sizeof failing,
    .since = 1,
    .domain = "com.example",
    .name = "Fail",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_results = 1,
    .max_results = 1,
    .n_attrs = 1,
    .attrs = fail_attrs,
    .shape = fail_shape,
    .run = fail_run,
};

static const struct byoc_operator *const operators[] = {
    &mix, &positives, &twice, &thrice, &failing};

BYOC_OPERATORS_DEFINE("ops", "1", operators)
