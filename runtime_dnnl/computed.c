/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/computed.c: computes constants at load: packed weights, copies
 * in another layout, and the few constants that builders introduce. For regions
 * from JSON and from C alike, structs of operators.h describe them. */
#include "core/base/row_codes.h"
#include "runtime_dnnl/build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- memory of constants -------------------------------------------------- */

static enum byoc_status allocate_computed(struct byi_program *p,
                                          struct byi_computed_const *computed,
                                          bool brief, struct byoc_error *err)
{
    computed->data =
        byi_dn_computed_alloc(p, computed->bytes + BYI_DNNL_SLACK, brief);
    if (computed->data)
        return BYOC_OK;
    return byi_fail(err, BYOC_ENOMEM,
                    "out of memory for a constant of %llu bytes",
                    (unsigned long long)computed->bytes);
}

/* Append a constant of `bytes` bytes. If `allocates`, allocate its memory and
 * set *data to it, otherwise set *data to NULL. The constant is appended before
 * its memory is allocated, so that the program frees it after a failure. */
static enum byoc_status add_computed(struct byi_program *p, uint64_t bytes,
                                     bool allocates, void **data,
                                     struct byoc_error *err)
{
    struct byi_computed_const constant = {.bytes = bytes};
    BYI_PUSH(&p->computed, constant);
    struct byi_computed_const *computed = &p->computed.at[p->computed.n - 1];
    if (allocates)
        BYI_TRY(allocate_computed(p, computed, false, err));
    *data = computed->data;
    return BYOC_OK;
}

void byi_dn_drop_computed(struct byi_program *program, uint32_t computed)
{
    struct byi_computed_const *m = &program->computed.at[computed];
    if (m->shared) /* kept: its address identifies constants made from it */
        return;
    for (uint32_t i = 0; i < program->computed.n; i++)
        if (i != computed && m->data && program->computed.at[i].data == m->data)
            return; /* kept: another constant uses its memory */
    if (!m->borrowed)
        byi_dn_computed_free(program->host, m->data);
    m->data = NULL;
}

/* Set *data to the address of `bytes` bytes at a place in a constant. */
static enum byoc_status read_place(struct byi_program *p,
                                   const struct byi_place *at, uint64_t bytes,
                                   const void **data, struct byoc_error *err)
{
    const void *from = NULL;
    uint64_t size = 0;
    if (at->kind == BYI_BUF_CONST && at->index < p->n_consts) {
        from = byi_dn_const(p, at->index);
        size = p->consts[at->index].bytes;
    } else if (at->kind == BYI_BUF_COMPUTED && at->index < p->computed.n) {
        from = p->computed.at[at->index].data;
        size = p->computed.at[at->index].bytes;
    }
    if (at->offset > size || bytes > size - at->offset)
        return byi_fail(
            err, BYOC_EINVAL,
            "constant %u has %llu bytes, expected %llu from byte %llu on",
            at->index, (unsigned long long)size, (unsigned long long)bytes,
            (unsigned long long)at->offset);
    *data = from ? (const char *)from + at->offset : NULL;
    return BYOC_OK;
}

/* Record how the last n constants were made, if the program is to be written.
 */
static enum byoc_status note_creation(struct byi_program *p,
                                      const char *function, const void *params,
                                      size_t size, uint32_t n)
{
    if (p->purpose != BYI_TO_WRITE)
        return BYOC_OK;
    const struct byi_creation creation = {
        .function = function,
        .params = byi_arena_copy(p->arena, params, size),
        .computed = p->computed.n - n,
        .n_computed = n};
    BYI_PUSH(&p->creations, creation);
    return BYOC_OK;
}

/* --- other layouts -------------------------------------------------------- */

/* Bytes from the first element to the end of the last one. */
static uint64_t span_of(const struct byi_desc *desc)
{
    return (uint64_t)byi_desc_span(desc) * byoc_dtype_size(desc->dtype);
}

