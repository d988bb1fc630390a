/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: `byoc help`: prints the tables of commands and options as text, as
 * manual pages, or as completions for shells. A command's `--help` prints its
 * table as text.
 */
#include "help.h"

#include <string.h>

void byi_print_usage(FILE *to)
{
    fprintf(to, "usage: byoc COMMAND ...\n\n");
    for (uint32_t i = 0; byi_commands[i]; i++)
        fprintf(to, "  %-10s %s\n", byi_commands[i]->name,
                byi_commands[i]->summary);
    fprintf(to, "\n`byoc COMMAND --help` or `byoc help COMMAND` lists a "
                "command's options.\nExit codes: 0 success, 1 a mismatch or a "
                "failed gate, 2 usage or bad input,\n3 a backend failed, 4 an "
                "incompatible artifact.\n");
}

const struct byi_command *byi_find_command(const char *name)
{
    const char *names[64] = {0};
    uint32_t n = 0;
    for (; byi_commands[n] && n < BYI_COUNT(names); n++) {
        if (strcmp(name, byi_commands[n]->name) == 0)
            return byi_commands[n];
        names[n] = byi_commands[n]->name;
    }
    const char *nearest = byi_nearest(name, names, n);
    struct byi_text line = {0};
    byi_printable_add(&line, name, strlen(name), BYI_PRINTABLE_LINE);
    fprintf(
        stderr,
        "byoc: found no command '%s', expected one of `byoc --help`%s%s%s\n",
        line.n ? line.at : "", nearest ? "; did you mean '" : "",
        nearest ? nearest : "", nearest ? "'?" : "");
    byi_text_free(&line);
    return NULL;
}

int byi_print_command(const struct byi_command *command,
                      byi_print_options *print)
{
    char name[16], option[] = "--help";
    snprintf(name, sizeof name, "%s", command->name);
    byi_help_printer = print;
    const int code = command->run(2, (char *[]){name, option, NULL});
    byi_help_printer = byi_print_help;
    return code;
}

/* A copy of the words "a|b|c" with `separator` instead of "|", in `arena`. */
static const char *replace_separators(struct byi_arena *arena,
                                      const char *words, char separator)
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
                                       replace_separators(arena, value, ' ')};
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

const char *byi_first_words(const struct byi_command *command,
                            struct byi_arena *arena)
{
    if (command && command != &byi_command_help)
        return command->first ? replace_separators(arena, command->first, ' ')
                              : NULL;
    struct byi_text text = {0};
    for (uint32_t i = 0; byi_commands[i]; i++)
        byi_text_addf(&text, "%s%s", i ? " " : "", byi_commands[i]->name);
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
    int code = byi_parse_options(&byi_command_help, options, BYI_COUNT(options),
                                 argc, argv, 0, 1, &name, &n);
    if (code >= 0)
        return code;
    const struct byi_command *command = n ? byi_find_command(name) : NULL;
    if (n && !command)
        return BYI_EXIT_USAGE;
    if (command && format <= MAN)
        return byi_print_command(command, format == MAN ? byi_print_page
                                                        : byi_print_help);
    if (command) {
        fprintf(stderr,
                "byoc help: found '%s', expected no command: completions for a "
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

const struct byi_command byi_command_help = {
    .name = "help",
    .usage = "[COMMAND] [--format text|man|bash|zsh|fish]",
    .summary = "print the commands, or the options of one",
    .example = "byoc help compile\n"
               "byoc help compile --format man >byoc-compile.1\n"
               "byoc help --format bash >byoc.bash\n",
    .run = run,
};
