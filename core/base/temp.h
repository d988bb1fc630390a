/* SPDX-License-Identifier: Apache-2.0 */
/* temp.h: creates temporary files and child processes, and keeps a list of
 * them, so that an interrupt leaves none behind.
 */
#ifndef BYI_TEMP_H
#define BYI_TEMP_H

#include <signal.h>
#include <sys/types.h>

#include "base.h"

/* An entry of the list: a temporary file, a folder of them, or a child process.
 * The first two functions add an entry, or return NULL if the list is full or
 * an allocation fails. byi_temp_done frees the entry, without removing the file
 * or ending the child, and sets *temp to NULL. *temp may be NULL already.
 * Threads: safe. */
struct byi_temp;
struct byi_temp *byi_temp_path(const char *path);
struct byi_temp *byi_temp_child(pid_t child); /* as for kill(): -N: a group */
void byi_temp_done(struct byi_temp **temp);
/* Call mkdtemp(name), and add the folder to the list. Returns false if
 * mkdtemp() fails; see errno. *temp is NULL if the folder could not be
 * added. */
bool byi_temp_folder(char *name, struct byi_temp **temp);
/* Call fork(), and add the child to the list. `group`: the child leads a new
 * process group, which the entry stands for. Returns the result of fork().
 * *temp is NULL in the child, and if the entry could not be added. */
pid_t byi_temp_fork(bool group, struct byi_temp **temp);
/* Block signals before creating a file or child; unblock them once it is on the
 * list. A child must unblock them, too; byi_temp_fork does. */
void byi_temp_hold(sigset_t *before);
void byi_temp_release(const sigset_t *before);
/* End all children and remove all paths that this process put on the list. May
 * be called in a signal handler. */
void byi_temp_clear(void);

#endif
