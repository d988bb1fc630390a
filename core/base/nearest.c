/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c: finds the name that a misspelt name most likely means. */
#include "base.h"

#include <ctype.h>
#include <string.h>

/* Wagner and Fischer's algorithm: row[j] is the distance between the first i
 * bytes of a and the first j of b. */
uint32_t byi_edit_distance(const char *a, const char *b, bool ignores_case,
                           uint32_t limit)
{
    enum { MAX_LENGTH = 128 };
    uint32_t row[MAX_LENGTH + 1];
    const size_t na = strlen(a), nb = strlen(b);
    if (na > MAX_LENGTH || nb > MAX_LENGTH || na > nb + limit ||
        nb > na + limit)
        return limit;
    for (uint32_t j = 0; j <= nb; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= na; i++) {
        uint32_t diagonal = row[0], least = row[0] = i;
        for (uint32_t j = 1; j <= nb; j++) {
            const int x = (unsigned char)a[i - 1], y = (unsigned char)b[j - 1];
            const bool same = ignores_case ? tolower(x) == tolower(y) : x == y;
            uint32_t best = diagonal + !same;
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
            least = best < least ? best : least;
        }
        if (least >= limit)
            return limit;
    }
    return row[nb] < limit ? row[nb] : limit;
}

const char *byi_nearest(const char *name, const char *const *names, uint32_t n)
{
    const char *nearest = NULL;
    uint32_t best = strlen(name) < 3 ? 2 : 3;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t d = byi_edit_distance(name, names[i], false, best);
        if (d < best && *names[i]) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}
