/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: reads the options of a provider. ONNX Runtime passes them as
 * entries of the session's configuration, whose keys begin with
 * "ep.byocexecutionprovider.".
 */
#include "onnxruntime/provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define PREFIX "ep." BYI_EP_NAME "."
enum { MAX_BACKENDS = 64, MAX_THREADS = 1024 };

/* An option as the application gave it, and where its reader stores it. */
struct option_setting {
    const char *key, *value;
    struct byi_ep_options *options;
    struct byi_arena *arena; /* memory for strings and lists of `options` */
    struct byoc_error *err;
};

/* Fail because the option has an invalid value. */
static enum byoc_status reject(const struct option_setting *o,
                               const char *expected)
{
    return byi_fail(o->err, BYOC_EINVAL,
                    "option %s of " BYI_EP_NAME ": found '%.200s', expected %s",
                    o->key, o->value, expected);
}

/* Read the option `backends`: "dnnl,xnnpack", "all" or "none". */
static enum byoc_status read_backends(const struct option_setting *o)
{
    const char **names =
        byi_arena_calloc(o->arena, MAX_BACKENDS + 1, sizeof *names);
    uint32_t n = 0;
    if (strcmp(o->value, "all") == 0) {
        o->options->backends = NULL;
        return BYOC_OK;
    }
    o->options->backends = names;
    if (strcmp(o->value, "none") == 0)
        return BYOC_OK;
    for (const char *at = o->value, *end; n < MAX_BACKENDS; at = end + 1) {
        end = strchrnul(at, ',');
        if (end == at)
            break;
        names[n++] = byi_arena_strn(o->arena, at, (size_t)(end - at));
        if (*end == '\0')
            return BYOC_OK;
    }
    return reject(o,
                  "names of at most 64 backends, separated by commas, 'all' or "
                  "'none'");
}

static enum byoc_status read_threads(const struct option_setting *o)
{
    char *end;
    errno = 0;
    const unsigned long n = strtoul(o->value, &end, 10);
    if (!byi_is_digit(*o->value) || *end || errno || n > MAX_THREADS)
        return reject(o, "a number from 0 (the CPUs of the process) to 1024");
    o->options->threads = (uint32_t)n;
    return BYOC_OK;
}

static enum byoc_status read_partition(const struct option_setting *o)
{
    static const char *const names[] = {
        [BYOC_PARTITION_GREEDY] = "greedy",
        [BYOC_PARTITION_ESTIMATED] = "estimated",
        [BYOC_PARTITION_MEASURED] = "measured",
    };
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        if (names[i] && strcmp(o->value, names[i]) == 0) {
            o->options->partition_by = (enum byoc_partition)i;
            return BYOC_OK;
        }
    return reject(o, "greedy, estimated or measured");
}

static enum byoc_status read_pool(const struct option_setting *o)
{
    o->options->pool =
        strcmp(o->value, "byoc") == 0 ? BYI_EP_POOL_BYOC : BYI_EP_POOL_ORT;
    if (o->options->pool == BYI_EP_POOL_BYOC ||
        strcmp(o->value, "onnxruntime") == 0)
        return BYOC_OK;
    return reject(o, "onnxruntime or byoc");
}

static enum byoc_status read_initializers(const struct option_setting *o)
{
    o->options->constant_inputs = strcmp(o->value, "constant") == 0;
    if (o->options->constant_inputs || strcmp(o->value, "replaceable") == 0)
        return BYOC_OK;
    return reject(o, "replaceable or constant");
}

/* Read the path of a folder, and create the folder if it is missing. "": no
 * folder, *folder is NULL. */
static enum byoc_status read_folder(const struct option_setting *o,
                                    const char **folder)
{
    struct stat st;
    *folder = NULL;
    if (*o->value == '\0')
        return BYOC_OK;
    if (mkdir(o->value, 0777) != 0 && errno != EEXIST)
        return byi_fail(o->err, byi_io_status(errno),
                        "option %s of " BYI_EP_NAME
                        ": cannot create the folder '%.300s': %s, expected a "
                        "folder, or a path where one can be created",
                        o->key, o->value, strerror(errno));
    if (stat(o->value, &st) != 0 || !S_ISDIR(st.st_mode))
        return byi_fail(
            o->err, BYOC_EIO,
            "option %s of " BYI_EP_NAME
            ": found '%.300s', expected a folder, or a path where a "
            "folder can be created",
            o->key, o->value);
    *folder = byi_arena_str(o->arena, o->value);
    return BYOC_OK;
}

