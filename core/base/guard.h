/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h: recovery from failed allocations.
 *
 * Two kinds of code allocate:
 *   - code that checks: byi_alloc, byi_acquire and byi_realloc return NULL, and
 *     the caller returns BYOC_ENOMEM. States, frames, caches and all other
 *     memory that lives across calls are allocated by this kind.
 *   - code that does not check: arenas, BYI_VEC and byi_text never report a
 *     failure. When the heap is exhausted they do not return; control jumps to
 *     the innermost guard of this thread, in a function of the API, which
 *     returns BYOC_ENOMEM.
 *
 * A guard is a recovery point and a list of the memory allocated since, like
 * PostgreSQL's PG_TRY with resource owners, or Lua's lua_pcall. Arenas,
 * vectors and texts are added to the list automatically; anything else that
 * would leak (a file, a mapping, a library, a process) is added with byi_own.
 * If an allocation fails, the guard releases everything that is still in the
 * list in the order of adding, owners before the memory they own. If the call
 * succeeds, the rest of the list is its result: it moves to the enclosing
 * guard, or has an owner.
 *
 * Rules:
 *   - Every function of an API that reaches the second kind begins with
 *     BYI_BORDER, or enters a guard itself if it has more to clean up.
 *   - Memory that outlives the guarded call that makes it (a state's arena)
 *     is given to its owner with byi_keep, as soon as the owner points to it.
 *   - Between taking a lock and releasing it, only code that checks may run.
 *   - A jump never crosses a foreign frame: a function that a plug-in or the
 *     host calls back checks its allocations, or enters a guard itself.
 * A guard belongs to a thread. Entering costs a _setjmp, about 10 ns.
 */
#ifndef BYI_GUARD_H
#define BYI_GUARD_H

#include <setjmp.h>

#include "base.h"

/* The header of memory that a guard can release: an element of the guard's
 * ring, or the only element of a ring. */
struct byi_owned {
    _Alignas(16) struct byi_owned *prev, *next;
    void (*end)(void *data); /* frees the bytes that follow; NULL: free(3) */
};

/* Where to jump if an allocation fails, and the memory allocated since. */
struct byi_guard {
    struct byi_guard *up;  /* the enclosing guard of this thread; NULL: none */
    struct byi_owned ring; /* the head of its list of memory, which is a ring */
    size_t bytes;          /* of the allocation that failed */
    bool active;           /* begun, and neither left nor jumped to */
    bool failed;           /* jumped to, and not left */
    jmp_buf at;            /* where byi_guard_enter returns a second time */
};

/* Enter the guard. Returns 0 when called; returns a second time, with another
 * value, after an allocation failed. The guard has then ended, but the memory
 * allocated since still exists, so that the caller can clean up first. */
#define byi_guard_enter(guard) (byi_guard_begin(guard), _setjmp((guard)->at))
void byi_guard_begin(struct byi_guard *guard);
/* Leave the guard. If an allocation failed, release the memory allocated since
 * that still exists. No effect on a guard that was never begun. */
void byi_guard_leave(struct byi_guard *guard);
/* Returns BYOC_ENOMEM, with a message in err. */
enum byoc_status byi_guard_fault(const struct byi_guard *guard,
                                 struct byoc_error *err);

/* Call body(arg) under the guard. The caller must clean up after a failure,
 * then leave the guard. */
enum byoc_status byi_guarded(struct byi_guard *guard,
                             enum byoc_status (*body)(void *arg,
                                                      struct byoc_error *err),
                             void *arg, struct byoc_error *err);

/* Placed first in a function that returns a status: if an allocation fails, the
 * function returns BYOC_ENOMEM. Clear results before it, and set them after the
 * last call that may allocate. */
#define BYI_BORDER(err) BYI_BORDER_ELSE(byi_guard_fault(&byi_guard_, (err)))
/* The same for a function that returns something else. */
#define BYI_BORDER_ELSE(result)                                                \
    struct byi_guard byi_guard_ __attribute__((cleanup(byi_guard_leave)));     \
    if (byi_guard_enter(&byi_guard_))                                          \
    return result

/* Zeroed memory that belongs to the guard; never NULL. `end` frees it and all
 * that it owns; NULL: it owns nothing. Free it with byi_vec_free. */
void *byi_own(size_t n, size_t size, void (*end)(void *data));
/* byi_own for code that checks its allocations: NULL if the allocation fails.
 */
void *byi_own_try(size_t n, size_t size, void (*end)(void *data));

/* Take this arena, vector or text off the guard's list, since an owner that
 * outlives the guard points to it. `memory` may be NULL. */
void byi_keep(void *memory);
/* The inverse: memory that has an owner, or comes from another library with its
 * own copy of guard.c, now belongs to the innermost guard of this library.
 * `memory` may be NULL. */
void byi_adopt(void *memory);

#endif
