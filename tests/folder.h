/* SPDX-License-Identifier: Apache-2.0 */
/* tests/folder.h: folders for the files of a test program. */
#ifndef BYI_TESTS_FOLDER_H
#define BYI_TESTS_FOLDER_H

enum { TEST_PATH = 96 }; /* bytes of a folder's path, with its NUL */

/* The folder of this program. The first call makes it in `base`, or, if `base`
 * is NULL, in TMPDIR (default /tmp). Later calls return the same folder.
 * Another process removes the folder with its content when this process and the
 * processes that it forked have ended, however they end. Make the first call
 * before any thread starts. Returns the path, which stays valid, or NULL on
 * failure, such as a `base` of more than about 60 bytes. */
const char *make_test_folder(const char *base);

/* Make a new folder in this program's folder. Sets `path`, and returns it, or
 * NULL on failure. */
char *make_inner_folder(char path[TEST_PATH]);

#endif
