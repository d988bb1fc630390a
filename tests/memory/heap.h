/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h: a heap in which chosen allocations fail. */
#ifndef BYI_TESTS_HEAP_H
#define BYI_TESTS_HEAP_H

#include <stdint.h>

/* Counts and settings, for programs in which one thread runs at a time. */
struct heap {
    int armed;        /* not 0: allocations are counted and may fail */
    int all;          /* not 0: those of spared code may fail too    */
    uint64_t calls;   /* number of allocations since it was armed    */
    uint64_t fail_at; /* the first of the calls that fails           */
    uint64_t fail_n;  /* how many calls in a row fail                */
    int64_t blocks;   /* allocated blocks, without those of spared code */
};
extern struct heap heap;

/* From now on, allocations of the backends' own libraries and of the loader are
 * spared: they do not fail, unless `all` is set. */
void heap_spare(void);
/* From now on, all allocations are spared, except those of the library whose
 * path contains `name`, which must be loaded. */
void heap_spare_except(const char *name);
/* Called when an allocation fails. */
void heap_failed(void);

#endif
