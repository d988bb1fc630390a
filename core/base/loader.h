/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h: the lock that a thread holds while it is in dlopen, dlclose or
 * dl_iterate_phdr. A child inherits glibc's own locks for these locked if
 * another thread of its parent held them during the fork. Therefore a fork
 * waits for this lock (runtime/plugin.c registers that with pthread_atfork). It
 * is recursive, since a library that is being loaded may fork.
 */
#ifndef BYI_LOADER_H
#define BYI_LOADER_H

void byi_loader_lock(void);
void byi_loader_unlock(void);
/* Make the lock free in a child that was forked while its parent held it. */
void byi_loader_in_child(void);

#endif
