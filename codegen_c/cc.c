/* SPDX-License-Identifier: Apache-2.0 */
/* cc.c: runs a compiler driver in a temporary folder. */
#include "cc.h"

#include "core/base/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/temp.h"

extern char **environ;

enum {
    NOT_FOUND = 127, /* a shell's exit status for "command not found" */
    /* With fewer open files the driver and the assembler fail, with messages
     * about files of theirs. */
    FEW_FILES = 16
};

/* --- the folder ----------------------------------------------------------- */

/* A temporary folder; byi_cc.folder points to `path`. */
struct cc_folder {
    struct byi_temp *entry;
    char path[];
};

static void remove_folder(void *data)
{
    struct cc_folder *folder = data;
    DIR *list = opendir(folder->path);
    const struct dirent *file;
    while (list && (file = readdir(list)))
        if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0)
            unlinkat(dirfd(list), file->d_name, 0);
    if (list)
        closedir(list);
    rmdir(folder->path);
    byi_temp_done(&folder->entry);
    byi_vec_free(folder);
}

enum byoc_status byi_cc_open(struct byi_cc *cc, const char *prefix,
                             const char *command, struct byoc_error *err)
{
    const char *env = secure_getenv("CC");
    const size_t n = strlen(prefix) + sizeof "XXXXXX";
    cc->command = command ? command : env && *env ? env : "cc";
    struct cc_folder *folder = byi_own(sizeof *folder + n, 1, remove_folder);
    cc->folder = folder->path;
    snprintf(cc->folder, n, "%sXXXXXX", prefix);
    if (byi_temp_folder(cc->folder, &folder->entry))
        return BYOC_OK;
    const enum byoc_status status =
        byi_fail(err, byi_io_status(errno),
                 "cannot create the temporary folder %s: %s; choose another "
                 "place that can be written",
                 cc->folder, strerror(errno));
    byi_vec_free(folder);
    cc->folder = NULL;
    return status;
}

void byi_cc_close(struct byi_cc *cc)
{
    if (cc->folder)
        remove_folder(cc->folder - offsetof(struct cc_folder, path));
    cc->folder = NULL;
}

char *byi_cc_path(const struct byi_cc *cc, const char *name)
{
    const size_t n = strlen(cc->folder) + strlen(name) + 2;
    char *path = byi_alloc(n, 1);
    if (path)
        snprintf(path, n, "%s/%s", cc->folder, name);
    return path;
}

FILE *byi_cc_file(const struct byi_cc *cc, const char *name, const char *mode)
{
    char *path = byi_cc_path(cc, name);
    FILE *f = path ? fopen(path, mode) : NULL;
    free(path);
    return f;
}

static enum byoc_status fail_io(const char *what, const char *name,
                                struct byoc_error *err)
{
    return byi_fail(err, byi_io_status(errno), "cannot %s %s: %s", what, name,
                    strerror(errno));
}

enum byoc_status byi_cc_write(const struct byi_cc *cc, const char *name,
                              const void *data, size_t n,
                              struct byoc_error *err)
{
    FILE *f = byi_cc_file(cc, name, "wbe");
    if (!f)
        return fail_io("write", name, err);
    bool ok = n == 0 || fwrite(data, 1, n, f) == n;
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : fail_io("write", name, err);
}

/* A file that is mapped while byi_cc_read copies it. */
struct mapped_file {
    const void *at;
    size_t n;
};

static void unmap_file(void *data)
{
    struct mapped_file *m = data;
    byi_unmap(m->at, m->n);
    byi_vec_free(m);
}

enum byoc_status byi_cc_read(const struct byi_cc *cc, const char *name,
                             struct byi_text *data, struct byoc_error *err)
{
    char *path = byi_cc_path(cc, name);
    struct mapped_file *m = byi_own_try(1, sizeof *m, unmap_file);
    enum byoc_status status = BYOC_ENOMEM;
    if (path && m)
        status = byi_map_file(path, &m->at, &m->n, err);
    else
        byi_fail(err, status, "%s: out of memory", name);
    free(path);
    if (status == BYOC_OK)
        byi_text_add(data, m->at, m->n);
    if (m)
        unmap_file(m);
    return status;
}

/* --- the driver ----------------------------------------------------------- */

/* Split a command line into at most `max` words, in place. */
static uint32_t split_words(char *text, char **words, uint32_t max)
{
    uint32_t n = 0;
    char *rest;
    for (char *w = strtok_r(text, " \t", &rest); w && n < max;
         w = strtok_r(NULL, " \t", &rest))
        words[n++] = w;
    return n;
}

