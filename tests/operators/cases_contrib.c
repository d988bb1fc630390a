/* cases_contrib.c: random calls of com.microsoft's operators. */
#include "fuzz.h"

#define MS "com.microsoft"

/* --- attention ------------------------------------------------------------ */

struct grouped {
    int64_t batch, queries, heads, kv_heads, size; /* size: of a head */
    int64_t cache;   /* rows of the cache; 0: none is given   */
    int64_t all;     /* keys of the longest sequence          */
    int64_t last[3]; /* the last key of each sequence         */
    bool rotary;
    bool padded; /* queries stand behind the end of theirs: what they find
                  * is not specified, and with a window not the same */
};

/* A prompt, whose sequences may be shorter than it; or queries behind a past,
 * one for each of several sequences or more of a single one. */
static struct grouped draw_grouped(struct draw *d)
{
    const int64_t kv_heads = draw_int(d, 1, 3);
    struct grouped g = {.batch = draw_int(d, 1, 3),
                        .queries = draw_int(d, 1, 9),
                        .heads = kv_heads * draw_int(d, 1, 3),
                        .kv_heads = kv_heads,
                        .rotary = draw_chance(d, 40)};
    const bool prompt = draw_chance(d, 40);
    const int64_t past = prompt ? 0 : draw_int(d, 1, 20);

    g.size = g.rotary ? 16 * draw_int(d, 1, 2) : 8 * draw_int(d, 1, 5);
    if (!prompt && g.batch > 1)
        g.queries = 1;
    g.all = past + g.queries;
    if (!prompt || draw_chance(d, 30))
        g.cache = draw_chance(d, 50) ? past : g.all + draw_int(d, 0, 9);
    for (int64_t i = 0; i < g.batch; i++) {
        const int64_t least = prompt ? 0 : g.queries - 1;
        g.last[i] = i == 0 ? g.all - 1 : draw_int(d, least, g.all - 1);
        g.padded = g.padded || (prompt && g.last[i] < g.all - 1);
    }
    return g;
}

static void draw_keys(struct draw *d, const struct grouped *g)
{
    const int64_t width = g->kv_heads * g->size;
    const int64_t q[] = {g->batch, g->queries, g->heads * g->size};
    const int64_t kv[] = {g->batch, g->queries, width};
    const int64_t all[] = {g->batch, g->queries, q[2] + 2 * width};
    const int64_t cache[] = {g->batch, g->kv_heads, g->cache, g->size};
    const bool packed = draw_chance(d, 25);

    draw_operand(d, d->dtype, 3, packed ? all : q, op_now->flavour);
    for (int i = 0; i < 2; i++)
        if (packed)
            draw_nothing(d);
        else
            draw_operand(d, d->dtype, 3, kv, op_now->flavour);
    for (int i = 0; i < 2; i++)
        if (g->cache == 0)
            draw_nothing(d);
        else
            draw_operand(d, d->dtype, 4, cache, op_now->flavour);
}

/* Tables, positions, a bias of the scores, sinks: as far as there is one. */
static void draw_extras(struct draw *d, const struct grouped *g)
{
    const int64_t table[] = {64, g->size / 2};
    const int64_t bias[] = {draw_chance(d, 50) ? 1 : g->batch,
                            draw_chance(d, 50) ? 1 : g->heads, g->queries,
                            g->all};

    for (int i = 0; i < 2; i++)
        if (g->rotary)
            draw_operand(d, d->dtype, 2, table, UNIT);
        else
            draw_nothing(d);
    draw_nothing(d);
    if (draw_chance(d, 30))
        draw_operand(d, d->dtype, 4, bias, ORDINARY);
    else
        draw_nothing(d);
    if (draw_chance(d, 20))
        draw_operand(d, d->dtype, 1, &g->heads, ORDINARY);
    else if (draw_chance(d, 20))
        draw_attr_int(d, "smooth_softmax", 1);
}

static void group_query(struct draw *d)
{
    const struct grouped g = draw_grouped(d);

    draw_keys(d, &g);
    draw_ints(d, BYOC_I32, g.batch, g.last, draw_chance(d, 20));
    draw_ints(d, BYOC_I32, -1, &g.all, draw_chance(d, 20));
    draw_extras(d, &g);
    draw_attr_int(d, "num_heads", g.heads);
    draw_attr_int(d, "kv_num_heads", g.kv_heads);
    draw_attr_int(d, "do_rotary", g.rotary);
    draw_attr_int(d, "rotary_interleaved", draw_int(d, 0, 1));
    if (!g.padded && draw_chance(d, 40))
        draw_attr_int(d, "local_window_size", draw_int(d, 1, 12));
    else if (draw_chance(d, 20))
        draw_attr_int(d, "causal", 0);
    if (draw_chance(d, 20))
        draw_attr_float(d, "softcap", (float)draw_int(d, 1, 8));
    if (draw_chance(d, 30))
        draw_attr_float(d, "scale", (float)draw_int(d, 1, 8) / 8);
}

/* clang-format off */
static const struct op_case rows[] = {
    {"GroupQueryAttention", 1, "f", group_query, ORDINARY, 3, 1e-4, MS, false},
    {"GroupQueryAttention", 1, "h", group_query, UNIT, 3, 1e-4, MS, false},
};
/* clang-format on */

const struct op_table op_cases_contrib = {rows, BYI_COUNT(rows)};
