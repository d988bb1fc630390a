/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h: a heap in which chosen allocations fail. */
#ifndef BYI_TESTS_HEAP_H
#define BYI_TESTS_HEAP_H

#include <stdint.h>

/* For programs in which one thread runs at a time. */
struct heap {
    int armed;
    int all;          /* spared code's fail as well      */
    uint64_t calls;   /* since it was armed              */
    uint64_t fail_at; /* of the calls: the first to fail */
    uint64_t fail_n;  /* so many in a row                */
    int64_t blocks;   /* that are allocated, but for those of spared code */
};
extern struct heap heap;

/* From now on spare the backends' own libraries and the loader. */
void heap_spare(void);
/* Called when one fails. */
void heap_failed(void);

#endif