/* Run a reorder once. */
static enum byoc_status run_now(const struct byi_program *p,
                                struct byi_prim *prim, const void *src,
                                void *dst, struct byoc_error *err)
{
    const struct byoc_host *host = p->host;
    const int args[] = {BYI_ARG_SRC, BYI_ARG_DST};
    void *data[] = {(void *)(uintptr_t)src, dst};
    const uint64_t bytes = byi_prim_scratch(prim);
    void *scratch = bytes ? host->acquire(host->ctx, bytes) : NULL;
    struct byi_bound_call *call = NULL;
    enum byoc_status status = byi_prim_build(prim, err);
    if (status == BYOC_OK && bytes && !scratch)
        status =
            byi_fail(err, BYOC_ENOMEM,
                     "out of memory for the scratch of a reorder, %llu bytes",
                     (unsigned long long)bytes);
    if (status == BYOC_OK)
        status =
            byi_bound_new(p->lib, prim, 2, args, data, scratch, &call, err);
    if (status == BYOC_OK)
        status = byi_bound_run(call, err);
    byi_bound_free(&call);
    host->release(host->ctx, scratch);
    return status;
}

/* Whether the address identifies the data as long as the program exists. That
 * is so for the artifact's constants, and for shared ones, to which the program
 * has a reference, but not for memory that the program owns. */
static bool address_identifies(const struct byi_program *p,
                               const struct byi_place *at)
{
    return at->kind == BYI_BUF_CONST || p->computed.at[at->index].shared;
}

/* Append a reordered constant, or share the result of another program of the
 * host. Takes ownership of the primitive if the result becomes shared. */
static enum byoc_status reorder_now(struct byi_program *p,
                                    struct byi_prim **reorder,
                                    const struct byi_place *from,
                                    const void *src, uint64_t bytes,
                                    struct byoc_error *err)
{
    const bool shareable = address_identifies(p, from);
    void *data;
    BYI_TRY(add_computed(p, bytes, false, &data, err));
    struct byi_computed_const *computed = &p->computed.at[p->computed.n - 1];
    if (shareable)
        computed->shared = byi_dn_share_find(p->host, src, *reorder);
    if (computed->shared) {
        computed->data = byi_dn_shared_data(computed->shared);
        return BYOC_OK;
    }
    BYI_TRY(allocate_computed(p, computed, false, err));
    data = computed->data;
    BYI_TRY(run_now(p, *reorder, src, data, err));
    if (shareable)
        computed->shared = byi_dn_share(p->host, src, reorder, data);
    if (computed->shared)
        computed->data = byi_dn_shared_data(computed->shared);
    return BYOC_OK;
}

/* Append the result of a reorder as a constant. Frees the primitive. */
static enum byoc_status add_reordered(struct byi_program *p,
                                      struct byi_prim **reorder,
                                      const struct byi_place *from,
                                      const void *src, uint64_t bytes,
                                      struct byoc_error *err)
{
    void *unused;
    const enum byoc_status status =
        p->purpose == BYI_TO_RUN
            ? reorder_now(p, reorder, from, src, bytes, err)
            : add_computed(p, bytes, false, &unused, err);
    byi_prim_free(reorder);
    return status;
}

enum byoc_status byi_dn_make_pack(struct byi_program *program,
                                  const struct byi_pack *p,
                                  const struct byi_prim *prim,
                                  struct byoc_error *err)
{
    const void *src;
    BYI_TRY(read_place(program, &p->from, span_of(&p->src), &src, err));
    if (byi_prim_needs(prim, p->arg, &p->src)) {
        const struct byi_computed_const borrowed = {.data =
                                                        (void *)(uintptr_t)src,
                                                    .bytes = span_of(&p->src),
                                                    .borrowed = true};
        BYI_PUSH(&program->computed, borrowed);
    } else {
        struct byi_prim *reorder = NULL;
        BYI_TRY(
            byi_pack_new(program->lib, &p->src, prim, p->arg, &reorder, err));
        BYI_TRY(add_reordered(program, &reorder, &p->from, src,
                              byi_prim_bytes(prim, p->arg), err));
    }
    return note_creation(program, "pack", p, sizeof *p, 1);
}