static enum byoc_status read_cache(const struct option_setting *o)
{
    return read_folder(o, &o->options->cache_dir);
}

static enum byoc_status read_report(const struct option_setting *o)
{
    return read_folder(o, &o->options->report_dir);
}

/* The options, and the functions that read them. */
static const struct byi_ep_option {
    const char *key;
    enum byoc_status (*read)(const struct option_setting *o);
} option_readers[] = {
    {"backends", read_backends},
    {"threads", read_threads},
    {"partition_by", read_partition},
    {"cache_dir", read_cache},
    {"report", read_report},
    {"thread_pool", read_pool},
    {"initializers", read_initializers},
};

static enum byoc_status read_option(const struct option_setting *o)
{
    const char *names[BYI_COUNT(option_readers)];
    for (size_t i = 0; i < BYI_COUNT(option_readers); i++) {
        if (strcmp(o->key, option_readers[i].key) == 0)
            return option_readers[i].read(o);
        names[i] = option_readers[i].key;
    }
    const char *near = byi_nearest(o->key, names, BYI_COUNT(option_readers));
    return byi_fail(o->err, BYOC_EINVAL,
                    BYI_EP_NAME
                    " has no option '%.100s', expected backends, "
                    "threads, partition_by, cache_dir, report, thread_pool or "
                    "initializers%s%s",
                    o->key, near ? "; did you mean " : "", near ? near : "");
}

/* Refuse an entry of the session that requests a feature that the provider does
 * not have.
 */
static enum byoc_status check_entry(const char *key, const char *value,
                                    struct byoc_error *err)
{
    if (strcmp(key, "ep.context_enable") == 0 && strcmp(value, "1") == 0)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "ep.context_enable=1: " BYI_EP_NAME
                        " cannot write EPContext models, since its artifacts "
                        "are machine code; use the option cache_dir");
    return BYOC_OK;
}

/* Make a text of everything, except the model, that an artifact depends on. */
static const char *make_artifact_key(const struct byi_ep_options *o,
                                     struct byi_arena *arena)
{
    const char *text = byi_arena_printf(
        arena, "byoc %s, provider 1, partition %d, threads %u, backends",
        byoc_version(), (int)o->partition_by,
        o->partition_by == BYOC_PARTITION_MEASURED ? o->threads : 0);
    if (!o->backends)
        return byi_arena_printf(arena, "%s: all", text);
    for (uint32_t i = 0; o->backends[i]; i++)
        text = byi_arena_printf(arena, "%s %s", text, o->backends[i]);
    return text;
}

enum byoc_status byi_ep_options_read(const OrtApi *ort,
                                     const OrtSessionOptions *session,
                                     struct byi_arena *arena,
                                     struct byi_ep_options *options,
                                     struct byoc_error *err)
{
    OrtKeyValuePairs *pairs;
    const char *const *keys, *const *values;
    enum byoc_status status = BYOC_OK;
    size_t n;
    BYI_ORT(ort, GetSessionOptionsConfigEntries(session, &pairs));
    ort->GetKeyValuePairs(pairs, &keys, &values, &n);
    for (size_t i = 0; i < n && status == BYOC_OK; i++) {
        status = check_entry(keys[i], values[i], err);
        if (status == BYOC_OK &&
            strncasecmp(keys[i], PREFIX, sizeof PREFIX - 1) == 0)
            status = read_option(
                &(struct option_setting){.key = keys[i] + sizeof PREFIX - 1,
                                         .value = values[i],
                                         .options = options,
                                         .arena = arena,
                                         .err = err});
    }
    ort->ReleaseKeyValuePairs(pairs);
    BYI_TRY(status);
    options->artifact_key = make_artifact_key(options, arena);
    return BYOC_OK;
}
