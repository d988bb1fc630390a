/* SPDX-License-Identifier: Apache-2.0 */
/* nest.c: prints the loop nests of a fused group as C. The outer nest iterates
 * over the result's axes; each reduction has a nest inside it, where its value
 * is needed. A nest with a reduction iterates by rows: the innermost loop is
 * the reduction's. If the operands of adjacent results are adjacent in memory
 * and the elements of one result are not, it iterates by columns, and reduces
 * adjacent results together. All sizes are constants, so blocks and parts are
 * chosen at compile time, and results do not depend on the number of threads.
 */
#include "nest.h"

#include <string.h>

enum {
    TILE = 32,        /* elements of a tile's side */
    SUM_BLOCK = 1024, /* elements of a block summed in float */
    COLUMNS = 256,    /* results of a block of columns */
    MAX_PARTS = 256,  /* of a reduction that is computed in parallel */
};

/* Append a line, indented. */
static void print_line(struct byi_printer *p, const char *fmt, ...)
    BYI_PRINTF(2, 3);

static void print_line(struct byi_printer *p, const char *fmt, ...)
{
    char text[4096];
    BYI_FORMAT(text, fmt);
    byi_text_addf(p->out, "%*s%s\n", *text == '#' ? 0 : 4 * p->depth, "", text);
}

static void open_block(struct byi_printer *p)
{
    p->out->n--; /* the newline */
    byi_text_addf(p->out, " {\n");
    p->depth++;
}

static void close_blocks(struct byi_printer *p, uint32_t n)
{
    while (n-- > 0) {
        p->depth--;
        print_line(p, "}");
    }
}

/* --- one value ---------------------------------------------------------- */

static const char *affine_text(const struct byi_printer *p,
                               const struct byi_affine *a)
{
    struct byi_text t = {0};
    for (uint32_t k = 0; k < p->g->n_loops; k++) {
        const int64_t c = a->coef[k];
        if (c == 0)
            continue;
        byi_text_addf(&t, "%s",
                      t.n == 0 ? c < 0 ? "-" : ""
                      : c < 0  ? " - "
                               : " + ");
        if (c == 1 || c == -1)
            byi_text_addf(&t, "i%u", k);
        else
            byi_text_addf(&t, "i%u * %lld", k, (long long)(c < 0 ? -c : c));
    }
    if (a->base || t.n == 0)
        byi_text_addf(&t, "%s%lld", t.n ? " + " : "", (long long)a->base);
    const char *text = byi_arena_str(p->g->arena, t.at);
    byi_text_free(&t);
    return text;
}

static void print_reduce(struct byi_printer *p, uint32_t v);

static void print_op(struct byi_printer *p, uint32_t v)
{
    const struct byi_group_value *value = value_at(p, v);
    const char *args[3] = {"", "", ""};
    struct byi_text text = {0};
    for (uint32_t i = 0; i < value->n_args; i++)
        args[i] = p->names[value->args[i]];
    byi_expr_print(node_of(p, v), value_at(p, value->args[0])->dtype, args,
                   &text);
    print_line(p, "const %s %s = %s; /* %s */", byi_c_type(value->dtype),
               p->names[v], text.at, byi_op(node_of(p, v)->op)->name);
    byi_text_free(&text);
}

static void print_value(struct byi_printer *p, uint32_t v)
{
    const struct byi_group_value *value = value_at(p, v);
    switch (value->kind) {
    case BYI_GROUP_LOAD:
        print_line(p, "const %s %s = x%u[%s];", byi_c_type(value->dtype),
                   p->names[v], value->index, affine_text(p, &value->offset));
        return;
    case BYI_GROUP_OP:
        print_op(p, v);
        return;
    case BYI_GROUP_REDUCE:
        print_reduce(p, v);
        return;
    case BYI_GROUP_SCALAR: /* printed as a literal in its readers */
    case BYI_GROUP_ALIAS:
        return;
    }
}

/* Print the values at depth `level` of a nest. */
static void print_level(struct byi_printer *p, uint32_t nest, uint32_t level)
{
    for (uint32_t v = 0; v < p->g->values.n; v++)
        if (value_at(p, v)->nest == nest && value_at(p, v)->level == level)
            print_value(p, v);
}

/* --- reductions --------------------------------------------------------- */