enum byoc_status byi_dn_make_copy(struct byi_program *program,
                                  const struct byi_copy *p,
                                  struct byoc_error *err)
{
    const void *src;
    const struct byi_dnnl_reorder r = {.src = p->src, .dst = p->dst};
    const int64_t n = byi_elements(p->dst.rank, p->dst.dims);
    struct byi_prim *prim = NULL;
    BYI_TRY(read_place(program, &p->from, span_of(&p->src), &src, err));
    BYI_TRY(byi_prim_new_reorder(program->lib, &r, NULL, &prim, err));
    BYI_TRY(byi_prim_check(&prim, "reorder", n, err));
    BYI_TRY(
        add_reordered(program, &prim, &p->from, src, span_of(&p->dst), err));
    return note_creation(program, "copy", p, sizeof *p, 1);
}

/* --- numbers -------------------------------------------------------------- */

enum byoc_status byi_dn_make_fill(struct byi_program *program,
                                  const struct byi_fill *p,
                                  struct byoc_error *err)
{
    void *data;
    BYI_TRY(add_computed(program, (uint64_t)p->n * sizeof(float),
                         program->purpose == BYI_TO_RUN, &data, err));
    float *to = data;
    for (int64_t i = 0; to && i < p->n; i++)
        to[i] = p->value;
    return note_creation(program, "fill", p, sizeof *p, 1);
}

/* A sum and a bias of at most this size together fit in int32. */
#define MAX_SUM (INT32_MAX / 2)
/* Largest rounding error of a bias, in units of the result. */
#define TOLERANCE (1.0 / 64)

/* The weights of a product: int8 codes if `codes` is not NULL, otherwise
 * floats. */
struct product_weights {
    const float *floats;
    const struct byoc_codes *codes;
};

/* The three constants into which weights are split. */
struct split_weights {
    int8_t *integers;
    float *scale;
    int32_t *bias;
    int16_t *row; /* scratch */
};

/* Compute the scale and bias of row r, whose weights are integers times `step`;
 * `size` is the sum of the integers' absolute values. False if the bias or the
 * sums are too large or too inexact for integers. */
static bool scale_row(const struct byi_integers *p, int64_t r, float step,
                      int64_t size, const float *bias,
                      const struct split_weights *to)
{
    const double unit = (double)(float)((double)step * (double)p->scale);
    /* of a unit, in units of the result */
    const double quotient = p->result != 0 ? unit / (double)p->result : unit;
    const double bias_units =
        bias ? (double)bias[p->n_bias == 1 ? 0 : r] / unit : 0;
    to->scale[r] = (float)(p->posts ? unit : quotient);
    if (size * UINT8_MAX > MAX_SUM || !(fabs(bias_units) < MAX_SUM) ||
        fabs(bias_units - rint(bias_units)) * quotient > TOLERANCE)
        return false;
    to->bias[r] = (int32_t)rint(bias_units);
    return true;
}

/* Find the integers of row r and their scale; false if the row is not int8
 * times a scale. */
static bool find_row(const struct byi_integers *p, int64_t r,
                     const float *floats, float *step,
                     const struct split_weights *to)
{
    const int64_t k = p->columns;
    int8_t *integers = to->integers + r * k;
    int low = 0, high = 0;
    if (!byi_find_scale(floats + (p->transposed ? r : r * k), k,
                        p->transposed ? p->rows : 1, *step, true, step,
                        to->row))
        return false;
    for (int64_t i = 0; i < k; i++) {
        const int v = to->row[i];
        low = v < low ? v : low;
        high = v > high ? v : high;
        integers[i] = (int8_t)v;
    }
    return low >= INT8_MIN && high <= INT8_MAX;
}

/* Set *step to the scale of row r, and copy the row's codes, unless the codes
 * themselves are the constant. */
static void copy_row(const struct byi_integers *p, int64_t r,
                     const struct byoc_codes *codes, float *step,
                     const struct split_weights *to)
{
    *step = codes->scales[r];
    for (int64_t i = 0; p->transposed && i < p->columns; i++)
        to->integers[r * p->columns + i] = codes->at[i * p->rows + r];
}

/* An upper limit of the sum of the magnitudes of n integers. Reading them takes
 * a quarter of a model's load, so it is done for long rows only. */
