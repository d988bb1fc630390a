/* SPDX-License-Identifier: Apache-2.0 */
/* text_parts.c: kernels that concatenate, split and match strings. */
#include <dlfcn.h>
#include <pthread.h>

#include "move.h"

#include "core/base/loader.h"

/* --- text.concatenate ----------------------------------------------------- */

/* Set the strides of t for a result of rank `rank`; 0 on the axes along which t
 * is broadcast. */
static void broadcast_strides(const struct byi_tensor *t, uint32_t rank,
                              int64_t *strides)
{
    const uint32_t missing = rank - t->rank;
    memset(strides, 0, rank * sizeof *strides);
    byi_dense_strides(t->rank, t->dims, strides + missing);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 1)
            strides[missing + i] = 0;
}

/* Copy n bytes. Two moves of 8 bytes, which may overlap, replace the call of
 * memcpy for 8 to 16 bytes. */
static void copy_text(char *to, const char *from, size_t n)
{
    uint64_t first, last;
    if (n < sizeof first || n > 2 * sizeof first) {
        memcpy(to, from, n);
        return;
    }
    memcpy(&first, from, sizeof first);
    memcpy(&last, from + n - sizeof last, sizeof last);
    memcpy(to, &first, sizeof first);
    memcpy(to + n - sizeof last, &last, sizeof last);
}

enum { TEXTS_PER_ALLOCATION = 64 }; /* results that share one allocation */

struct text_pair {
    const char *text[2];
    size_t length[2];
};

/* Set y[i] to the concatenation of pair i, for n pairs. All results, `bytes`
 * bytes with their NULs, share one allocation; false if it fails. */
static bool join_pairs(struct byi_string_store *store,
                       const struct text_pair *pairs, int64_t n, size_t bytes,
                       const char **y)
{
    char *at = byi_store_string(store, bytes - 1);
    if (!at)
        return false;
    for (int64_t i = 0; i < n; i++) {
        const struct text_pair *p = &pairs[i];
        y[i] = at;
        copy_text(at, p->text[0], p->length[0]);
        copy_text(at + p->length[0], p->text[1], p->length[1]);
        at += p->length[0] + p->length[1];
        *at++ = '\0';
    }
    return true;
}

static enum byoc_status concatenate_run(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct byi_tensor *y = call->out;
    const char *const *x[] = {call->in[0].data, call->in[1].data};
    int64_t strides[2][BYI_MAX_RANK], at[2][BYI_MAX_RANK] = {{0}};
    int64_t offset[2] = {0};
    struct text_pair pairs[TEXTS_PER_ALLOCATION];
    if (!call->strings)
        return byi_no_store(call, err);
    for (int k = 0; k < 2; k++)
        broadcast_strides(&call->in[k], y->rank, strides[k]);
    const int64_t count = byi_count(y);
    const bool same_shape =
        byi_count(&call->in[0]) == count && byi_count(&call->in[1]) == count;
    for (int64_t first = 0, n; first < count; first += n) {
        size_t bytes = 0;
        n = byi_min(TEXTS_PER_ALLOCATION, count - first);
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < 2; k++) {
                pairs[i].text[k] = x[k][offset[k]];
                pairs[i].length[k] = strlen(pairs[i].text[k]);
                bytes += pairs[i].length[k] + (size_t)k; /* k = 1: the NUL */
                if (same_shape)
                    offset[k]++;
                else
                    byi_advance_position(y->rank, y->dims, strides[k], at[k],
                                         &offset[k]);
            }
        if (!join_pairs(call->strings, pairs, n, bytes,
                        (const char **)y->data + first))
            return byi_no_store(call, err);
    }
    return BYOC_OK;
}

/* --- text.split ----------------------------------------------------------- */

/* Split the writable copy `text` of a string at max_splits delimiters at most,
 * which become NULs. Returns the number of parts, which part[] points to. */
