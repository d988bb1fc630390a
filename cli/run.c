/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: `byoc run`: runs a model once; writes or summarises its outputs. */
#include "cli.h"

#include "driver/feed.h"
#include "npy/npy.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* Print the first few strings, quoted. */
static void print_strings(const struct byi_tensor *t, int64_t n)
{
    enum { SHOWN = 8 };
    const char *const *at = t->data;
    struct byi_text text = {0};
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        byi_text_addf(&text, i ? ", " : ": ");
        byi_json_quote(&text, at[i]);
    }
    printf("%s%s", text.n ? text.at : "", n > SHOWN ? ", ..." : "");
    byi_text_free(&text);
}

/* Print the range and mean of n > 0 elements. NaN is counted separately: it is
 * neither less nor greater than a number, and one NaN would make the mean NaN.
 */
static void print_range(const struct byi_tensor *t, int64_t n)
{
    double min = 0, max = 0, sum = 0;
    int64_t n_numbers = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = byi_tensor_float(t, i);
        if (isnan(x))
            continue;
        min = x < min || n_numbers == 0 ? x : min;
        max = x > max || n_numbers == 0 ? x : max;
        sum += x;
        n_numbers++;
    }
    if (n_numbers > 0)
        printf(": min %.6g, max %.6g, mean %.6g", min, max,
               sum / (double)n_numbers);
    if (n_numbers < n)
        printf("%s %lld of %lld are NaN", n_numbers > 0 ? ";" : ":",
               (long long)(n - n_numbers), (long long)n);
}

/* Print "name (1, 1000) float32: min ..., max ..., mean ...". */
static void print_output(const struct byoc_io *io, const struct byi_tensor *t)
{
    char dims[128];
    int64_t n = byi_elements(t->rank, t->dims);
    printf("%s %s %s", io->name,
           byi_dims_text(dims, sizeof dims, t->rank, t->dims),
           byoc_dtype_name(t->dtype));
    if (t->dtype == BYOC_STRING)
        print_strings(t, n);
    else if (n > 0)
        print_range(t, n);
    printf("\n");
}

/* Print a value (tensor, sequence or optional), one line per tensor: "name[2]
 * (3,) float32: ...". The recursion is as deep as the signature is nested. */
static void print_value(const char *name, const struct byoc_value *value)
{
    if (value->kind == BYOC_TENSOR) {
        const struct byi_tensor t = byi_feed_tensor(&value->tensor);
        print_output(&(struct byoc_io){.name = name}, &t);
        return;
    }
    printf("%s: %u %s\n", name, value->n, value->n == 1 ? "value" : "values");
    for (uint32_t i = 0; i < value->n; i++) {
        char inner[256];
        snprintf(inner, sizeof inner, "%.200s[%u]", name, i);
        print_value(inner, &value->elements[i]);
    }
}

/* The folder of --output. */
struct out_folder {
    const char *path; /* NULL: none */
    bool created;     /* by this run */
    uint32_t n;       /* files that this run wrote */
};

static const char *output_path(const struct out_folder *folder, uint32_t i,
                               struct byi_arena *arena)
{
    return byi_arena_printf(arena, "%s/output_%u.npy", folder->path, i);
}

static enum byoc_status create_folder(struct out_folder *folder,
                                      struct byoc_error *err)
{
    struct stat st;
    if (!folder->path)
        return BYOC_OK;
    folder->created = lstat(folder->path, &st) != 0;
    return byi_folder_create(folder->path, err);
}

/* Remove what this run has written, since not all of it could be written: a
 * reader must not take a part for the whole. */
static void remove_results(const struct out_folder *folder,
                           struct byi_arena *arena)
{
    for (uint32_t i = 0; i < folder->n; i++)
        unlink(output_path(folder, i, arena));
    if (folder->created)
        rmdir(folder->path);
}

