/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c: reads inputs from .npy, .npz and .pb files, or makes them from a
 * seed; reads expected outputs; measures the difference of two tensors.
 */
#include "feed.h"

#include "frontend_onnx/onnx.h"
#include "npy/npy.h"

#include "core/base/row_codes.h"
#include "runtime/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum byoc_status read_tensor(const char *path, struct byi_arena *arena,
                                    struct byi_tensor *t,
                                    struct byoc_error *err)
{
    const char *name;
    if (byi_path_ends_in(path, ".npy"))
        return byi_npy_read(path, arena, t, err);
    if (byi_path_ends_in(path, ".pb"))
        return byi_onnx_tensor(path, arena, t, &name, err);
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found a file of another kind, expected .npy or .pb",
                    path);
}

/* Give a tensor the type of its input or output. NumPy and ONNX's test data
 * store bfloat16, and the types of 8 bits or fewer, as integers. */
static void set_io_dtype(const struct byoc_io *io, struct byi_tensor *t)
{
    if (io->dtype == BYOC_BF16 && t->dtype == BYOC_U16)
        t->dtype = BYOC_BF16;
    if (byi_narrow_bits(io->dtype) &&
        (t->dtype == BYOC_U8 || t->dtype == BYOC_I8))
        t->dtype = io->dtype;
}

/* Returns the path `data` + "input_0" (or "output_0") + ".pb" or ".npy": the
 * file that exists, or NULL if neither does. `data` is a folder, such as "." or
 * "a/.", otherwise a prefix that ends in a dot. */
