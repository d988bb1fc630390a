/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: makes a test program's folder, and starts the process that removes
 * it. That process waits for end of file on a pipe. The system closes the other
 * end when the last process that has it open ends.
 */
#include "folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *st, int kind,
                        struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

static _Noreturn void remove_later(const char *path, const int ends[2])
{
    char byte;
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    /* a reader of the test's output must not wait for this process */
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
        ;
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

const char *make_test_folder(const char *base)
{
    static char path[TEST_PATH - 16]; /* room for names of inner folders */
    static bool created;
    int ends[2];
    if (created)
        return path;
    const char *tmpdir = getenv("TMPDIR");
    if (!base)
        base = tmpdir && *tmpdir ? tmpdir : "/tmp";
    const int n = snprintf(path, sizeof path, "%s/byoc-test-XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof path || pipe2(ends, O_CLOEXEC) != 0 ||
        !mkdtemp(path))
        return NULL;
    const pid_t child = fork();
    if (child == 0)
        remove_later(path, ends);
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    created = child > 0;
    return created ? path : NULL;
}

char *make_inner_folder(char path[TEST_PATH])
{
    const char *folder = make_test_folder(NULL);
    if (!folder)
        return NULL;
    snprintf(path, TEST_PATH, "%s/XXXXXX", folder);
    return mkdtemp(path);
}
