/* SPDX-License-Identifier: Apache-2.0 */
/* isolated.c: runs a whole compile in a child process. The result comes back as
 * bytes. It has the module as text with its constants in an unnamed file, the
 * backends' results for its regions, and the ledger. From these, this process
 * builds the plan and manifest as usual, but it never loads a plug-in.
 */
#include "compiled.h"

#include "core/base/child.h"
#include "core/base/guard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The state of byi_compile_isolated. */
struct isolated_compile {
    const struct byi_model_source *source;
    const struct byoc_compile_params *params;
    struct byi_arena *arena; /* for the strings */
    BYI_VEC(struct byi_crashed_backend) crashed;
    int consts; /* descriptor of the unnamed file of constants; -1: none */
    struct byi_child child; /* the last one */
};

/* --- writing, in the child ------------------------------------------------ */

/* Each item of the result is its length, a size_t, then its bytes. */

static void put_item(struct byi_text *out, const void *data, size_t n)
{
    byi_text_add(out, (const char *)&n, sizeof n);
    byi_text_add(out, data, n);
}

/* Put a string with its NUL; NULL has length 0. */
static void put_string(struct byi_text *out, const char *text)
{
    put_item(out, text, text ? strlen(text) + 1 : 0);
}

static void put_text(struct byi_text *out, const struct byi_text *text)
{
    put_item(out, text->at, text->n);
}

static void put_module(const struct byi_module *m, int consts,
                       struct byi_text *out)
{
    struct byi_text text = {0};
    FILE *side = fdopen(dup(consts), "w");
    if (side) {
        byi_print_module(m, &text, side);
        fclose(side);
    }
    put_text(out, &text);
    byi_text_free(&text);
    put_string(out, m->entry);
    put_item(out, &m->backends.n, sizeof m->backends.n);
    for (uint32_t i = 0; i < m->backends.n; i++)
        put_string(out, m->backends.at[i]);
    put_item(out, &m->n_metadata, sizeof m->n_metadata);
    for (uint32_t i = 0; i < m->n_metadata; i++) {
        put_string(out, m->metadata[i].key);
        put_string(out, m->metadata[i].value);
    }
}

static void put_backends(const struct byi_found_backends *found,
                         struct byi_text *out)
{
    put_item(out, &found->plugins.n, sizeof found->plugins.n);
    for (uint32_t i = 0; i < found->plugins.n; i++) {
        const struct byoc_backend *b = found->plugins.at[i]->backend;
        put_string(out, b->name);
        put_string(out, b->version);
        put_string(out, b->compat);
    }
}

static void put_regions(const struct byi_module *m,
                        const struct byi_built_model *built,
                        struct byi_text *out)
{
    put_item(out, &built->regions.n, sizeof built->regions.n);
    for (uint32_t i = 0; i < built->regions.n; i++) {
        const struct byi_built_region *r = &built->regions.at[i];
        put_string(out, m->funcs.at[r->func]->name);
        put_text(out, &r->blob);
        put_string(out, r->symbol);
        if (!r->symbol)
            continue;
        put_text(out, &r->code->unit.library);
        for (size_t k = 0; k < BYI_COUNT(r->code->unit.objects); k++)
            put_text(out, &r->code->unit.objects[k]);
    }
}

/* The function that the child runs. */
static void compile_in_child(void *arg, struct byi_text *out)
{
    struct isolated_compile *job = arg;
    struct byoc_compiled *c;
    struct byoc_error err = {0};
    dup2(STDERR_FILENO,
         STDOUT_FILENO); /* plug-ins must not print to the output */
    err.status = byi_compile_here(job->source, job->params, job->crashed.at,
                                  job->crashed.n, &c, &err);
    put_item(out, &err, sizeof err);
    if (err.status != BYOC_OK)
        return;
    put_module(c->m, job->consts, out);
    put_backends(&c->found, out);
    put_regions(c->m, &c->built, out);
    put_item(out, &c->coverage, sizeof c->coverage);
    put_string(out, c->coverage.sizes);
    put_string(out, c->verdict);
    put_text(out, &c->ledger_json);
    put_text(out, &c->warnings);
    put_string(out, byoc_compiled_times(c));
}

/* --- reading -------------------------------------------------------------- */

/* The unread bytes of the result. Reading after the end gives empty values and
 * sets `damaged`: a plug-in may have damaged the child's memory. */
struct result_reader {
    const char *at;
    size_t n;
    struct byi_arena *arena;
    bool damaged;
};

/* Returns the bytes of the next item, in the child's result; *n becomes their
 * number. */