static const char *find_file(const char *data, const char *kind, uint32_t k,
                             struct byi_arena *arena)
{
    static const char *const suffixes[] = {".pb", ".npy"};
    struct stat st;
    const bool folder = stat(data, &st) == 0 && S_ISDIR(st.st_mode);
    const char *slash =
        (!folder && byi_path_ends_in(data, ".")) || byi_path_ends_in(data, "/")
            ? ""
            : "/";
    for (size_t i = 0; i < BYI_COUNT(suffixes); i++) {
        const char *path = byi_arena_printf(arena, "%s%s%s_%u%s", data, slash,
                                            kind, k, suffixes[i]);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

/* splitmix64 (Steele, Lea, Flood 2014): same seed, same inputs anywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* --- sizes ---------------------------------------------------------------- */

/* The symbolic dims of the inputs, each once. */
struct dim_sizes {
    struct byoc_dim at[64];
    bool given[64]; /* by a file or --dim */
    uint32_t n;
    bool complete; /* every symbolic dim has a name and is in the list */
};

/* Returns the dim of that name, which is added if it is missing, or NULL if the
 * list is full. */
static struct byoc_dim *find_size(struct dim_sizes *dim_sizes, const char *name)
{
    uint32_t i = 0;
    while (i < dim_sizes->n && strcmp(dim_sizes->at[i].name, name) != 0)
        i++;
    if (i == dim_sizes->n && i < BYI_COUNT(dim_sizes->at))
        dim_sizes->at[dim_sizes->n++] = (struct byoc_dim){name, 1};
    return i < dim_sizes->n ? &dim_sizes->at[i] : NULL;
}

/* List the symbolic dims of the inputs, with the sizes that files give. */
static void add_sizes(const struct byoc_model *model,
                      const struct byi_feed *feed, struct dim_sizes *dim_sizes)
{
    for (uint32_t i = 0; i < feed->n; i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        for (uint32_t d = 0; d < io->rank && io->kind == BYOC_TENSOR; d++) {
            struct byoc_dim *dim = io->dims[d] < 0 && io->dim_names[d]
                                       ? find_size(dim_sizes, io->dim_names[d])
                                       : NULL;
            dim_sizes->complete =
                dim_sizes->complete && (dim || io->dims[d] >= 0);
            if (!dim || feed->random[i] || d >= feed->at[i].rank)
                continue;
            dim->size = feed->at[i].dims[d];
            dim_sizes->given[dim - dim_sizes->at] = true;
        }
    }
}

/* List the symbolic dims with their sizes: from a file, from --dim, otherwise
 * the first usual size that the model accepts. If it accepts none, the size is
 * 1, and the run fails with the reason. */
static void choose_sizes(const struct byoc_model *model,
                         const struct byi_feed_params *params,
                         const struct byi_feed *feed,
                         struct dim_sizes *dim_sizes)
{
    static const int64_t common_sizes[] = {1, 2, 64, 512, 4096, 32768};
    uint32_t n_given = 0;
    *dim_sizes = (struct dim_sizes){.complete = true};
    add_sizes(model, feed, dim_sizes);
    for (const char *const *at = params->dims; at && *at; at++)
        for (uint32_t i = 0; i < dim_sizes->n; i++) {
            const size_t n = strlen(dim_sizes->at[i].name);
            if (strncmp(*at, dim_sizes->at[i].name, n) != 0 || (*at)[n] != '=')
                continue;
            dim_sizes->at[i].size = strtoll(*at + n + 1, NULL, 10);
            dim_sizes->given[i] = true;
        }
    for (uint32_t i = 0; i < dim_sizes->n; i++)
        n_given += dim_sizes->given[i];
    for (uint32_t k = 0; k < BYI_COUNT(common_sizes) && n_given < dim_sizes->n;
         k++) {
        for (uint32_t i = 0; i < dim_sizes->n; i++)
            if (!dim_sizes->given[i])
                dim_sizes->at[i].size = common_sizes[k];
        struct byoc_error err;
        if (!dim_sizes->complete ||
            byoc_internal_check_dims(model, dim_sizes->at, dim_sizes->n,
                                     &err) != BYOC_ETYPE)
            return;
    }
    for (uint32_t i = 0; i < dim_sizes->n; i++)
        if (!dim_sizes->given[i])
            dim_sizes->at[i].size = common_sizes[0];
}

/* Returns the size of an input's axis. */
static int64_t dim_of(const struct byoc_io *io, uint32_t axis,
                      const struct dim_sizes *dim_sizes)
{
    const char *name = io->dim_names[axis];
    if (io->dims[axis] >= 0)
        return io->dims[axis];
    for (uint32_t i = 0; name && i < dim_sizes->n; i++)
        if (strcmp(dim_sizes->at[i].name, name) == 0)
            return dim_sizes->at[i].size;
    return 1;
}

/* Make input `index` from random numbers of this seed. */
static enum byoc_status make_random(const struct byoc_io *io,
                                    const struct dim_sizes *dim_sizes,
                                    uint64_t seed, uint32_t index,
                                    struct byi_arena *arena,
                                    struct byi_tensor *t,
                                    struct byoc_error *err)
{
    *t = (struct byi_tensor){.dtype = io->dtype, .rank = io->rank};
    for (uint32_t i = 0; i < io->rank; i++)
        t->dims[i] = dim_of(io, i, dim_sizes);
    uint64_t bytes = byi_tensor_bytes(t);
    if (bytes > (UINT64_C(1) << 36))
        return byi_fail(err, BYOC_ELIMIT,
                        "input '%s': found %llu bytes, expected at most 64 GiB "
                        "for random data; give smaller sizes with --dim",
                        io->name, (unsigned long long)bytes);
    if (!byoc_dtype_size(io->dtype) || io->dtype == BYOC_C64 ||
        io->dtype == BYOC_C128)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "input '%s': %s cannot be random; give it with "
                        "--input %s=FILE",
                        io->name, byoc_dtype_name(io->dtype), io->name);
    t->data = byi_acquire(bytes ? bytes : 1);
    if (!t->data)
        return byi_fail(err, BYOC_ENOMEM, "input '%s': out of memory",
                        io->name);
    byi_arena_defer(arena, byi_release, t->data);
    memset(t->data, 0, bytes);
    uint64_t state = seed * 1000003 + index;
    int64_t n = byi_elements(t->rank, t->dims);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = next_random(&state);
        byi_tensor_set(t, i,
                       byi_dtype_is_float(io->dtype)
                           ? (double)(bits >> 40) / (1 << 23) - 1
                           : (double)(bits >> 63));
    }
    return BYOC_OK;
}

/* Returns the file that --input NAME=FILE or NAME=@FILE gives for an input, or
 * NULL. */
