/* artifact.c: an image becomes a shared library: assembler source that names
 * files beside it, one section each, put together by the machine's compiler
 * driver in a folder beside the target, given its weights and its sum, and
 * renamed into place. Nothing of the folder's name or the time gets into the
 * result.
 */
#include "codegen_c.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/descriptor.h"

extern char **environ;

/* Sections in the descriptor's order. */
static const char *const parts[] = {"manifest", "plan", "ledger", "blobs",
                                    "weights"};
/* Files of the folder, in the order they come to be. */
static const char *const files[] = {
#define LEVEL(id, name, options) "kernels_" name ".o", "kernels_" name ".log",
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
        "manifest",
    "plan",
    "ledger",
    "blobs",
    "model.s",
    "cc.log",
    "kernels.c",
    "model.so"};

/* The fused kernels' objects: one for each instruction set. */
static const struct {
    const char *object, *log, *options;
} levels[] = {
#define LEVEL(id, name, options)                                               \
    {"kernels_" name ".o", "kernels_" name ".log", options},
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
};

struct job {
    const char *path;
    const struct byi_image *image;
    char *folder;
    const char *cc;
    char symbol[64];
    struct byoc_error *err;
};

static enum byoc_status io_fault(const struct job *j, const char *what)
{
    return byi_fail(j->err, BYOC_EIO, "%s: cannot write %s: %s", j->path, what,
                    strerror(errno));
}

static char *file_path(const struct job *j, const char *name)
{
    size_t n = strlen(j->folder) + strlen(name) + 2;
    char *path = byi_alloc(n, 1);
    if (path)
        snprintf(path, n, "%s/%s", j->folder, name);
    return path;
}

static FILE *open_file(const struct job *j, const char *name, const char *mode)
{
    char *path = file_path(j, name);
    FILE *f = path ? fopen(path, mode) : NULL;
    free(path);
    return f;
}

/* --- the pieces --------------------------------------------------------- */

static enum byoc_status write_piece(const struct job *j, const char *name,
                                    const void *data, size_t n)
{
    FILE *f = open_file(j, name, "wbe");
    if (!f)
        return io_fault(j, name);
    bool ok = n == 0 || fwrite(data, 1, n, f) == n;
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : io_fault(j, name);
}

static enum byoc_status write_source(const struct job *j)
{
    FILE *f = open_file(j, "model.s", "we");
    if (!f)
        return io_fault(j, "model.s");
    fprintf(f,
            "    .section .byoc.model, \"a\", %%progbits\n    .balign 8\n"
            "    .globl %s\n    .type %s, %%object\n%s:\n.Lmodel:\n"
            "    .ascii \"BYOCMDL\\n\"\n    .long %d\n    .long 0\n",
            j->symbol, j->symbol, j->symbol, BYI_ARTIFACT_VERSION);
    for (size_t i = 0; i < BYI_COUNT(parts); i++)
        fprintf(f, "    .quad .L%s - .Lmodel\n    .quad .L%s_end - .L%s\n",
                parts[i], parts[i], parts[i]);
    fprintf(f, "    .size %s, . - .Lmodel\n", j->symbol);
    for (size_t i = 0; i < BYI_COUNT(parts); i++) {
        fprintf(f,
                "    .section .byoc.%s, \"a\", %%progbits\n    .balign %d\n"
                ".L%s:\n",
                parts[i], BYI_ALIGN, parts[i]);
        if (strcmp(parts[i], "weights") != 0)
            fprintf(f, "    .incbin \"%s\"\n", parts[i]);
        fprintf(f, ".L%s_end:\n    .byte 0\n", parts[i]); /* never empty */
    }
    if (j->image->source) {
        fprintf(f,
                "    .section .byoc.kernels, \"a\", %%progbits\n"
                "    .balign 8\n.Lkernels:\n    .long %u\n    .long %d\n",
                j->image->n_kernels, BYI_N_CODE_LEVELS);
        for (int i = 0; i < BYI_N_CODE_LEVELS; i++)
            fprintf(f,
                    "    .hidden byoc_kernels_%d\n"
                    "    .quad byoc_kernels_%d - .Lkernels\n",
                    i, i);
    }
    fprintf(f, "    .section .note.byoc, \"a\", %%note\n    .balign 4\n"
               "    .long 5, 0, 1\n    .asciz \"BYOC\"\n    .balign 4\n"
               "    .section .note.GNU-stack, \"\", %%progbits\n");
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : io_fault(j, "model.s");
}

