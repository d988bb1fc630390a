/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c: each operator of ONNX on random shapes, attributes and values:
 *
 *     operators_fuzz [--count N] [--seed S] [--only OP] [--ort LIBRARY] [-v]
 *     operators_fuzz --backend PLUGIN ...
 *     operators_fuzz --hostile [--only OP]
 *
 * The first form imports N calls (200) for each operator and type, and runs
 * them on the native kernels with every instruction set of this machine. Three
 * of four calls are compiled, and take a form of wrap.c: operands that are
 * constant or have open sizes, another opset, or a place inside an If, Loop or
 * function. It compares the results with those of the kernel's plain form, a
 * simple loop, if it has one; results of float16 and bfloat16 with those of
 * float32; and all results with ONNX Runtime's, if its C library is given.
 * explained.c lists the known differences from ONNX Runtime. Exits with 1 if a
 * result differs, if ONNX Runtime runs a model that the importer refuses, for
 * another reason than open sizes, or if all cases of an operator and type are
 * refused; 2 for usage. Each operator and type has a process of its own, since
 * ONNX Runtime ends some processes: such a case is skipped and counted.
 *
 * The second form compiles each call for a backend, on the instruction set that
 * BYOC_MAX_ISA and the backend's own variable allow. hostile.c describes the
 * third one.
 */
#include "fuzz.h"

#include "interp/interp.h"
#include "runtime_native/kernel.h"
#include "runtime_native/native.h"
#include "tests/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The options of the command line. */
struct options {
    long count;
    uint64_t seed;
    const char *only, *ort;
    bool verbose, hostile;
};

/* The result of an operator and type. */
struct tally {
    long at; /* the case under way */
    bool in_ort;
    long same, differ, refused; /* cases; refused: by the importer */
    long plain, wide, ort;      /* comparisons: with plain forms, with results
                                   in float32, with ONNX Runtime's */
    long explained;             /* differences that explained.c lists */
    long lacking; /* refused by the importer, but ONNX Runtime runs it */
    long ort_refused, ort_died; /* cases without a result of ONNX Runtime */
};

/* --- comparing ------------------------------------------------------------ */

/* The largest relative error of rounding to the type; 0 for types that are not
 * 16-bit floats. */
static double rounding(enum byoc_dtype dtype)
{
    return dtype == BYOC_BF16 ? 1e-2 : dtype == BYOC_F16 ? 2e-3 : 0;
}

static double largest(const struct byi_tensor *t)
{
    double maximum = 0;

    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++) {
        const double size = fabs(byi_tensor_float(t, i));
        maximum = isfinite(size) && size > maximum ? size : maximum;
    }
    return maximum;
}

/* Whether element i of both is the same within the bound, or within the
 * rounding of 16-bit floats: sums of them were rounded at up to `maximum`, the
 * largest magnitude among results and operands. */
static bool near(const struct byi_tensor *a, const struct byi_tensor *b,
                 int64_t i, double bound, double maximum)
{
    if (a->dtype == BYOC_STRING)
        return strcmp(((const char *const *)a->data)[i],
                      ((const char *const *)b->data)[i]) == 0;
    if (!byi_dtype_is_float(a->dtype)) {
        const int64_t x = byi_tensor_int(a, i), y = byi_tensor_int(b, i);
        return bound >= 1 ? llabs(x - y) <= 1 : x == y;
    }
    const double x = byi_tensor_float(a, i), y = byi_tensor_float(b, i);
    const double rounding_bound =
        rounding(a->dtype) * (bound >= 1e-4 ? 1 + maximum : 1);
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (isinf(x) || isinf(y))
        return x == y;
    return fabs(x - y) <=
           (bound > rounding_bound ? bound : rounding_bound) * (1 + fabs(y));
}

/* The largest number in a result and in its operands of 16-bit floats. */
static double largest_of(const struct draw *d, const struct byi_tensor *result)
{
    double maximum = largest(result);

    for (uint32_t i = 0; i < d->n; i++)
        if (rounding(d->in[i].dtype) > 0)
            maximum = fmax(maximum, largest(&d->in[i]));
    return maximum;
}

