/* SPDX-License-Identifier: Apache-2.0 */
/* cases_control.c: random If, Loop and Scan, sequences and optionals. Bodies
 * read outer values, states change in each iteration, and rows grow; see
 * cases.c.
 */
#include "fuzz.h"

#include <string.h>

static struct byi_tensor *matrix(struct draw *d, int64_t n, int64_t m)
{
    return draw_operand(d, d->dtype, 2, (int64_t[]){n, m},
                        op_now->distribution);
}

/* --- control flow --------------------------------------------------------- */

/* One branch concatenates x1 and x2, the other x1 and x1. Their results often
 * have different shapes. */
static void branches(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 5);

    draw_operand(d, BYOC_BOOL, draw_chance(d, 50) ? 0 : 1, (int64_t[]){1},
                 ORDINARY);
    matrix(d, draw_int(d, 0, 5), m);
    matrix(d, draw_int(d, 0, 5), m);
    Onnx__GraphProto *g = draw_body(d, "then_branch", "", "t");
    draw_node(d, g, "Concat", "x1 x2", "t");
    draw_attr_int(d, "axis", 0);
    g = draw_body(d, "else_branch", "", "e");
    draw_node(d, g, "Concat", "x1 x1", "e");
    draw_attr_int(d, "axis", 0);
    draw_set_names(d, "x0", NULL);
}

/* A loop of at most x0 iterations, none if x1 is false. Each adds x3 to the
 * state x2, or takes the maximum of both, and returns the old state, or rows of
 * it, as its row. In some loops the body ends the loop after a constant number
 * of iterations. */
static void loop(struct draw *d)
{
    const int64_t rounds = draw_int(d, 0, 6);
    const int64_t from = 0, to = draw_int(d, 0, 2);
    const bool ends = draw_chance(d, 50), first = draw_chance(d, 80);
    const bool slices =
        draw_chance(d, 40); /* to rows whose sizes are known only in a run */

    draw_ints(d, BYOC_I64, draw_chance(d, 50) ? -1 : 1, &rounds,
              draw_chance(d, 40));
    struct byi_tensor *go = draw_operand(
        d, BYOC_BOOL, draw_chance(d, 50) ? 0 : 1, (int64_t[]){1}, ORDINARY);
    byi_tensor_set(go, 0, first);
    matrix(d, 2, 3);
    matrix(d, 2, 3);
    draw_ints(d, BYOC_I64, 1, &from, false);
    draw_ints(d, BYOC_I64, 1, &to, false);
    Onnx__GraphProto *g = draw_body(d, "body", "i go s", "more s_out row");
    draw_body_type(d, g, 0, BYOC_I64, 0);
    draw_body_type(d, g, 1, BYOC_BOOL, 0);
    draw_body_type(d, g, 2, d->dtype, 2);
    draw_node(d, g, "Constant", "", "last");
    draw_attr_tensor(d, "value", BYOC_I64, 0, NULL, POSITIVE);
    if (ends)
        draw_node(d, g, "Less", "i last", "more");
    else
        draw_node(d, g, "Identity", "go", "more");
    draw_node(d, g, byi_dtype_is_float(d->dtype) ? "Max" : "Add", "s x3",
              "s_out");
    if (slices)
        draw_node(d, g, "Slice", "s x4 x5", "row");
    else
        draw_node(d, g, "Identity", "s", "row");
    draw_set_names(d, "x0 x1 x2", NULL);
}

/* A scan of the rows or columns of x1, from either end, with state x0. The body
 * reads x2 from the outer graph. */