static const char *given_file(const struct byi_feed_params *params,
                              const char *name)
{
    size_t n = strlen(name);
    for (const char *const *in = params->inputs; in && *in; in++)
        if (strncmp(*in, name, n) == 0 && (*in)[n] == '=')
            return *in + n + 1 + ((*in)[n + 1] == '@');
    return NULL;
}

/* Check that each --input names an input of the model. */
static enum byoc_status check_names(const struct byoc_model *model,
                                    const struct byi_feed_params *params,
                                    struct byoc_error *err)
{
    for (const char *const *in = params->inputs; in && *in; in++) {
        size_t n = strcspn(*in, "=");
        bool is_input = false;
        if (!(*in)[n])
            return byi_fail(err, BYOC_EINVAL,
                            "input '%s': found no '=', expected NAME=FILE",
                            *in);
        for (uint32_t i = 0; i < byoc_model_n_inputs(model); i++) {
            const char *name = byoc_model_input(model, i)->name;
            is_input =
                is_input || (strlen(name) == n && !strncmp(*in, name, n));
        }
        if (!is_input && byoc_model_n_inputs(model) == 0)
            return byi_fail(err, BYOC_EINVAL,
                            "input '%s': the model has no inputs; leave it out",
                            *in);
        if (!is_input)
            return byi_fail(err, BYOC_EINVAL,
                            "found the input '%.*s', expected one of the "
                            "model's inputs, such as '%s'",
                            (int)n, *in, byoc_model_input(model, 0)->name);
    }
    return BYOC_OK;
}

/* Parse "N=2" into the length of its name and its size. Returns false if it is
 * malformed. */
static bool read_dim(const char *text, size_t *n, int64_t *size)
{
    const char *equal = strrchr(text, '=');
    char *end;
    if (!equal || equal == text || equal[1] < '0' || equal[1] > '9')
        return false;
    errno = 0;
    *n = (size_t)(equal - text);
    *size = strtoll(equal + 1, &end, 10);
    return !errno && !*end;
}

/* List up to `max_names` symbolic dims of the inputs, each once, and return
 * their number. Sets *used if a random input has the dim called `name`. */
static uint32_t list_dims(const struct byoc_model *model,
                          const struct byi_feed *feed, const char **names,
                          uint32_t max_names, const char *name, size_t n_name,
                          bool *used)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < feed->n; i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        for (uint32_t d = 0; d < io->rank && io->kind == BYOC_TENSOR; d++) {
            const char *dim = io->dim_names[d];
            uint32_t k = 0;
            if (io->dims[d] >= 0 || !dim)
                continue;
            if (strlen(dim) == n_name && !strncmp(dim, name, n_name))
                *used = *used || feed->random[i];
            while (k < n && strcmp(names[k], dim) != 0)
                k++;
            if (k == n && n < max_names)
                names[n++] = dim;
        }
    }
    return n;
}

/* Fail because no input has the dim; `names` are the n dims that inputs have.
 */
static enum byoc_status report_unknown_dim(const char *dim,
                                           const char *const *names, uint32_t n,
                                           struct byoc_error *err)
{
    struct byi_text list = {0};
    const char *nearest = byi_nearest(dim, names, n);
    for (uint32_t i = 0; i < n; i++)
        byi_text_addf(&list, "%s'%s'", i ? ", " : "", names[i]);
    const enum byoc_status status =
        n ? byi_fail(err, BYOC_EINVAL,
                     "dim '%s': no input has it; %s%s%sthe model's symbolic "
                     "dims are %s",
                     dim, nearest ? "did you mean '" : "",
                     nearest ? nearest : "", nearest ? "'? " : "", list.at)
          : byi_fail(err, BYOC_EINVAL,
                     "dim '%s': the sizes of all inputs are fixed, so it has "
                     "no effect; leave it out",
                     dim);
    byi_text_free(&list);
    return status;
}

/* Check that each size in params->dims is well formed, is given once, and is
 * the size of a random input's dim. */
