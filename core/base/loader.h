/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h: the lock that a thread holds while it is in dlopen, dlclose or
 * dl_iterate_phdr. glibc guards these functions with locks of its own. If
 * another thread held one of them during a fork, it would stay locked in the
 * child for ever. Therefore a fork waits for this lock (runtime/plugin.c
 * registers the handlers with pthread_atfork). The lock is recursive, since a
 * library may fork while it is being loaded.
 */
#ifndef BYI_LOADER_H
#define BYI_LOADER_H

void byi_loader_lock(void);
void byi_loader_unlock(void);
/* Unlock the lock in a child process, which inherits it locked by its parent.
 */
void byi_loader_reset_in_child(void);

#endif
