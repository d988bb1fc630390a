/* SPDX-License-Identifier: Apache-2.0 */
/* tests/folder.h: folders for the files of a test program. */
#ifndef BYI_TESTS_FOLDER_H
#define BYI_TESTS_FOLDER_H

enum { TEST_PATH = 96 }; /* of a folder, with its zero */

/* The folder of this program: the first call makes it in `base`, or in TMPDIR
 * (default /tmp) if it is NULL; later calls return the same one. A process of
 * its own removes it with all that is in it when this process and those that
 * it forked have ended, however they end. Make the first call before any
 * thread starts. Returns its path, good until the end, or NULL; also where
 * `base` is longer than about 60 bytes. */
const char *make_test_folder(const char *base);

/* Make a new folder in that of this program. Returns `path`, or NULL. */
char *make_inner_folder(char path[TEST_PATH]);

#endif