static int64_t max_magnitude(const int8_t *integers, int64_t n)
{
    int64_t sum = 0;
    if (n <= MAX_SUM / UINT8_MAX / -INT8_MIN)
        return n * -INT8_MIN;
    for (int64_t i = 0; i < n; i++)
        sum += abs(integers[i]);
    return sum;
}

/* Compute all rows of the three constants; false if a row cannot be split. */
static bool split(const struct byi_integers *p, const struct product_weights *w,
                  const float *bias, const struct split_weights *to)
{
    const int64_t k = p->columns;
    float step = 1;
    for (int64_t r = 0; r < p->rows; r++) {
        if (w->codes)
            copy_row(p, r, w->codes, &step, to);
        else if (!find_row(p, r, w->floats, &step, to))
            return false;
        if (!scale_row(p, r, step, max_magnitude(to->integers + r * k, k), bias,
                       to))
            return false;
    }
    return true;
}

static enum byoc_status split_into(const struct byi_integers *p,
                                   const struct product_weights *w,
                                   const float *bias, void *const data[3],
                                   struct byoc_error *err)
{
    const struct split_weights to = {
        .integers = data[0],
        .scale = data[1],
        .bias = data[2],
        .row = byi_alloc((size_t)p->columns, sizeof(int16_t))};
    const bool is_split = to.row && split(p, w, bias, &to);
    byi_release(to.row);
    if (!to.row)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a row of weights");
    return is_split ? BYOC_OK
                    : byi_fail(err, BYOC_EUNSUPPORTED,
                               "found weights that are not int8 numbers times "
                               "a scale per row, expected dequantised weights");
}

/* The codes of the weights, if the constant is stored as codes of these rows,
 * otherwise NULL. */
static const struct byoc_codes *find_codes(const struct byi_program *program,
                                           const struct byi_integers *p)
{
    const struct byi_place *from = &p->from;
    if (!program->codes || from->kind != BYI_BUF_CONST || from->offset != 0 ||
        from->index >= program->n_consts ||
        program->consts[from->index].bytes !=
            (uint64_t)(p->rows * p->columns) * sizeof(float))
        return NULL;
    const struct byoc_codes *codes = &program->codes->at[from->index];
    return codes->at && codes->rows == (uint64_t)p->rows &&
                   (codes->transposed != 0) == p->transposed
               ? codes
               : NULL;
}

/* Append the constant for the integers, which is the codes themselves if they
 * are stored row by row. The integers are packed next, and then dropped. */
static enum byoc_status add_integers(struct byi_program *program,
                                     const struct byi_integers *p,
                                     const struct byoc_codes *codes,
                                     void **data, struct byoc_error *err)
{
    BYI_TRY(add_computed(program, (uint64_t)(p->rows * p->columns), false, data,
                         err));
    struct byi_computed_const *computed =
        &program->computed.at[program->computed.n - 1];
    if (codes && !p->transposed) {
        computed->data = (void *)(uintptr_t)codes->at;
        computed->borrowed = true;
    }
    const enum byoc_status status =
        computed->data ? BYOC_OK
                       : allocate_computed(program, computed, true, err);
    *data = computed->data;
    return status;
}

/* Computes the data even if the program is not BYI_TO_RUN, since the result
 * depends on the data. */
enum byoc_status byi_dn_make_integers(struct byi_program *program,
                                      const struct byi_integers *p,
                                      struct byoc_error *err)
{
    const uint64_t n = (uint64_t)(p->rows * p->columns);
    const uint32_t first = program->computed.n;
    const struct byoc_codes *codes = find_codes(program, p);
    const void *floats = NULL, *bias = NULL;
    void *data[3];
    if (!codes)
        BYI_TRY(read_place(program, &p->from, n * sizeof(float), &floats, err));
    if (p->n_bias)
        BYI_TRY(read_place(program, &p->bias,
                           (uint64_t)p->n_bias * sizeof(float), &bias, err));
    enum byoc_status status = add_integers(program, p, codes, &data[0], err);
    for (uint32_t i = 1; i < 3 && status == BYOC_OK; i++)
        status = add_computed(program, (uint64_t)p->rows * sizeof(float), true,
                              &data[i], err);
    const struct product_weights w = {floats, codes};
    if (status == BYOC_OK)
        status = split_into(p, &w, bias, data, err);
    if (status == BYOC_OK)
        return note_creation(program, "integers", p, sizeof *p, 3);
    while (program->computed.n > first) {
        byi_dn_drop_computed(program, program->computed.n - 1);
        program->computed.n--;
    }
    return status;
}

