/* SPDX-License-Identifier: Apache-2.0 */
/* conform/conform.h: the scorecard of a plug-in. */
#ifndef BYI_CONFORM_H
#define BYI_CONFORM_H

#include "kit.h"

/* The self-description of a plug-in; in memory shared between processes. */
struct byi_listing {
    char name[64], version[128], compat[256];
    bool compiles, writes_c;
    uint32_t n_rows;
    char rows[1 << 17]; /* their names, each with its NUL */
};

struct byi_card_entry {
    struct byi_kit_case what;
    struct byi_verdict verdict;
};

struct byi_card {
    struct byi_arena *arena;
    const char *path;
    uint64_t seed;
    const char *options; /* of the command that runs a case alone; or NULL */
    struct byi_listing *listing;
    BYI_VEC(struct byi_card_entry) entries;
};

/* --- card.c --------------------------------------------------------------- */

uint32_t byi_card_failed(const struct byi_card *card);
/* Print a scorecard as text, or as JSON (docs/conform.md). */
void byi_card_text(const struct byi_card *card, struct byi_text *out);
void byi_card_json(const struct byi_card *card, struct byi_text *out);

#endif