static const char *get_item(struct result_reader *in, size_t *n)
{
    const char *at = in->at + sizeof *n;
    *n = 0;
    if (!in->damaged && in->n >= sizeof *n)
        memcpy(n, in->at, sizeof *n);
    in->damaged = in->damaged || in->n < sizeof *n || *n > in->n - sizeof *n;
    if (in->damaged)
        *n = 0;
    else
        in->at = at + *n;
    in->n -= in->damaged ? 0 : sizeof *n + *n;
    return in->damaged ? "" : at;
}

/* Read the next item, which must have n bytes. */
static void get_value(struct result_reader *in, void *value, size_t n)
{
    size_t found;
    const char *at = get_item(in, &found);
    in->damaged = in->damaged || found != n;
    memset(value, 0, n);
    if (!in->damaged)
        memcpy(value, at, n);
}

/* Read a number of items, each of which needs at least a size_t. A number that
 * the rest of the bytes cannot hold sets `damaged`. */
static uint32_t get_count(struct result_reader *in)
{
    uint32_t n;
    get_value(in, &n, sizeof n);
    in->damaged = in->damaged || n > in->n / sizeof(size_t);
    return in->damaged ? 0 : n;
}

static const char *get_string(struct result_reader *in)
{
    size_t n;
    const char *at = get_item(in, &n);
    in->damaged = in->damaged || (n && at[n - 1]);
    return n && !in->damaged ? byi_arena_str(in->arena, at) : NULL;
}

/* Returns the same as get_string, with "" for NULL. */
static const char *get_name(struct result_reader *in)
{
    const char *name = get_string(in);
    return name ? name : "";
}

static void get_text(struct result_reader *in, struct byi_text *text)
{
    size_t n;
    const char *at = get_item(in, &n);
    if (n)
        byi_text_add(text, at, n);
}

static enum byoc_status get_module(struct result_reader *in, int consts,
                                   struct byi_module **m,
                                   struct byoc_error *err)
{
    char side[64];
    size_t n;
    const char *text = get_item(in, &n);
    snprintf(side, sizeof side, "/proc/self/fd/%d", consts);
    BYI_TRY(byi_parse_module(text, n, "isolated compile", side, m, err));
    (*m)->entry = get_string(in);
    const uint32_t n_backends = get_count(in);
    for (uint32_t i = 0; i < n_backends; i++) {
        uint32_t backend;
        BYI_TRY(byi_backend_add(*m, get_name(in), &backend, err));
    }
    (*m)->n_metadata = get_count(in);
    (*m)->metadata =
        byi_arena_calloc(in->arena, (*m)->n_metadata, sizeof *(*m)->metadata);
    for (uint32_t i = 0; i < (*m)->n_metadata; i++) {
        (*m)->metadata[i].key = get_name(in);
        (*m)->metadata[i].value = get_name(in);
    }
    return BYOC_OK;
}

/* Make backends that have only a name and versions, and are never called. */
static void get_backends(struct result_reader *in,
                         struct byi_found_backends *found)
{
    const uint32_t n = get_count(in);
    for (uint32_t i = 0; i < n; i++) {
        struct byi_plugin *plugin = byi_arena_alloc(in->arena, sizeof *plugin);
        struct byoc_backend *b = byi_arena_alloc(in->arena, sizeof *b);
        b->name = get_name(in);
        b->version = get_name(in);
        b->compat = get_name(in);
        plugin->backend = b;
        BYI_PUSH(&found->plugins, plugin);
    }
}

/* Read what compile() returned for each region; the data stay in the result. */
static void get_answers(struct result_reader *in,
                        struct byi_found_backends *found)
{
    const uint32_t n = get_count(in);
    struct byi_answer *answers =
        byi_arena_calloc(in->arena, n + 1u, sizeof *answers);
    for (uint32_t i = 0; i < n; i++) {
        struct byi_answer *a = &answers[i];
        a->region = get_name(in);
        a->data = get_item(in, &a->bytes);
        a->symbol = get_string(in);
        if (!a->symbol)
            continue;
        struct byi_code *code = byi_arena_alloc(in->arena, sizeof *code);
        code->unit.symbol = a->symbol;
        BYI_PUSH(&found->codes->list, code);
        byi_text_add(&code->unit.source, a->data, a->bytes);
        get_text(in, &code->unit.library);
        for (size_t k = 0; k < BYI_COUNT(code->unit.objects); k++)
            get_text(in, &code->unit.objects[k]);
    }
    found->answers = answers;
    found->n_answers = n;
}