static enum byoc_status check_dims(const struct byoc_model *model,
                                   const struct byi_feed_params *params,
                                   const struct byi_feed *feed,
                                   struct byi_arena *arena,
                                   struct byoc_error *err)
{
    enum { MAX_DIMS = 64 };
    const char *names[MAX_DIMS];
    for (const char *const *at = params->dims; at && *at; at++) {
        bool used = false;
        size_t n_name = 0;
        int64_t size;
        if (!read_dim(*at, &n_name, &size))
            return byi_fail(err, BYOC_EINVAL,
                            "dim: found '%s', expected NAME=NUMBER, with a "
                            "number of 0 or more",
                            *at);
        const char *name = byi_arena_strn(arena, *at, n_name);
        const uint32_t n =
            list_dims(model, feed, names, MAX_DIMS, name, n_name, &used);
        uint32_t k = 0;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        if (k == n)
            return report_unknown_dim(name, names, n, err);
        if (!used)
            return byi_fail(err, BYOC_EINVAL,
                            "dim '%s': the files of the inputs give its size, "
                            "so it has no effect; leave it out",
                            name);
        for (const char *const *earlier = params->dims; earlier < at; earlier++)
            if (strncmp(*earlier, *at, n_name + 1) == 0)
                return byi_fail(err, BYOC_EINVAL,
                                "dim '%s': given twice, expected one size",
                                name);
    }
    return BYOC_OK;
}

/* Read a sequence or optional. `path` is its file, or NULL. */
static enum byoc_status read_list(const char *path, const struct byoc_io *io,
                                  struct byi_arena *arena,
                                  struct byoc_value *value,
                                  struct byoc_error *err)
{
    if (path && byi_path_ends_in(path, ".pb"))
        return byi_onnx_value(path, io, arena, value, err);
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "'%s' is a sequence or optional: found %s, expected a .pb "
                    "file",
                    io->name, path ? path : "no file");
}

enum byoc_status byi_feed_inputs(const struct byoc_model *model,
                                 const struct byi_feed_params *params,
                                 struct byi_arena *arena, struct byi_feed *feed,
                                 struct byoc_error *err)
{
    uint32_t n = byoc_model_n_inputs(model);
    *feed = (struct byi_feed){.n = n};
    feed->at = byi_arena_calloc(arena, n, sizeof *feed->at);
    feed->views = byi_arena_calloc(arena, n, sizeof *feed->views);
    feed->values = byi_arena_calloc(arena, n, sizeof *feed->values);
    feed->random = byi_arena_calloc(arena, n + 1, sizeof *feed->random);
    BYI_TRY(check_names(model, params, err));
    for (uint32_t i = 0; i < n; i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        const char *path = given_file(params, io->name);
        if (!path && params->data)
            path = find_file(params->data, "input", i, arena);
        if (io->kind != BYOC_TENSOR) {
            feed->has_lists = true;
            BYI_TRY(read_list(path, io, arena, &feed->values[i], err));
            continue;
        }
        if (path)
            BYI_TRY(read_tensor(path, arena, &feed->at[i], err));
        else if (params->npz)
            BYI_TRY(
                byi_npz_read(params->npz, io->name, arena, &feed->at[i], err));
        else if (params->data)
            return byi_fail(err, BYOC_EIO,
                            "input '%s': found no input_%u.npy or input_%u.pb "
                            "at %s, expected one of them",
                            io->name, i, i, params->data);
        else {
            feed->random[i] = true;
            feed->n_random++;
        }
    }
    BYI_TRY(check_dims(model, params, feed, arena, err));
    if (params->seeded && !feed->n_random)
        return byi_fail(err, BYOC_EINVAL,
                        "seed %u: every input is from a file, so the seed has "
                        "no effect; leave it out",
                        params->seed);
    struct dim_sizes dim_sizes;
    choose_sizes(model, params, feed, &dim_sizes);
    for (uint32_t i = 0; i < n; i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        if (io->kind != BYOC_TENSOR)
            continue;
        if (feed->random[i])
            BYI_TRY(make_random(io, &dim_sizes, params->seed, i, arena,
                                &feed->at[i], err));
        set_io_dtype(io, &feed->at[i]);
        feed->views[i] = byi_tensor_dlpack(&feed->at[i]);
        feed->values[i].tensor = feed->views[i];
    }
    return BYOC_OK;
}

