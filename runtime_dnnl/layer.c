/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layer.c: creates oneDNN's engine, memory descriptors,
 * attributes, primitives and calls. Error messages describe the requested
 * primitive, since oneDNN's status codes say little. */
#include "core/base/guard.h"
#include "core/base/openmp.h"
#include "runtime_dnnl/layer_dnnl.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static struct byi_dnnl library;
static char version_text[32], compat_text[80];
static enum byoc_status library_status = BYOC_EBACKEND;
static char library_error[200];
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(version_text, sizeof version_text, "%d.%d.%d", v->major, v->minor,
             v->patch);
    snprintf(compat_text, sizeof compat_text, "oneDNN %d.%d %s", v->major,
             v->minor, byi_dnnl_isa());
    if (v->major != DNNL_VERSION_MAJOR) {
        snprintf(library_error, sizeof library_error,
                 "found oneDNN %d.%d.%d, expected %d.x, as at build time",
                 v->major, v->minor, v->patch, DNNL_VERSION_MAJOR);
        return;
    }
    if (dnnl_engine_create(&library.engine, dnnl_cpu, 0) != dnnl_success) {
        snprintf(library_error, sizeof library_error,
                 "oneDNN %d.%d.%d has no CPU engine on this machine", v->major,
                 v->minor, v->patch);
        return;
    }
    library_status = BYOC_OK;
}

const struct byi_dnnl *byi_dnnl_open(struct byoc_error *err)
{
    pthread_once(&library_once, open_library);
    if (library_status == BYOC_OK)
        return &library;
    byi_fail(err, library_status, "%s", library_error);
    return NULL;
}

const char *byi_dnnl_version(void)
{
    return version_text;
}

const char *byi_dnnl_compat(void)
{
    return compat_text;
}