/* Whether both are the same within the bound; if not, `why` has the place. */
static bool agree(const struct draw *d, const struct byi_tensor *a,
                  const struct byi_tensor *b, double bound, char *why,
                  size_t why_bytes)
{
    char x[64], y[64];
    const int64_t n = byi_elements(a->rank, a->dims);
    const double maximum = rounding(b->dtype) > 0 ? largest_of(d, b) : 0;

    if (a->dtype != b->dtype ||
        !byi_dims_equal(a->rank, a->dims, b->rank, b->dims)) {
        snprintf(why, why_bytes, "is %s %s, expected %s %s",
                 byoc_dtype_name(a->dtype),
                 byi_dims_text(x, sizeof x, a->rank, a->dims),
                 byoc_dtype_name(b->dtype),
                 byi_dims_text(y, sizeof y, b->rank, b->dims));
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        if (near(a, b, i, bound, maximum)) {
            continue;
        } else if (a->dtype == BYOC_STRING) {
            snprintf(
                why, why_bytes, "element %lld of %lld is '%s', expected '%s'",
                (long long)i, (long long)n, ((const char *const *)a->data)[i],
                ((const char *const *)b->data)[i]);
            return false;
        } else {
            snprintf(why, why_bytes,
                     "element %lld of %lld is %.9g, expected %.9g",
                     (long long)i, (long long)n, byi_tensor_float(a, i),
                     byi_tensor_float(b, i));
            return false;
        }
    return true;
}

/* --- plain forms ---------------------------------------------------------- */

typedef enum byoc_status (*plain_fn)(const struct byi_call *call,
                                     struct byoc_error *err);

static enum byoc_status plain_unary(const struct byi_call *call,
                                    struct byoc_error *err)
{
    double numbers[4] = {0};
    (void)err;

    for (uint32_t i = 0; i < call->op->n_attrs && i < 4; i++)
        if (call->op->attrs[i].kind == BYI_ATTR_FLOAT)
            numbers[i] = byi_attr_float(call->attrs, call->op->attrs[i].name);
    for (int64_t i = 0; i < byi_count(call->in); i++)
        byi_tensor_set(call->out, i,
                       byi_unary_plain(call->op->id,
                                       byi_tensor_float(call->in, i), numbers));
    return BYOC_OK;
}

/* The operator's plain form for operands of this type, or NULL. */
static plain_fn plain_of(const struct byi_op *op, enum byoc_dtype dtype)
{
    static const enum byi_op_id by_attribute[] = {BYI_OP_NN_GELU, BYI_OP_CAST,
                                                  BYI_OP_ISINF, BYI_OP_ISNAN,
                                                  BYI_OP_LOGICAL_NOT};

    if (dtype != BYOC_F32)
        return NULL;
    for (uint32_t i = 0; i < BYI_COUNT(by_attribute); i++)
        if (op->id == by_attribute[i])
            return NULL;
    if (op->kind == BYI_ELEMWISE && op->min_in == 1)
        return plain_unary;
    switch (op->id) {
    case BYI_OP_ADD:
    case BYI_OP_SUBTRACT:
    case BYI_OP_MULTIPLY:
    case BYI_OP_DIVIDE:
    case BYI_OP_MAXIMUM:
    case BYI_OP_MINIMUM:
        return byi_binary_plain;
    case BYI_OP_NN_MATMUL:
    case BYI_OP_NN_DENSE:
        return byi_matmul_plain;
    case BYI_OP_NN_CONV1D:
    case BYI_OP_NN_CONV2D:
    case BYI_OP_NN_CONV3D:
        return byi_conv_plain;
    case BYI_OP_NN_CONV1D_TRANSPOSE:
    case BYI_OP_NN_CONV2D_TRANSPOSE:
    case BYI_OP_NN_CONV3D_TRANSPOSE:
        return byi_conv_transpose_plain;
    case BYI_OP_NN_SOFTMAX:
    case BYI_OP_NN_LOG_SOFTMAX:
        return byi_softmax_plain;
    case BYI_OP_NN_AVG_POOL1D:
    case BYI_OP_NN_AVG_POOL2D:
    case BYI_OP_NN_AVG_POOL3D:
    case BYI_OP_NN_MAX_POOL1D:
    case BYI_OP_NN_MAX_POOL2D:
    case BYI_OP_NN_MAX_POOL3D:
        return byi_pool_plain;
    default:
        return op->kind == BYI_REDUCE && op->id != BYI_OP_ARGMAX &&
                       op->id != BYI_OP_ARGMIN
                   ? byi_reduce_plain
                   : NULL;
    }
}

/* The operands of a call whose arguments are parameters and constants. A
 * constant of a mapped file may be unaligned, which kernels do not support, so
 * `in` has copies of constants. */
static bool operands_of(const struct byi_module *m, const struct byi_func *f,
                        const struct byi_node *node,
                        const struct byi_tensor *inputs, const struct draw *d,
                        struct byi_tensor *in)
{
    for (uint32_t i = 0; i < node->n_args; i++) {
        uint32_t p = 0;
        while (p < f->params.n && f->params.at[p] != node->args[i])
            p++;
        if (p < f->params.n) {
            in[i] = inputs[p];
            continue;
        }
        if (!byi_const_view(m, f, node->args[i], &in[i]))
            return false;
        const size_t bytes = (size_t)byi_tensor_bytes(&in[i]);
        void *copy = byi_arena_alloc(d->arena, bytes);
        if (bytes)
            memcpy(copy, in[i].data, bytes);
        in[i].data = copy;
    }
    return true;
}

/* Compare the kernel of a call with its plain form, if it has one. */
static bool check_call(const struct byi_node *node, const struct byi_tensor *in,
                       const struct draw *d, struct tally *tally, char *why,
                       size_t why_bytes)
{
    const struct byi_op *op = byi_op(node->op);
    const plain_fn plain = plain_of(op, in[0].dtype);
    const double bound = op_now->bound > 1e-5 ? op_now->bound : 1e-5;
    struct byi_tensor out[2];
    struct byoc_error err = {0};

    if (!plain || node->type->kind != BYI_TENSOR ||
        !byi_type_is_static(node->type))
        return true;
    for (int i = 0; i < 2; i++) {
        out[i] = (struct byi_tensor){.dtype = node->type->dtype,
                                     .rank = node->type->rank};
        memcpy(out[i].dims, node->type->dims,
               out[i].rank * sizeof *out[i].dims);
        out[i].data = byi_arena_calloc(
            d->arena, (size_t)byi_tensor_bytes(&out[i]) + 8, 1);
    }
    const struct byi_call call = {
        .op = op,
        .attrs = node->attrs,
        .n_in = node->n_args,
        .n_out = 1,
        .in = in,
        .out = &out[1],
        .scratch = byi_arena_calloc(d->arena, 1, 1 << 20),
        .threads = 1,
    };
    tally->plain++;
    if (byoc_internal_kernel_eval(op, node->attrs, node->n_args, in, 1, &out[0],
                                  2, &err) != BYOC_OK ||
        plain(&call, &err) != BYOC_OK) {
        snprintf(why, why_bytes, "%.900s", err.text);
        return false;
    }
    if (agree(d, &out[0], &out[1], bound, why, why_bytes))
        return true;
    snprintf(why + strlen(why), why_bytes - strlen(why),
             " by the plain form of %s", op->name);
    return false;
}

/* Check every call whose arguments are parameters and constants. */
static bool check_plain(const struct byi_module *m, const struct draw *d,
                        const struct byi_tensor *inputs, struct tally *tally,
                        char *why, size_t why_bytes)
{
    const struct byi_func *f = m->funcs.at[0];
    struct byi_tensor in[MAX_OPERANDS];

    for (byi_id i = 0; i < f->nodes.n && !plugin_now; i++) {
        const struct byi_node *node = &f->nodes.at[i];
        if (node->kind == BYI_CALL_OP && node->n_args <= MAX_OPERANDS &&
            operands_of(m, f, node, inputs, d, in) &&
            !check_call(node, in, d, tally, why, why_bytes))
            return false;
    }
    return true;
}

/* --- one case ------------------------------------------------------------- */

static void draw_case(struct draw *d, uint64_t seed, enum byoc_dtype dtype,
                      bool wide)
{
    draw_begin(d, seed, op_now->op, wrap_opset(seed), op_now->domain, dtype,
               wide, op_now->results);
    wrap_operands(d, seed);
    op_now->make(d);
    wrap_node(d, seed);
}

/* Set `inputs` to the operands that are inputs. Returns their number. */
static uint32_t collect_inputs(const struct draw *d, struct byi_tensor *inputs)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < d->n; k++)
        if (!d->constant[k])
            inputs[n++] = d->in[k];
    return n;
}

