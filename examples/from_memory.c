/* SPDX-License-Identifier: Apache-2.0 */
/* Work in memory: compile a model from bytes, and keep the artifact as bytes.
 * Load it from these bytes, or from the descriptor of a deleted file.
 *     from_memory MODEL.onnx ARTIFACT     (ARTIFACT is written and removed)
 *     cc from_memory.c $(pkg-config --cflags --libs byoc) */
#include <byoc/byoc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct byoc_error err;

/* Print the error of a step. Returns the exit code. */
static int fail(const char *step)
{
    fprintf(stderr, "%s: %s\n", step, err.text);
    return 2;
}

/* The *n bytes of a file, which the caller frees; NULL if they cannot be read.
 */
static char *read_all(const char *path, uint64_t *n)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 &&
        fseek(f, 0, SEEK_SET) == 0 && (data = malloc((size_t)size + 1)) &&
        fread(data, 1, (size_t)size, f) != (size_t)size) {
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    *n = data ? (uint64_t)size : 0;
    return data;
}

/* Compile a model from memory, and write its artifact. Returns the exit code.
 */
static int compile(const char *onnx, const char *artifact)
{
    struct byoc_compile_params params = {.struct_size = sizeof params,
                                         .opt_level = BYOC_O3};
    struct byoc_compiled *c = NULL;
    uint64_t n;
    char *data = read_all(onnx, &n);
    if (!data)
        return fprintf(stderr, "%s: cannot read: %s\n", onnx, strerror(errno)),
               2;
    enum byoc_status status =
        byoc_compile_memory(data, n, "mine.onnx", &params, &c, &err);
    free(data); /* the compiled model has its own copy */
    if (status == BYOC_OK)
        status = byoc_compiled_write(c, artifact, &err);
    byoc_compiled_free(&c);
    return status == BYOC_OK ? 0 : fail("compile");
}

/* Print the first input and output of a model, if `status`, the result of
 * loading it, is BYOC_OK, and free the model. Returns the exit code. */
static int report(const char *how, enum byoc_status status,
                  struct byoc_model **model)
{
    struct byoc_state *state = NULL;
    if (status != BYOC_OK || byoc_state_new(*model, &state, &err) != BYOC_OK)
        return fail(how);
    printf("%s: %s -> %s\n", how, byoc_model_input(*model, 0)->name,
           byoc_model_output(*model, 0)->name);
    byoc_state_free(&state);
    byoc_model_free(model);
    return 0;
}

int main(int argc, char **argv)
{
    struct byoc_load_params params = {.struct_size = sizeof params,
                                      .verify = 1};
    struct byoc_model *model = NULL;
    uint64_t n;
    if (argc != 3)
        return fprintf(stderr, "usage: from_memory MODEL.onnx ARTIFACT\n"), 2;
    if (compile(argv[1], argv[2]))
        return 2;
    char *artifact = read_all(argv[2], &n);
    const int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    unlink(argv[2]);
    if (report("from memory",
               byoc_model_load_memory(artifact, n, &params, &model, &err),
               &model))
        return 2;
    const enum byoc_status status =
        byoc_model_load_fd(fd, &params, &model, &err);
    close(fd);
    if (report("from a descriptor", status, &model))
        return 2;
    /* byoc refuses half an artifact, and an invalid descriptor */
    if (byoc_model_load_memory(artifact, n / 2, &params, &model, &err) !=
        BYOC_EPARSE)
        return fail("half an artifact, expected BYOC_EPARSE");
    printf("refused: %s\n", err.text);
    if (byoc_model_load_fd(-1, &params, &model, &err) != BYOC_EINVAL || model)
        return fail("an invalid descriptor, expected BYOC_EINVAL");
    printf("refused: %s\n", err.text);
    free(artifact);
    return 0;
}