enum byoc_status byi_feed_expected(const struct byoc_model *model,
                                   const struct byi_feed_params *params,
                                   struct byi_arena *arena,
                                   struct byi_feed *feed, bool *found,
                                   struct byoc_error *err)
{
    uint32_t n = byoc_model_n_outputs(model);
    *feed = (struct byi_feed){.n = n};
    *found = false;
    if (!params->data || !find_file(params->data, "output", 0, arena))
        return BYOC_OK;
    feed->at = byi_arena_calloc(arena, n, sizeof *feed->at);
    feed->values = byi_arena_calloc(arena, n, sizeof *feed->values);
    for (uint32_t i = 0; i < n; i++) {
        const struct byoc_io *io = byoc_model_output(model, i);
        const char *path = find_file(params->data, "output", i, arena);
        if (!path)
            return byi_fail(err, BYOC_EIO,
                            "output '%s': found no output_%u.npy or "
                            "output_%u.pb at %s, expected one of them",
                            io->name, i, i, params->data);
        if (io->kind != BYOC_TENSOR) {
            BYI_TRY(read_list(path, io, arena, &feed->values[i], err));
            continue;
        }
        BYI_TRY(read_tensor(path, arena, &feed->at[i], err));
        set_io_dtype(io, &feed->at[i]);
    }
    *found = true;
    return BYOC_OK;
}

struct byi_feed byi_feed_outputs(const struct byoc_model *model,
                                 struct byi_arena *arena)
{
    uint32_t n = byoc_model_n_outputs(model);
    struct byi_feed feed = {
        .n = n,
        .views = byi_arena_calloc(arena, n, sizeof(DLTensor)),
        .values = byi_arena_calloc(arena, n, sizeof(struct byoc_value)),
    };
    for (uint32_t i = 0; i < n; i++)
        feed.has_lists |= byoc_model_output(model, i)->kind != BYOC_TENSOR;
    return feed;
}

enum byoc_status byi_feed_run(struct byoc_state *state,
                              const struct byi_feed *in, struct byi_feed *out,
                              struct byoc_error *err)
{
    if (!in->has_lists && !out->has_lists)
        return byoc_run(state, in->views, in->n, out->views, out->n, err);
    for (uint32_t i = 0; i < out->n; i++)
        out->values[i] = (struct byoc_value){.tensor = out->views[i]};
    BYI_TRY(
        byoc_run_values(state, in->values, in->n, out->values, out->n, err));
    for (uint32_t i = 0; i < out->n; i++)
        out->views[i] = out->values[i].tensor;
    return BYOC_OK;
}

struct byi_tensor byi_feed_tensor(const DLTensor *view)
{
    struct byi_tensor t = {.data = (char *)view->data + view->byte_offset,
                           .dtype = byi_dtype_of_dlpack(view->dtype),
                           .rank = (uint32_t)view->ndim};
    for (uint32_t i = 0; i < t.rank && i < BYI_MAX_RANK; i++)
        t.dims[i] = view->shape[i];
    return t;
}

/* Check that shapes and dtypes are equal; bool equals any type of one byte. */
static enum byoc_status check_types(const struct byi_tensor *a,
                                    const struct byi_tensor *b,
                                    struct byoc_error *err)
{
    char found[96], expected[96];
    if (byoc_dtype_size(a->dtype) == byoc_dtype_size(b->dtype) &&
        (a->dtype == b->dtype || a->dtype == BYOC_BOOL ||
         b->dtype == BYOC_BOOL) &&
        byi_dims_equal(a->rank, a->dims, b->rank, b->dims))
        return BYOC_OK;
    return byi_fail(err, BYOC_ETYPE, "found %s %s, expected %s %s",
                    byoc_dtype_name(a->dtype),
                    byi_dims_text(found, sizeof found, a->rank, a->dims),
                    byoc_dtype_name(b->dtype),
                    byi_dims_text(expected, sizeof expected, b->rank, b->dims));
}