/* End the trace, and remove its file. */
static void remove_trace(struct byoc_state *state, const char *path)
{
    struct byoc_error err;
    struct stat st;
    if (byoc_state_trace(state, NULL, &err) == BYOC_OK &&
        lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        unlink(path);
}

static enum byoc_status write_outputs(const struct byoc_model *model,
                                      const struct byi_feed *out,
                                      struct out_folder *folder,
                                      struct byi_arena *arena,
                                      struct byoc_error *err)
{
    BYI_TRY(create_folder(folder, err));
    for (uint32_t i = 0; i < out->n; i++) {
        const struct byoc_io *io = byoc_model_output(model, i);
        if (io->kind != BYOC_TENSOR) {
            if (folder->path)
                return byi_fail(err, BYOC_EUNSUPPORTED,
                                "output '%s': found a value that is not a "
                                "tensor, expected a tensor, since .npy files "
                                "hold only tensors",
                                io->name);
            print_value(io->name, &out->values[i]);
            continue;
        }
        struct byi_tensor t = byi_feed_tensor(&out->views[i]);
        if (io->dtype == BYOC_BOOL)
            t.dtype = BYOC_BOOL;
        print_output(io, &t);
        if (folder->path)
            BYI_TRY(byi_npy_write(output_path(folder, i, arena), &t, err));
        folder->n = folder->path ? i + 1 : 0;
    }
    return BYOC_OK;
}

static enum byoc_status run_model(const struct byoc_model *model,
                                  const struct byi_feed_params *feed,
                                  const char *path, const char *trace,
                                  struct byi_arena *arena,
                                  struct byoc_error *err)
{
    struct byi_feed in, out = byi_feed_outputs(model, arena);
    struct out_folder folder = {.path = path};
    struct byoc_state *state = NULL;
    BYI_TRY(byi_feed_inputs(model, feed, arena, &in, err));
    BYI_TRY(byoc_state_new(model, &state, err));
    enum byoc_status status = BYOC_OK;
    if (trace)
        status = byoc_state_trace(state, trace, err);
    if (status == BYOC_OK)
        status = byi_feed_run(state, &in, &out, err);
    if (status == BYOC_OK && in.n_random)
        fprintf(stderr,
                "byoc run: %u of %u inputs are random, from seed %llu\n",
                in.n_random, in.n, (unsigned long long)feed->seed);
    if (status == BYOC_OK) {
        status = write_outputs(model, &out, &folder, arena, err);
        if (trace && status == BYOC_OK)
            status = byoc_state_trace(state, NULL, err);
        else if (trace)
            remove_trace(state, trace);
        if (status != BYOC_OK)
            remove_results(&folder, arena);
    }
    byoc_state_free(&state);
    return status;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_run};
    struct byi_feed_params feed = {.seed = 1};
    const char *folder = NULL, *trace = NULL, *path;
    uint32_t n;
    const struct byi_option options[] = {
        {"input", 'i', BYI_OPTION_LIST, &feed.inputs, "NAME=FILE",
         "read an input from a .npy or .pb file"},
        {"npz", 0, BYI_OPTION_TEXT, &feed.npz, "FILE",
         "read all inputs from an .npz; its keys are their names"},
        {"data", 0, BYI_OPTION_TEXT, &feed.data, "DIR|PREFIX.",
         "read all inputs from input_K.npy or .pb there"},
        {"seed", 0, BYI_OPTION_COUNT, &feed.seed, "N",
         "seed of inputs without a file (default: 1)"},
        {"output", 'o', BYI_OPTION_TEXT, &folder, "DIR",
         "write output_K.npy there"},
        {"trace", 0, BYI_OPTION_TEXT, &trace, "FILE",
         "write a Chrome trace of the run"},
        BYI_MODEL_OPTIONS(o),
    };
    int code = byi_parse_options(&byi_command_run, options, BYI_COUNT(options),
                                 argc, argv, 1, 1, &path, &n);
    if (code >= 0)
        return code;
    feed.seeded = byi_option_is_given("seed");
    struct byoc_error err;
    struct byi_open_model open;
    if (byi_open_model(path, &o, &open, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_run, &err);
    feed.dims = open.dims;
    struct byi_arena *arena = byi_arena_new();
    code = open.gate;
    if (run_model(open.model, &feed, folder, trace, arena, &err) != BYOC_OK)
        code = byi_cli_print_error(&byi_command_run, &err);
    byi_arena_free(&arena);
    byi_close_model(&open);
    return code;
}

const struct byi_command byi_command_run = {
    .name = "run",
    .usage = "MODEL.so|MODEL.onnx [OPTIONS]",
    .summary = "run a model once and write or summarise its outputs",
    .example = "byoc run digits.so --data batch0. --output results\n"
               "byoc run digits.onnx --native --seed 7\n",
    .steps = BYI_COMPILES | BYI_LOADS,
    .run = run,
};