static struct byi_tensor rounded(const struct byi_tensor *t,
                                 enum byoc_dtype dtype, struct byi_arena *arena)
{
    struct byi_tensor result = *t;

    result.dtype = dtype;
    result.data =
        byi_arena_calloc(arena, (size_t)byi_tensor_bytes(&result) + 8, 1);
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(&result, i, byi_tensor_float(t, i));
    return result;
}

/* Write the model to a file. Returns its path, which is the same for each
 * model.
 */
static const char *save(struct draw *d, const uint8_t **bytes, size_t *n)
{
    static char path[TEST_PATH + 8];
    snprintf(path, sizeof path, "%s/m.onnx", make_test_folder(NULL));
    unlink(path); /* truncating a file makes ext4 write it to the disk */
    FILE *f = fopen(path, "wb");

    *bytes = draw_pack(d, n);
    if (!f || fwrite(*bytes, 1, *n, f) != *n || fclose(f) != 0) {
        perror(path);
        exit(2);
    }
    return path;
}

static struct byi_module *import(const char *path, struct byoc_error *err)
{
    const struct byi_onnx_params params = {.eval = byi_kernel_eval};
    struct byi_module *m = NULL;

    byi_onnx_import(path, &params, &m, err);
    return m;
}

/* Print the elements if they are few integers. */
static void print_short_list(const struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);

    if (n > 8 || t->dtype != BYOC_I64)
        return;
    for (int64_t i = 0; i < n; i++)
        printf("%s%lld", i ? "," : " = ", (long long)byi_tensor_int(t, i));
}