const char *byi_dnnl_isa(void)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_sse41, "sse41"},
        {dnnl_cpu_isa_avx, "avx"},
        {dnnl_cpu_isa_avx2, "avx2"},
        {dnnl_cpu_isa_avx512_core, "avx512_core"},
        {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
        {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
        {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
        {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
#if BYI_V3
        {dnnl_cpu_isa_avx2_vnni_2, "avx2_vnni_2"},
        {dnnl_cpu_isa_avx512_core_fp16, "avx512_core_fp16"},
        {dnnl_cpu_isa_avx512_core_amx_fp16, "avx512_core_amx_fp16"},
#endif
    };
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        if (names[i].isa == isa)
            return names[i].name;
    return "other";
}

int byi_dnnl_major(void)
{
    return DNNL_VERSION_MAJOR;
}

/* --- memory descriptors -------------------------------------------------- */

static dnnl_data_type_t translate_dtype(enum byoc_dtype dtype)
{
    switch (dtype) {
    case BYOC_F32:
    case BYOC_BF16: /* computed on float32 copies: struct byi_narrowing */
    case BYOC_F16:
        return dnnl_f32;
    case BYOC_I32:
        return dnnl_s32;
    case BYOC_I8:
        return dnnl_s8;
    case BYOC_U8:
    case BYOC_BOOL: /* stored as 0 and 1 */
        return dnnl_u8;
    default:
        return dnnl_data_type_undef;
    }
}

bool byi_dnnl_has_dtype(enum byoc_dtype dtype)
{
    return translate_dtype(dtype) != dnnl_data_type_undef;
}

enum byoc_status byi_md_make(const struct byi_desc *requested,
                             enum byi_unit_axes units, struct byi_md *md,
                             struct byoc_error *err)
{
    md->used = false;
    if (requested->kind == BYI_DESC_ABSENT)
        return BYOC_OK;
    if (!byi_dnnl_has_dtype(requested->dtype))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found element type %s, expected one of oneDNN's",
                        byoc_dtype_name(requested->dtype));
    BYI_TRY(byi_fault_status(byi_fault_desc(requested), err));
    const struct byi_desc canonical = byi_desc_canonical(requested, units);
    const struct byi_desc *desc = &canonical;
    const dnnl_data_type_t type = translate_dtype(desc->dtype);
    const int rank = (int)desc->rank;
    dnnl_status_t status;
#if BYI_V3
    status = desc->kind == BYI_DESC_ANY
                 ? dnnl_memory_desc_create_with_tag(&md->md, rank, desc->dims,
                                                    type, dnnl_format_tag_any)
                 : dnnl_memory_desc_create_with_strides(
                       &md->md, rank, desc->dims, type, desc->strides);
#else
    status = desc->kind == BYI_DESC_ANY
                 ? dnnl_memory_desc_init_by_tag(&md->md, rank, desc->dims, type,
                                                dnnl_format_tag_any)
                 : dnnl_memory_desc_init_by_strides(&md->md, rank, desc->dims,
                                                    type, desc->strides);
#endif
    if (status == dnnl_out_of_memory)
        return byi_fail(err, BYOC_ENOMEM, "out of memory in oneDNN");
    if (status != dnnl_success) {
        char text[120];
        return byi_fail(
            err, BYOC_EUNSUPPORTED,
            "oneDNN cannot describe a tensor of shape %s with these strides",
            byi_dims_text(text, sizeof text, desc->rank, desc->dims));
    }
    md->used = true;
    return BYOC_OK;
}

void byi_md_drop(struct byi_md *md)
{
#if BYI_V3
    if (md->used)
        dnnl_memory_desc_destroy(md->md);
#endif
    md->used = false;
}

/* --- attributes ---------------------------------------------------------- */

#if !BYI_V3
#define dnnl_eltwise_hardsigmoid 0 /* exists in 3.x only */
#endif
#define ELT(name, algorithm) [BYI_ELT_##name] = dnnl_eltwise_##algorithm,
#define BIN(name, algorithm) [BYI_BIN_##name] = dnnl_binary_##algorithm,

bool byi_elt_translate(enum byi_elt alg, float *alpha, float *beta,
                       dnnl_alg_kind_t *kind)
{
    static const dnnl_alg_kind_t kinds[] = {BYI_ELTS(ELT)};
#if BYI_V3
    if (alg == BYI_ELT_HARDSWISH) {
        *alpha = 1.0f / 6.0f;
        *beta = 0.5f;
    }
    if (alg == BYI_ELT_SOFTPLUS)
        *alpha = 1.0f;
#else
    (void)alpha;
    (void)beta;
#endif
    *kind = kinds[alg];
    return *kind != 0;
}

void byi_elt_replace_relu(int *alg, float alpha, float *beta)
{
    if (*alg != BYI_ELT_RELU || alpha != 0)
        return;
    *alg = BYI_ELT_CLIP;
    *beta = INFINITY;
}

dnnl_alg_kind_t byi_bin_translate(enum byi_bin alg)
{
    static const dnnl_alg_kind_t kinds[] = {BYI_BINS(BIN)};
    return kinds[alg];
}

static dnnl_status_t append_elt(dnnl_post_ops_t ops, const struct byi_post *p)
{
    float alpha = p->alpha, beta = p->beta;
    dnnl_alg_kind_t kind;
    if (!byi_elt_translate((enum byi_elt)p->alg, &alpha, &beta, &kind))
        return dnnl_unimplemented;
#if BYI_V3
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, alpha, beta);
#endif
}

static dnnl_status_t append_bin(dnnl_post_ops_t ops, const struct byi_post *p,
                                enum byi_unit_axes units)
{
    struct byi_md md;
    if (byi_md_make(&p->desc, units, &md, NULL))
        return dnnl_invalid_arguments;
    const dnnl_status_t status = dnnl_post_ops_append_binary(
        ops, byi_bin_translate((enum byi_bin)p->alg), BYI_MD(&md));
    byi_md_drop(&md);
    return status;
}

