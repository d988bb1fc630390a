/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_cache.c: finds primitives of one build by the arguments of
 * their creators, so that equal ones are created once. A primitive descriptor
 * of oneDNN 2.6 takes several kilobytes and tens of microseconds. A chain of
 * 100,000 equal operators would need 100,000 of them. Steps that share a
 * primitive run in sequence, each with its own arguments. */
#include "runtime_dnnl/build.h"

#include <string.h>

/* A call of a creator, and its result. */
struct byi_cached_prim {
    struct byi_creator_call call; /* points to copies of the arguments */
    struct byi_posts posts;
    struct byi_prim *prim; /* NULL: the creator refused */
    const char *why;       /* if it refused: its message */
};

/* Whether equal calls may share a primitive. Arguments are compared as bytes:
 * unused members and padding are zero in nearly all of them; otherwise the
 * primitive is created again. Concatenations are excluded, since their
 * parameters contain a pointer to the sources. Programs to be written are
 * excluded, since they attach a note to each primitive. */
static bool may_share(const struct byi_build *b,
                      const struct byi_creator_call *call)
{
    return b->program->purpose != BYI_TO_WRITE &&
           strcmp(call->function, "concat") != 0;
}

static uint32_t n_posts(const struct byi_creator_call *call)
{
    return call->posts ? call->posts->n : 0;
}

static uint64_t hash_call(const struct byi_creator_call *call)
{
    const uint64_t hash =
        byi_hash(byi_hash(0, call->function, strlen(call->function)),
                 call->params, call->size);
    return n_posts(call) ? byi_hash(hash, call->posts->at,
                                    call->posts->n * sizeof(struct byi_post))
                         : hash;
}

static bool are_same_call(const struct byi_creator_call *a,
                          const struct byi_creator_call *b)
{
    return strcmp(a->function, b->function) == 0 && a->size == b->size &&
           memcmp(a->params, b->params, a->size) == 0 &&
           n_posts(a) == n_posts(b) &&
           (n_posts(a) == 0 ||
            memcmp(a->posts->at, b->posts->at,
                   a->posts->n * sizeof(struct byi_post)) == 0);
}

static const struct byi_cached_prim *find_call(
    const struct byi_build *b, const struct byi_creator_call *call)
{
    const uint64_t hash = hash_call(call);
    BYI_INDEX_EACH (&b->prim_index, hash, i)
        if (are_same_call(&b->prims.at[i]->call, call))
            return b->prims.at[i];
    return NULL;
}

bool byi_dn_find_prim(struct byi_build *b, const struct byi_creator_call *call,
                      struct byi_prim **prim, enum byoc_status *status)
{
    if (!may_share(b, call))
        return false;
    const struct byi_cached_prim *k = find_call(b, call);
    if (!k)
        return false;
    *status = BYOC_OK;
    if (k->prim)
        *prim = byi_prim_ref(k->prim);
    else
        *status = byi_fail(b->err, BYOC_EUNSUPPORTED, "%s", k->why);
    return true;
}

void byi_dn_keep_prim(struct byi_build *b, const struct byi_creator_call *call,
                      struct byi_prim *prim, enum byoc_status status)
{
    if (!may_share(b, call) ||
        (status != BYOC_OK && status != BYOC_EUNSUPPORTED))
        return;
    struct byi_cached_prim *k = byi_arena_alloc(b->arena, sizeof *k);
    k->call = *call;
    k->call.params = byi_arena_copy(b->arena, call->params, call->size);
    if (n_posts(call)) {
        const size_t bytes = call->posts->n * sizeof(struct byi_post);
        k->posts.n = call->posts->n;
        k->posts.at = byi_arena_copy(b->arena, call->posts->at, bytes);
    }
    k->call.posts = &k->posts;
    if (status != BYOC_OK)
        k->why = byi_arena_str(b->arena, b->err->text);
    BYI_PUSH(&b->prims, k);
    byi_index_add(&b->prim_index, hash_call(call), b->prims.n - 1);
    if (status == BYOC_OK)
        k->prim = byi_prim_ref(prim);
}

void byi_dn_prims_free(struct byi_build *b)
{
    for (uint32_t i = 0; i < b->prims.n; i++)
        byi_prim_free(&b->prims.at[i]->prim);
    byi_vec_free(b->prims.at);
    byi_index_free(&b->prim_index);
}
