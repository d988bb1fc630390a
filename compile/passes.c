/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c: the table of all passes, and the list that a compile runs. */
#include "passes.h"

#include "partition/partition.h"
#include "runtime/internal.h"
#include "transform/transform.h"
#include "transform/user_pass.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct byi_pass canonicalize = {
    .name = "Canonicalize",
    .summary = "bring operators to canonical forms: the first passes of a compile",
    .sequence = (const struct byi_pass *const[]){
        &byi_pass_fold_code_blocks, /* before FoldConstant dequantises weights */
        &byi_pass_fold_constant,      /* shapes and weights from exporters */
        /* constants on the right; relu, clip, mean */
        &byi_pass_canonicalize_ops,
        &byi_pass_simplify_expr,      /* remove operators without effect */
        &byi_pass_eliminate_common_subexpr, /* exporters repeat shape computations */
        &byi_pass_recompose,          /* layer norm, gelu, hard-swish as one      */
        &byi_pass_simplify_inference, /* batch norm into weights                  */
        &byi_pass_canonicalize_ops,   /* results of the previous two */
        &byi_pass_fold_constant,
        &byi_pass_simplify_expr,
        &byi_pass_dead_code_elimination, /* dead readers must not block a match */
        NULL,
    },
};

static const struct byi_pass partition = {
    .name = "Partition",
    .summary = "place operators: make functions of backends' regions",
    .sequence = (const struct byi_pass *const[]){
        &byi_pass_assign_by_cost,     /* --partition-by=estimated or =measured    */
        &byi_pass_merge_composite,
        &byi_pass_annotate_target,
        &byi_pass_merge_regions,
        &byi_pass_partition_graph,
        &byi_pass_dead_code_elimination, /* constants that moved into regions     */
        NULL,
    },
};

enum { MAX_USER_PASSES = 256 };

/* The built-in passes. In known[], users' passes follow them. */
#define PASS(name) &byi_pass_##name,
static const struct byi_pass *const built_in[] = {
    BYI_TRANSFORM_PASSES(PASS)
    /* placement */
    &byi_pass_alter_op_layout,
    &byi_pass_assign_by_cost,
    &byi_pass_merge_composite,
    &byi_pass_annotate_target,
    &byi_pass_merge_regions,
    &byi_pass_partition_graph,
    /* the sequences of a compile */
    &canonicalize,
    &partition,
};

static const struct byi_pass *const pipeline[] = {
    &canonicalize,
    &byi_pass_narrow_weights, /* before a backend takes float32 weights */
    &byi_pass_sparse_weights, /* before a backend multiplies zeros */
    &byi_pass_inverse_dct,    /* before a backend multiplies by the DCT */
    &byi_pass_delay_dequantize, /* makes chains of operators on bytes, for the
                                 * next pass and for backends */
    &byi_pass_tabulate, /* before a backend takes nodes that a table replaces */
    &byi_pass_to_mixed_precision, /* before a backend takes float32 operators */
    &byi_pass_scale_integer_products, /* before a backend takes the nodes that
                                       * scale */
    &partition,
    &byi_pass_fake_quantization_to_integer, /* products that no backend runs */
    &byi_pass_fuse_attention, /* products that no backend runs */
    &byi_pass_convert_layout, /* native convolutions are channels last */
    &byi_pass_fuse_ops, /* native operators, for codegen_c */
    NULL,
};
/* clang-format on */

/* --- all passes ----------------------------------------------------------- */

static const struct byi_pass *known[BYI_COUNT(built_in) + MAX_USER_PASSES + 1];
static uint32_t n_known;
static pthread_mutex_t passes_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t known_filled = PTHREAD_ONCE_INIT;

static void fill_known(void)
{
    memcpy(known, built_in, sizeof built_in);
    n_known = BYI_COUNT(built_in);
}

const struct byi_pass *const *byi_passes_known(void)
{
    pthread_once(&known_filled, fill_known);
    return known;
}

const struct byi_pass *const *byi_passes_pipeline(void)
{
    return pipeline;
}

const struct byi_pass *byi_pass_find(const char *name)
{
    const struct byi_pass *const *all = byi_passes_known();
    const struct byi_pass *pass;
    for (; (pass = __atomic_load_n(all, __ATOMIC_ACQUIRE)); all++)
        if (strcmp(pass->name, name) == 0)
            return pass;
    return NULL;
}