static void scan(struct draw *d)
{
    const int64_t n = draw_int(d, 0, 5), m = draw_int(d, 1, 4);
    const int64_t axis = draw_int(d, 0, 1), out = draw_int(d, 0, 1);
    const int64_t dims[] = {axis ? m : n, axis ? n : m};

    draw_operand(d, d->dtype, 1, &m, ORDINARY);
    draw_operand(d, d->dtype, 2, dims, ORDINARY);
    draw_operand(d, d->dtype, 1, &m, ORDINARY);
    Onnx__GraphProto *g = draw_body(d, "body", "s x", "s_out row");
    draw_node(d, g, "Max", "s x", "most");
    draw_node(d, g, "Min", "most x2", "s_out");
    draw_node(d, g, "Identity", "most", "row");
    draw_set_names(d, "x0 x1", NULL);
    draw_attr_int(d, "num_scan_inputs", 1);
    draw_attr_ints(d, "scan_input_axes", 1,
                   &(int64_t){draw_chance(d, 50) ? axis : axis - 2});
    draw_attr_ints(d, "scan_input_directions", 1,
                   &(int64_t){draw_int(d, 0, 1)});
    draw_attr_ints(d, "scan_output_axes", 1, &out);
    draw_attr_ints(d, "scan_output_directions", 1,
                   &(int64_t){draw_int(d, 0, 1)});
}

/* --- sequences ------------------------------------------------------------ */

/* Make a sequence s of two to four matrices of m columns. Returns their number.
 */
static int64_t sequence(struct draw *d, int64_t m)
{
    static const char *const operands[] = {"x0 x1", "x0 x1 x2", "x0 x1 x2 x3"};
    const int64_t n = draw_int(d, 2, 4);

    for (int64_t i = 0; i < n; i++)
        matrix(d, draw_int(d, 0, 4), m);
    draw_node(d, d->graph, "SequenceConstruct", operands[n - 2], "s");
    return n;
}

static const char *operand_name(struct draw *d, uint32_t i)
{
    return byi_arena_printf(d->arena, "x%u", i);
}

/* Draw a position from low to high as the next operand. Returns its name. */
static const char *position(struct draw *d, int64_t low, int64_t high)
{
    const int64_t at = draw_int(d, low, high);

    draw_ints(d, draw_chance(d, 50) ? BYOC_I64 : BYOC_I32, -1, &at,
              draw_chance(d, 50));
    return operand_name(d, d->n - 1);
}

/* Concatenate all elements of sequence `name` to one tensor, to compare
 * sequences. */
static void join_sequence(struct draw *d, const char *name)
{
    draw_node(d, d->graph, "ConcatFromSequence", name, "y0");
    draw_attr_int(d, "axis", 0);
    draw_node(d, d->graph, "SequenceLength", name, "y1");
}

static void sequence_at(struct draw *d)
{
    const int64_t n = sequence(d, draw_int(d, 1, 4));
    const char *at = position(d, -n, n - 1);

    draw_set_names(d, byi_arena_printf(d->arena, "s %s", at), NULL);
}

static void sequence_insert(struct draw *d)
{
    const int64_t m = draw_int(d, 1, 4), n = sequence(d, m);

    matrix(d, draw_int(d, 0, 4), m);
    const char *x = operand_name(d, d->n - 1);
    const char *at = draw_chance(d, 70) ? position(d, -n, n) : "-";
    draw_set_names(d, byi_arena_printf(d->arena, "s %s %s", x, at), "more");
    if (strcmp(at, "-") == 0)
        draw_set_names(d, byi_arena_printf(d->arena, "s %s", x), "more");
    draw_place_node(d);
    join_sequence(d, "more");
}

static void sequence_erase(struct draw *d)
{
    const int64_t n = sequence(d, draw_int(d, 1, 4));
    const char *at = draw_chance(d, 70) ? position(d, -n, n - 1) : "";

    draw_set_names(d, byi_arena_printf(d->arena, "s %s", at), "less");
    draw_place_node(d);
    join_sequence(d, "less");
}

static void sequence_length(struct draw *d)
{
    sequence(d, draw_int(d, 1, 4));
    draw_set_names(d, "s", NULL);
}

static void concat_sequence(struct draw *d)
{
    const bool stack = draw_chance(d, 40);
    const int64_t n = draw_int(d, 1, 4), m = draw_int(d, 1, 4);

    sequence(d, m);
    if (stack) { /* elements of one shape: parts of one */
        matrix(d, 3 * n, m);
        const int64_t each = 3;
        draw_ints(d, BYOC_I64, -1, &each, true);
        draw_node(d, d->graph, "SplitToSequence",
                  byi_arena_printf(d->arena, "%s %s", operand_name(d, d->n - 2),
                                   operand_name(d, d->n - 1)),
                  "parts");
        draw_attr_int(d, "axis", 0);
    }
    draw_set_names(d, stack ? "parts" : "s", NULL);
    draw_attr_int(d, "axis", stack ? draw_int(d, -3, 2) : 0);
    draw_attr_int(d, "new_axis", stack);
}