static void print_case(const struct draw *d, long i, const char *why)
{
    char text[64];

    printf("%s %s case %ld: %s\n   ", op_now->op, byoc_dtype_name(d->dtype), i,
           why);
    for (uint32_t k = 0; k < d->n; k++) {
        printf("%s %s %s%s", k ? ";" : "", byoc_dtype_name(d->in[k].dtype),
               byi_dims_text(text, sizeof text, d->in[k].rank, d->in[k].dims),
               d->constant[k] ? " constant" : "");
        print_short_list(&d->in[k]);
    }
    for (size_t k = 0; k < d->node->n_attribute; k++) {
        const Onnx__AttributeProto *a = d->node->attribute[k];
        printf(" %s=", a->name);
        if (a->has_i)
            printf("%lld", (long long)a->i);
        else if (a->has_f)
            printf("%g", (double)a->f);
        else if (a->has_s)
            printf("%.*s", (int)a->s.len, (const char *)a->s.data);
        for (size_t j = 0; j < a->n_ints; j++)
            printf("%s%lld", j ? "," : "", (long long)a->ints[j]);
    }
    printf("\n");
}

/* Run the model node by node; or compiled, if the case needs it for sequences
 * or strings. */
static enum byoc_status run_once(const struct byi_module *m, const char *path,
                                 struct draw *d,
                                 const struct byi_tensor *inputs,
                                 uint32_t n_inputs, struct byi_tensor *out,
                                 uint32_t *n_out, struct byoc_error *err)
{
    if (op_now->compiled || plugin_now || d->compiled)
        return compiled_run(path, d, inputs, n_inputs, out, n_out, err);
    return byi_interp_run(m, 0, inputs, n_inputs, d->arena, out, MAX_RESULTS,
                          n_out, err);
}

/* Run the model on every instruction set, and compare the results. `out` gets
 * those of the widest. */