/* A reduction that is being printed. */
struct nest_reduction {
    uint32_t value;                   /* its index */
    uint32_t n, loops[BYI_MAX_LOOPS]; /* its loops */
    struct byi_reduction form;
    struct byi_reduction_names names;
    char sum[32];   /* name of the accumulator */
    bool by_blocks; /* as in struct byi_reduction */
    bool simd;      /* vectorise the innermost loop */
    bool nan;       /* a maximum or minimum of floats; see print_extreme */
};

static struct nest_reduction reduction_of(const struct byi_printer *p,
                                          uint32_t v)
{
    const struct byi_node *node = node_of(p, v);
    const struct byi_group_value *arg = value_at(p, value_at(p, v)->args[0]);
    struct nest_reduction r = {.value = v};
    r.n = byi_group_nest(p->g, v + 1, r.loops);
    byi_reduction_find(node->op, arg->dtype, &r.form);
    r.names =
        (struct byi_reduction_names){.sum_type = r.form.type,
                                     .value = p->names[value_at(p, v)->args[0]],
                                     .type = byi_c_type(arg->dtype),
                                     .count = 1};
    for (uint32_t k = 0; k < r.n; k++)
        r.names.count *= extent_of(p, r.loops[k]);
    snprintf(r.sum, sizeof r.sum, "%s_sum", p->names[v]);
    r.simd = r.n > 0 && !byi_nest_has_values(p, v + 1, r.n, true);
    r.by_blocks = r.form.by_blocks && r.simd;
    r.nan = byi_dtype_is_float(arg->dtype) && r.form.merge[0] == 'm';
    return r;
}

static void print_step(struct byi_printer *p, struct nest_reduction *r,
                       const char *sum, const char *sum_type)
{
    struct byi_text text = {0};
    r->names.sum = sum;
    r->names.sum_type = sum_type;
    byi_reduction_print(r->form.step, &r->names, &text);
    print_line(p, "%s;", text.at);
    byi_text_free(&text);
}

/* Print a step of a maximum or minimum of floats. A separate flag records NaN,
 * since the compiler vectorises only a plain maximum. */
static void print_extreme(struct byi_printer *p, const struct nest_reduction *r,
                          const char *sum)
{
    const char *v = r->names.value;
    print_line(p, "%s = %s %s %s ? %s : %s;", sum, v,
               strcmp(r->form.merge, "max") == 0 ? ">" : "<", sum, v, sum);
    print_line(p, "%s_nan |= %s != %s;", sum, v, v);
}

/* Print the body of a reduction's innermost loop. */
static void print_innermost(struct byi_printer *p, struct nest_reduction *r,
                            const char *sum, const char *sum_type)
{
    print_level(p, r->value + 1, r->n);
    if (r->nan)
        print_extreme(p, r, sum);
    else
        print_step(p, r, sum, sum_type);
}

static void print_simd(struct byi_printer *p, const struct nest_reduction *r,
                       const char *sum)
{
    if (!r->simd)
        return;
    if (r->nan)
        print_line(p,
                   "#pragma omp simd reduction(%s : %s) reduction(| : %s_nan)",
                   r->form.merge, sum, sum);
    else
        print_line(p, "#pragma omp simd reduction(%s : %s)", r->form.merge,
                   sum);
}

/* Print the beginning of a loop over [from, to), which close_blocks ends. */
static void open_range_loop(struct byi_printer *p, uint32_t loop,
                            const char *from, const char *to)
{
    print_line(p, "for (int64_t i%u = %s; i%u < %s; i%u++)", loop, from, loop,
               to, loop);
    open_block(p);
}

static void open_loop(struct byi_printer *p, uint32_t loop)
{
    char to[32];
    snprintf(to, sizeof to, "%lld", (long long)extent_of(p, loop));
    open_range_loop(p, loop, "0", to);
}

/* Print the innermost loop of a sum of floats, in blocks; `whole`: in one
 * block.
 */
static void print_blocks(struct byi_printer *p, struct nest_reduction *r,
                         const char *from, const char *to, bool whole)
{
    const uint32_t loop = r->loops[r->n - 1];
    char part[48], begin[32], end[32];
    snprintf(part, sizeof part, "%s_part", p->names[r->value]);
    snprintf(begin, sizeof begin, "b%u", loop);
    snprintf(end, sizeof end, "b%u_end", loop);
    if (!whole) {
        print_line(p, "for (int64_t %s = %s; %s < %s; %s += %d)", begin, from,
                   begin, to, begin, SUM_BLOCK);
        open_block(p);
        print_line(p, "const int64_t %s = %s + %d < %s ? %s + %d : %s;", end,
                   begin, SUM_BLOCK, to, begin, SUM_BLOCK, to);
    }
    print_line(p, "%s %s = 0;", r->names.type, part);
    print_simd(p, r, part);
    open_range_loop(p, loop, whole ? from : begin, whole ? to : end);
    print_innermost(p, r, part, r->names.type);
    close_blocks(p, 1);
    print_line(p, "%s += %s;", r->sum, part);
    close_blocks(p, whole ? 0 : 1);
}

