/* SPDX-License-Identifier: Apache-2.0 */
/* tests/folder.h: a folder for the files of a test program. */
#ifndef BYI_TESTS_FOLDER_H
#define BYI_TESTS_FOLDER_H

/* Make a folder in `base`, or in TMPDIR (default /tmp) if it is NULL. A process
 * of its own removes it with all that is in it when this process and those
 * that it forked have ended, however they end. Call it before any thread
 * starts. Returns its path, good until the end, or NULL. At most one. */
const char *make_test_folder(const char *base);

#endif