static bool run_all(const struct byi_module *m, const char *path,
                    struct draw *d, const struct byi_tensor *inputs,
                    uint32_t n_inputs, struct byi_tensor *out, uint32_t *n_out,
                    char *why, size_t why_bytes)
{
    struct byoc_error err = {0};
    struct byi_tensor first[MAX_RESULTS];
    const double bound = op_now->bound > 1e-5 ? op_now->bound : 1e-5;
    bool has_first = false;

    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        if (plugin_now ? has_first : !byi_simd_use((enum byi_isa)isa))
            continue;
        if (run_once(m, path, d, inputs, n_inputs, out, n_out, &err) !=
            BYOC_OK) {
            snprintf(why, why_bytes, "%.900s", err.text);
            return false;
        }
        for (uint32_t k = 0; has_first && k < *n_out; k++)
            if (!agree(d, &out[k], &first[k], bound, why, why_bytes)) {
                snprintf(why + strlen(why), why_bytes - strlen(why),
                         " on narrower vectors than %s",
                         byi_isa_name((enum byi_isa)isa));
                return false;
            }
        if (!has_first)
            memcpy(first, out, sizeof first);
        has_first = true;
    }
    return true;
}

/* Compare results in float16 or bfloat16 with those of the same model in
 * float32, rounded to that type. */
static bool check_wide(const struct options *o, const struct draw *narrow,
                       long i, const struct byi_tensor *out, uint32_t n_out,
                       struct tally *tally, char *why, size_t why_bytes)
{
    struct draw d;
    struct byoc_error err = {0};
    struct byi_tensor inputs[MAX_OPERANDS], wide_results[MAX_RESULTS], expected;
    uint32_t n_inputs = 0, n_wide = 0;
    const uint8_t *bytes = NULL;
    size_t n = 0;

    if (narrow->dtype != BYOC_F16 && narrow->dtype != BYOC_BF16)
        return true;
    draw_case(&d, o->seed + (uint64_t)i, narrow->dtype, true);
    const char *path = save(&d, &bytes, &n);
    struct byi_module *m = import(path, &err);
    n_inputs = collect_inputs(&d, inputs);
    bool same = m && run_once(m, path, &d, inputs, n_inputs, wide_results,
                              &n_wide, &err) == BYOC_OK;
    if (!same)
        snprintf(why, why_bytes, "%.900s (in float32)", err.text);
    tally->wide++;
    for (uint32_t k = 0; k < n_out && same; k++) {
        expected = wide_results[k];
        if (wide_results[k].dtype == BYOC_F32 && out[k].dtype == narrow->dtype)
            expected = rounded(&wide_results[k], narrow->dtype, d.arena);
        same = agree(narrow, &out[k], &expected, op_now->bound, why, why_bytes);
        if (!same)
            snprintf(why + strlen(why), why_bytes - strlen(why),
                     " (output %u, in float32)", k);
    }
    byi_module_free(&m);
    draw_end(&d);
    return same;
}

/* The bound of a comparison with ONNX Runtime. Passes change the rounding of
 * floats: they multiply by the reciprocal of a constant divisor. */
static double bound_of(const struct draw *d)
{
    return d->compiled && op_now->bound < 1e-6 ? 1e-6 : op_now->bound;
}

static bool check_ort(struct draw *d, long i, bool verbose,
                      const uint8_t *bytes, size_t n,
                      const struct byi_tensor *out, struct tally *tally,
                      char *why, size_t why_bytes)
{
    struct byi_tensor theirs[MAX_RESULTS];
    uint32_t count = 0;

    tally->in_ort = true;
    const bool ran =
        ort_run(bytes, n, d, d->arena, theirs, &count, why, why_bytes);
    tally->in_ort = false;
    if (!ran) {
        if (verbose)
            print_case(d, i, why);
        tally->ort_refused++;
        return true;
    }
    tally->ort++;
    for (uint32_t k = 0; k < count; k++)
        if (!agree(d, &out[k], &theirs[k], bound_of(d), why, why_bytes)) {
            if (explained(d)) {
                tally->explained++;
                return true;
            }
            snprintf(why + strlen(why), why_bytes - strlen(why),
                     " (output %u, ONNX Runtime)", k);
            return false;
        }
    return true;
}

/* Whether a message says that a size or a rank is known only at run time. */
static bool names_sizes(const char *message)
{
    return strstr(message, "symbolic") || strstr(message, "not known");
}

/* The importer refused the model: ONNX Runtime should refuse it, too, unless
 * the reason is that sizes are open. */