static enum byoc_status read_result(const struct isolated_compile *job,
                                    struct byoc_compiled **c,
                                    struct byoc_error *err)
{
    const struct byoc_compile_params *params = job->params;
    struct result_reader in = {.at = job->child.bytes, .n = job->child.n};
    struct byoc_error result;
    get_value(&in, &result, sizeof result);
    result.text[sizeof result.text - 1] = '\0';
    if (result.status != BYOC_OK)
        return byi_fail(err, result.status, "%s", result.text);
    *c = byi_compiled_new(params);
    in.arena = (*c)->arena;
    struct byi_found_backends *found = &(*c)->found;
    found->arena = (*c)->arena;
    found->codes = byi_arena_alloc((*c)->arena, sizeof *found->codes);
    *found->codes = (struct byi_codes){.arena = (*c)->arena};
    BYI_TRY(get_module(&in, job->consts, &(*c)->m, err));
    get_backends(&in, found);
    get_answers(&in, found);
    get_value(&in, &(*c)->coverage, sizeof(*c)->coverage);
    (*c)->coverage.sizes = get_name(&in);
    (*c)->verdict = get_string(&in);
    get_text(&in, &(*c)->ledger_json);
    get_text(&in, &(*c)->warnings);
    byi_text_put(&(*c)->times, get_name(&in));
    if (in.damaged)
        return byi_fail(err, BYOC_EBACKEND,
                        "the process of an isolated compile sent a malformed "
                        "result; a backend may have damaged its memory");
    BYI_TRY(byi_find_warm(found, (*c)->m, params->warm, (*c)->arena, err));
    enum byoc_status status = BYOC_OK;
    if (!params->stop_after && !params->passes)
        status = byi_built_model_make((*c)->m, found, NULL, (*c)->arena,
                                      &(*c)->built, err);
    found->answers = NULL; /* the answers point into the child's bytes */
    return status;
}

/* --- the child ------------------------------------------------------------ */

/* Free the child's result, and close the file of constants. */
static void end_child(struct isolated_compile *job)
{
    byi_child_free(&job->child);
    if (job->consts >= 0)
        close(job->consts);
    job->consts = -1;
}

static void end_isolated(void *job)
{
    end_child(job);
    byi_vec_free(job);
}

/* Record the backend whose call ended the child. Returns false if the child did
 * not end in a call of a backend, or this backend was excluded already. */
static bool note_crashed(struct isolated_compile *job)
{
    const struct byi_child *child = &job->child;
    bool excluded = !*child->plugin;
    for (uint32_t i = 0; i < job->crashed.n; i++)
        excluded =
            excluded || strcmp(job->crashed.at[i].plugin, child->plugin) == 0;
    if (excluded)
        return false;
    const struct byi_crashed_backend crashed_backend = {
        byi_arena_str(job->arena, child->plugin),
        byi_arena_printf(job->arena, "its process %s", child->how)};
    BYI_PUSH(&job->crashed, crashed_backend);
    return true;
}

/* Run the compile in a child, again without each backend that crashes. Sets
 * job->child and job->consts. */
static enum byoc_status run_child(struct isolated_compile *job,
                                  struct byoc_error *err)
{
    const struct byoc_compile_params *p = job->params;
    const struct byi_child_limits limits = {
        .step_seconds =
            p->isolate_seconds > 0 ? p->isolate_seconds : BYI_ISOLATE_SECONDS,
        .step_bytes = p->isolate_bytes ? p->isolate_bytes : UINT64_C(4) << 30};
    do {
        /* a crashed child may have written some of the constants */
        end_child(job);
        job->consts = memfd_create("consts", MFD_CLOEXEC);
        if (job->consts < 0)
            return byi_fail(err, byi_io_status(errno),
                            "cannot create the file of an isolated compile: %s",
                            strerror(errno));
        byi_child_run(compile_in_child, job, &limits, &job->child);
        if (!job->child.started)
            return byi_fail(
                err, byi_io_status(errno),
                "cannot start a process for an isolated compile: %s",
                strerror(errno));
        if (job->child.returned)
            return BYOC_OK;
        if (job->child.out_of_memory)
            return byi_fail(err, BYOC_ENOMEM,
                            "an isolated compile: out of memory");
    } while (note_crashed(job));
    return byi_fail(err, BYOC_EBACKEND,
                    "the process of an isolated compile %s, outside of all "
                    "calls of backends",
                    job->child.how);
}

enum byoc_status byi_compile_isolated(const struct byi_model_source *source,
                                      const struct byoc_compile_params *params,
                                      struct byoc_compiled **c,
                                      struct byoc_error *err)
{
    struct isolated_compile *job = byi_own(1, sizeof *job, end_isolated);
    job->source = source;
    job->params = params;
    job->consts = -1;
    job->arena = byi_arena_new();
    enum byoc_status status = run_child(job, err);
    if (status == BYOC_OK)
        status = read_result(job, c, err);
    byi_vec_free(job->crashed.at);
    byi_arena_free(&job->arena);
    end_isolated(job);
    return status;
}
