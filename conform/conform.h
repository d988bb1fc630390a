/* SPDX-License-Identifier: Apache-2.0 */
/* conform/conform.h: declares the scorecard, which has the cases of `byoc
 * conform` for one plug-in and their results, and the functions that print it.
 */
#ifndef BYI_CONFORM_H
#define BYI_CONFORM_H

#include "kit.h"

/* A plug-in's description of itself, which a child process copies to shared
 * memory. */
struct byi_listing {
    char name[64], version[128], compat[256];
    bool compiles; /* has compile() */
    bool writes_c; /* compile() is asked for C */
    uint32_t n_rows;
    char rows[1 << 17]; /* the names of the rows, each with its NUL */
};

/* A case and its result. */
struct byi_card_entry {
    struct byi_kit_case test;
    struct byi_verdict verdict;
};

/* The results for one plug-in. */
struct byi_card {
    struct byi_arena *arena; /* of the names of cases */
    const char *path;        /* of the plug-in */
    uint64_t seed;           /* as in struct byi_kit */
    const char *options; /* to print in commands that rerun a case; or NULL */
    struct byi_listing *listing; /* in shared memory */
    BYI_VEC(struct byi_card_entry) entries;
};

/* --- card.c --------------------------------------------------------------- */

/* The number of failed cases. */
uint32_t byi_card_failed(const struct byi_card *card);
/* Append the scorecard as text, or as JSON (docs/conform.md). */
void byi_card_text(const struct byi_card *card, struct byi_text *out);
void byi_card_json(const struct byi_card *card, struct byi_text *out);

#endif
