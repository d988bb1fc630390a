/* SPDX-License-Identifier: Apache-2.0 */
/* c_file.c: a backend whose compile() returns the C in the file that $C_FILE
 * names. Each SYMBOL in it is replaced by the name of the requested function.
 * tests/cli/source.sh tests how a host handles it.
 */
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 1)
#include <byoc/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct byoc_fail *refuse(const struct byoc_host *host, const char *why)
{
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, why);
}

/* The *n bytes of a file, which the caller frees; NULL if it cannot be read. */
static char *read_file(const char *path, size_t *n)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    char *text = NULL;
    *n = 0;
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    text = malloc(*n + 1);
    if (text)
        *n = fread(text, 1, *n, f);
    fclose(f);
    return text;
}

static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    static const char word[] = "SYMBOL";
    const size_t room = 1000; /* bytes by which the names may lengthen the C */
    size_t n, k = 0;
    if (!region->symbol)
        return refuse(host, "it was given no symbol");
    char *text = read_file(getenv("C_FILE"), &n);
    char *data = text ? host->acquire(host->ctx, n + room) : NULL;
    if (!data) {
        free(text);
        return refuse(host, "cannot read the file that $C_FILE names");
    }
    for (size_t i = 0; i < n;) {
        const int found = i + 6 <= n && memcmp(text + i, word, 6) == 0 &&
                          k + strlen(region->symbol) < n + room;
        if (found)
            k += (size_t)sprintf(data + k, "%s", region->symbol);
        else
            data[k++] = text[i];
        i += found ? 6 : 1;
    }
    free(text);
    blob->kind = BYOC_BLOB_C;
    blob->data = data;
    blob->bytes = k;
    return NULL;
}

typedef int (*code_fn)(const float *x, float *y, int n);

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    if (!region->symbol || !region->code)
        return refuse(host, "it has no code");
    if (!memchr(region->json, '{', region->json_bytes))
        return refuse(host, "its blob is not the C");
    memcpy(compiled, &region->code, sizeof *compiled);
    return NULL;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    code_fn code;
    (void)state;
    memcpy(&code, &compiled, sizeof code);
    if (code(args->inputs[0].data, args->outputs[0].data,
             (int)(args->inputs[0].bytes / sizeof(float))) != 0)
        return refuse(host, "the code returned an error");
    return NULL;
}

static void quiesce(const struct byoc_host *host)
{
    (void)host;
}

static const struct byoc_pattern patterns[] = {
    {"c_file.negative", "negative(%x)", NULL},
};

static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .flags = BYOC_BACKEND_WRITES_C,
    .name = "c_file",
    .version = "1",
    .compat = "1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .compile = compile,
    .load = load,
    .unload = unload,
    .run = run,
    .quiesce = quiesce,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
