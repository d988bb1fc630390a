/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c: finds the name that a misspelt name most likely means. */
#include "base.h"

#include <string.h>

/* The Levenshtein distance of two names: the number of single-byte edits.
 * UINT32_MAX if a name is too long to be a misspelling. */
static uint32_t distance(const char *a, const char *b)
{
    enum { MAX_LENGTH = 48 };
    uint32_t row[MAX_LENGTH + 1];
    size_t na = strlen(a), nb = strlen(b);
    if (na > MAX_LENGTH || nb > MAX_LENGTH)
        return UINT32_MAX;
    for (uint32_t j = 0; j <= nb; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= na; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= nb; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[nb];
}

const char *byi_nearest(const char *name, const char *const *names, uint32_t n)
{
    const char *nearest = NULL;
    uint32_t best = strlen(name) < 3 ? 2 : 3;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t d = distance(name, names[i]);
        if (d < best && *names[i]) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}