/* Read the driver's messages into text, of n bytes, as one line. */
static void read_log(const struct byi_cc *cc, const char *name, char *text,
                     size_t n)
{
    FILE *f = byi_cc_file(cc, name, "re");
    size_t length = f ? fread(text, 1, n - 1, f) : 0;
    if (f)
        fclose(f);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

/* What the driver's process does before it runs the driver. Returns 0 or an
 * error number: a driver that does not enter the folder would write its files
 * into the caller's. */
static int add_actions(posix_spawn_file_actions_t *actions, const char *folder,
                       const char *log)
{
    int error =
        posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(actions, 1, "/dev/null",
                                                 O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(
            actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return error ? error
                 : posix_spawn_file_actions_addchdir_np(actions, folder);
}

/* Start the driver in a process group of its own, so that a signal reaches its
 * children, too. Returns 0 or an error number. */
static int spawn_driver(const struct byi_cc *cc, struct byi_cc_run *run,
                        char **argv)
{
    char *log = byi_cc_path(cc, run->log);
    sigset_t old_signals;
    if (!log)
        return ENOMEM;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    byi_temp_hold(&old_signals);
    posix_spawnattr_setsigmask(&attributes, &old_signals);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    int error = add_actions(&actions, cc->folder, log);
    if (!error)
        error = posix_spawnp(&run->pid, argv[0], &actions, &attributes, argv,
                             environ);
    if (!error)
        run->entry = byi_temp_child(-run->pid);
    byi_temp_release(&old_signals);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(log);
    return error;
}

static enum byoc_status fail_no_driver(const struct byi_cc *cc,
                                       enum byoc_status status, const char *why,
                                       struct byoc_error *err)
{
    return byi_fail(err, status,
                    "cannot run the compiler driver \"%s\": %s; install one, "
                    "or name it with CC",
                    cc->command, why);
}

enum byoc_status byi_cc_start(const struct byi_cc *cc, const char *options,
                              struct byi_cc_run *run, struct byoc_error *err)
{
    enum { MAX_WORDS = 96 };
    /* the shell sets a limit for the driver and its children, and a fixed
     * language for messages */
    static char shell[] = "sh", option[] = "-c",
                script[] = "ulimit -v $1 && shift && LC_ALL=C exec \"$@\"";
    struct byi_text text = {0};
    char limit[24],
        *argv[MAX_WORDS + 6] = {shell, option, script, shell, limit};
    char **words = argv + 5;
    snprintf(limit, sizeof limit, "%llu",
             (unsigned long long)(cc->bytes >> 10));
    byi_text_addf(&text, "%s %s -o %s", cc->command, options, run->output);
    words[split_words(text.at, words, MAX_WORDS)] = NULL;
    run->time = byi_child_time(cc->seconds);
    const int error = words[0] && *cc->command
                          ? spawn_driver(cc, run, cc->bytes ? argv : words)
                          : EINVAL;
    byi_text_free(&text);
    if (!error)
        return BYOC_OK;
    run->pid = 0;
    return fail_no_driver(cc, byi_io_status(error), strerror(error), err);
}

/* Check that the driver, which reported success, wrote its output. */
static enum byoc_status check_output(const struct byi_cc *cc, const char *name,
                                     struct byoc_error *err)
{
    FILE *f = byi_cc_file(cc, name, "re");
    if (!f && errno != ENOENT)
        return fail_io("read", name, err);
    if (!f)
        return byi_fail(err, BYOC_EIO,
                        "\"%s\" succeeded without writing its output, expected "
                        "a C compiler; name one with CC",
                        cc->command);
    fclose(f);
    return BYOC_OK;
}

enum byoc_status byi_cc_finish(const struct byi_cc *cc, struct byi_cc_run *run,
                               enum byoc_status earlier, struct byoc_error *err)
{
    int status = 0;
    if (!run->pid)
        return earlier;
    const bool ended = byi_child_wait(run->pid, true, &run->time, &status);
    byi_temp_done(&run->entry);
    if (earlier != BYOC_OK)
        return earlier;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return check_output(cc, run->output, err);
    if (!ended)
        return byi_fail(err, BYOC_EIO,
                        "\"%s\" ran too long, expected at most %s s",
                        cc->command, BYI_FLOAT_TEXT(cc->seconds));
    if (cc->bytes && WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        return fail_no_driver(cc, BYOC_EIO, "not found", err);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FEW_FILES)
        return byi_fail(err, BYOC_EIO,
                        "\"%s\" failed, where %llu files may be open at once, "
                        "expected at least %d; raise the limit (ulimit -n)",
                        cc->command, (unsigned long long)files.rlim_cur,
                        FEW_FILES);
    char log[800];
    read_log(cc, run->log, log, sizeof log);
    return byi_fail(err, BYOC_EIO, "\"%s\" failed: %s", cc->command,
                    log[0] ? log : "it printed no message; is the disk full?");
}