static int64_t split_text(char *text, const char *delimiter, int64_t max_splits,
                          const char **part)
{
    const char *from = text, *at;
    size_t length;
    int64_t n = 0;
    char *end = NULL;
    while ((at = byi_string_next_part(&from, delimiter, n == max_splits,
                                      &length))) {
        if (end) /* the search for this part has passed that delimiter */
            *end = '\0';
        end = text + (at - text) + length;
        part[n++] = at;
    }
    if (end)
        *end = '\0';
    return n;
}

/* The result has room for all parts, since the type rule has counted them. */
static enum byoc_status split_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const char *delimiter = byi_attr_string(call->attrs, "delimiter");
    const int64_t max_splits = byi_attr_int(call->attrs, "maxsplit");
    const char *const *x = call->in->data, **y = call->out[0].data;
    const int64_t width = call->out[0].dims[call->in->rank];
    int64_t *counts = call->out[1].data;
    if (!call->strings)
        return byi_no_store(call, err);
    for (int64_t i = 0; i < byi_count(call->in); i++, y += width) {
        const size_t length = strlen(x[i]);
        char *text = byi_store_string(call->strings, length);
        if (!text)
            return byi_no_store(call, err);
        copy_text(text, x[i], length);
        counts[i] = split_text(text, delimiter, max_splits, y);
        for (int64_t n = counts[i]; n < width; n++)
            y[n] = "";
    }
    return BYOC_OK;
}

/* --- text.matches --------------------------------------------------------- */

/* PCRE2's functions. The first match loads the library, so that programs that
 * match no strings do not need it. */
static struct {
    void *(*compile)(const uint8_t *pattern, size_t length, uint32_t options,
                     int *error, size_t *at, void *context);
    void *(*make_data)(const void *code, void *context);
    int (*match)(const void *code, const uint8_t *text, size_t length,
                 size_t start, uint32_t options, void *data, void *context);
    void (*free_data)(void *data);
    void (*free_code)(void *code);
    int (*message)(int error, uint8_t *text, size_t size);
    int (*compile_jit)(void *code, uint32_t options);
} pcre2;

/* Constants of PCRE2. The options select RE2's semantics: the pattern must
 * match all of the text (PCRE2_ANCHORED, PCRE2_ENDANCHORED), which is UTF-8
 * (PCRE2_UTF), and $ matches only at the end (PCRE2_DOLLAR_ENDONLY). */
enum {
    FIRST_UTF_ERROR = -28,
    LAST_UTF_ERROR = -3,
    NO_MATCH = -1,
    JIT_STACK_ERROR = -46,
    JIT_WHOLE_MATCHES = 1,
    NO_JIT = 0x2000
};
static const uint32_t match_options =
    0x80000000u | 0x20000000u | 0x00080000u | 0x00000010u;

static void load_pcre2(void)
{
    static const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"pcre2_match_data_create_from_pattern_8", &pcre2.make_data},
        {"pcre2_match_8", &pcre2.match},
        {"pcre2_match_data_free_8", &pcre2.free_data},
        {"pcre2_code_free_8", &pcre2.free_code},
        {"pcre2_get_error_message_8", &pcre2.message},
        {"pcre2_jit_compile_8", &pcre2.compile_jit},
        {"pcre2_compile_8", &pcre2.compile},
    };
    byi_loader_lock();
    void *library = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL);
    byi_loader_unlock();
    for (size_t i = 0; library && i < BYI_COUNT(functions); i++) {
        void *const result = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &result, sizeof result);
    }
}

static enum byoc_status bad_pattern(const struct byi_call *call, int error,
                                    struct byoc_error *err)
{
    uint8_t text[160] = "out of memory";
    pcre2.message(error, text, sizeof text);
    return byi_fail(err, BYOC_EINVAL,
                    "%s: pattern '%s': %s, expected a regular expression in "
                    "RE2's syntax",
                    call->op->name, byi_attr_string(call->attrs, "pattern"),
                    (const char *)text);
}

/* The patterns that this process has compiled, to machine code if PCRE2
 * supports that. Compiling a pattern takes longer than matching some thousand
 * strings, so a compiled pattern is kept until the process ends. Patterns
 * beyond the limit are compiled in each run. */