static enum byoc_status write_pieces(const struct job *j)
{
    const struct byi_image *image = j->image;
    BYI_TRY(write_piece(j, "manifest", image->manifest, image->manifest_bytes));
    BYI_TRY(write_piece(j, "plan", image->plan, image->plan_bytes));
    BYI_TRY(write_piece(j, "ledger", image->ledger, image->ledger_bytes));
    BYI_TRY(write_piece(j, "blobs", image->blobs, image->blobs_bytes));
    if (image->source)
        BYI_TRY(
            write_piece(j, "kernels.c", image->source, image->source_bytes));
    return write_source(j);
}

/* --- the compiler driver ------------------------------------------------ */

/* $CC may hold options: "gcc -m64". */
static uint32_t split_words(char *text, char **words, uint32_t max)
{
    uint32_t n = 0;
    char *rest;
    for (char *w = strtok_r(text, " \t", &rest); w && n < max;
         w = strtok_r(NULL, " \t", &rest))
        words[n++] = w;
    return n;
}

/* What the driver said, on one line. */
static void read_log(const struct job *j, const char *name, char *text,
                     size_t n)
{
    FILE *f = open_file(j, name, "re");
    size_t got = f ? fread(text, 1, n - 1, f) : 0;
    if (f)
        fclose(f);
    while (got > 0 && text[got - 1] == '\n')
        got--;
    text[got] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static int spawn_driver(const struct job *j, const char *name, char **argv,
                        pid_t *pid)
{
    char *log = file_path(j, name);
    if (!log)
        return ENOMEM;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, j->folder);
    int failed = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(log);
    return failed;
}

/* A run of the driver, under way. */
struct run {
    const char *log;
    pid_t pid;
};

/* Start the driver with `options`, words between spaces. */
static enum byoc_status start(const struct job *j, const char *options,
                              struct run *run)
{
    enum { MAX_WORDS = 64 };
    struct byi_text text = {0};
    byi_text_addf(&text, "%s %s", j->cc, options);
    char *argv[MAX_WORDS + 1];
    argv[split_words(text.at, argv, MAX_WORDS)] = NULL;
    const int failed =
        argv[0] && *j->cc ? spawn_driver(j, run->log, argv, &run->pid) : EINVAL;
    byi_text_free(&text);
    if (!failed)
        return BYOC_OK;
    run->pid = 0;
    return byi_fail(j->err, BYOC_EIO,
                    "cannot run the compiler driver \"%s\": %s; install one, "
                    "or name it with CC",
                    j->cc, strerror(failed));
}

