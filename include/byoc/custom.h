/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/custom.h: add operators to byoc.
 *
 * A library adds operators that ONNX models use and byoc does not have, each
 * with its attributes, a shape function and a kernel (docs/custom.md). The
 * library is a plug-in with the rules and checks of byoc/backend.h. A library
 * that has only operators ends in
 *
 *     static const struct byoc_operator *const all[] = {&decode, &encode};
 *     BYOC_OPERATORS_DEFINE("imaging", "1.0", all)
 *
 * A backend that also has patterns exports its operators as an extension:
 * struct byoc_operators in the list byoc_backend.ext. A pattern matches an
 * operator as custom(%x, ...) {op="imaging.ImageDecoder@20"}: plug-in, name,
 * since.
 *
 * How it grows: by members at the end of structs that begin with struct_size.
 */
#ifndef BYOC_CUSTOM_H
#define BYOC_CUSTOM_H

#include <byoc/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BYOC_RESULT_RANK = 12 }; /* maximum rank of a result */

/* A size that only run() can compute: see byoc_operator.shape. */
#define BYOC_SIZE_UNKNOWN INT64_MIN

/* The kinds of attributes: ONNX's numbers and strings, lists of them, and
 * single dense tensors; also BYTES. */
enum byoc_attr_kind {
    BYOC_ATTR_INT = 1, /* also booleans */
    BYOC_ATTR_FLOAT = 2,
    BYOC_ATTR_STRING = 3, /* UTF-8 without NUL */
    BYOC_ATTR_INTS = 4,
    BYOC_ATTR_FLOATS = 5,
    BYOC_ATTR_STRINGS = 6,
    BYOC_ATTR_BYTES = 7, /* an ONNX string of any bytes */
    BYOC_ATTR_TENSOR = 8
};

/* An attribute. BYTES and TENSOR are passed as tensors, see byoc_operator_call.
 */
struct byoc_attr_row {
    const char *name;
    uint32_t kind; /* enum byoc_attr_kind */
    uint32_t reserved;
    /* as JSON: "8", "\"RGB\"", "[1, 2]"; NULL: the attribute is required. For
     * BYTES and TENSOR the only default is "": no tensor. */
    const char *default_value;
};

/* A result. shape() sets dtype, rank and dims. run() writes the data, dense and
 * row-major, and may lower dims for which shape() gave an upper bound. Elements
 * of type string are pointers, each from text() or a constant. */
struct byoc_result {
    uint32_t dtype; /* enum byoc_dtype */
    uint32_t rank;
    int64_t dims[BYOC_RESULT_RANK];
    void *data;
    uint64_t bytes; /* of the memory at `data`, as shape()'s dims require */
};

/* A call of an operator. All of it is lent for the duration of the call. */
struct byoc_operator_call {
    uint32_t struct_size;
    uint32_t n_attrs;
    uint32_t n_inputs;
    uint32_t n_tensors;
    uint32_t n_results;
    uint32_t reserved;
    /* in the order of the operator's rows, defaults included; BYTES and TENSOR
     * are strings here: a digest, or "" */
    const struct byoc_graph_attr *attrs;
    /* The node's inputs; an omitted optional input has dtype BYOC_NONE. In
     * shape(), data is NULL while the values are unknown; a negative dim is
     * symbolic, and equal negative numbers denote the same size. Strings are
     * const char *. */
    const struct byoc_view *inputs;
    /* the values of the BYTES and TENSOR rows, in order; dtype BYOC_NONE: the
     * attribute has none */
    const struct byoc_view *tensors;
    struct byoc_result *results;
    void *made; /* the result of make(), or NULL */
    /* Memory for a string of n bytes and NUL, which is valid as long as the
     * result; NULL when exhausted. */
    char *(*text)(const struct byoc_operator_call *call, uint64_t n);
    void *ctx; /* the host's */
};

