/* SPDX-License-Identifier: Apache-2.0 */
/* pass_options.c: typed options of passes, "FuseOps.max_depth=4": declared by
 * the pass, checked before the first pass runs, and read by the running pass.
 */
#include "pass.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- values --------------------------------------------------------------- */

static bool read_int(const char *text, int64_t *value)
{
    char *end = NULL;

    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool read_bool(const char *text, bool *value)
{
    static const char *const words[] = {"0", "false", "1", "true"};

    for (uint32_t i = 0; i < BYI_COUNT(words); i++) {
        *value = i >= 2;
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

/* The kind of value that the option expects, for messages; NULL if `text` is of
 * that kind. */
static const char *expected_kind(const struct byi_pass_option *option,
                                 const char *text)
{
    int64_t number;
    bool flag;

    if (option->kind == BYI_ATTR_INT && !read_int(text, &number))
        return "an integer";
    if (option->kind == BYI_ATTR_BOOL && !read_bool(text, &flag))
        return "true or false";
    return NULL;
}

/* --- checking the options ------------------------------------------------- */

static const struct byi_pass_option *find_option(
    const struct byi_pass *const *passes, uint32_t n, const char *key,
    size_t bytes)
{
    for (uint32_t i = 0; i < n && passes[i]; i++) {
        const struct byi_pass_option *o = passes[i]->options;
        const size_t name_bytes = strlen(passes[i]->name);
        if (!o || bytes <= name_bytes || key[name_bytes] != '.' ||
            memcmp(key, passes[i]->name, name_bytes) != 0)
            continue;
        for (; o->name; o++)
            if (strlen(o->name) == bytes - name_bytes - 1 &&
                memcmp(key + name_bytes + 1, o->name, bytes - name_bytes - 1) ==
                    0)
                return o;
    }
    return NULL;
}

/* List the options of the pass with whose name `key` starts, or of all passes
 * if `lists_all` or if that pass has no options. */
static void list_options(const struct byi_pass *const *passes, uint32_t n,
                         const char *key, bool lists_all, struct byi_text *out)
{
    for (uint32_t i = 0; i < n && passes[i]; i++) {
        const struct byi_pass_option *o = passes[i]->options;
        const size_t name_bytes = strlen(passes[i]->name);
        if (!lists_all && (strncmp(key, passes[i]->name, name_bytes) != 0 ||
                           key[name_bytes] != '.'))
            continue;
        for (; o && o->name; o++)
            byi_text_addf(out, "%s%s.%s", out->n ? ", " : "", passes[i]->name,
                          o->name);
    }
    if (out->n == 0 && !lists_all)
        list_options(passes, n, key, true, out);
}

/* Check the option `setting`, "FuseOps.max_depth=4". */
static enum byoc_status check_option(const struct byi_pass *const *passes,
                                     uint32_t n, const char *setting,
                                     struct byoc_error *err)
{
    const size_t equals = strcspn(setting, "=");
    struct byi_text others = {0};
    enum byoc_status status = BYOC_OK;
    const struct byi_pass_option *option =
        find_option(passes, n, setting, equals);

    if (setting[equals] != '=')
        status = byi_fail(
            err, BYOC_EINVAL,
            "option '%s': found no value, expected PASS.NAME=VALUE", setting);
    else if (!option) {
        list_options(passes, n, setting, false, &others);
        status = byi_fail(err, BYOC_EINVAL,
                          "option '%.*s': found no pass that has it, expected "
                          "one of %.700s",
                          (int)equals, setting, others.n ? others.at : "none");
    } else if (expected_kind(option, setting + equals + 1))
        status =
            byi_fail(err, BYOC_EINVAL, "option '%.*s': found '%s', expected %s",
                     (int)equals, setting, setting + equals + 1,
                     expected_kind(option, setting + equals + 1));
    byi_text_free(&others);
    return status;
}

enum byoc_status byi_options_check(const struct byi_pass *const *passes,
                                   uint32_t n,
                                   const struct byi_pass_context *ctx,
                                   struct byoc_error *err)
{
    for (const char *const *o = ctx->options; o && *o; o++)
        BYI_TRY(ctx->known ? check_option(ctx->known, UINT32_MAX, *o, err)
                           : check_option(passes, n, *o, err));
    return BYOC_OK;
}

/* --- reading, by the pass that runs --------------------------------------- */

/* The value of the option as text: the last one given, or the default. */
static const char *option_text(const struct byi_pass_context *ctx,
                               const char *name, enum byi_attr_kind kind)
{
    size_t bytes = strlen(name), pass_bytes = strlen(ctx->pass->name);
    const struct byi_pass_option *option = ctx->pass->options;
    const char *text = NULL;

    assert(strncmp(name, ctx->pass->name, pass_bytes) == 0 &&
           name[pass_bytes] == '.');
    while (option && option->name &&
           strcmp(option->name, name + pass_bytes + 1) != 0)
        option++;
    assert(option && option->name && option->kind == kind);
    (void)kind;
    text = option->default_text;
    for (const char *const *o = ctx->options; o && *o; o++)
        if (strncmp(*o, name, bytes) == 0 && (*o)[bytes] == '=')
            text = *o + bytes + 1;
    return text;
}

int64_t byi_option_int(const struct byi_pass_context *ctx, const char *name)
{
    int64_t value = 0;
    bool is_valid = read_int(option_text(ctx, name, BYI_ATTR_INT), &value);

    assert(is_valid);
    (void)is_valid;
    return value;
}

bool byi_option_bool(const struct byi_pass_context *ctx, const char *name)
{
    bool value = false;
    bool is_valid = read_bool(option_text(ctx, name, BYI_ATTR_BOOL), &value);

    assert(is_valid);
    (void)is_valid;
    return value;
}

const char *byi_option_string(const struct byi_pass_context *ctx,
                              const char *name)
{
    return option_text(ctx, name, BYI_ATTR_STRING);
}