static void check_refusal(const struct options *o, struct draw *d, long i,
                          const uint8_t *bytes, size_t n, const char *message,
                          struct tally *tally)
{
    struct byi_tensor theirs[MAX_RESULTS];
    uint32_t count = 0;
    char why[1024] = "";

    tally->refused++;
    tally->in_ort = true;
    const bool lacking =
        o->ort && !(d->open && names_sizes(message)) &&
        ort_run(bytes, n, d, d->arena, theirs, &count, why, sizeof why) &&
        !explained(d);
    tally->in_ort = false;
    tally->lacking += lacking;
    if (o->verbose || (lacking && tally->lacking <= 3))
        print_case(d, i,
                   byi_arena_printf(d->arena, "%s%s", message,
                                    lacking ? " (ONNX Runtime runs it)" : ""));
}

static void run_case(const struct options *o, enum byoc_dtype dtype, long i,
                     struct tally *tally)
{
    struct draw d;
    struct byoc_error err = {0};
    struct byi_tensor inputs[MAX_OPERANDS], out[MAX_RESULTS];
    uint32_t n_out = 0;
    char why[1024] = "";
    const uint8_t *bytes = NULL;
    size_t n = 0;

    draw_case(&d, o->seed + (uint64_t)i, dtype, false);
    const char *path = save(&d, &bytes, &n);
    struct byi_module *m = import(path, &err);
    const uint32_t n_inputs = collect_inputs(&d, inputs);
    if (!m) {
        check_refusal(o, &d, i, bytes, n, err.text, tally);
    } else if (run_all(m, path, &d, inputs, n_inputs, out, &n_out, why,
                       sizeof why) &&
               check_plain(m, &d, inputs, tally, why, sizeof why) &&
               check_wide(o, &d, i, out, n_out, tally, why, sizeof why) &&
               (!o->ort || check_ort(&d, i, o->verbose, bytes, n, out, tally,
                                     why, sizeof why))) {
        tally->same++;
    } else {
        tally->differ++;
        if (tally->differ <= 3 || o->verbose)
            print_case(&d, i, why);
    }
    byi_module_free(&m);
    draw_end(&d);
}

/* --- operators and types -------------------------------------------------- */

static const struct {
    char letter;
    enum byoc_dtype types[3];
} letters[] = {
    {'f', {BYOC_F32, BYOC_F64, BYOC_NONE}},
    {'h', {BYOC_F16, BYOC_BF16, BYOC_NONE}},
    {'i', {BYOC_I32, BYOC_I64, BYOC_NONE}},
    {'u', {BYOC_U32, BYOC_U64, BYOC_NONE}},
    {'b', {BYOC_BOOL, BYOC_NONE, BYOC_NONE}},
    {'8', {BYOC_U8, BYOC_I8, BYOC_NONE}},
    {'6', {BYOC_U16, BYOC_I16, BYOC_NONE}},
    {'s', {BYOC_STRING, BYOC_NONE, BYOC_NONE}},
    {'7', {BYOC_I8, BYOC_I16, BYOC_NONE}},
    {'F', {BYOC_F32, BYOC_NONE, BYOC_NONE}},
    {'I', {BYOC_I64, BYOC_NONE, BYOC_NONE}},
    {'-', {BYOC_F32, BYOC_NONE, BYOC_NONE}},
};

static void add_up(struct tally *sum, const struct tally *part)
{
    sum->same += part->same;
    sum->differ += part->differ;
    sum->refused += part->refused;
    sum->lacking += part->lacking;
    sum->plain += part->plain;
    sum->wide += part->wide;
    sum->ort += part->ort;
    sum->explained += part->explained;
}

/* What all processes have done so far, in memory that they share. */
struct progress {
    const struct op_case *op; /* under way, with dtype and tally */
    enum byoc_dtype dtype;
    struct tally tally;
    long finished; /* pairs of operator and type */
    struct tally total;
};

static void finish_type(const struct options *o, struct progress *p)
{
    struct tally *t = &p->tally;
    const char *dtype = byoc_dtype_name(p->dtype);
    printf("%-24s %-8s %5ld same %5ld differ %5ld refused (%ld lacking); %5ld "
           "plain, %5ld wide, %5ld ort (%ld explained, %ld refused, %ld "
           "crashed)\n",
           op_now->op, dtype, t->same, t->differ, t->refused, t->lacking,
           t->plain, t->wide, t->ort, t->explained, t->ort_refused,
           t->ort_died);
    if (o->count > 0 && t->same + t->differ == 0) {
        printf("%s %s: all cases are refused\n", op_now->op, dtype);
        t->differ++;
    }
    fflush(stdout);
    add_up(&p->total, t);
    p->tally = (struct tally){0};
    p->finished++;
}

