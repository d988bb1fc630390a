/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c: jumps back to the API function if an allocation fails. */
#include "guard.h"
#include "owned.h"

#include <stdlib.h>
#include <string.h>

/* Initial-exec: a first use in a thread must not allocate. */
static _Thread_local struct byi_guard *top
    __attribute__((tls_model("initial-exec")));

/* --- a guard's list of memory, which is a ring ---------------------------- */

static struct byi_owned *owned_of(void *memory)
{
    return (struct byi_owned *)memory - 1;
}

static void insert_owned(struct byi_owned *o, struct byi_owned *head)
{
    o->prev = head;
    o->next = head->next;
    head->next->prev = o;
    head->next = o;
}

static void take_out(struct byi_owned *o)
{
    o->prev->next = o->next;
    o->next->prev = o->prev;
    o->prev = o->next = o;
}

void *byi_owned_resize(void *old, size_t bytes, void (*end)(void *data))
{
    struct byi_owned *o = old ? owned_of(old) : NULL;
    const bool is_single = o && o->next == o;

    if (bytes > SIZE_MAX - sizeof *o)
        return NULL;
    o = realloc(o, sizeof *o + bytes);
    if (!o)
        return NULL;
    if (!old || is_single) {
        o->prev = o->next = o;
        o->end = old ? o->end : end;
        if (!old && top)
            insert_owned(o, &top->ring);
        return o + 1;
    }
    o->prev->next = o;
    o->next->prev = o;
    return o + 1;
}

void byi_owned_free(void *memory)
{
    if (!memory)
        return;
    take_out(owned_of(memory));
    free(owned_of(memory));
}

void *byi_own_try(size_t n, size_t size, void (*end)(void *data))
{
    size_t bytes = 0;
    void *memory = NULL;

    if (!__builtin_mul_overflow(n, size, &bytes))
        memory = byi_owned_resize(NULL, bytes, end);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *byi_own(size_t n, size_t size, void (*end)(void *data))
{
    void *memory = byi_own_try(n, size, end);

    if (!memory)
        byi_oom(n * size);
    return memory;
}

void byi_keep(void *memory)
{
    if (memory)
        take_out(owned_of(memory));
}

void byi_adopt(void *memory)
{
    if (!memory || !top)
        return;
    take_out(owned_of(memory)); /* if it is in a ring of this library */
    insert_owned(owned_of(memory), &top->ring);
}

/* --- guards ------------------------------------------------------------- */

void byi_guard_begin(struct byi_guard *guard)
{
    guard->up = top;
    guard->ring = (struct byi_owned){&guard->ring, &guard->ring, NULL};
    guard->bytes = 0;
    guard->active = true;
    guard->failed = false;
    top = guard;
}

/* Jump to the innermost guard; without one, abort. */
static void jump_to_guard(size_t bytes)
{
    struct byi_guard *guard = top;

    if (!guard)
        abort();
    top = guard->up;
    guard->active = false;
    guard->failed = true;
    guard->bytes = bytes;
    longjmp(guard->at, 1);
}

void (*byi_oom)(size_t bytes) = jump_to_guard;

/* Release the memory in the list, oldest first. The end() of an owner frees the
 * memory that it owns, which also takes that memory off the list. */
static void end_ring(struct byi_guard *guard)
{
    while (guard->ring.prev != &guard->ring) {
        struct byi_owned *o = guard->ring.prev;
        take_out(o);
        if (o->end)
            o->end(o + 1);
        else
            free(o);
    }
}

/* The rest of the list is the result: it moves to the enclosing guard, or
 * leaves all guards. */
static void move_to_outer(struct byi_guard *guard)
{
    while (guard->ring.prev != &guard->ring) { /* oldest first */
        struct byi_owned *o = guard->ring.prev;
        take_out(o);
        if (guard->up)
            insert_owned(o, &guard->up->ring);
    }
}

void byi_guard_leave(struct byi_guard *guard)
{
    if (guard->active) {
        top = guard->up;
        guard->active = false;
        move_to_outer(guard);
    } else if (guard->failed) {
        end_ring(guard);
        guard->failed = false;
    }
}

enum byoc_status byi_guarded(struct byi_guard *guard,
                             enum byoc_status (*body)(void *arg,
                                                      struct byoc_error *err),
                             void *arg, struct byoc_error *err)
{
    if (byi_guard_enter(guard))
        return byi_guard_fault(guard, err);
    return body(arg, err);
}

enum byoc_status byi_guard_fault(const struct byi_guard *guard,
                                 struct byoc_error *err)
{
    return byi_fail(err, BYOC_ENOMEM,
                    "out of memory: %zu bytes could not be allocated",
                    guard->bytes);
}
