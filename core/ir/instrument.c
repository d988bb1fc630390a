/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.c: the built-in instruments, which measure times and sizes, print
 * the IR, and dump it to files. They use the same hooks as users' instruments.
 */
#include "ir.h"
#include "core/base/clock.h"
#include "core/base/guard.h"

#include <string.h>

static const struct byi_module *module_of(const struct byoc_module *module)
{
    return (const struct byi_module *)module;
}

/* Whether the node computes something. The others are parameters, constants and
 * references to functions. */
static bool is_counted(enum byi_node_kind kind)
{
    return kind == BYI_CALL_OP || kind == BYI_CALL || kind == BYI_MAKE_TUPLE ||
           kind == BYI_GET || kind == BYI_IF;
}

static uint64_t count_nodes(const struct byi_module *m)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; !f->dead && id < f->nodes.n; id++)
            n += is_counted(f->nodes.at[id].kind);
    }
    return n;
}

uint64_t byoc_module_nodes(const struct byoc_module *module)
{
    return count_nodes(module_of(module));
}

char *byoc_module_text(const struct byoc_module *module)
{
    BYI_BORDER_ELSE(NULL);
    struct byi_text text = {0};

    byi_print_module(module_of(module), &text, NULL);
    return text.at;
}

/* --- times ---------------------------------------------------------------- */

static enum byoc_status begin_pass(void *ctx, const char *pass,
                                   const struct byoc_module *module,
                                   struct byoc_error *err)
{
    struct byi_timing *t = ctx;
    struct byi_pass_time entry = {.name = pass, .depth = t->depth};

    if (t->depth == BYI_COUNT(t->open))
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found a pass inside %u sequences of passes, "
                        "expected at most %zu",
                        pass, t->depth, BYI_COUNT(t->open) - 1);
    t->open[t->depth++] = t->passes.n;
    entry.nodes_before = byoc_module_nodes(module);
    entry.begin = byi_now_ns();
    BYI_PUSH(&t->passes, entry);
    return BYOC_OK;
}

static enum byoc_status end_pass(void *ctx, const char *pass,
                                 const struct byoc_module *module,
                                 struct byoc_error *err)
{
    struct byi_timing *t = ctx;
    struct byi_pass_time *entry = &t->passes.at[t->open[--t->depth]];

    (void)pass;
    (void)err;
    entry->total = byi_now_ns() - entry->begin;
    entry->nodes_after = byoc_module_nodes(module);
    if (t->depth > 0)
        t->passes.at[t->open[t->depth - 1]].inner += entry->total;
    return BYOC_OK;
}

struct byoc_instrument byi_timing_instrument(struct byi_timing *timing)
{
    return (struct byoc_instrument){
        .ctx = timing, .before = begin_pass, .after = end_pass};
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

void byi_timing_print(const struct byi_timing *timing, struct byi_text *out)
{
    uint64_t total = 0;
    uint64_t outer_total[BYI_COUNT(timing->open) + 1] = {0};

    for (uint32_t i = 0; i < timing->passes.n; i++)
        if (timing->passes.at[i].depth == 0)
            total += timing->passes.at[i].total;
    outer_total[0] = total;
    byi_text_addf(out, "%-32s %10s %10s %7s %7s %9s %9s\n", "pass", "total ms",
                  "own ms", "% all", "% outer", "nodes", "after");
    for (uint32_t i = 0; i < timing->passes.n; i++) {
        const struct byi_pass_time *t = &timing->passes.at[i];
        outer_total[t->depth + 1] = t->total;
        byi_text_addf(
            out, "%*s%-*s %10.3f %10.3f %7.1f %7.1f %9llu %9llu\n",
            2 * (int)t->depth, "", 32 - 2 * (int)t->depth, t->name,
            (double)t->total / 1e6, (double)(t->total - t->inner) / 1e6,
            percent(t->total, total), percent(t->total, outer_total[t->depth]),
            (unsigned long long)t->nodes_before,
            (unsigned long long)t->nodes_after);
    }
    byi_text_addf(out, "%-32s %10.3f\n", "all", (double)total / 1e6);
}

void byi_timing_free(struct byi_timing *timing)
{
    byi_vec_free(timing->passes.at);
    *timing = (struct byi_timing){0};
}

/* --- printing ------------------------------------------------------------- */

static void print_if_named(const struct byi_printing *p, const char *which,
                           const char *when, const char *pass,
                           const struct byoc_module *module)
{
    struct byi_text text = {0};

    if (!which || (strcmp(which, "all") != 0 && strcmp(which, pass) != 0))
        return;
    byi_print_module(module_of(module), &text, NULL);
    p->print(p->ctx, when, pass, text.at ? text.at : "");
    byi_text_free(&text);
}

static enum byoc_status print_before(void *ctx, const char *pass,
                                     const struct byoc_module *module,
                                     struct byoc_error *err)
{
    const struct byi_printing *p = ctx;

    (void)err;
    print_if_named(p, p->before, "before", pass, module);
    return BYOC_OK;
}

static enum byoc_status print_after(void *ctx, const char *pass,
                                    const struct byoc_module *module,
                                    struct byoc_error *err)
{
    const struct byi_printing *p = ctx;

    (void)err;
    print_if_named(p, p->after, "after", pass, module);
    return BYOC_OK;
}

struct byoc_instrument byi_printing_instrument(struct byi_printing *printing)
{
    return (struct byoc_instrument){
        .ctx = printing, .before = print_before, .after = print_after};
}

/* --- dumping -------------------------------------------------------------- */

static enum byoc_status open_file(const struct byi_dump *d, const char *name,
                                  const char *suffix, struct byi_file *file,
                                  struct byoc_error *err)
{
    struct byi_text path = {0};
    enum byoc_status status;

    byi_text_addf(&path, "%s/%03u-%s%s", d->folder, d->n, name, suffix);
    status = byi_file_create(path.at, file, err);
    byi_text_free(&path);
    return status;
}

/* Write the constants first: their file may exist without its text, but not the
 * text without its constants. */
static enum byoc_status dump_module(struct byi_dump *d, const char *name,
                                    const struct byoc_module *module,
                                    struct byoc_error *err)
{
    struct byi_text text = {0};
    struct byi_file file;
    enum byoc_status status = open_file(d, name, ".consts", &file, err);

    if (status == BYOC_OK) {
        byi_print_module(module_of(module), &text, file.stream);
        status = byi_file_commit(&file, err);
    }
    if (status == BYOC_OK)
        status = open_file(d, name, ".ir", &file, err);
    if (status == BYOC_OK) {
        fwrite(text.at, 1, text.n, file.stream);
        status = byi_file_commit(&file, err);
    }
    byi_text_free(&text);
    d->n++;
    return status;
}

static enum byoc_status make_folder(void *ctx, struct byoc_error *err)
{
    const struct byi_dump *d = ctx;

    return byi_folder_create(d->folder, err);
}

static enum byoc_status dump_input(void *ctx, const char *pass,
                                   const struct byoc_module *module,
                                   struct byoc_error *err)
{
    struct byi_dump *d = ctx;

    (void)pass;
    return d->n == 0 ? dump_module(d, "input", module, err) : BYOC_OK;
}

static enum byoc_status dump_after(void *ctx, const char *pass,
                                   const struct byoc_module *module,
                                   struct byoc_error *err)
{
    return dump_module(ctx, pass, module, err);
}

struct byoc_instrument byi_dump_instrument(struct byi_dump *dump_to)
{
    return (struct byoc_instrument){.ctx = dump_to,
                                    .enter = make_folder,
                                    .before = dump_input,
                                    .after = dump_after};
}