static void split_sequence(struct draw *d)
{
    const int64_t n = draw_int(d, 1, 7), m = draw_int(d, 1, 3);
    const int64_t way = draw_int(d, 0, 2), each = draw_int(d, 1, n);
    const int64_t first = draw_int(d, 0, n), sizes[] = {first, n - first};

    matrix(d, n, m);
    if (way == 1)
        draw_ints(d, BYOC_I64, -1, &each, draw_chance(d, 50));
    else if (way == 2)
        draw_ints(d, BYOC_I64, 2, sizes, draw_chance(d, 50));
    draw_set_names(d, NULL, "parts");
    draw_attr_int(d, "axis", draw_chance(d, 50) ? 0 : -2);
    if (way == 0)
        draw_attr_int(d, "keepdims", 1);
    draw_place_node(d);
    join_sequence(d, "parts");
}

/* An empty sequence, filled. */
static void sequence_empty(struct draw *d)
{
    matrix(d, draw_int(d, 0, 4), 2);
    draw_set_names(d, "", "s");
    draw_attr_int(d, "dtype",
                  d->wide && (d->dtype == BYOC_F16 || d->dtype == BYOC_BF16)
                      ? BYOC_F32
                      : d->dtype);
    draw_place_node(d);
    draw_node(d, d->graph, "SequenceInsert", "s x0", "more");
    join_sequence(d, "more");
}

/* Concatenate each element and itself, or each element and a tensor of the
 * outer graph. */
static void sequence_map(struct draw *d)
{
    sequence(d, 3);
    matrix(d, 2, 3);
    Onnx__GraphProto *g = draw_body(d, "body", "e", "f");
    draw_body_type(d, g, 0, d->dtype, 2);
    draw_node(d, g, "Concat",
              draw_chance(d, 50) ? byi_arena_printf(d->arena, "e %s",
                                                    operand_name(d, d->n - 1))
                                 : "e e",
              "f");
    draw_attr_int(d, "axis", 0);
    draw_set_names(d, "s", "t");
    draw_place_node(d);
    join_sequence(d, "t");
}

static void optional_get(struct draw *d)
{
    draw_same(d);
    draw_node(d, d->graph, "Optional", "x0", "o");
    draw_set_names(d, "o", NULL);
}

/* clang-format off */
static const struct op_case rows[] = {
    {"If", 16, "fhiu86bs", branches, EXTREME, 1, 0, NULL, true},
    {"Loop", 16, "fhiu", loop, ORDINARY, 2, 1e-5, NULL, true},
    {"Scan", 16, "fhi", scan, ORDINARY, 2, 1e-5, NULL, true},
    {"SequenceAt", 11, "fhiu86bs", sequence_at, EXTREME, 1, 0, NULL, true},
    {"SequenceInsert", 11, "fhiu86bs", sequence_insert, EXTREME, 2, 0, NULL, true},
    {"SequenceErase", 11, "fhiu86bs", sequence_erase, EXTREME, 2, 0, NULL, true},
    {"SequenceLength", 11, "fhiu86bs", sequence_length, EXTREME, 1, 0, NULL, true},
    {"ConcatFromSequence", 11, "fhiu86bs", concat_sequence, EXTREME, 1, 0, NULL, true},
    {"SplitToSequence", 11, "fhiu86bs", split_sequence, EXTREME, 2, 0, NULL, true},
    {"SequenceEmpty", 11, "fhiu86bs", sequence_empty, EXTREME, 2, 0, NULL, true},
    {"SequenceMap", 17, "fhiu86bs", sequence_map, EXTREME, 2, 0, NULL, true},
    {"OptionalGetElement", 15, "fhiu86bs", optional_get, EXTREME, 1, 0, NULL, true},
    {"OptionalHasElement", 15, "fhiu86bs", optional_get, EXTREME, 1, 0, NULL, true},
};
/* clang-format on */

const struct op_table op_cases_control = {rows, BYI_COUNT(rows)};
