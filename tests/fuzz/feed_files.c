/* SPDX-License-Identifier: Apache-2.0 */
/* feed_files.c: the feed functions of JSON, tensors, plug-ins and messages of
 * other processes.
 */
#include <byoc/byoc.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#include "core/base/json_write.h"
#include "core/ir/ir.h"
#include "frontend_onnx/onnx.h"
#include "npy/npy.h"
#include "report/page.h"
#include "report/report.h"
#include "runtime/internal.h"
#include "tuner/cost_table.h"

bool fuzz_wrong(struct fuzz_case *c, const char *what, const char *detail)
{
    snprintf(c->why, sizeof c->why, "%.100s%.900s", what, detail);
    return false;
}

bool fuzz_refused(struct fuzz_case *c, const char *what,
                  const struct byoc_error *err)
{
    const char *fault = NULL;
    if (err->status == BYOC_OK || err->status > BYOC_ELIMIT)
        fault = err->status == BYOC_EINTERNAL ? "a bug of byoc's"
                                              : "no such status";
    else if (!err->text[0])
        fault = "no sentence";
    else if (strpbrk(err->text, "\n\r"))
        fault = "more than one line";
    if (!fault)
        return true;
    snprintf(c->why, sizeof c->why, "%s: %s: %.800s", what, fault, err->text);
    return false;
}

const char *fuzz_as_file(struct fuzz_case *c, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", c->temp, name);
    if (!fuzz_write(path, c->bytes, c->n))
        fuzz_wrong(c, "cannot write ", path);
    return path;
}

/* --- JSON ----------------------------------------------------------------- */

bool fuzz_feed_json(struct fuzz_case *c)
{
    struct cJSON *json = NULL, *reparsed = NULL;
    struct byi_text first = {0}, second = {0};
    struct byoc_error err;
    if (byi_json_parse(c->bytes, c->n, 1 << 20, &json, &err) != BYOC_OK)
        return fuzz_refused(c, "parse", &err);
    c->accepted = true;
    bool good = true;
    byi_json_print(json, &first);
    if (byi_json_parse(first.at, first.n, 8 << 20, &reparsed, &err) !=
        BYOC_OK) {
        good = fuzz_wrong(c, "the printed JSON does not parse: ", err.text);
    } else {
        byi_json_print(reparsed, &second);
        if (strcmp(first.at, second.at) != 0)
            good = fuzz_wrong(c, "the second print differs", "");
    }
    byi_json_free(&json);
    byi_json_free(&reparsed);
    byi_text_free(&first);
    byi_text_free(&second);
    return good;
}

/* Read a text as the attributes of `op`, print them, and read them again. */
static bool read_attributes(struct fuzz_case *c, const struct byi_op *op,
                            const char *text, size_t n)
{
    struct byi_arena *arena = byi_arena_new();
    struct cJSON *json = NULL;
    const struct byi_attrs *attrs;
    struct byoc_error err;
    bool good = true;
    enum byoc_status status = byi_json_parse(text, n, 1 << 20, &json, &err);
    if (status == BYOC_OK) {
        const struct byi_json root = byi_json_root(json);
        status = byi_attrs_from_json(&root, arena, op, &attrs, &err);
    }
    if (status != BYOC_OK) {
        good = fuzz_refused(c, "attributes", &err);
    } else {
        struct cJSON *back = byi_attrs_to_json(arena, attrs);
        const struct byi_json root = byi_json_root(back);
        const struct byi_attrs *same;
        c->accepted = true;
        if (byi_attrs_from_json(&root, arena, op, &same, &err) != BYOC_OK)
            good = fuzz_wrong(c, "attributes do not read back: ", err.text);
        else if (!byi_attrs_equal(attrs, same))
            good =
                fuzz_wrong(c, "attributes read back as others of ", op->name);
    }
    byi_json_free(&json);
    byi_arena_free(&arena);
    return good;
}

/* An operator's name, a space, its attributes. */
bool fuzz_feed_attributes(struct fuzz_case *c)
{
    const char *space = memchr(c->bytes, ' ', c->n);
    const size_t n = space ? (size_t)(space - c->bytes) : c->n;
    const struct byi_op *op = byi_op_of_name(c->bytes, n);
    return !op || !space || read_attributes(c, op, space + 1, c->n - n - 1);
}

/* Make every report of a ledger. */
static bool read_ledger(struct fuzz_case *c)
{
    struct byi_report r;
    struct byi_text out = {0};
    struct byoc_error err;
    bool good = true;
    if (byi_report_read(c->bytes, c->n, &r, &err) != BYOC_OK)
        return fuzz_refused(c, "ledger", &err);
    c->accepted = true;
    byi_report_add_text(&r, fuzz_below(&c->rng, 2), &out);
    if (r.n_nodes &&
        byi_report_add_node(&r, r.nodes[fuzz_below(&c->rng, r.n_nodes)].name,
                            &out, &err) != BYOC_OK)
        good = fuzz_wrong(c, "no report on a node of the ledger: ", err.text);
    if (byi_report_add_diff(&r, &r, 0, fuzz_below(&c->rng, 2), &out))
        good = fuzz_wrong(c, "a ledger is worse than itself", "");
    byi_text_free(&out);
    byi_report_free(&r);
    return good;
}

bool fuzz_feed_ledger(struct fuzz_case *c)
{
    struct byoc_error err;
    struct byi_text page = {0}, dot = {0};
    enum byoc_status status =
        byi_ledger_write_page(c->bytes, c->n, NULL, &page, &err);
    bool good = status == BYOC_OK || fuzz_refused(c, "page", &err);
    if (byi_ledger_write_dot(c->bytes, c->n, &dot, &err) != status)
        good =
            fuzz_wrong(c, "only one of page and graph accepts the ledger", "");
    byi_text_free(&page);
    byi_text_free(&dot);
    return good && read_ledger(c);
}