static void print_start(struct byi_printer *p, const struct nest_reduction *r)
{
    print_line(p, "%s %s = %s;", r->form.type, r->sum, r->form.start);
    if (r->nan)
        print_line(p, "int %s_nan = 0;", r->sum);
}

/* Print the loops of a reduction; the outermost one runs from `from` to `to`.
 */
static void print_loops(struct byi_printer *p, struct nest_reduction *r,
                        const char *from, const char *to)
{
    uint32_t n_open = 0;
    for (uint32_t k = 0; k + 1 < r->n; k++, n_open++) {
        if (k == 0)
            open_range_loop(p, r->loops[0], from, to);
        else
            open_loop(p, r->loops[k]);
        print_level(p, r->value + 1, k + 1);
    }
    char last[32];
    const int64_t extent = r->n ? extent_of(p, r->loops[r->n - 1]) : 1;
    snprintf(last, sizeof last, "%lld", (long long)extent);
    const char *begin = r->n == 1 ? from : "0", *end = r->n == 1 ? to : last;
    if (r->n == 0) {
        print_innermost(p, r, r->sum, r->form.type);
    } else if (r->by_blocks) {
        print_blocks(p, r, begin, end, extent <= SUM_BLOCK);
    } else {
        print_simd(p, r, r->sum);
        open_range_loop(p, r->loops[r->n - 1], begin, end);
        print_innermost(p, r, r->sum, r->form.type);
        close_blocks(p, 1);
    }
    close_blocks(p, n_open);
}

static void print_finish(struct byi_printer *p, struct nest_reduction *r,
                         const char *sum)
{
    struct byi_text text = {0};
    r->names.sum = sum;
    byi_reduction_print(r->form.finish, &r->names, &text);
    const struct byi_node *node = node_of(p, r->value);
    if (r->nan)
        print_line(p, "const %s %s = %s_nan ? (%s)NAN : %s; /* %s */",
                   r->names.type, p->names[r->value], sum, r->names.type,
                   text.at, byi_op(node->op)->name);
    else
        print_line(p, "const %s %s = %s; /* %s */", r->names.type,
                   p->names[r->value], text.at, byi_op(node->op)->name);
    byi_text_free(&text);
}

/* Print the pragma that runs the next loops in parallel. */
static void print_parallel(struct byi_printer *p, uint32_t collapse,
                           const char *simd)
{
    char several[32] = "", threads[64] = "threads";
    if (p->team < BYI_MANY)
        snprintf(threads, sizeof threads, "threads < %lld ? threads : %lld",
                 (long long)p->team, (long long)p->team);
    if (collapse > 1)
        snprintf(several, sizeof several, " collapse(%u)", collapse);
    print_line(
        p, "PARALLEL(omp parallel for%s%s schedule(static) num_threads(%s))",
        simd, several, threads);
}

/* Print a reduction in parallel parts of fixed size. Their results are combined
 * in order, so that the result does not depend on the number of threads. */
static void print_parts(struct byi_printer *p, struct nest_reduction *r)
{
    const int64_t extent = extent_of(p, r->loops[0]);
    int64_t parts = r->names.count / BYI_SMALL_WORK;
    parts = parts > MAX_PARTS ? MAX_PARTS : parts;
    parts = parts > extent ? extent : parts;
    const int64_t size = (extent + parts - 1) / parts;
    parts = (extent + size - 1) / size;
    print_line(p, "%s %s_parts[%lld];", r->form.type, r->sum, (long long)parts);
    if (r->nan)
        print_line(p, "int %s_nans[%lld];", r->sum, (long long)parts);
    print_parallel(p, 1, "");
    print_line(p, "for (int64_t part = 0; part < %lld; part++)",
               (long long)parts);
    open_block(p);
    print_line(p, "const int64_t from = part * %lld;", (long long)size);
    print_line(p, "const int64_t to = from + %lld < %lld ? from + %lld : %lld;",
               (long long)size, (long long)extent, (long long)size,
               (long long)extent);
    print_start(p, r);
    print_loops(p, r, "from", "to");
    print_line(p, "%s_parts[part] = %s;", r->sum, r->sum);
    if (r->nan)
        print_line(p, "%s_nans[part] = %s_nan;", r->sum, r->sum);
    close_blocks(p, 1);
    print_start(p, r);
    print_line(p, "for (int64_t part = 0; part < %lld; part++)",
               (long long)parts);
    open_block(p);
    char result[64];
    snprintf(result, sizeof result, "%s_parts[part]", r->sum);
    if (r->form.merge[0] == 'm')
        print_line(p, "%s = %s %s %s ? %s : %s;", r->sum, result,
                   strcmp(r->form.merge, "max") == 0 ? ">" : "<", r->sum,
                   result, r->sum);
    else
        print_line(p, "%s = %s %s %s;", r->sum, r->sum, r->form.merge, result);
    if (r->nan)
        print_line(p, "%s_nan |= %s_nans[part];", r->sum, r->sum);
    close_blocks(p, 1);
}