/* Compare strings; two that differ count as a difference of 1. */
static enum byoc_status compare_strings(const struct byi_tensor *found,
                                        const struct byi_tensor *expected,
                                        int64_t n, struct byi_difference *d)
{
    const char *const *f = found->data, *const *e = expected->data;
    for (int64_t i = n; i-- > 0;) {
        if (strcmp(f[i], e[i]) == 0)
            continue;
        d->max_abs = d->max_rel = 1;
        d->mean_abs += 1 / (double)n;
        d->worst = i;
        d->found = d->expected = NAN;
        d->n_bad++;
    }
    return BYOC_OK;
}

/* The least number of different values for which multiples of a step are taken
 * as quantised, not as a coincidence. */
#define MIN_VALUES 16

/* Whether n integers from -255 to 255 have at least MIN_VALUES different
 * values.
 */
static bool has_min_values(const int16_t *integers, int64_t n)
{
    uint8_t seen[2 * UINT8_MAX + 1] = {0};
    int distinct = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t *at = &seen[integers[i] + UINT8_MAX];
        distinct += !*at;
        *at = 1;
    }
    return distinct >= MIN_VALUES;
}

/* byi_quantisation_step() for n values, float32 or 8-bit integers. */
static enum byoc_status read_step(const struct byi_tensor *t, int64_t n,
                                  double *step, struct byoc_error *err)
{
    int16_t *integers = byi_alloc((size_t)n, sizeof *integers);
    float scale = 1;
    if (!integers)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for the comparison of %lld elements",
                        (long long)n);
    if (t->dtype != BYOC_F32) {
        for (int64_t i = 0; i < n; i++)
            integers[i] = (int16_t)byi_tensor_float(t, i);
        *step = has_min_values(integers, n);
    } else if (byi_find_scale(t->data, n, 1, 0, false, &scale, integers)) {
        *step =
            has_min_values(integers, n) && rintf(scale) != scale ? scale : 0;
    }
    byi_release(integers);
    return BYOC_OK;
}

enum byoc_status byi_quantisation_step(const struct byi_tensor *t,
                                       bool integer_steps, double *step,
                                       struct byoc_error *err)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    *step = 0;
    if (n < MIN_VALUES ||
        (t->dtype != BYOC_F32 &&
         !(integer_steps && (t->dtype == BYOC_U8 || t->dtype == BYOC_I8))))
        return BYOC_OK;
    return read_step(t, n, step, err);
}

enum byoc_status byi_compare_tensors(const struct byi_tensor *found,
                                     const struct byi_tensor *expected,
                                     const struct byi_tolerance *tolerance,
                                     struct byi_difference *d,
                                     struct byoc_error *err)
{
    *d = (struct byi_difference){.worst = -1};
    BYI_TRY(check_types(found, expected, err));
    int64_t n = byi_elements(found->rank, found->dims);
    if (found->dtype == BYOC_STRING)
        return compare_strings(found, expected, n, d);
    double scale = 0, sum = 0;
    if (tolerance->steps > 0)
        BYI_TRY(byi_quantisation_step(expected, tolerance->integer_steps,
                                      &d->step, err));
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(byi_tensor_float(expected, i));
        scale = isfinite(e) && e > scale ? e : scale;
    }
    for (int64_t i = 0; i < n; i++) {
        double f = byi_tensor_float(found, i);
        double e = byi_tensor_float(expected, i);
        if (f == e || (isnan(f) && isnan(e)))
            continue;
        double abs = fabs(f - e), rel = abs / (fabs(e) + 0.01 * scale);
        if (!isfinite(abs))
            abs = rel = INFINITY;
        const double allowed = tolerance->atol + tolerance->rtol * fabs(e) +
                               tolerance->stol * scale;
        /* the tolerance of an infinite `e` is infinite: `abs` decides */
        const bool near =
            isfinite(abs) && abs <= allowed + tolerance->steps * d->step;
        d->n_bad += !near;
        d->n_steps += near && !(abs <= allowed);
        sum += abs;
        d->max_rel = rel > d->max_rel ? rel : d->max_rel;
        if (abs > d->max_abs) {
            d->max_abs = abs;
            d->worst = i;
            d->found = f;
            d->expected = e;
        }
    }
    d->mean_abs = n > 0 ? sum / (double)n : 0;
    d->largest = scale;
    return BYOC_OK;
}