static enum byoc_status finish(const struct job *j, const struct run *run,
                               enum byoc_status before)
{
    int status = 0;
    while (run->pid && waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (before != BYOC_OK || !run->pid ||
        (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return before;
    char log[800];
    read_log(j, run->log, log, sizeof log);
    return byi_fail(j->err, BYOC_EIO, "\"%s\" failed: %s", j->cc,
                    log[0] ? log : "it said nothing; is the disk full?");
}

/* The fused kernels, for every instruction set at once. Numbers come out as
 * the native kernels have them: no fused multiply-add but where it is asked
 * for, no reordering but where a loop says so. */
static enum byoc_status compile_kernels(const struct job *j)
{
    struct run runs[BYI_N_CODE_LEVELS] = {{0}};
    enum byoc_status status = BYOC_OK;
    for (int i = 0; i < BYI_N_CODE_LEVELS && status == BYOC_OK; i++) {
        struct byi_text options = {0};
        byi_text_addf(&options,
                      "-std=gnu11 -Wall -Wextra -O3 -fPIC -fopenmp "
                      "-fvisibility=hidden -fno-math-errno "
                      "-fno-trapping-math -ffp-contract=off "
                      "-fno-asynchronous-unwind-tables %s "
                      "-DBYOC_KERNELS=byoc_kernels_%d -c kernels.c -o %s",
                      levels[i].options, i, levels[i].object);
        runs[i].log = levels[i].log;
        status = start(j, options.at, &runs[i]);
        byi_text_free(&options);
    }
    for (int i = 0; i < BYI_N_CODE_LEVELS; i++)
        status = finish(j, &runs[i], status);
    return status;
}

static enum byoc_status link_model(const struct job *j)
{
    struct byi_text options = {0};
    byi_text_addf(&options,
                  "-shared %s -Wl,--build-id=none -Wl,-s "
                  "-Wl,-z,noexecstack -o model.so model.s",
                  j->image->source ? "-nostartfiles -Wl,-z,defs -fopenmp"
                                   : "-nostdlib");
    for (int i = 0; j->image->source && i < BYI_N_CODE_LEVELS; i++)
        byi_text_addf(&options, " %s", levels[i].object);
    struct run run = {.log = "cc.log"};
    enum byoc_status status = start(j, options.at, &run);
    byi_text_free(&options);
    return finish(j, &run, status);
}

/* --- the sum, and into place -------------------------------------------- */

/* Open what was made as a loader will, and let it end in the sum of that. */
static enum byoc_status add_sum(const struct job *j, const char *linked)
{
    struct byi_artifact a;
    BYI_TRY(byoc_internal_artifact_open(linked, &a, j->err));
    const char *at = a.map;
    const char *weights = a.image.weights ? a.image.weights : at + a.map_bytes;
    const char *after = weights + a.image.weights_bytes;
    struct byi_sha256 s;
    char sum[BYI_SUM_BYTES + 1] = BYI_SUM_MAGIC;
    byi_sha256_init(&s);
    byi_sha256_add(&s, at, (size_t)(weights - at));
    byi_sha256_add(&s, after, (size_t)(at + a.map_bytes - after));
    byi_sha256_hex(&s, sum + strlen(BYI_SUM_MAGIC));
    byoc_internal_artifact_close(&a);
    FILE *f = fopen(linked, "abe");
    if (!f)
        return io_fault(j, "the sum");
    bool ok = fwrite(sum, 1, BYI_SUM_BYTES, f) == BYI_SUM_BYTES;
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : io_fault(j, "the sum");
}

static enum byoc_status put_in_place(const struct job *j)
{
    char *linked = file_path(j, "model.so");
    if (!linked)
        return byi_fail(j->err, BYOC_ENOMEM, "no memory to write %s", j->path);
    enum byoc_status status = byi_artifact_append(linked, j->image, j->err);
    if (status == BYOC_OK)
        status = add_sum(j, linked);
    if (status == BYOC_OK && chmod(linked, 0644) != 0)
        status = io_fault(j, "its mode");
    if (status == BYOC_OK && rename(linked, j->path) != 0)
        status = io_fault(j, "the file");
    free(linked);
    return status;
}

/* --- the symbol --------------------------------------------------------- */

static enum byoc_status read_symbol(struct job *j)
{
    struct cJSON *json = NULL;
    const char *symbol;
    BYI_TRY(byi_json_parse(j->image->manifest, j->image->manifest_bytes,
                           SIZE_MAX, &json, j->err));
    struct byi_json root = byi_json_root(json);
    enum byoc_status status = byi_json_string(&root, "symbol", &symbol, j->err);
    static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (status == BYOC_OK &&
        (strlen(symbol) >= sizeof j->symbol || strspn(symbol, word) == 0 ||
         symbol[strspn(symbol, word)] != '\0'))
        status = byi_fail(j->err, BYOC_EINVAL,
                          "the manifest's symbol \"%.60s\" is no identifier",
                          symbol);
    if (status == BYOC_OK)
        snprintf(j->symbol, sizeof j->symbol, "%s", symbol);
    byi_json_free(&json);
    return status;
}

/* A folder of our own beside the target: renaming then stays in one file
 * system. */
static enum byoc_status make_folder(struct job *j)
{
    const char *slash = strrchr(j->path, '/');
    size_t n = slash ? (size_t)(slash - j->path) + 1 : 0;
    static const char name[] = ".byoc-XXXXXX";
    j->folder = byi_alloc(n + sizeof name, 1);
    if (!j->folder)
        return byi_fail(j->err, BYOC_ENOMEM, "no memory to write %s", j->path);
    memcpy(j->folder, j->path, n);
    memcpy(j->folder + n, name, sizeof name);
    if (mkdtemp(j->folder))
        return BYOC_OK;
    free(j->folder);
    j->folder = NULL;
    return io_fault(j, "beside it");
}

static void remove_folder(struct job *j)
{
    if (!j->folder)
        return;
    for (size_t i = 0; i < BYI_COUNT(files); i++) {
        char *path = file_path(j, files[i]);
        if (path)
            unlink(path);
        free(path);
    }
    rmdir(j->folder);
    free(j->folder);
}

enum byoc_status byi_artifact_write(const char *path,
                                    const struct byi_image *image,
                                    const char *cc, struct byoc_error *err)
{
    const char *env = getenv("CC");
    struct job j = {.path = path, .image = image, .err = err};
    j.cc = cc ? cc : env && *env ? env : "cc";
    BYI_TRY(read_symbol(&j));
    BYI_TRY(make_folder(&j));
    enum byoc_status status = write_pieces(&j);
    if (status == BYOC_OK && image->source)
        status = compile_kernels(&j);
    if (status == BYOC_OK)
        status = link_model(&j);
    if (status == BYOC_OK)
        status = put_in_place(&j);
    remove_folder(&j);
    return status;
}