static void print_reduce(struct byi_printer *p, uint32_t v)
{
    struct nest_reduction r = reduction_of(p, v);
    char to[32];
    if (p->split == v + 1) {
        print_parts(p, &r);
    } else {
        snprintf(to, sizeof to, "%lld",
                 (long long)(r.n ? extent_of(p, r.loops[0]) : 1));
        print_start(p, &r);
        print_loops(p, &r, "0", to);
    }
    print_finish(p, &r, r.sum);
}

/* --- the result --------------------------------------------------------- */

static void print_store(struct byi_printer *p)
{
    print_line(p, "y[%s] = %s;", affine_text(p, &p->g->store),
               p->names[p->g->result]);
}

static void print_pragma(struct byi_printer *p, uint32_t k)
{
    const bool last = k + p->parallel == p->n_loops;
    const bool simd = last && !byi_nest_has_values(p, 0, p->n_loops, true);
    if (p->team > 1 && k == p->first)
        print_parallel(p, p->parallel, simd && !p->streams ? " simd" : "");
    else if (k + 1 == p->n_loops && !byi_nest_has_values(p, 0, k + 1, true))
        print_line(p, "#pragma omp simd");
}

/* Print the last loop with streaming stores: it collects results in a block,
 * and then stores the block; the stores bypass the caches. */
static void print_stream(struct byi_printer *p)
{
    const uint32_t loop = p->loops[p->n_loops - 1];
    const int64_t extent = extent_of(p, loop);
    const char *type = byi_c_type(value_at(p, p->g->result)->dtype);
    struct byi_affine at = p->g->store;
    at.coef[loop] = 0;
    if (p->team > 1 && p->first + p->parallel == p->n_loops && p->parallel == 1)
        print_parallel(p, 1, "");
    print_line(p, "for (int64_t b = 0; b < %lld; b += %d)", (long long)extent,
               BYI_STREAM_BLOCK);
    open_block(p);
    print_line(p, "const int64_t n = b + %d < %lld ? %d : %lld - b;",
               BYI_STREAM_BLOCK, (long long)extent, BYI_STREAM_BLOCK,
               (long long)extent);
    print_line(p, "%s block[%d] __attribute__((aligned(64)));", type,
               BYI_STREAM_BLOCK);
    print_line(p, "#pragma omp simd");
    open_range_loop(p, loop, "b", "b + n");
    print_level(p, 0, p->n_loops);
    print_line(p, "block[i%u - b] = %s;", loop, p->names[p->g->result]);
    close_blocks(p, 1);
    print_line(p, "stream_out(y + %s + b, block, (size_t)n * sizeof block[0]);",
               affine_text(p, &at));
    close_blocks(p, 1);
}

/* Print the result's loops, without tiles and columns. */
static void print_elements(struct byi_printer *p)
{
    print_level(p, 0, 0);
    const uint32_t n = p->n_loops;
    uint32_t n_open = 0;
    for (uint32_t k = 0; k + p->streams < n; k++, n_open++) {
        print_pragma(p, k);
        open_loop(p, p->loops[k]);
        print_level(p, 0, k + 1);
    }
    if (p->streams)
        print_stream(p);
    else
        print_store(p);
    close_blocks(p, n_open);
}

/* --- tiles -------------------------------------------------------------- */

/* Print the loop over the tiles of a loop. If a load has stride 1 along another
 * loop than the result, both loops are tiled. A tile of either tensor then fits
 * in the first-level cache. */
