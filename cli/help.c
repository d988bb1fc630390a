/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: `byoc help`: prints the tables of verbs and options as text, as
 * manual pages, or as completions for shells. A verb's `--help` prints its
 * table as text.
 */
#include "help.h"

#include <string.h>

static int run(int argc, char **argv);

const struct byi_verb byi_verb_help = {
    .name = "help",
    .usage = "[VERB] [--format text|man|bash|zsh|fish]",
    .summary = "print the verbs, or the options of one",
    .example = "byoc help compile\n"
               "byoc help compile --format man >byoc-compile.1\n"
               "byoc help --format bash >byoc.bash\n",
    .run = run,
};

void byi_print_usage(FILE *to)
{
    fprintf(to, "usage: byoc VERB ...\n\n");
    for (uint32_t i = 0; byi_verbs[i]; i++)
        fprintf(to, "  %-10s %s\n", byi_verbs[i]->name, byi_verbs[i]->summary);
    fprintf(to,
            "\n`byoc VERB --help` or `byoc help VERB` lists a verb's "
            "options. Exit codes: 0\nsuccess, 1 a negative verdict, 2 usage "
            "or bad input, 3 a backend failed, 4 an\nincompatible "
            "artifact.\n");
}

const struct byi_verb *byi_find_verb(const char *name)
{
    const char *names[64];
    uint32_t n = 0;
    for (; byi_verbs[n] && n < BYI_COUNT(names); n++) {
        if (strcmp(name, byi_verbs[n]->name) == 0)
            return byi_verbs[n];
        names[n] = byi_verbs[n]->name;
    }
    const char *nearest = byi_nearest(name, names, n);
    fprintf(stderr, "byoc: no verb is called '%s'; ", name);
    if (nearest)
        fprintf(stderr, "did you mean '%s'?\n", nearest);
    else
        fprintf(stderr, "`byoc --help` lists them\n");
    return NULL;
}

int byi_print_verb(const struct byi_verb *verb, byi_print_options *print)
{
    char name[16], option[] = "--help";
    snprintf(name, sizeof name, "%s", verb->name);
    byi_help_printer = print;
    const int code = verb->run(2, (char *[]){name, option, NULL});
    byi_help_printer = byi_print_help;
    return code;
}

/* A copy of the words "a|b|c" with `separator` instead of "|", in `arena`. */
static const char *separated(struct byi_arena *arena, const char *words,
                             char separator)
{
    char *copy = byi_arena_str(arena, words);
    for (char *at = strchr(copy, '|'); at; at = strchr(at, '|'))
        *at = separator;
    return copy;
}

struct byi_completion byi_completion_of(const struct byi_option *o,
                                        struct byi_arena *arena)
{
    const char *value = o->value;
    switch (o->kind) {
    case BYI_OPTION_CHOICE:
        return (struct byi_completion){BYI_COMPLETE_WORDS,
                                       separated(arena, value, ' ')};
    case BYI_OPTION_LEVEL:
        return (struct byi_completion){BYI_COMPLETE_WORDS, "0 1 2 3"};
    case BYI_OPTION_PATH:
    case BYI_OPTION_PATHS:
        return (struct byi_completion){BYI_COMPLETE_FILE, NULL};
    case BYI_OPTION_TEXT:
    case BYI_OPTION_LIST:
        if (strcmp(value, "DIR") == 0)
            return (struct byi_completion){BYI_COMPLETE_FOLDER, NULL};
        if (strstr(value, "FILE") || strstr(value, "DIR"))
            return (struct byi_completion){BYI_COMPLETE_FILE, NULL};
        break;
    default:
        break;
    }
    return (struct byi_completion){BYI_COMPLETE_OTHER, NULL};
}

const char *byi_first_words(const struct byi_verb *verb,
                            struct byi_arena *arena)
{
    if (verb && verb != &byi_verb_help)
        return verb->first ? separated(arena, verb->first, ' ') : NULL;
    struct byi_text text = {0};
    for (uint32_t i = 0; byi_verbs[i]; i++)
        byi_text_addf(&text, "%s%s", i ? " " : "", byi_verbs[i]->name);
    const char *words = byi_arena_str(arena, text.at);
    byi_text_free(&text);
    return words;
}

static int run(int argc, char **argv)
{
    enum { TEXT = 1, MAN };
    int format = TEXT;
    const char *name = NULL;
    uint32_t n;
    const struct byi_option options[] = {
        {"format", 0, BYI_OPTION_CHOICE, &format, "text|man|bash|zsh|fish",
         "text, a manual page, or completions for a shell (default: text)"},
    };
    int code = byi_options(&byi_verb_help, options, BYI_COUNT(options), argc,
                           argv, 0, 1, &name, &n);
    if (code >= 0)
        return code;
    const struct byi_verb *verb = n ? byi_find_verb(name) : NULL;
    if (n && !verb)
        return BYI_EXIT_USAGE;
    if (verb && format <= MAN)
        return byi_print_verb(verb,
                              format == MAN ? byi_print_page : byi_print_help);
    if (verb) {
        fprintf(stderr,
                "byoc help: found '%s', expected no verb: completions for a "
                "shell cover all of them; leave it out\n",
                name);
        return BYI_EXIT_USAGE;
    }
    static int (*const print[])(void) = {byi_print_main_page, byi_print_bash,
                                         byi_print_zsh, byi_print_fish};
    if (format == TEXT)
        byi_print_usage(stdout);
    return format == TEXT ? BYI_EXIT_OK : print[format - MAN]();
}
