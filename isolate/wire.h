/* SPDX-License-Identifier: Apache-2.0 */
/* isolate/wire.h: messages between byoc and the process of an isolated plug-in:
 * a word that says what it is, and a body of numbers, strings and bytes. Both
 * run on one machine, so numbers are as they lie in memory. What comes in is
 * bounds-checked: the other side may have run wild.
 */
#ifndef BYI_WIRE_H
#define BYI_WIRE_H

#include "core/base/base.h"

/* --- writing a body ------------------------------------------------------- */

void byi_wire_u64(struct byi_text *body, uint64_t value);
/* NULL stays NULL. */
void byi_wire_string(struct byi_text *body, const char *text);
/* They are read at an address that is a multiple of BYI_ALIGN. */
void byi_wire_bytes(struct byi_text *body, const void *data, uint64_t n);

/* --- reading one ---------------------------------------------------------- */

/* Past the end everything is 0 and NULL, and `bad` is set. What is read points
 * into the body. */
struct byi_wire {
    uint32_t op;
    char *at; /* acquired; NULL: empty */
    uint64_t n, pos;
    bool bad;
};
uint64_t byi_wire_get_u64(struct byi_wire *w);
const char *byi_wire_get_string(struct byi_wire *w);
const void *byi_wire_get_bytes(struct byi_wire *w, uint64_t *n);
void byi_wire_free(struct byi_wire *w);

/* --- between processes ---------------------------------------------------- */

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t byi_wire_now(void);
/* Send, receive; until the clock says `deadline`, or however long where that is
 * 0. False: too late, the other side is gone, or what it sent makes no sense;
 * *late tells the first of these. A received body is freed by the caller. */
bool byi_wire_send(int fd, uint32_t op, const struct byi_text *body,
                   uint64_t deadline, bool *late);
bool byi_wire_receive(int fd, struct byi_wire *w, uint64_t deadline,
                      bool *late);

#endif
