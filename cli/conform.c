/* SPDX-License-Identifier: Apache-2.0 */
/* conform.c: `byoc conform`: runs the conformance kit (conform/) on a plug-in.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void show_progress(void *ctx, const char *what, uint32_t done,
                          uint32_t total)
{
    (void)ctx;
    byi_progress_step(what, done + 1, total);
}

/* The environment variable that marks a byoc that runs under valgrind. */
#define UNDER_VALGRIND "BYOC_UNDER_VALGRIND"
/* The environment variable with the settings of glibc, and its value that
 * disables malloc's thread caches. */
#define TUNABLES "GLIBC_TUNABLES"
#define NO_CACHES "glibc.malloc.tcache_count=0"

/* Replace the process by byoc with the same arguments, prefixed with the words
 * of `prefix`. Returns only on failure. */
static void run_again(const char *const *prefix, int argc, char **argv)
{
    enum { MAX_PREFIX = 10 }; /* words of `prefix` */
    char self[4096];
    /* room for `prefix`, the path of byoc, and the NULL at the end */
    const char **args = calloc((size_t)argc + MAX_PREFIX + 2, sizeof *args);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    uint32_t k = 0;
    if (!args || n <= 0) {
        free(args);
        return;
    }
    self[n] = '\0';
    while (*prefix)
        args[k++] = *prefix++;
    args[k++] = self;
    for (int i = 0; i < argc; i++)
        args[k++] = argv[i];
    execvp(args[0], (char **)(uintptr_t)args);
    free(args);
}

/* Write suppressions for leaks of byoc itself, and of the C library and cJSON.
 * They are needed since a case may end at any point. */
static void put_suppressions(FILE *file)
{
    static const char *const objects[] = {"byoc", "libbyoc.so*",
                                          "libbyoc_runtime.so*"};
    /* a library between byoc and the allocation, or none */
    static const char *const between[] = {"", "   obj:*/libc.so*\n",
                                          "   obj:*/libcjson.so*\n"};
    static const char *const allocators[] = {"*alloc", "*memalign"};
    for (size_t i = 0; i < BYI_COUNT(objects); i++)
        for (size_t k = 0; k < BYI_COUNT(between); k++)
            for (size_t l = 0; l < BYI_COUNT(allocators); l++)
                fprintf(file,
                        "{\n   byoc\n   Memcheck:Leak\n   fun:%s\n%s"
                        "   obj:*/%s\n}\n",
                        allocators[l], between[k], objects[i]);
}

/* Replace the process by byoc under valgrind, which makes a case exit with an
 * error code if it finds an error. Valgrind reads the suppressions from an
 * inherited file descriptor. Returns the exit code, only on failure. */
static int rerun_under_valgrind(int argc, char **argv)
{
    char suppressions[64];
    const char *const valgrind[] = {"valgrind",
                                    "-q",
                                    "--error-exitcode=99",
                                    "--leak-check=full",
                                    "--show-leak-kinds=definite",
                                    "--errors-for-leak-kinds=definite",
                                    suppressions,
                                    NULL};
    FILE *file = tmpfile();
    if (file) {
        put_suppressions(file);
        fflush(file);
    }
    snprintf(suppressions, sizeof suppressions,
             "--suppressions=/proc/self/fd/%d", file ? fileno(file) : -1);
    setenv(UNDER_VALGRIND, "1", 1);
    /* set it now: executing byoc once more would leave valgrind */
    setenv(TUNABLES, NO_CACHES, 0);
    run_again(valgrind, argc, argv);
    fprintf(stderr,
            "byoc conform: --valgrind: cannot run valgrind: %s; install it, or "
            "leave the option out\n",
            strerror(errno));
    return BYI_EXIT_USAGE;
}

/* Replace the process by byoc without malloc's thread caches, unless the
 * environment has settings of glibc. malloc's statistics count freed blocks in
 * these caches as used, which looks like a leak. malloc reads the setting when
 * the process starts. */
static void rerun_without_thread_caches(int argc, char **argv)
{
    static const char *const nothing[] = {NULL};
    if (getenv(TUNABLES))
        return;
    setenv(TUNABLES, NO_CACHES, 1);
    run_again(nothing, argc, argv);
}

/* Append the options that the command line in a report needs to run a case
 * again. */
static void add_options(const struct byoc_conform_params *params, bool valgrind,
                        struct byi_text *text)
{
    if (params->seconds > 0)
        byi_text_addf(text, " --seconds %s", BYI_FLOAT_TEXT(params->seconds));
    if (params->codegen)
        byi_text_addf(text, " --codegen %s",
                      params->codegen == BYOC_CODEGEN_C ? "c" : "auto");
    if (valgrind)
        byi_text_addf(text, " --valgrind");
}

static int run(int argc, char **argv)
{
    struct byi_text rerun_options = {0};
    struct byoc_conform_params params = {.struct_size = sizeof params};
    int codegen = BYOC_CODEGEN_DEFAULT;
    uint32_t seed = 1, n;
    bool json = false, no_onnx = false, valgrind = false;
    const char *path;
    const struct byi_option options[] = {
        {"only", 0, BYI_OPTION_TEXT, &params.only, "CASE",
         "one case or group of cases: numerics/backend.add"},
        {"seed", 0, BYI_OPTION_COUNT, &seed, "N",
         "seed of the graphs and of their values (default: 1)"},
        {"cases", 0, BYI_OPTION_COUNT, &params.cases, "N",
         "graphs for each pattern (default: 28)"},
        {"seconds", 0, BYI_OPTION_SECONDS, &params.seconds, "S",
         "time limit of one case (default: 20)"},
        {"no-onnx", 0, BYI_OPTION_FLAG, &no_onnx, NULL,
         "leave out ONNX's own cases"},
        {"codegen", 0, BYI_OPTION_CHOICE, &codegen, "auto|c",
         "which backends generate C; auto: those that generate only C; c: all"},
        {"valgrind", 0, BYI_OPTION_FLAG, &valgrind, NULL,
         "run the cases under valgrind"},
        {"json", 0, BYI_OPTION_FLAG, &json, NULL, "print JSON"},
    };
    int code =
        byi_parse_options(&byi_command_conform, options, BYI_COUNT(options),
                          argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    if (valgrind && !getenv(UNDER_VALGRIND))
        return rerun_under_valgrind(argc, argv);
    rerun_without_thread_caches(argc, argv);
    params.codegen = (enum byoc_codegen)codegen;
    add_options(&params, valgrind, &rerun_options);
    params.options = rerun_options.n ? rerun_options.at + 1 : NULL;
    params.seed = seed;
    params.no_onnx = no_onnx;
    enum { SLOWDOWN = 20, DEFAULT_SECONDS = 20 }; /* SLOWDOWN: by valgrind */
    if (getenv(UNDER_VALGRIND))
        params.seconds =
            SLOWDOWN * (params.seconds > 0 ? params.seconds : DEFAULT_SECONDS);
    params.progress = show_progress;
    struct byoc_error err;
    char *text = NULL, *real = realpath(path, NULL);
    int failed = 0;
    const enum byoc_status status =
        byoc_conform(real ? real : path, &params, json, &failed, &text, &err);
    free(real);
    byi_text_free(&rerun_options);
    if (status != BYOC_OK)
        return byi_cli_print_error(&byi_command_conform, &err);
    fputs(text, stdout);
    byoc_string_free(text);
    return failed ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}

const struct byi_command byi_command_conform = {
    .name = "conform",
    .usage = "libBACKEND.so [OPTIONS]",
    .summary = "test a plug-in",
    .example = "byoc conform libexample.so --no-onnx --cases 4\n",
    .run = run,
};