bool fuzz_feed_costs(struct fuzz_case *c)
{
    struct byi_cost_table table = {0};
    struct byi_text note = {0};
    struct byoc_error err;
    double us;
    bool good = true;
    byi_cost_table_open(&table, fuzz_as_file(c, "mutant.costs"), &note);
    c->accepted = note.n == 0;
    if (note.n && strchr(note.at, '\n') != note.at + note.n - 1)
        good = fuzz_wrong(c, "more than one line: ", note.at);
    for (uint32_t i = 0; i < table.list.n && good; i++)
        if (!byi_cost_get(&table, table.list.at[i].key, &us))
            good =
                fuzz_wrong(c, "an entry is not found: ", table.list.at[i].key);
    byi_cost_put(&table, "0123456789abcdef", 12.5, "a part");
    if (good && fuzz_below(&c->rng, 8) == 0 &&
        byi_cost_table_save(&table, &err) != BYOC_OK)
        good = fuzz_refused(c, "save", &err);
    byi_cost_table_close(&table);
    byi_text_free(&note);
    return good;
}

/* --- tensors -------------------------------------------------------------- */

/* Read every element of the tensor, if reading the file succeeded. */
static bool read_elements(struct fuzz_case *c, enum byoc_status status,
                          const struct byi_tensor *t,
                          const struct byoc_error *err)
{
    volatile double sum = 0;
    if (status != BYOC_OK)
        return fuzz_refused(c, "read", err);
    c->accepted = true;
    if (byoc_dtype_size(t->dtype))
        for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
            sum = sum + byi_tensor_float(t, i);
    return true;
}

bool fuzz_feed_npy(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor t = {0};
    struct byoc_error err;
    const enum byoc_status status =
        byi_npy_read(fuzz_as_file(c, "mutant.npy"), arena, &t, &err);
    const bool good = read_elements(c, status, &t, &err);
    byi_arena_free(&arena);
    return good;
}

bool fuzz_feed_npz(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor t = {0};
    struct byoc_error err;
    const enum byoc_status status =
        byi_npz_read(fuzz_as_file(c, "mutant.npz"), "x", arena, &t, &err);
    const bool good = read_elements(c, status, &t, &err);
    byi_arena_free(&arena);
    return good;
}

bool fuzz_feed_tensor(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor t = {0};
    struct byoc_error err;
    const char *name;
    const enum byoc_status status =
        byi_onnx_tensor(fuzz_as_file(c, "mutant.pb"), arena, &t, &name, &err);
    const bool good = read_elements(c, status, &t, &err);
    byi_arena_free(&arena);
    return good;
}

bool fuzz_feed_value(struct fuzz_case *c)
{
    /* a sequence of tensors, an optional sequence, or an optional tensor */
    static const struct byoc_io
        tensor = {.name = "", .dtype = BYOC_F32, .rank = UINT32_MAX},
        sequence = {.name = "", .kind = BYOC_SEQUENCE, .element = &tensor},
        optional = {.name = "", .kind = BYOC_OPTIONAL, .element = &sequence},
        optional_tensor = {
            .name = "", .kind = BYOC_OPTIONAL, .element = &tensor};
    static const struct byoc_io *const types[] = {&sequence, &optional,
                                                  &optional_tensor};
    const struct byoc_io *io = types[fuzz_below(&c->rng, BYI_COUNT(types))];
    struct byi_arena *arena = byi_arena_new();
    struct byoc_value value;
    struct byoc_error err;
    bool good = true;
    if (byi_onnx_value(fuzz_as_file(c, "mutant.pb"), io, arena, &value, &err) !=
        BYOC_OK)
        good = fuzz_refused(c, "read", &err);
    else
        c->accepted = true;
    byi_arena_free(&arena);
    return good;
}

/* --- libraries, processes ------------------------------------------------- */

bool fuzz_feed_plugin(struct fuzz_case *c)
{
    struct byoc_error err;
    uint32_t abi;
    if (byi_plugin_agree(fuzz_as_file(c, "mutant.so"), &abi, &err) != BYOC_OK)
        return fuzz_refused(c, "agree", &err);
    c->accepted = true;
    return true;
}

/* The lines up to "--" are /proc/self/cgroup, the others every file of limits
 * in the folder of the group. */
bool fuzz_feed_cgroup(struct fuzz_case *c)
{
    static const char *const files[] = {"cpu.max", "cpu.cfs_quota_us",
                                        "cpu.cfs_period_us"};
    char self[512], path[512], why[256];
    struct byoc_error err;
    uint32_t threads = 0;
    const char *cut = memmem(c->bytes, c->n, "--\n", 3);
    const size_t n = cut ? (size_t)(cut - c->bytes) : c->n;
    snprintf(self, sizeof self, "%s/cgroup", c->temp);
    bool good = fuzz_write(self, c->bytes, n);
    for (uint32_t i = 0; i < BYI_COUNT(files) && good; i++) {
        snprintf(path, sizeof path, "%s/%s", c->temp, files[i]);
        good = fuzz_write(path, cut ? cut + 3 : "", cut ? c->n - n - 3 : 0);
    }
    const struct byi_thread_facts facts = {
        .affinity = 8, .cgroup_self = self, .cgroup_root = c->temp};
    if (!good)
        return fuzz_wrong(c, "cannot write files", "");
    if (byi_threads_from(&facts, &threads, why, sizeof why, &err) != BYOC_OK)
        return fuzz_refused(c, "threads", &err);
    c->accepted = true;
    return (threads >= 1 && threads <= 8) ||
           fuzz_wrong(c, "not 1 to 8 threads: ", why);
}