/* The slopes lie along the axis that is longer than 1. */
static dnnl_status_t append_prelu(dnnl_post_ops_t ops, const struct byi_post *p,
                                  int64_t *slopes)
{
    int mask = 0;
    for (uint32_t i = 0; i < p->desc.rank; i++)
        mask |= (p->desc.dims[i] != 1) << i;
    *slopes = byi_elements(p->desc.rank, p->desc.dims);
    return dnnl_post_ops_append_prelu(ops, mask);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if BYI_V3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

static enum byoc_status make_attr(const struct byi_posts *posts,
                                  enum byi_unit_axes units,
                                  dnnl_primitive_attr_t *attr, int64_t *slopes,
                                  struct byoc_error *err)
{
    const uint32_t n = posts ? posts->n : 0;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(
            *attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && n)
        status = dnnl_post_ops_create(&ops);
    for (uint32_t i = 0; i < n && status == dnnl_success; i++) {
        const struct byi_post *p = &posts->at[i];
        status = p->kind == BYI_POST_SUM   ? append_sum(ops)
                 : p->kind == BYI_POST_ELT ? append_elt(ops, p)
                 : p->kind == BYI_POST_BIN ? append_bin(ops, p, units)
                                           : append_prelu(ops, p, slopes);
    }
    if (status == dnnl_success && n)
        status = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (status == dnnl_success)
        return BYOC_OK;
    if (status == dnnl_out_of_memory)
        return byi_fail(err, BYOC_ENOMEM, "out of memory in oneDNN");
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "oneDNN %s refuses these %u post-ops (status %d)",
                    byi_dnnl_version(), n, (int)status);
}

/* The post-ops with ReLU replaced, in `copy`. */
static struct byi_posts replace_relus(const struct byi_posts *posts,
                                      struct byi_post copy[BYI_MAX_POSTS])
{
    const uint32_t n = posts ? posts->n : 0;
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = posts->at[i];
        if (copy[i].kind == BYI_POST_ELT)
            byi_elt_replace_relu(&copy[i].alg, copy[i].alpha, &copy[i].beta);
    }
    return (struct byi_posts){n, copy};
}

enum byoc_status byi_pieces_make(struct byi_pieces *pieces, uint32_t n,
                                 const struct byi_desc *const *desc,
                                 const struct byi_posts *requested,
                                 enum byi_unit_axes units,
                                 struct byoc_error *err)
{
    struct byi_post copy[BYI_MAX_POSTS];
    const struct byi_posts replaced = replace_relus(requested, copy);
    const struct byi_posts *posts = &replaced;
    *pieces = (struct byi_pieces){.n = n};
    enum byoc_status status =
        byi_narrowing_read(n, desc, posts, &pieces->narrow, err);
    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        status = byi_md_make(desc[i], units, &pieces->md[i], err);
        pieces->elements = byi_max(pieces->elements,
                                   byi_elements(desc[i]->rank, desc[i]->dims));
    }
    if (status == BYOC_OK)
        status =
            byi_fault_status(byi_fault_posts(DNNL_VERSION_MAJOR, posts), err);
    if (status == BYOC_OK)
        status = make_attr(posts, units, &pieces->attr, &pieces->slopes, err);
    if (status != BYOC_OK)
        byi_pieces_drop(pieces);
    return status;
}

void byi_pieces_drop(struct byi_pieces *pieces)
{
    for (uint32_t i = 0; i < pieces->n; i++)
        byi_md_drop(&pieces->md[i]);
    if (pieces->attr)
        dnnl_primitive_attr_destroy(pieces->attr);
    pieces->attr = NULL;
}

/* --- primitives ---------------------------------------------------------- */

enum byoc_status byi_fault_status(const char *why, struct byoc_error *err)
{
    return why ? byi_fail(err, BYOC_EUNSUPPORTED, "%s", why) : BYOC_OK;
}