/* Write the elements of p->src as bytes. The dims are counted up as an odometer
 * does. */
static void write_bytes(const struct byi_bytes *p, const float *from,
                        uint8_t *to)
{
    const uint32_t last = p->src.rank - 1;
    const int64_t n = p->src.dims[last], stride = p->src.strides[last];
    const int64_t rows = byi_elements(last, p->src.dims);
    int64_t at[BYI_MAX_RANK] = {0};
    for (int64_t r = 0; r < rows; r++) {
        const float *row = from;
        for (uint32_t i = 0; i < last; i++)
            row += at[i] * p->src.strides[i];
        for (int64_t i = 0; i < n; i++)
            *to++ = (uint8_t)(lrintf(row[i * stride] / p->scale) + p->zero);
        for (uint32_t i = last; i-- > 0 && ++at[i] == p->src.dims[i];)
            at[i] = 0;
    }
}

enum byoc_status byi_dn_make_bytes(struct byi_program *program,
                                   const struct byi_bytes *p,
                                   struct byoc_error *err)
{
    const int64_t n = byi_elements(p->src.rank, p->src.dims);
    const bool computes = program->purpose == BYI_TO_RUN;
    const void *from;
    void *data;
    BYI_TRY(read_place(program, &p->from, span_of(&p->src), &from, err));
    BYI_TRY(add_computed(program, (uint64_t)n, computes, &data, err));
    if (data)
        write_bytes(p, from, data);
    return note_creation(program, "bytes", p, sizeof *p, 1);
}

/* --- recurrent layers ----------------------------------------------------- */

enum byoc_status byi_dn_make_gate_weights(struct byi_program *program,
                                          const struct byi_gates *p,
                                          struct byoc_error *err)
{
    const uint32_t n = p->directions * p->gates;
    const size_t size = (size_t)p->size;
    const void *from;
    void *data;
    BYI_TRY(
        read_place(program, &p->from, n * size * sizeof(float), &from, err));
    BYI_TRY(add_computed(program, n * size * sizeof(float),
                         program->purpose == BYI_TO_RUN, &data, err));
    float *to = data;
    for (uint32_t i = 0; to && i < n; i++) {
        const uint32_t gate = i % p->gates;
        memcpy(to + i * size,
               (const float *)from + (i - gate + p->order[gate]) * size,
               size * sizeof *to);
    }
    return note_creation(program, "gate_weights", p, sizeof *p, 1);
}

enum byoc_status byi_dn_make_gate_biases(struct byi_program *program,
                                         const struct byi_gates *p,
                                         struct byoc_error *err)
{
    const uint32_t n_biases = p->gates + p->last_separate, last = p->gates - 1;
    const size_t size = (size_t)p->size, rows = p->gates * size;
    const void *from = NULL;
    void *data;
    if (!p->no_bias)
        BYI_TRY(read_place(program, &p->from,
                           2 * p->directions * rows * sizeof(float), &from,
                           err));
    BYI_TRY(add_computed(program,
                         p->directions * n_biases * size * sizeof(float),
                         program->purpose == BYI_TO_RUN, &data, err));
    float *to = data;
    if (to)
        memset(to, 0, p->directions * n_biases * size * sizeof *to);
    for (uint32_t i = 0; to && from && i < p->directions * n_biases; i++) {
        const uint32_t gate = i % n_biases;
        const bool is_separate = p->last_separate && gate >= last;
        const size_t row = (gate > last ? last : p->order[gate]) * size;
        const float *of_x = (const float *)from + i / n_biases * 2 * rows + row;
        const float *of_h = of_x + rows;
        for (size_t k = 0; k < size; k++)
            to[i * size + k] = !is_separate   ? of_x[k] + of_h[k]
                               : gate == last ? of_x[k]
                                              : of_h[k];
    }
    return note_creation(program, "gate_biases", p, sizeof *p, 1);
}
