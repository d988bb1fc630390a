/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c: evaluates ensembles of decision trees, which are flat arrays
 * (ops.def):
 *   x (rows, features) -> (rows, targets)
 *
 * A node's true child is the next node, and the index of its false child is
 * stored; both come after the node, so that every walk ends. Walks are chains
 * of dependent loads, so GROUP walks advance in lockstep to overlap their
 * loads: of several rows in one tree or, with few rows, of several trees for
 * one row. Sums are in double, in the order of the trees. */
#include "kernel.h"

enum { GROUP = 8 }; /* walks in lockstep */

/* A node's mode: the comparison with the threshold that leads to the true child
 * (0: x <= threshold), and the flag NAN_IS_TRUE. */
enum { LESS = 1, EQUAL = 2, NOT_EQUAL = 3, NAN_IS_TRUE = 4 };

enum combine { SUM, AVERAGE, MIN, MAX };

/* A call: the ensemble and the number of rows. */
struct tree_forest {
    /* how many there are of each */
    int64_t rows, features, trees, nodes, targets, weights;
    const int32_t *roots;
    /* of a node: its feature and false child; of a leaf: -1 - the number of its
     * weights, and the index of the first one */
    const int32_t (*splits)[2];
    const uint8_t *modes; /* NULL: all 0 */
    const int32_t *to;    /* target of each weight */
    enum combine combine;
    double absent; /* the result of a target to which no leaf contributes */
};

static struct tree_forest read_forest(const struct byi_call *call)
{
    static const char *const names[] = {"sum", "average", "min", "max"};
    const struct byi_tensor *in = call->in;
    const char *aggregate = byi_attr_string(call->attrs, "aggregate");
    struct tree_forest f = {
        .rows = in[0].dims[0],
        .features = in[0].dims[1],
        .trees = in[1].dims[0],
        .nodes = in[2].dims[0],
        .targets = call->out->dims[1],
        .weights = in[5].dims[0],
        .roots = in[1].data,
        .splits = in[2].data,
        .modes = byi_count(&in[4]) ? in[4].data : NULL,
        .to = in[5].data,
        .absent = byi_attr_float(call->attrs, "absent"),
    };
    for (unsigned i = 0; i < BYI_COUNT(names); i++)
        if (strcmp(aggregate, names[i]) == 0)
            f.combine = (enum combine)i;
    return f;
}

/* The index of a leaf's first weight and the number of its weights; false if
 * they are out of range. */
static bool leaf_weights(const struct tree_forest *f, int32_t leaf,
                         int64_t *first, int64_t *n)
{
    *n = -1 - (int64_t)f->splits[leaf][0];
    *first = f->splits[leaf][1];
    return *first >= 0 && *first + *n <= f->weights;
}

/* Combine a weight with the sum of a row's earlier weights. */
static double combine(const struct tree_forest *f, double sum, double weight,
                      bool has_weight)
{
    if (!has_weight)
        return weight;
    switch (f->combine) {
    case MIN:
        return weight < sum ? weight : sum;
    case MAX:
        return weight > sum ? weight : sum;
    default:
        return sum + weight;
    }
}

/* The sums (rows, targets). */
struct tree_sums {
    double *at;
    bool *has_weight; /* whether a leaf has contributed to the sum */
};

static double finish(const struct tree_forest *f, double sum, bool has_weight)
{
    if (!has_weight)
        return f->absent;
    return f->combine == AVERAGE ? sum / (double)f->trees : sum;
}

/* Whether the walk goes to the node's true child. NaN goes there if NAN_IS_TRUE
 * is set. */
#define TAKES_TRUE(T)                                                          \
    static bool takes_true_##T(uint8_t mode, T v, T threshold)                 \
    {                                                                          \
        if (isnan(v))                                                          \
            return mode & NAN_IS_TRUE;                                         \
        return (mode & NOT_EQUAL) == NOT_EQUAL ? v != threshold                \
               : mode & EQUAL                  ? v == threshold                \
               : mode & LESS                   ? v < threshold                 \
                                               : v <= threshold;                                 \
    }

/* Walk from nodes at[0 .. n-1], with rows x[0 .. n-1], to the leaves. Returns
 * false if a child or feature is out of range. */
#define WALK(T)                                                                \
    static bool walk_##T(const struct tree_forest *f, const T *thresholds,     \
                         const T *const *x, int32_t *at, int n)                \
    {                                                                          \
        for (bool advances = true; advances;) {                                \
            advances = false;                                                  \
            for (int i = 0; i < n; i++) {                                      \
                const int32_t node = at[i];                                    \
                const int32_t feature = f->splits[node][0];                    \
                if (feature < 0)                                               \
                    continue;                                                  \
                const int32_t false_child = f->splits[node][1];                \
                if (feature >= f->features || false_child <= node ||           \
                    false_child >= f->nodes || node + 1 >= f->nodes)           \
                    return false;                                              \
                const T v = x[i][feature];                                     \
                const bool is_true =                                           \
                    f->modes                                                   \
                        ? takes_true_##T(f->modes[node], v, thresholds[node])  \
                        : v <= thresholds[node];                               \
                at[i] = is_true ? node + 1 : false_child;                      \
                advances = true;                                               \
            }                                                                  \
        }                                                                      \
        return true;                                                           \
    }