/* Run the cases of a type from p->tally.at on. */
static void run_type(const struct options *o, enum byoc_dtype dtype,
                     struct progress *p)
{
    p->op = op_now;
    p->dtype = dtype;
    for (; p->tally.at < o->count; p->tally.at++)
        run_case(o, dtype, p->tally.at, &p->tally);
    finish_type(o, p);
}

/* Run the types of op_now that are not among the first p->finished pairs; *pair
 * is the number of pairs before. */
static void run_op(const struct options *o, struct progress *p, long *pair)
{
    for (const char *t = op_now->types; *t; t++)
        for (uint32_t i = 0; i < BYI_COUNT(letters); i++)
            for (int k = 0; letters[i].letter == *t && letters[i].types[k]; k++)
                if ((*pair)++ == p->finished)
                    run_type(o, letters[i].types[k], p);
}

static void run_ops(const struct options *o, struct progress *p)
{
    long pair = 0;

    if (o->ort && !ort_open(o->ort))
        _exit(2);
    while (next_op(o->only))
        run_op(o, p, &pair);
    _exit(0);
}

/* Count the case that ended its process. */
static void count_crash(struct progress *p)
{
    if (p->tally.in_ort) {
        p->tally.ort_died++;
    } else {
        printf("%s %s case %ld: the process ended\n", p->op->op,
               byoc_dtype_name(p->dtype), p->tally.at);
        p->tally.differ++;
    }
    p->tally.in_ort = false;
    p->tally.at++;
}

/* Run all cases in a child process; after a case that ends it, run the cases
 * that follow in a new one. A child for every operator and type would spend
 * half of the time on copies of pages with the address sanitizer. */
static void run_children(const struct options *o, struct progress *p)
{
    for (;;) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            run_ops(o, p);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child)
            exit(2);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return;
        if ((WIFEXITED(status) && WEXITSTATUS(status) == 2) || !p->op)
            exit(2);
        count_crash(p);
    }
}

/* Run hostile models of each operator with the first of its element types. */
static void run_hostile(const struct options *o, long *failed, long *done)
{
    while (next_op(o->only))
        for (uint32_t i = 0; i < BYI_COUNT(letters); i++)
            if (letters[i].letter == op_now->types[0])
                *failed += hostile_run(letters[i].types[0], done);
}

static bool read_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.count = 200, .seed = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--hostile") == 0)
            o->hostile = true;
        else if (i + 1 == argc)
            return false;
        else if (strcmp(argv[i], "--count") == 0)
            o->count = atol(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--backend") == 0)
            plugin_now = argv[++i];
        else if (strcmp(argv[i], "--ort") == 0)
            o->ort = argv[++i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o;
    long failed = 0, done = 0;

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr,
                "usage: operators_fuzz [--count N] [--seed S] [--only "
                "OP] [--ort LIBRARY] [--backend PLUGIN] [-v] [--hostile]\n");
        return 2;
    }
    struct progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 2;
    if (o.hostile)
        run_hostile(&o, &failed, &done);
    else
        run_children(&o, p);
    const struct tally total = p->total;
    if (done + failed + total.same + total.differ == 0) {
        fprintf(stderr,
                "operators_fuzz: found no case, expected a --count above "
                "0 and an operator such as Conv\n");
        return 2;
    }
    if (o.hostile) {
        printf("%ld of %ld hostile models failed\n", failed, done + failed);
        return failed != 0;
    }
    printf("%ld cases differ of %ld; compared %ld with plain forms, %ld with "
           "float32, %ld with ONNX Runtime (%ld differ for a known reason); "
           "refused %ld, of which ONNX Runtime runs %ld\n",
           total.differ, total.same + total.differ, total.plain, total.wide,
           total.ort, total.explained, total.refused, total.lacking);
    return total.differ + total.lacking != 0;
}
