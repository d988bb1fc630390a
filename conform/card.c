/* SPDX-License-Identifier: Apache-2.0 */
/* card.c: prints the scorecard as text and as JSON. */
#include "conform.h"
#include "core/base/json_write.h"

#include <byoc/runtime.h>

#include <cjson/cJSON.h>

#include <string.h>

static const char *const outcomes[] = {[BYI_PASSED] = "pass",
                                       [BYI_FAILED] = "fail",
                                       [BYI_REFUSED] = "refused",
                                       [BYI_UNTESTED] = "untested"};

/* Sums over cases. */
struct counts {
    uint32_t cases[BYI_COUNT(outcomes)]; /* indexed by outcome */
    uint64_t n_chains, n_ran;            /* as in struct byi_verdict */
};

uint32_t byi_card_failed(const struct byi_card *card)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < card->entries.n; i++)
        n += card->entries.at[i].verdict.outcome == BYI_FAILED;
    return n;
}

/* The length of the name of a case's group. */
static int group_length(const struct byi_card_entry *e)
{
    return (int)strcspn(e->test.name, "/");
}

static bool are_in_one_group(const struct byi_card_entry *a,
                             const struct byi_card_entry *b)
{
    return group_length(a) == group_length(b) &&
           strncmp(a->test.name, b->test.name, (size_t)group_length(a)) == 0;
}

static void add_verdict(struct counts *n, const struct byi_verdict *v)
{
    n->cases[v->outcome]++;
    n->n_chains += v->n_chains;
    n->n_ran += v->n_ran;
}

static void add_counts(struct byi_text *out, const struct counts *n)
{
    byi_text_addf(out, "%6u pass", n->cases[BYI_PASSED]);
    if (n->cases[BYI_FAILED])
        byi_text_addf(out, ", %u FAIL", n->cases[BYI_FAILED]);
    if (n->cases[BYI_REFUSED])
        byi_text_addf(out, ", %u refused", n->cases[BYI_REFUSED]);
    if (n->cases[BYI_UNTESTED])
        byi_text_addf(out, ", %u untested", n->cases[BYI_UNTESTED]);
    if (n->n_chains)
        byi_text_addf(out, " (%llu of %llu chains ran)",
                      (unsigned long long)n->n_ran,
                      (unsigned long long)n->n_chains);
    byi_text_addf(out, "\n");
}

/* Add a line for each group of cases, with its counts. */
static void add_groups(const struct byi_card *card, struct byi_text *out)
{
    for (uint32_t i = 0; i < card->entries.n; i++) {
        const struct byi_card_entry *first = &card->entries.at[i];
        struct counts n = {.n_chains = 0};
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = are_in_one_group(&card->entries.at[k], first);
        for (uint32_t k = i; k < card->entries.n && !seen; k++)
            if (are_in_one_group(&card->entries.at[k], first))
                add_verdict(&n, &card->entries.at[k].verdict);
        if (seen)
            continue;
        byi_text_addf(out, "  %-10.*s", group_length(first), first->test.name);
        add_counts(out, &n);
    }
}

/* Whether case b fails in the same way as case a, which fails: the same rule,
 * for the same row. Cases of chains have no row, so each counts as a different
 * failure. */
static bool fails_alike(const struct byi_card_entry *a,
                        const struct byi_card_entry *b)
{
    return b->verdict.outcome == BYI_FAILED && !a->verdict.n_chains &&
           a->verdict.rule == b->verdict.rule &&
           (a->test.row == b->test.row ||
            (a->test.row && b->test.row &&
             strcmp(a->test.row, b->test.row) == 0));
}

/* Add a word of a shell command, quoted if necessary. */
static void add_word(const char *word, struct byi_text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        byi_text_addf(out, "%s", word);
        return;
    }
    byi_text_addf(out, "'");
    for (; *word; word++)
        byi_text_addf(out, *word == '\'' ? "'\\''" : "%c", *word);
    byi_text_addf(out, "'");
}

/* Add the command that runs this case alone. */
static void add_command(const struct byi_card *card,
                        const struct byi_card_entry *e, struct byi_text *out)
{
    byi_text_addf(out, "byoc conform ");
    add_word(card->path, out);
    byi_text_addf(out, " --only ");
    add_word(e->test.name, out);
    byi_text_addf(out, " --seed %llu", (unsigned long long)card->seed);
    if (card->options)
        byi_text_addf(out, " %s", card->options);
}

static void add_indented(struct byi_text *out, const char *text)
{
    byi_text_addf(out, "    ");
    for (const char *p = text; *p; p++)
        byi_text_addf(out, *p == '\n' && p[1] ? "\n    " : "%c", *p);
}

/* Add the failure of entry `at`, unless an earlier entry fails alike. */
static void add_failure(const struct byi_card *card, uint32_t at,
                        struct byi_text *out)
{
    const struct byi_card_entry *e = &card->entries.at[at];
    uint32_t n_alike = 0;
    for (uint32_t i = 0; i < at; i++)
        if (fails_alike(e, &card->entries.at[i]))
            return;
    for (uint32_t i = at + 1; i < card->entries.n; i++)
        n_alike += fails_alike(e, &card->entries.at[i]);
    byi_text_addf(out, "\nFAIL %s (%s: %s)\n", e->test.name,
                  byi_kit_rules[e->verdict.rule].name,
                  byi_kit_rules[e->verdict.rule].text);
    add_indented(out, e->verdict.text);
    byi_text_addf(out, "\n");
    if (*e->verdict.program)
        add_indented(out, e->verdict.program);
    if (*e->verdict.printed)
        byi_text_addf(out, "    it printed: %s\n", e->verdict.printed);
    if (n_alike)
        byi_text_addf(out, "    and %u more like it\n", n_alike);
    byi_text_addf(out, "    ");
    add_command(card, e, out);
    byi_text_addf(out, "\n");
}

