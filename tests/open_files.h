/* SPDX-License-Identifier: Apache-2.0 */
/* tests/open_files.h: counts the files that the process has open, to find those
 * that a test leaves open.
 */
#ifndef BYI_TESTS_OPEN_FILES_H
#define BYI_TESTS_OPEN_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

/* The number of open files. Fails the test if the system does not tell it. */
static inline int count_open_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    int n = -3; /* without ".", ".." and the list itself */
    assert_non_null(list);
    while (readdir(list))
        n++;
    closedir(list);
    return n;
}

#endif