enum { PATTERNS = 64 };
static struct {
    char *text;
    void *code;
} patterns[PATTERNS];
static int n_patterns;
static pthread_mutex_t patterns_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the compiled pattern; sets *is_cached to whether `patterns` owns it,
 * otherwise the caller frees it. NULL if PCRE2 cannot compile the pattern:
 * *error is PCRE2's error code. */
static void *find_code(const char *pattern, bool *is_cached, int *error)
{
    const size_t n = strlen(pattern);
    size_t at;
    int i = 0;
    pthread_mutex_lock(&patterns_lock);
    while (i < n_patterns && strcmp(patterns[i].text, pattern) != 0)
        i++;
    void *code = i < n_patterns
                     ? patterns[i].code
                     : pcre2.compile((const uint8_t *)pattern, n, match_options,
                                     error, &at, NULL);
    *is_cached = i < n_patterns;
    char *text = NULL;
    if (code && i == n_patterns && i < PATTERNS &&
        (text = byi_alloc(1, n + 1))) {
        if (pcre2.compile_jit)
            pcre2.compile_jit(code, JIT_WHOLE_MATCHES);
        memcpy(text, pattern, n + 1);
        patterns[n_patterns].text = text;
        patterns[n_patterns++].code = code;
        *is_cached = true;
    }
    pthread_mutex_unlock(&patterns_lock);
    return code;
}

/* Match with machine code, or, if its small stack overflows, with the
 * interpreter. */
static int match_one(const void *code, const char *text, void *data)
{
    const uint8_t *at = (const uint8_t *)text;
    const size_t n = strlen(text);
    const int result = pcre2.match(code, at, n, 0, 0, data, NULL);
    return result == JIT_STACK_ERROR
               ? pcre2.match(code, at, n, 0, NO_JIT, data, NULL)
               : result;
}

static enum byoc_status bad_match(const struct byi_call *call, int64_t i,
                                  int error, struct byoc_error *err)
{
    uint8_t text[160] = "out of memory";
    pcre2.message(error, text, sizeof text);
    return byi_fail(err, BYOC_ELIMIT,
                    "%s: pattern '%s' cannot be matched with element %lld: %s; "
                    "use a simpler pattern or shorter strings",
                    call->op->name, byi_attr_string(call->attrs, "pattern"),
                    (long long)i, (const char *)text);
}

static enum byoc_status match_all(const struct byi_call *call, const void *code,
                                  void *data, struct byoc_error *err)
{
    const char *const *x = call->in->data;
    bool *y = call->out->data;
    for (int64_t i = 0; i < byi_count(call->in); i++) {
        const int result = match_one(code, x[i], data);
        if (result < 0 && result != NO_MATCH &&
            (result < FIRST_UTF_ERROR || result > LAST_UTF_ERROR))
            return bad_match(call, i, result, err);
        y[i] = result >= 0;
    }
    return BYOC_OK;
}

static enum byoc_status matches_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *pattern = byi_attr_string(call->attrs, "pattern");
    enum byoc_status status;
    bool is_cached;
    int error;
    pthread_once(&once, load_pcre2);
    if (!pcre2.compile)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: libpcre2-8.so.0 was not found; install it "
                        "(Debian's package libpcre2-8-0)",
                        call->op->name);
    void *code = find_code(pattern, &is_cached, &error);
    if (!code)
        return bad_pattern(call, error, err);
    void *data = pcre2.make_data(code, NULL);
    if (data)
        status = match_all(call, code, data, err);
    else
        status = byi_fail(err, BYOC_ENOMEM,
                          "%s: out of memory for PCRE2's match data",
                          call->op->name);
    pcre2.free_data(data);
    if (!is_cached)
        pcre2.free_code(code);
    return status;
}

BYI_KERNEL_ROWS(text_parts, {BYI_OP_TEXT_CONCATENATE, {concatenate_run, NULL}},
                {BYI_OP_TEXT_SPLIT, {split_run, NULL}},
                {BYI_OP_TEXT_MATCHES, {matches_run, NULL}})