/* Add the groups that were skipped, with the reason, and the notes of cases
 * that passed. */
static void add_skipped(const struct byi_card *card, struct byi_text *out)
{
    for (uint32_t i = 0; i < card->entries.n; i++) {
        const struct byi_card_entry *e = &card->entries.at[i];
        if (e->verdict.outcome == BYI_UNTESTED && !strchr(e->test.name, '/'))
            byi_text_addf(out, "\nnot tested: %s: %s\n", e->test.name,
                          e->verdict.text);
        if (e->verdict.outcome == BYI_PASSED && *e->verdict.text)
            byi_text_addf(out, "\nnote: %s: %s\n", e->test.name,
                          e->verdict.text);
    }
}

/* Add the rows for which no case ran a graph, with the reason of one case. */
static void add_untested(const struct byi_card *card, struct byi_text *out)
{
    const char *row = card->listing->rows;
    for (uint32_t i = 0; i < card->listing->n_rows;
         i++, row += strlen(row) + 1) {
        const struct byi_card_entry *example = NULL;
        uint32_t n_cases = 0, n_ran = 0;
        for (uint32_t k = 0; k < card->entries.n; k++) {
            const struct byi_card_entry *e = &card->entries.at[k];
            if (!e->test.row || strcmp(e->test.row, row) != 0 ||
                strncmp(e->test.name, "numerics/", 9) != 0)
                continue;
            n_cases++;
            n_ran += e->verdict.outcome == BYI_PASSED ||
                     e->verdict.outcome == BYI_FAILED;
            if (!example || e->verdict.outcome == BYI_REFUSED)
                example = e;
        }
        if (n_cases && !n_ran)
            byi_text_addf(out, "\nnot tested: %s: %s: %.300s\n", row,
                          outcomes[example->verdict.outcome],
                          example->verdict.text);
    }
}

void byi_card_text(const struct byi_card *card, struct byi_text *out)
{
    const uint32_t failed = byi_card_failed(card);
    byi_text_addf(out, "%s", card->path);
    if (card->listing->n_rows)
        byi_text_addf(out, ": %s %s, %u patterns, %s", card->listing->name,
                      card->listing->version, card->listing->n_rows,
                      !card->listing->compiles  ? "takes JSON"
                      : card->listing->writes_c ? "writes C"
                                                : "compiles regions itself");
    byi_text_addf(out, ", seed %llu\n", (unsigned long long)card->seed);
    add_groups(card, out);
    for (uint32_t i = 0; i < card->entries.n; i++)
        if (card->entries.at[i].verdict.outcome == BYI_FAILED)
            add_failure(card, i, out);
    add_untested(card, out);
    add_skipped(card, out);
    if (failed)
        byi_text_addf(out, "\n%u of %u cases fail\n", failed, card->entries.n);
    else
        byi_text_addf(out, "\nconforms: no case of %u fails\n",
                      card->entries.n);
}

static cJSON *entry_json(struct byi_arena *arena, const struct byi_card *card,
                         const struct byi_card_entry *e)
{
    cJSON *item = byi_json_object(arena);
    byi_json_add(item, "case", byi_json_text(arena, e->test.name));
    byi_json_add(item, "outcome",
                 byi_json_text(arena, outcomes[e->verdict.outcome]));
    if (e->verdict.outcome == BYI_FAILED)
        byi_json_add(item, "rule",
                     byi_json_text(arena, byi_kit_rules[e->verdict.rule].name));
    if (*e->verdict.text)
        byi_json_add(item, "text", byi_json_text(arena, e->verdict.text));
    if (e->verdict.outcome == BYI_FAILED) {
        if (*e->verdict.program)
            byi_json_add(item, "program",
                         byi_json_text(arena, e->verdict.program));
        if (*e->verdict.printed)
            byi_json_add(item, "printed",
                         byi_json_text(arena, e->verdict.printed));
        struct byi_text command = {0};
        add_command(card, e, &command);
        byi_json_add(item, "reproduce", byi_json_text(arena, command.at));
        byi_text_free(&command);
    }
    return item;
}

void byi_card_json(const struct byi_card *card, struct byi_text *out)
{
    struct byi_arena *arena = byi_arena_new();
    cJSON *root = byi_json_object(arena);
    struct counts n = {.n_chains = 0};
    byi_json_add(root, "format", byi_json_text(arena, "byoc-conform"));
    byi_json_add(root, "version", byi_json_number(arena, 1));
    byi_json_add(root, "plugin", byi_json_text(arena, card->path));
    byi_json_add(root, "name", byi_json_text(arena, card->listing->name));
    byi_json_add(root, "backend_version",
                 byi_json_text(arena, card->listing->version));
    byi_json_add(root, "compat", byi_json_text(arena, card->listing->compat));
    byi_json_add(root, "patterns",
                 byi_json_number(arena, card->listing->n_rows));
    byi_json_add(root, "seed", byi_json_number(arena, (double)card->seed));
    cJSON *cases = byi_json_list(arena);
    for (uint32_t i = 0; i < card->entries.n; i++) {
        add_verdict(&n, &card->entries.at[i].verdict);
        byi_json_append(cases, entry_json(arena, card, &card->entries.at[i]));
    }
    for (size_t i = 0; i < BYI_COUNT(outcomes); i++)
        byi_json_add(root, outcomes[i], byi_json_number(arena, n.cases[i]));
    byi_json_add(root, "cases", cases);
    byi_json_print(root, out);
    byi_arena_free(&arena);
}