static void open_tile_loop(struct byi_printer *p, uint32_t loop)
{
    const long long extent = (long long)extent_of(p, loop);
    print_line(p, "for (int64_t b%u = 0; b%u < %lld; b%u += %d)", loop, loop,
               extent, loop, TILE);
    open_block(p);
    print_line(p, "const int64_t b%u_end = b%u + %d < %lld ? b%u + %d : %lld;",
               loop, loop, TILE, extent, loop, TILE, extent);
}

static void open_loop_in_tile(struct byi_printer *p, uint32_t loop)
{
    char from[32], to[32];
    snprintf(from, sizeof from, "b%u", loop);
    snprintf(to, sizeof to, "b%u_end", loop);
    open_range_loop(p, loop, from, to);
}

/* Print the values at depth `level` that vary (or do not vary) with the loops
 * `loops`, and do not vary with the loops `excluded`. */
static void print_varying(struct byi_printer *p, uint64_t loops, bool varies,
                          uint64_t excluded, uint32_t level)
{
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        if (value->level == level && !(value->loops & loops) == !varies &&
            !(value->loops & excluded))
            print_value(p, v);
    }
}

static void print_tiles(struct byi_printer *p)
{
    const uint32_t n = p->n_loops, across = p->tile - 1, last = n - 1;
    const uint64_t outer = UINT64_C(1) << p->loops[across];
    const uint64_t inner = UINT64_C(1) << p->loops[last];
    print_level(p, 0, 0);
    for (uint32_t k = 0; k < n; k++) {
        if (p->team > 1 && k == p->first)
            print_parallel(p, 1, "");
        if (k == across || k == last)
            open_tile_loop(p, p->loops[k]);
        else
            open_loop(p, p->loops[k]);
        if (k < last)
            print_varying(p, outer, false, inner, k + 1);
    }
    open_loop_in_tile(p, p->loops[across]);
    for (uint32_t k = across + 1; k <= last; k++)
        print_varying(p, outer, true, inner, k);
    print_line(p, "#pragma omp simd");
    open_loop_in_tile(p, p->loops[last]);
    print_level(p, 0, n);
    print_store(p);
    close_blocks(p, n + 2);
}

/* --- columns ------------------------------------------------------------ */

/* Mark the values that `of` depends on, stopping at the columns' reduction. */
static void mark_needed(const struct byi_printer *p, uint32_t of, bool *needed)
{
    memset(needed, 0, p->g->values.n * sizeof *needed);
    needed[of] = true;
    for (uint32_t v = of + 1; v-- > 0;) {
        const struct byi_group_value *value = value_at(p, v);
        if (!needed[v] || v + 1 == p->columns)
            continue;
        for (uint32_t i = 0; i < value->n_args; i++)
            needed[value->args[i]] = true;
    }
}

/* Print the needed values of a nest, and those at the innermost level of the
 * result's nest, that vary with the loops `loops`. */
static void print_needed(struct byi_printer *p, const bool *needed,
                         uint32_t nest, uint64_t loops)
{
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        const bool inner = value->nest == 0 && value->level == p->n_loops;
        if (needed[v] && v + 1 != p->columns &&
            (value->nest == nest || inner) && (value->loops & loops))
            print_value(p, v);
    }
}

/* Print the reduction's loops, and the values in them that are the same for all
 * columns. */
static void print_column_loops(struct byi_printer *p, struct nest_reduction *r,
                               const bool *needed, uint64_t column)
{
    for (uint32_t k = 0; k < r->n; k++) {
        open_loop(p, r->loops[k]);
        for (uint32_t v = 0; v < p->g->values.n; v++) {
            const struct byi_group_value *value = value_at(p, v);
            if (needed[v] && value->nest == r->value + 1 &&
                value->level == k + 1 && !(value->loops & column))
                print_value(p, v);
        }
    }
}

