/* SPDX-License-Identifier: Apache-2.0 */
/* minimise.c: minimises a failing input, or a corpus. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

/* Remove bytes at .. at + n if the input still shows the same defect without
 * them. Returns whether they were removed. */
static bool leave_out(struct fuzz_job *job, struct byi_text *bytes, size_t at,
                      size_t n, uint32_t origin, const char *key)
{
    struct byi_text shorter = {0};
    byi_text_add(&shorter, bytes->at, at);
    byi_text_add(&shorter, bytes->at + at + n, bytes->n - at - n);
    const struct fuzz_verdict v =
        fuzz_probe(job, shorter.at, (uint32_t)shorter.n, origin);
    const bool same = v.bad && strcmp(v.key, key) == 0;
    if (same) {
        byi_text_free(bytes);
        *bytes = shorter;
    } else {
        byi_text_free(&shorter);
    }
    return same;
}

/* Zeller's ddmin, by halves: drop pieces, of half the size each time, down to
 * single bytes; repeat while a piece can be dropped. */
void fuzz_minimise(struct fuzz_job *job, struct byi_text *bytes,
                   uint32_t origin, const char *key)
{
    bool removed = true;
    while (removed && bytes->n > 1) {
        removed = false;
        for (size_t piece = bytes->n / 2; piece > 0; piece /= 2)
            for (size_t at = 0; at + piece <= bytes->n;)
                if (leave_out(job, bytes, at, piece, origin, key))
                    removed = true;
                else
                    at += piece;
    }
}

static const struct fuzz_pool *sorted; /* for qsort */

static int by_size(const void *a, const void *b)
{
    const struct fuzz_item *x = &sorted->items[*(const uint32_t *)a];
    const struct fuzz_item *y = &sorted->items[*(const uint32_t *)b];
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

void fuzz_distil(struct fuzz_job *job, void *unused)
{
    (void)unused;
    struct fuzz_shared *s = job->shared;
    uint32_t *order = malloc((s->n_seeds + 1) * sizeof *order);
    for (uint32_t i = 0; order && i < s->n_seeds; i++)
        order[i] = i;
    sorted = &s->corpus;
    if (order)
        qsort(order, s->n_seeds, sizeof *order, by_size);
    for (uint32_t i = 0; order && i < s->n_seeds; i++) {
        const struct fuzz_item *item = &s->corpus.items[order[i]];
        if (fuzz_run_input(job, s->corpus_bytes + item->at, item->n,
                           item->origin))
            s->kept[s->n_kept++] = order[i];
    }
    free(order);
}
