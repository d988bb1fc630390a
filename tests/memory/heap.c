/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c: counts the process's heap, and lets chosen allocations fail. These
 * definitions come before the C library's in every library of the process.
 */
#include "heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

struct heap heap = {.fail_at = UINT64_MAX};

/* The address ranges of code whose allocations never fail; with spares_others,
 * of the only code whose allocations may fail. */
enum { MAX_SPARED = 32 };
static struct {
    uintptr_t from, end;
} spared[MAX_SPARED];
static uint32_t n_spared;
static int spares_others;

/* Add the ranges of this library if its path contains one of the names. */
static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    for (const char *const *name = ctx; *name; name++) {
        if (!strstr(info->dlpi_name, *name))
            continue;
        for (int i = 0; i < info->dlpi_phnum && n_spared < MAX_SPARED; i++) {
            const ElfW(Phdr) *p = &info->dlpi_phdr[i];
            if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
                continue;
            spared[n_spared].from = info->dlpi_addr + p->p_vaddr;
            spared[n_spared++].end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        }
    }
    return 0;
}

void heap_spare(void)
{
    static const char *names[] = {"libdnnl",  "libgomp",  "libstdc++",
                                  "ld-linux", "libgcc_s", NULL};
    n_spared = 0;
    dl_iterate_phdr(add_object, names);
}

void heap_spare_except(const char *name)
{
    const char *names[] = {name, NULL};
    n_spared = 0;
    spares_others = 1;
    dl_iterate_phdr(add_object, names);
}

/* A place for a debugger's breakpoint. */
__attribute__((noinline)) void heap_failed(void)
{
    __asm__ volatile("");
}

static int is_spared(const void *from)
{
    for (uint32_t i = 0; i < n_spared; i++)
        if ((uintptr_t)from >= spared[i].from &&
            (uintptr_t)from < spared[i].end)
            return !spares_others;
    return spares_others;
}

/* Whether the allocation that the code at `from` requests must fail. */
static int must_fail(const void *from)
{
    if (!heap.armed || (!heap.all && is_spared(from)))
        return 0;
    const uint64_t n = heap.calls++;
    if (n < heap.fail_at || n >= heap.fail_at + heap.fail_n)
        return 0;
    errno = ENOMEM;
    heap_failed();
    return 1;
}

/* A hash table of the counted blocks, by address: linear probing, and a removal
 * closes its gap (Knuth, 6.4, algorithm R). The table is small, since each
 * forked process copies the pages that it writes to. Blocks of spared
 * libraries, such as tables that they make on first use, are not counted. */
enum { SLOT_BITS = 17, N_SLOTS = 1 << SLOT_BITS };
static const void *slots[N_SLOTS];

static uint32_t slot_of(const void *memory)
{
    return (uint32_t)(((uintptr_t)memory >> 4) * UINT64_C(0x9e3779b97f4a7c15) >>
                      (64 - SLOT_BITS));
}

static uint32_t find(const void *memory)
{
    uint32_t i = slot_of(memory);
    while (slots[i] && slots[i] != memory)
        i = (i + 1) % N_SLOTS;
    return i;
}

/* Add a block to the table, unless it is NULL or spared code at `from`
 * requested it. Returns the block. */
static void *count(void *memory, const void *from)
{
    if (!memory || is_spared(from))
        return memory;
    if (heap.blocks >= N_SLOTS / 8 * 7)
        abort(); /* more blocks than the table has room for */
    slots[find(memory)] = memory;
    heap.blocks++;
    return memory;
}

/* Remove a block from the table. Returns whether the block was in it. */
static int discount(const void *memory)
{
    uint32_t gap = find(memory);
    if (!memory || !slots[gap])
        return 0;
    for (uint32_t i = (gap + 1) % N_SLOTS; slots[i]; i = (i + 1) % N_SLOTS)
        if ((i - slot_of(slots[i])) % N_SLOTS >= (i - gap) % N_SLOTS) {
            slots[gap] = slots[i];
            gap = i;
        }
    slots[gap] = NULL;
    heap.blocks--;
    return 1;
}

#define FROM __builtin_return_address(0)

void *malloc(size_t bytes)
{
    return must_fail(FROM) ? NULL : count(__libc_malloc(bytes), FROM);
}

void *calloc(size_t n, size_t bytes)
{
    return must_fail(FROM) ? NULL : count(__libc_calloc(n, bytes), FROM);
}

void *realloc(void *old, size_t bytes)
{
    if (must_fail(FROM))
        return NULL;
    const int counted = discount(old);
    void *moved = __libc_realloc(old, bytes);
    if (counted || !old)
        count(moved ? moved : old, FROM);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return must_fail(FROM) ? NULL
                           : count(__libc_memalign(alignment, bytes), FROM);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return must_fail(FROM) ? NULL
                           : count(__libc_memalign(alignment, bytes), FROM);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory =
        must_fail(FROM) ? NULL : count(__libc_memalign(alignment, bytes), FROM);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
    discount(memory);
    __libc_free(memory);
}