static void print_columns(struct byi_printer *p)
{
    const uint32_t last = p->n_loops - 1, loop = p->loops[last];
    const int64_t extent = extent_of(p, loop);
    const uint64_t column = UINT64_C(1) << loop;
    struct nest_reduction r = reduction_of(p, p->columns - 1);
    bool *needed =
        byi_arena_calloc(p->g->arena, p->g->values.n, sizeof *needed);
    uint32_t n_open = 0;
    int64_t block = COLUMNS;
    while (block > 32 && extent / block < 8)
        block /= 2;
    print_level(p, 0, 0);
    for (uint32_t k = 0; k < last; k++, n_open++) {
        if (p->team > 1 && k == p->first)
            print_parallel(p, p->parallel, "");
        open_loop(p, p->loops[k]);
        print_level(p, 0, k + 1);
    }
    if (p->team > 1 && p->first == last)
        print_parallel(p, 1, "");
    print_line(p, "for (int64_t b = 0; b < %lld; b += %lld)", (long long)extent,
               (long long)block);
    open_block(p);
    print_line(p, "const int64_t end = b + %lld < %lld ? b + %lld : %lld;",
               (long long)block, (long long)extent, (long long)block,
               (long long)extent);
    print_line(p, "%s %s[%lld];", r.form.type, r.sum, (long long)block);
    open_range_loop(p, loop, "b", "end");
    print_line(p, "%s[i%u - b] = %s;", r.sum, loop, r.form.start);
    close_blocks(p, 1);
    mark_needed(p, value_at(p, r.value)->args[0], needed);
    print_column_loops(p, &r, needed, column);
    char column_sum[64];
    snprintf(column_sum, sizeof column_sum, "%s[i%u - b]", r.sum, loop);
    print_line(p, "#pragma omp simd");
    open_range_loop(p, loop, "b", "end");
    print_needed(p, needed, r.value + 1, column);
    print_step(p, &r, column_sum, r.form.type);
    close_blocks(p, 1 + r.n);
    mark_needed(p, p->g->result, needed);
    print_line(p, "#pragma omp simd");
    open_range_loop(p, loop, "b", "end");
    r.nan = false; /* the step propagates NaN */
    print_finish(p, &r, column_sum);
    print_needed(p, needed, 0, column);
    print_store(p);
    close_blocks(p, 2 + n_open);
}

/* --- the function ------------------------------------------------------- */

/* Set p->names: a variable, or the literal of a constant. */
static void name_values(struct byi_printer *p)
{
    uint32_t n = 0;
    p->names = byi_arena_calloc(p->g->arena, p->g->values.n, sizeof *p->names);
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        struct byi_tensor t;
        if (value->kind != BYI_GROUP_SCALAR) {
            p->names[v] = byi_arena_printf(p->g->arena, "v%u", n);
            n += value->kind != BYI_GROUP_ALIAS;
            continue;
        }
        struct byi_text text = {0};
        if (byi_const_view(p->g->m, p->g->f, value->node, &t))
            byi_expr_literal(&t, &text);
        p->names[v] = byi_arena_str(p->g->arena, text.at);
        byi_text_free(&text);
    }
}

static bool reads_param(const struct byi_group *g, uint32_t param)
{
    for (uint32_t v = 0; v < g->values.n; v++)
        if (g->values.at[v]->kind == BYI_GROUP_LOAD &&
            g->values.at[v]->index == param)
            return true;
    return false;
}

/* Append the loops over one domain, as a block if `braces`. */
static void print_domain(const struct byi_group *domain, bool braces,
                         struct byi_text *out)
{
    struct byi_printer p = {.g = domain, .out = out, .depth = 1};
    name_values(&p);
    byi_nest_decide(&p);
    if (braces) {
        print_line(&p, "{");
        p.depth++;
    }
    if (p.columns)
        print_columns(&p);
    else if (p.tile)
        print_tiles(&p);
    else
        print_elements(&p);
    close_blocks(&p, braces);
}

void byi_nest_print(const struct byi_group *domains, uint32_t n,
                    struct byi_text *out)
{
    const struct byi_func *f = domains->f;
    struct byi_printer p = {.g = domains, .out = out};
    bool is_parallel = false;
    print_line(&p, "{");
    p.depth++;
    for (uint32_t i = 0; i < f->params.n; i++) {
        bool is_read = false;
        for (uint32_t k = 0; k < n && !is_read; k++)
            is_read = reads_param(&domains[k], i);
        if (is_read)
            print_line(&p, "const %s *restrict const x%u = buffers[%u];",
                       byi_c_type(f->nodes.at[f->params.at[i]].type->dtype), i,
                       i);
    }
    print_line(&p, "%s *restrict const y = buffers[%u];",
               byi_c_type(f->nodes.at[f->result].type->dtype), f->params.n);
    for (uint32_t k = 0; k < n; k++) {
        struct byi_printer printer = {.g = &domains[k]};
        name_values(&printer);
        byi_nest_decide(&printer);
        is_parallel = is_parallel || printer.team > 1;
    }
    if (!is_parallel)
        print_line(&p, "(void)threads;");
    for (uint32_t k = 0; k < n; k++)
        print_domain(&domains[k], n > 1, out);
    close_blocks(&p, 1);
}