#define ADD(T)                                                                 \
    static bool add_##T(const struct tree_forest *f, const T *weights,         \
                        int32_t leaf, const struct tree_sums *s, int64_t row)  \
    {                                                                          \
        int64_t first, n;                                                      \
        if (!leaf_weights(f, leaf, &first, &n))                                \
            return false;                                                      \
        for (int64_t k = first; k < first + n; k++) {                          \
            const int64_t at = row * f->targets + f->to[k];                    \
            if (f->to[k] < 0 || f->to[k] >= f->targets)                        \
                return false;                                                  \
            s->at[at] =                                                        \
                combine(f, s->at[at], (double)weights[k], s->has_weight[at]);  \
            s->has_weight[at] = true;                                          \
        }                                                                      \
        return true;                                                           \
    }

/* Evaluate all trees for rows [begin, end). Returns false if the ensemble is
 * malformed. */
#define ROWS(T)                                                                \
    static bool rows_##T(                                                      \
        const struct tree_forest *f, const struct byi_call *call,              \
        const struct tree_sums *s, int64_t begin, int64_t end)                 \
    {                                                                          \
        const T *x = call->in[0].data, *thresholds = call->in[3].data;         \
        const T *weights = call->in[6].data;                                   \
        const bool by_row = end - begin >= GROUP;                              \
        const int64_t lines = by_row ? f->trees : end - begin;                 \
        const int64_t length = by_row ? end - begin : f->trees;                \
        for (int64_t line = 0; line < lines; line++)                           \
            for (int64_t from = 0; from < length; from += GROUP) {             \
                const int n = (int)byi_min(GROUP, length - from);              \
                const T *inputs[GROUP];                                        \
                int32_t at[GROUP];                                             \
                for (int i = 0; i < n; i++) {                                  \
                    const int64_t row = begin + (by_row ? from + i : line);    \
                    const int32_t root = f->roots[by_row ? line : from + i];   \
                    if (root < 0 || root >= f->nodes)                          \
                        return false;                                          \
                    inputs[i] = x + row * f->features;                         \
                    at[i] = root;                                              \
                }                                                              \
                if (!walk_##T(f, thresholds, inputs, at, n))                   \
                    return false;                                              \
                for (int i = 0; i < n; i++)                                    \
                    if (!add_##T(f, weights, at[i], s,                         \
                                 begin + (by_row ? from + i : line)))          \
                        return false;                                          \
            }                                                                  \
        return true;                                                           \
    }

#define FOREST(id, T) TAKES_TRUE(T) WALK(T) ADD(T) ROWS(T)
BYI_EACH_FLOAT(FOREST)

static enum byoc_status bad_forest(const struct byi_call *call,
                                   const struct tree_forest *f,
                                   struct byoc_error *err)
{
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found an invalid index of a tree, expected children "
                    "after their parent, nodes below %lld, features below "
                    "%lld, weights below %lld and targets below %lld",
                    call->op->name, (long long)f->nodes, (long long)f->features,
                    (long long)f->weights, (long long)f->targets);
}

static uint64_t tree_scratch(const struct byi_call *call)
{
    const uint64_t n = (uint64_t)byi_count(call->out);
    return byi_align_bytes(n * sizeof(double)) +
           byi_align_bytes(n * sizeof(bool));
}

static enum byoc_status tree_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    enum { BLOCK = 64 }; /* rows per pass, during which a tree stays cached */
    const struct tree_forest f = read_forest(call);
    const bool wide = call->in[0].dtype == BYOC_F64;
    const int64_t n = byi_count(call->out);
    const struct tree_sums s = {
        .at = call->scratch,
        .has_weight = (bool *)call->scratch +
                      byi_align_bytes((uint64_t)n * sizeof(double)),
    };
    const int team = byi_team(call, byi_min(f.rows, INT32_MAX) * f.trees);
    bool ok = true;
    if (!wide && call->in[0].dtype != BYOC_F32)
        return byi_bad_dtype(call, call->in[0].dtype, "float32 or float64",
                             err);
    if (n == 0)
        return BYOC_OK;
    memset(s.at, 0, (size_t)n * sizeof *s.at);
    memset(s.has_weight, 0, (size_t)n * sizeof *s.has_weight);
#pragma omp parallel for num_threads(team) if (team > 1) reduction(&& : ok)
    for (int64_t begin = 0; begin < f.rows; begin += BLOCK) {
        const int64_t end = byi_min(begin + BLOCK, f.rows);
        ok = (wide ? rows_double(&f, call, &s, begin, end)
                   : rows_float(&f, call, &s, begin, end)) &&
             ok;
        for (int64_t i = begin * f.targets; i < end * f.targets; i++)
            byi_tensor_set(call->out, i, finish(&f, s.at[i], s.has_weight[i]));
    }
    return ok ? BYOC_OK : bad_forest(call, &f, err);
}

BYI_KERNEL_ROWS(tree, {BYI_OP_TREE_ENSEMBLE, {tree_run, tree_scratch}})