const struct byi_pass *byi_pass_named(const char *option, const char *name,
                                      struct byoc_error *err)
{
    const struct byi_pass *const *all = byi_passes_known();
    const struct byi_pass *pass = byi_pass_find(name);
    const char *names[BYI_COUNT(known)];
    uint32_t n = 0;
    if (pass)
        return pass;
    for (; (pass = __atomic_load_n(&all[n], __ATOMIC_ACQUIRE)); n++)
        names[n] = pass->name;
    const char *nearest = byi_nearest(name, names, n);
    byi_fail(err, BYOC_EINVAL,
             "%s '%s': found no pass of this name, expected one of `byoc opt "
             "--list-passes`%s%s%s",
             option, name, nearest ? "; did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

static enum byoc_status append_pass(const struct byi_pass *pass,
                                    struct byoc_error *err)
{
    if (byi_pass_find(pass->name))
        return byi_fail(
            err, BYOC_EINVAL,
            "pass '%s': found another pass of this name, expected a new name",
            pass->name);
    if (n_known + 1 == BYI_COUNT(known))
        return byi_fail(
            err, BYOC_ELIMIT,
            "pass '%s': found too many passes of users, expected at most %d",
            pass->name, MAX_USER_PASSES);
    __atomic_store_n(&known[n_known++], pass, __ATOMIC_RELEASE);
    return BYOC_OK;
}

static enum byoc_status add_user_pass(const struct byoc_pass *pass,
                                      struct byoc_error *err)
{
    struct byi_pass *user_pass;
    BYI_TRY(byi_user_pass(pass, &user_pass, err));
    pthread_mutex_lock(&passes_lock);
    enum byoc_status status = append_pass(user_pass, err);
    pthread_mutex_unlock(&passes_lock);
    if (status != BYOC_OK)
        free(user_pass);
    return status;
}

enum byoc_status byoc_pass_register(const struct byoc_pass *pass,
                                    struct byoc_error *err)
{
    byi_passes_known();
    return add_user_pass(pass, err);
}

enum byoc_status byi_passes_load(const char *path, struct byoc_error *err)
{
    void *symbol;
    BYI_TRY(byoc_internal_library_find(path, "byoc_passes", &symbol, err));
    byoc_passes_fn entry;
    memcpy(&entry, &symbol, sizeof entry); /* POSIX's conversion for dlsym */
    const struct byoc_pass *const *passes = entry(BYOC_PASS_ABI);
    if (!passes)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: found passes for another version of byoc/pass.h, "
                        "expected version %d; compile the library again",
                        path, BYOC_PASS_ABI);
    for (; *passes; passes++) {
        const struct byi_pass *registered =
            (*passes)->name ? byi_pass_find((*passes)->name) : NULL;
        if (registered && registered->data == *passes)
            continue; /* the library is registered already */
        if (byoc_pass_register(*passes, err) != BYOC_OK)
            return byi_prefix(err, "%s", path);
    }
    return BYOC_OK;
}

/* --- parsing lists of passes ---------------------------------------------- */

enum { MAX_NESTING = 32 };

struct pass_list_reader {
    const char *text, *at;
    struct byi_arena *arena;
    struct byoc_error *err;
    /* open[0] is the list itself, open[1..depth] the open brackets, outermost
     * first */
    struct byi_pass_list open[MAX_NESTING];
    uint32_t depth;
};

static enum byoc_status read_name(struct pass_list_reader *r)
{
    const size_t n = strcspn(r->at, ",[]");
    const char *name = byi_arena_strn(r->arena, r->at, n);
    const struct byi_pass *pass = byi_pass_named("passes", name, r->err);
    if (!pass)
        return BYOC_EINVAL;
    BYI_PUSH(&r->open[r->depth].passes, pass);
    r->at += n;
    return BYOC_OK;
}

/* At a ']': make a sequence of the passes since its '['. */
static void close_sequence(struct pass_list_reader *r)
{
    struct byi_pass_list *members = &r->open[r->depth--];
    struct byi_pass *pass = byi_arena_alloc(r->arena, sizeof *pass);
    BYI_PUSH(&members->passes, NULL);
    *pass =
        (struct byi_pass){.name = "Sequential",
                          .summary = "passes in brackets",
                          .sequence = byi_arena_copy(
                              r->arena, members->passes.at,
                              members->passes.n * sizeof *members->passes.at)};
    byi_vec_free(members->passes.at);
    members->passes.at = NULL;
    members->passes.n = members->passes.cap = 0;
    BYI_PUSH(&r->open[r->depth].passes, pass);
    r->at++;
}

static enum byoc_status read_list(struct pass_list_reader *r)
{
    const char *fault = NULL;
    while (*r->at && !fault) {
        r->at += *r->at == ',';
        if (*r->at == '[' && r->depth + 1 == MAX_NESTING)
            fault = "found brackets nested deeper than 31 levels";
        else if (*r->at == ']' && r->depth == 0)
            fault = "found a ']' without its '['";
        else if (*r->at == '[')
            r->depth++, r->at++;
        else if (*r->at == ']')
            close_sequence(r);
        else
            BYI_TRY(read_name(r));
    }
    if (!fault && r->depth)
        fault = "found a '[' without its ']'";
    if (fault)
        return byi_fail(r->err, BYOC_EINVAL,
                        "passes '%s': %s, expected A,B,[C,D]", r->text, fault);
    return BYOC_OK;
}

enum byoc_status byi_passes_parse(const char *text, struct byi_arena *arena,
                                  struct byi_pass_list *list,
                                  struct byoc_error *err)
{
    struct pass_list_reader r = {
        .text = text, .at = text, .arena = arena, .err = err, .open = {*list}};
    enum byoc_status status = read_list(&r);
    while (r.depth > 0)
        byi_vec_free(r.open[r.depth--].passes.at);
    *list = r.open[0];
    return status;
}

/* The recursion is as deep as sequences and needs are nested; it skips a pass
 * that is listed already. */
bool byi_passes_add_all(struct byi_pass_list *list, const struct byi_pass *pass,
                        const char *stop_after)
{
    for (uint32_t i = 0; i < list->passes.n; i++)
        if (list->passes.at[i] == pass)
            return true;
    BYI_PUSH(&list->passes, pass);
    for (const char *const *name = pass->needs; name && *name; name++) {
        const struct byi_pass *need = byi_pass_find(*name);
        if (need && !byi_passes_add_all(list, need, stop_after))
            return false;
    }
    for (uint32_t i = 0; pass->sequence && pass->sequence[i]; i++)
        if (!byi_passes_add_all(list, pass->sequence[i], stop_after))
            return false;
    return !stop_after || strcmp(pass->name, stop_after) != 0;
}
