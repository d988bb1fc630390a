/* SPDX-License-Identifier: Apache-2.0 */
/* asks.c: a backend whose predicate refuses every match. Its message is
 * everything that the host reports about the match. The message must be the
 * same in an isolated process.
 */
#include <byoc/backend.h>

#include <stdio.h>
#include <string.h>

/* The message of a refusal, of n bytes. */
struct message {
    char text[900];
    size_t n;
};

#define APPEND(message, ...)                                                   \
    ((message)->n +=                                                           \
     (size_t)snprintf((message)->text + (message)->n,                          \
                      sizeof(message)->text - (message)->n, __VA_ARGS__))

static void append_type(struct message *s, const char *name, int32_t has_type,
                        uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    APPEND(s, " %s:", name);
    if (has_type)
        APPEND(s, "%u", dtype);
    for (uint32_t i = 0; has_type && i < rank; i++)
        APPEND(s, "/%lld", (long long)dims[i]);
}

static void append_attributes(struct message *s, const struct byoc_host *host,
                              const struct byoc_match *m, uint32_t op)
{
    static const char *const names[] = {"direction", "activations",
                                        "activation_alpha", "clip", "none"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const int64_t *ints;
        const double *floats;
        const char *const *strings;
        const char *string = host->match_string(m, op, names[i]);
        double number;
        uint32_t n;
        APPEND(s, " %s=", names[i]);
        if (string)
            APPEND(s, "'%s'", string);
        if (host->match_float(m, op, names[i], &number))
            APPEND(s, "%g", number);
        if (host->match_ints(m, op, names[i], &ints, &n))
            APPEND(s, "i%u", n);
        if (host->match_floats(m, op, names[i], &floats, &n))
            for (uint32_t k = 0; k < n; k++)
                APPEND(s, "[%g]", floats[k]);
        if (host->match_strings(m, op, names[i], &strings, &n))
            for (uint32_t k = 0; k < n; k++)
                APPEND(s, "['%s']", strings[k]);
    }
}

static const char *refuse_with_message(const struct byoc_host *host,
                                       const struct byoc_match *m)
{
    struct message s = {.n = 0};
    uint32_t dtype = 0, rank = 0;
    const int64_t *dims = NULL;
    uint64_t bytes = 0;
    int32_t has_type = host->match_type(m, "x", &dtype, &rank, &dims);
    append_type(&s, "x", has_type, dtype, rank, dims);
    has_type = host->match_type(m, "nothing", &dtype, &rank, &dims);
    append_type(&s, "nothing", has_type, dtype, rank, dims);
    has_type = host->match_op_type(m, 1, &dtype, &rank, &dims);
    append_type(&s, "op 1", has_type, dtype, rank, dims);
    const float *w = host->match_const(m, "w", &bytes);
    APPEND(&s, " w:%g/%llu", w ? (double)w[0] : -1, (unsigned long long)bytes);
    APPEND(&s, " x const:%d", host->match_const(m, "x", &bytes) != NULL);
    APPEND(&s, " rnn at %u, nothing at %u,", host->match_find(m, "rnn"),
           host->match_find(m, "nothing"));
    for (uint32_t i = 0; i < host->match_n_ops(m); i++)
        APPEND(&s, " %s", host->match_op(m, i));
    APPEND(&s, " past:%d", host->match_op(m, 99) != NULL);
    append_attributes(&s, host, m, 0);
    return host->match_say(m, "%s; %s; %s", s.text, host->match_show(m, "x"),
                           host->match_show_op(m, 0));
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    (void)region, (void)compiled;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "this plug-in computes nothing");
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)compiled, (void)state, (void)args;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "this plug-in computes nothing");
}

static const struct byoc_pattern patterns[] = {
    {.name = "asks.relu_of_rnn",
     .pattern = "nn.relu(%rnn.0) with %rnn = nn.rnn(%x, const %w, const %r)",
     .accept = refuse_with_message},
};

static const struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = "asks",
    .version = "1",
    .compat = "asks-1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .load = load,
    .unload = unload,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}

BYOC_BACKEND_DEFINE(query)