/* An operator. Members must not be NULL unless their comment allows it. */
struct byoc_operator {
    uint32_t struct_size;
    uint32_t since; /* first opset version of the domain with this definition */
    const char *domain;                /* "ai.onnx", "com.example" */
    const char *name;                  /* op_type */
    uint32_t min_inputs, max_inputs;   /* at most 64 */
    uint32_t min_results, max_results; /* 1 to 16 */
    uint32_t n_attrs;
    uint32_t reserved;
    const struct byoc_attr_row *attrs; /* may be NULL if n_attrs is 0    */
    /* Both may be NULL, but not only one. make() is called before the first
     * run() with a set of attributes, and sets *made. It may read tables or
     * models. Concurrent first calls may each call it; the extra results go to
     * drop(). Only attrs and tensors of the call are set. drop() frees `made`
     * when no call uses it any more. Any thread. */
    struct byoc_fail *(*make)(const struct byoc_host *host,
                              const struct byoc_operator_call *call,
                              void **made);
    void (*drop)(const struct byoc_host *host, void *made);
    /* Set types and sizes of the results. Called when a model is compiled, with
     * the values of constants, and before each run with all values if a size
     * was unknown or varies. Use BYOC_SIZE_UNKNOWN only while values that it
     * depends on are missing; once all are given, set the size or an upper
     * bound. `made` is NULL while a compile does not have the tensors' data.
     * Pure, any thread. */
    struct byoc_fail *(*shape)(const struct byoc_host *host,
                               const struct byoc_operator_call *call);
    /* Compute the results. Pure: equal calls give equal results. Any thread. */
    struct byoc_fail *(*run)(const struct byoc_host *host,
                             const struct byoc_operator_call *call);
};

/* The extension: the operators of a plug-in. */
enum { BYOC_EXT_OPERATORS = 1 };
struct byoc_operators {
    struct byoc_ext head; /* type BYOC_EXT_OPERATORS */
    uint32_t n;
    uint32_t reserved;
    const struct byoc_operator *const *at;
};

/* --- a plug-in with operators alone -------------------------------------- */

/* The next three functions are for BYOC_OPERATORS_DEFINE alone. Load and run
 * always fail, since such a plug-in gets no regions. */
static inline struct byoc_fail *byoc_operators_load(
    const struct byoc_host *host, const struct byoc_region *region,
    void **compiled)
{
    (void)region;
    (void)compiled;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "found a region to load, expected none: this plug-in "
                      "has operators but no patterns; recompile the model");
}

static inline void byoc_operators_unload(const struct byoc_host *host,
                                         void *compiled)
{
    (void)host;
    (void)compiled;
}

static inline struct byoc_fail *byoc_operators_run(
    const struct byoc_host *host, void *compiled, void *state,
    const struct byoc_run_args *args)
{
    (void)state;
    (void)args;
    return byoc_operators_load(host, NULL, &compiled);
}

/* Export the operators of an array of pointers. `name` is as byoc_backend.name.
 * `version` is the library's, since an artifact runs only with the version that
 * it was compiled with. Use it once, at the end of one file. */
#define BYOC_OPERATORS_DEFINE(name_, version_, array_)                         \
    static const struct byoc_operators byoc_operators_of_plugin = {            \
        {BYOC_EXT_OPERATORS, (uint32_t)sizeof(struct byoc_operators), NULL},   \
        (uint32_t)(sizeof(array_) / sizeof *(array_)),                         \
        0,                                                                     \
        array_};                                                               \
    static const struct byoc_backend *byoc_operators_query(                    \
        const struct byoc_host *host, char *why, uint32_t why_bytes)           \
    {                                                                          \
        static struct byoc_backend self;                                       \
        (void)host;                                                            \
        (void)why;                                                             \
        (void)why_bytes;                                                       \
        self.struct_size = (uint32_t)sizeof self;                              \
        self.name = name_;                                                     \
        self.version = version_;                                               \
        self.compat = name_ " " version_;                                      \
        self.load = byoc_operators_load;                                       \
        self.unload = byoc_operators_unload;                                   \
        self.run = byoc_operators_run;                                         \
        self.ext = &byoc_operators_of_plugin.head;                             \
        return &self;                                                          \
    }                                                                          \
    BYOC_BACKEND_DEFINE(byoc_operators_query)

#ifdef __cplusplus
}
#endif
#endif