#if !BYI_V3
dnnl_status_t byi_pd_make(dnnl_status_t status, const void *op,
                          const struct byi_pieces *pieces,
                          const struct byi_dnnl *lib, dnnl_primitive_desc_t *pd)
{
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(pd, op, pieces->attr, lib->engine, NULL);
}
#endif

/* Whether the primitive should run on the calling thread only, since it does so
 * little that starting a second thread would cost more. oneDNN's own kernels
 * start all threads for any number of elements. They divide the work by the
 * number of threads that they get, and have no barriers. */
static bool runs_alone(dnnl_primitive_desc_t pd, int64_t elements)
{
    enum { MIN_ELEMENTS = 4096 };
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind);
    switch ((int)kind) {
    case dnnl_eltwise:
    case dnnl_binary:
    case dnnl_prelu:
    case dnnl_reorder:
    case dnnl_concat:
    case dnnl_layer_normalization:
        return elements <= MIN_ELEMENTS;
    default:
        return false;
    }
}

static void free_prim(void *data)
{
    struct byi_prim *prim = data;
    byi_prim_unbuild(prim);
    if (prim->pd)
        dnnl_primitive_desc_destroy(prim->pd);
    byi_release(prim->fast);
    byi_vec_free(prim);
}

enum byoc_status byi_prim_wrap(dnnl_status_t status, dnnl_primitive_desc_t pd,
                               struct byi_pieces *pieces, const char *what,
                               struct byi_prim **prim, struct byoc_error *err)
{
    byi_pieces_drop(pieces);
    if (status == dnnl_out_of_memory)
        return byi_fail(err, BYOC_ENOMEM, "out of memory in oneDNN");
    if (status != dnnl_success)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "oneDNN %s has no implementation of this %s",
                        byi_dnnl_version(), what);
    struct byi_prim *p = byi_own_try(1, sizeof *p, free_prim);
    if (!p) {
        dnnl_primitive_desc_destroy(pd);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a primitive");
    }
    p->pd = pd;
    p->slopes = pieces->slopes;
    p->alone = runs_alone(pd, pieces->elements);
    p->narrow = pieces->narrow;
    p->copies = byi_narrow_bytes(p);
    p->impl = "unknown";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0,
                              (void *)&p->impl);
    *prim = p;
    return BYOC_OK;
}

enum byoc_status byi_prim_wrap_fast(const struct byi_dn_fast *fast,
                                    struct byi_prim **prim,
                                    struct byoc_error *err)
{
    struct byi_dn_fast *copy = byi_alloc(1, sizeof *copy);
    struct byi_prim *p = copy ? byi_own_try(1, sizeof *p, free_prim) : NULL;
    if (!p) {
        byi_release(copy);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a primitive");
    }
    *copy = *fast;
    p->fast = copy;
    p->impl = byi_dn_fast_impl(fast);
    *prim = p;
    return BYOC_OK;
}

struct byi_prim *byi_prim_ref(struct byi_prim *prim)
{
    atomic_fetch_add(&prim->users, 1);
    return prim;
}

void byi_prim_free(struct byi_prim **prim)
{
    struct byi_prim *p = *prim;
    *prim = NULL;
    if (p && atomic_fetch_sub(&p->users, 1) == 0)
        free_prim(p);
}

void byi_prim_note(struct byi_prim *prim, const void *note)
{
    prim->note = note;
}

const void *byi_prim_noted(const struct byi_prim *prim)
{
    return prim->note;
}

const char *byi_prim_impl(const struct byi_prim *prim)
{
    return prim->impl;
}

bool byi_prim_is_ref(const struct byi_prim *prim)
{
    return strstr(prim->impl, "ref") != NULL;
}

enum byoc_status byi_prim_check(struct byi_prim **prim, const char *what,
                                int64_t terms, struct byoc_error *err)
{
    if (!byi_prim_is_ref(*prim) || terms <= BYI_REF_TERMS)
        return BYOC_OK;
    const enum byoc_status status =
        byi_fail(err, BYOC_EUNSUPPORTED,
                 "%s: oneDNN has only the reference implementation %s here",
                 what, byi_prim_impl(*prim));
    byi_prim_free(prim);
    return status;
}

