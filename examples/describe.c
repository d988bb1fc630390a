/* SPDX-License-Identifier: Apache-2.0 */
/* Print a model's inputs, outputs and metadata, or this machine's backends.
 *     describe MODEL.so [KEY]             (KEY: one value, such as
 *                                          producer_name or custom.license)
 *     describe --backends [PLUGINS]
 *     cc describe.c $(pkg-config --cflags --libs byoc) */
#include <byoc/byoc.h>
#include <stdio.h>
#include <string.h>

/* Print a plug-in, and increment *ctx if it can be used. */
static void print_backend(void *ctx, const char *path, const char *name,
                          const char *version, const char *verdict)
{
    int *usable = ctx;
    printf("%s %s %s: %s\n", name ? name : "?", version ? version : "?", path,
           verdict ? verdict : "can be used");
    *usable += !verdict;
}

static void print_io(const char *what, const struct byoc_io *io)
{
    printf("%s %s:", what, io->name);
    for (uint32_t i = 0; i < io->rank; i++)
        if (io->dims[i] < 0)
            printf(" %s", io->dim_names[i]);
        else
            printf(" %lld", (long long)io->dims[i]);
    printf("\n");
}

static int describe(const struct byoc_model *model, const char *key)
{
    uint32_t n;
    const struct byoc_metadata *m = byoc_model_metadata(model, &n);
    if (key) {
        const char *value = byoc_model_metadata_value(model, key);
        if (!value)
            return fprintf(stderr, "the model has no metadata %s\n", key), 1;
        return puts(value) < 0;
    }
    for (uint32_t i = 0; i < n; i++)
        printf("%s = %s\n", m[i].key, m[i].value);
    for (uint32_t i = 0; i < byoc_model_n_inputs(model); i++)
        print_io("input", byoc_model_input(model, i));
    for (uint32_t i = 0; i < byoc_model_n_outputs(model); i++)
        print_io("output", byoc_model_output(model, i));
    return 0;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {
        .text = "usage: describe MODEL.so [KEY] | --backends [PLUGINS]"};
    struct byoc_model *model = NULL;
    int usable = 0;
    if (argc >= 2 && strcmp(argv[1], "--backends") == 0) {
        byoc_backends_list(argc > 2 ? argv[2] : NULL, print_backend, &usable);
        return usable ? 0 : 1;
    }
    if (argc < 2 || argc > 3 || byoc_model_load(argv[1], NULL, &model, &err))
        return fprintf(stderr, "%s\n", err.text), 2;
    const int code = describe(model, argv[2]);
    byoc_model_free(&model);
    return code;
}