/* Bytes of oneDNN's scratchpad, rounded up to whole cache lines. */
static uint64_t scratchpad(const struct byi_prim *prim)
{
    BYI_MD_PTR md =
        dnnl_primitive_desc_query_md(prim->pd, dnnl_query_scratchpad_md, 0);
    return md ? byi_align_bytes(dnnl_memory_desc_get_size(md)) : 0;
}

uint64_t byi_prim_scratch(const struct byi_prim *prim)
{
    if (prim->fast)
        return byi_dn_fast_scratch(prim->fast);
    return prim->copies + scratchpad(prim);
}

uint64_t byi_prim_bytes(const struct byi_prim *prim, int arg)
{
    if (prim->fast)
        return byi_dn_fast_packed(prim->fast, arg);
    BYI_MD_PTR md = byi_prim_query(prim, arg);
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

bool byi_prim_needs(const struct byi_prim *prim, int arg,
                    const struct byi_desc *desc)
{
    struct byi_md md;
    if (prim->fast)
        return byi_dn_fast_needs(prim->fast, arg, desc);
    if (byi_dtype_is_half(desc->dtype) && !byi_prim_is_narrow(prim, arg))
        return false;
    if (byi_md_make(desc, BYI_UNITS_PLAIN, &md, NULL))
        return false;
    BYI_MD_PTR layout = byi_prim_query(prim, arg);
    const bool matches = layout && dnnl_memory_desc_equal(BYI_MD(&md), layout);
    byi_md_drop(&md);
    return matches;
}

bool byi_prim_same(const struct byi_prim *a, int arg_a,
                   const struct byi_prim *b, int arg_b)
{
    if (a->fast || b->fast)
        return a->fast && b->fast &&
               byi_dn_fast_same(a->fast, arg_a, b->fast, arg_b);
    BYI_MD_PTR ma = byi_prim_query(a, arg_a);
    BYI_MD_PTR mb = byi_prim_query(b, arg_b);
    return ma && mb && dnnl_memory_desc_equal(ma, mb);
}

enum byoc_status byi_pack_new(const struct byi_dnnl *lib,
                              const struct byi_desc *src,
                              const struct byi_prim *prim, int arg,
                              struct byi_prim **reorder, struct byoc_error *err)
{
    if (prim->fast) {
        struct byi_dn_fast pack;
        byi_dn_fast_pack(prim->fast, arg, src, &pack);
        return byi_prim_wrap_fast(&pack, reorder, err);
    }
    struct byi_pieces pieces;
    BYI_TRY(byi_pieces_make(&pieces, 1, &src, NULL, BYI_UNITS_PLAIN, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &pd, BYI_MD(&pieces.md[0]), lib->engine, byi_prim_query(prim, arg),
        lib->engine, pieces.attr);
    pieces.narrow.wide = BYI_ARG_DST;
    return byi_prim_wrap(status, pd, &pieces, "reorder of weights", reorder,
                         err);
}

/* --- calls --------------------------------------------------------------- */

/* A primitive with the addresses of its arguments, for one step. */
struct byi_bound_call {
    /* if not NULL, it runs the call, and only slots, scratch and n are used */
    const struct byi_dn_fast *fast;
    struct byi_dn_fast_slot *slots;
    void *scratch;
    dnnl_primitive_t prim;
    dnnl_stream_t stream;
    bool alone;                     /* as in struct byi_prim */
    uint32_t n;                     /* number of slots, without the
                                     * scratchpad's, which comes last */
    struct byi_narrow_copy *copies; /* float32 copies of the narrow slots */
    uint32_t n_copies;
    uint32_t n_args;
    dnnl_exec_arg_t args[];
};

static enum byoc_status add_memory(const struct byi_dnnl *lib,
                                   struct byi_bound_call *call, BYI_MD_PTR md,
                                   int arg, void *data, struct byoc_error *err)
{
    dnnl_exec_arg_t *slot = &call->args[call->n_args];
    slot->arg = arg;
    const dnnl_status_t status =
        md ? dnnl_memory_create(&slot->memory, md, lib->engine,
                                data ? data : DNNL_MEMORY_NONE)
           : dnnl_invalid_arguments;
    if (status != dnnl_success)
        return byi_fail(
            err, status == dnnl_out_of_memory ? BYOC_ENOMEM : BYOC_EINTERNAL,
            "oneDNN refused memory for argument %d (status %d)", arg,
            (int)status);
    call->n_args++;
    return BYOC_OK;
}

/* Create an argument's memory object, as the primitive describes it. */
static enum byoc_status add_argument(const struct byi_dnnl *lib,
                                     struct byi_bound_call *call,
                                     const struct byi_prim *prim, int arg,
                                     void *data, struct byoc_error *err)
{
    if (arg < BYI_ARG_SLOPE || arg >= BYI_ARG_MULTI)
        return add_memory(lib, call, byi_prim_query(prim, arg),
                          byi_prim_arg(arg), data, err);
    const struct byi_desc slopes = {.kind = BYI_DESC_STRIDED,
                                    .dtype = BYOC_F32,
                                    .rank = 1,
                                    .dims = {prim->slopes},
                                    .strides = {1}};
    struct byi_md md;
    BYI_TRY(byi_md_make(&slopes, BYI_UNITS_PLAIN, &md, err));
    const enum byoc_status status =
        add_memory(lib, call, BYI_MD(&md), byi_prim_arg(arg), data, err);
    byi_md_drop(&md);
    return status;
}

static enum byoc_status bind_fast(const struct byi_prim *prim, uint32_t n,
                                  const int *args, void *const *data,
                                  void *scratch, struct byi_bound_call **call,
                                  struct byoc_error *err)
{
    struct byi_bound_call *c = byi_alloc(1, sizeof *c);
    if (!c || !(c->slots = byi_alloc(n, sizeof *c->slots))) {
        byi_release(c);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a call");
    }
    c->fast = prim->fast;
    c->scratch = scratch;
    c->n = n;
    for (uint32_t i = 0; i < n; i++)
        c->slots[i] = (struct byi_dn_fast_slot){args[i], data[i]};
    *call = c;
    return BYOC_OK;
}

enum byoc_status byi_bound_new(const struct byi_dnnl *lib,
                               const struct byi_prim *prim, uint32_t n,
                               const int *args, void *const *data,
                               void *scratch, struct byi_bound_call **call,
                               struct byoc_error *err)
{
    if (prim->fast)
        return bind_fast(prim, n, args, data, scratch, call, err);
    struct byi_bound_call *c =
        byi_alloc(1, sizeof *c + (n + 1) * sizeof c->args[0]);
    if (!c || dnnl_stream_create(&c->stream, lib->engine,
                                 dnnl_stream_default_flags) != dnnl_success) {
        byi_release(c);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a call");
    }
    c->prim = prim->prim;
    c->alone = prim->alone;
    c->n = n;
    enum byoc_status status = BYOC_OK;
    char *copies = (char *)scratch + scratchpad(prim);
    status = byi_narrow_copies(prim, n, args, data, copies, &c->copies,
                               &c->n_copies, err);
    for (uint32_t i = 0, k = 0; i < n && status == BYOC_OK; i++) {
        void *at = data[i];
        if (byi_prim_is_narrow(prim, args[i]))
            at = c->copies[k++].copy;
        status = add_argument(lib, c, prim, args[i], at, err);
    }
    if (status == BYOC_OK && scratchpad(prim))
        status = add_memory(
            lib, c,
            dnnl_primitive_desc_query_md(prim->pd, dnnl_query_scratchpad_md, 0),
            DNNL_ARG_SCRATCHPAD, scratch, err);
    if (status != BYOC_OK)
        byi_bound_free(&c);
    else
        *call = c;
    return status;
}

void byi_bound_set(struct byi_bound_call *call, uint32_t slot, void *data)
{
    assert(slot < call->n);
    if (call->fast) {
        call->slots[slot].data = data;
        return;
    }
    for (uint32_t i = 0; i < call->n_copies; i++)
        if (call->copies[i].slot == slot) {
            call->copies[i].data = data;
            return;
        }
    dnnl_memory_set_data_handle(call->args[slot].memory, data);
}

static void run_in_order(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg)
{
    (void)ctx;
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
}

static dnnl_status_t execute(const struct byi_bound_call *call)
{
    static const struct byi_omp_host single = {.parallel_for = run_in_order,
                                               .threads = 1};
    const struct byi_omp_host *host = call->alone ? byi_omp_use(&single) : NULL;
    const dnnl_status_t status = dnnl_primitive_execute(
        call->prim, call->stream, (int)call->n_args, call->args);
    if (status == dnnl_success)
        dnnl_stream_wait(call->stream);
    if (call->alone)
        byi_omp_use(host);
    return status;
}

enum byoc_status byi_bound_run(const struct byi_bound_call *call,
                               struct byoc_error *err)
{
    if (call->fast) {
        byi_dn_fast_run(call->fast, call->n, call->slots, call->scratch);
        return BYOC_OK;
    }
    byi_narrow_begin(call->copies, call->n_copies);
    const dnnl_status_t status = execute(call);
    if (status != dnnl_success)
        return byi_fail(
            err, status == dnnl_out_of_memory ? BYOC_ENOMEM : BYOC_EBACKEND,
            "oneDNN failed to run a primitive (status %d)", (int)status);
    byi_narrow_end(call->copies, call->n_copies);
    return BYOC_OK;
}

/* The steps that run together in bands. */
struct byi_bands {
    struct byi_f32_bands bands;
    int threads; /* threads that a run may use */
};

struct byi_bands *byi_bands_new(struct byi_arena *arena,
                                struct byi_prim *const *prims, uint32_t n)
{
    const struct byi_dn_fast *fast[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_bands bands;
    for (uint32_t i = 0; i < n && i < BYI_F32_MAX_BAND_CONVS; i++)
        fast[i] = prims[i]->fast;
    if (!byi_dn_fast_bands(n, fast, &bands))
        return NULL;
    struct byi_bands *b = byi_arena_alloc(arena, sizeof *b);
    *b = (struct byi_bands){.bands = bands, .threads = fast[0]->threads};
    return b;
}

uint64_t byi_bands_scratch(const struct byi_bands *bands)
{
    return byi_f32_bands_scratch(&bands->bands, bands->threads);
}

const char *byi_bands_impl(const struct byi_bands *bands)
{
    return bands->bands.convs[0]->kernels->bands_name;
}

void byi_bands_run(const struct byi_bands *bands,
                   struct byi_bound_call *const *calls)
{
    struct byi_f32_conv_run runs[BYI_F32_MAX_BAND_CONVS];
    const int team = omp_get_max_threads();
    for (uint32_t i = 0; i < bands->bands.n; i++)
        byi_dn_fast_fill(calls[i]->fast, calls[i]->n, calls[i]->slots,
                         &runs[i]);
    byi_f32_bands_run(&bands->bands, runs, calls[0]->scratch,
                      team < bands->threads ? team : bands->threads);
}

void byi_bound_free(struct byi_bound_call **call)
{
    struct byi_bound_call *c = *call;
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_args; i++)
        dnnl_memory_destroy(c->args[i].memory);
    if (c->stream)
        dnnl_stream_destroy(c->stream);
    byi_release(c->slots);
    byi_release(c->copies);
    byi_release(c);
    *call = NULL;
}
