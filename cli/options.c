/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: parses the options of every command from its table. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The arena of option values, which is never freed. */
static struct byi_arena *option_arena(void)
{
    static struct byi_arena *arena;
    if (!arena)
        arena = byi_arena_new();
    return arena;
}

/* The names of the options that the command line contains. */
static const char *const *given_options;

bool byi_option_is_given(const char *name)
{
    const char *const *given = given_options;
    while (given && *given && strcmp(*given, name) != 0)
        given++;
    return given && *given;
}

void byi_option_list_add(const char *const **list, const char *text)
{
    size_t n = 0;
    while (*list && (*list)[n])
        n++;
    const char **longer =
        byi_arena_calloc(option_arena(), n + 2, sizeof *longer);
    for (size_t i = 0; i < n; i++)
        longer[i] = (*list)[i];
    longer[n] = text;
    *list = longer;
}

void byi_print_help(const struct byi_command *command,
                    const struct byi_option *options, uint32_t n)
{
    printf("usage: byoc %s %s\n%s\n\n", command->name, command->usage,
           command->summary);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_option *o = &options[i];
        char names[64];
        snprintf(names, sizeof names, "%s%c%s%s%s%s%s", o->brief ? "-" : "",
                 o->brief ? o->brief : ' ', o->brief && *o->name ? ", " : "",
                 *o->name ? "--" : "", o->name, o->value && *o->name ? " " : "",
                 o->value ? o->value : "");
        printf("  %-34s %s\n", names, o->help);
    }
    for (const char *at = command->example; at && *at;
         at = strchr(at, '\n') + 1)
        printf("%s%.*s", at == command->example ? "\nexamples:\n  " : "  ",
               (int)(strchr(at, '\n') + 1 - at), at);
}

byi_print_options *byi_help_printer = byi_print_help;
const struct byi_command *const *byi_commands;

/* Print a usage error as one line. Returns the exit code. */
__attribute__((format(printf, 2, 3))) static int refuse(
    const struct byi_command *command, const char *format, ...)
{
    struct byoc_error err = {.status = BYOC_EINVAL};
    va_list args;
    va_start(args, format);
    vsnprintf(err.text, sizeof err.text, format, args);
    va_end(args);
    return byi_cli_print_error(command, &err);
}

/* Refuse an unknown option; suggest the most similar one. */
static int refuse_unknown(const struct byi_command *command,
                          const struct byi_option *options, uint32_t n,
                          const char *arg)
{
    const char **names = byi_arena_calloc(option_arena(), n + 1, sizeof *names);
    for (uint32_t i = 0; i < n; i++)
        names[i] = options[i].name;
    const char *nearest = byi_nearest(arg + strspn(arg, "-"), names, n);
    if (nearest)
        return refuse(command, "unknown option '%s'; did you mean '--%s'?", arg,
                      nearest);
    return refuse(command,
                  "unknown option '%s'; `byoc %s --help` lists the options",
                  arg, command->name);
}

static int refuse_value(const struct byi_command *command,
                        const struct byi_option *o, const char *value,
                        const char *expected)
{
    return refuse(command, "%s%s: found '%s', expected %s",
                  *o->name ? "--" : "-", *o->name ? o->name : "O", value,
                  expected);
}

/* Append the words of "A,B,C" to a list. */
static void split_commas(const char *const **list, const char *value)
{
    char *copy = byi_arena_str(option_arena(), value), *next = NULL;
    for (char *part = strtok_r(copy, ",", &next); part;
         part = strtok_r(NULL, ",", &next))
        byi_option_list_add(list, part);
}

/* Make a path absolute; a relative path is relative to the current folder.
 * Returns `path` itself if it is absolute or the current folder is unknown. */
static const char *make_absolute(const char *path)
{
    char folder[4096];
    if (path[0] == '/' || !getcwd(folder, sizeof folder))
        return path;
    while (strncmp(path, "./", 2) == 0)
        path += 2 + strspn(path + 2, "/");
    return byi_arena_printf(option_arena(), "%s%s%s", folder, *path ? "/" : "",
                            path);
}

/* Append the paths of "A:B", made absolute, to *list, which has the same syntax
 * or is NULL. The word "only" is kept as it is. */
static void add_paths(const char **list, const char *value)
{
    char *copy = byi_arena_str(option_arena(), value), *next = NULL;
    for (char *part = strtok_r(copy, ":", &next); part;
         part = strtok_r(NULL, ":", &next))
        *list = byi_arena_printf(
            option_arena(), "%s%s%s", *list ? *list : "", *list ? ":" : "",
            strcmp(part, "only") == 0 ? part : make_absolute(part));
}

/* Returns 1 + the index of `word` in `words`, "a|b|c"; 0: it is not there. */
static int find_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    int k = 1;
    for (const char *at = words; *at; k++) {
        const size_t n = strcspn(at, "|");
        if (length == n && memcmp(at, word, n) == 0)
            return k;
        at += n + (at[n] == '|');
    }
    return 0;
}

/* Set the option to 1 + the index of `value` in the option's "a|b|c". Returns
 * -1, or the exit code after an error. */
static int set_choice(const struct byi_command *command,
                      const struct byi_option *o, const char *value)
{
    const int choice = find_word(o->value, value);
    if (!choice)
        return refuse_value(command, o, value, o->value);
    *(int *)o->to = choice;
    return -1;
}

/* Returns the path in `value`, or NULL if the option does not take one. */
static const char *path_in(const struct byi_option *o, const char *value)
{
    static const char *const paths[] = {"FILE", "DIR", "FOLDER", "PATH"};
    if (o->kind != BYI_OPTION_TEXT && o->kind != BYI_OPTION_LIST &&
        o->kind != BYI_OPTION_PATH)
        return NULL;
    const char *equal = strchr(o->value, '=');
    const char *value_name = equal ? equal + 1 : o->value;
    const char *path = equal ? strchr(value, '=') : value;
    for (size_t i = 0; path && i < BYI_COUNT(paths); i++)
        if (strncmp(value_name, paths[i], strlen(paths[i])) == 0)
            return path + (equal != NULL);
    return NULL;
}

/* Refuse an empty path, which would become the root folder once a name is
 * appended, and "-", which other programs take for stdin or stdout. Returns -1,
 * or the exit code after an error. */
static int check_path(const struct byi_command *command,
                      const struct byi_option *o, const char *value)
{
    const char *path = path_in(o, value);
    if (path && !*path)
        return refuse_value(
            command, o, value,
            strchr(o->value, '=') ? o->value : "the name of a file or folder");
    if (path && strcmp(path, "-") == 0)
        return refuse_value(command, o, value,
                            "the name of a file or folder, since this does not "
                            "mean stdin or stdout; write ./- for this name");
    return -1;
}

/* Store the value of an option that is a number. Returns -1, or the exit code
 * after an error. The limit on seconds keeps them in the range of integers of
 * nanoseconds. */
static int set_number(const struct byi_command *command,
                      const struct byi_option *o, const char *value)
{
    const double max_seconds = 1e6;
    char *end;
    errno = 0;
    const double x = strtod(value, &end);
    if (end > value && o->kind == BYI_OPTION_PERCENT && strcmp(end, "%") == 0)
        end++;
    if (errno || end == value || *end || !(x >= 0) ||
        (isinf(x) && o->kind != BYI_OPTION_TOLERANCE))
        return refuse_value(command, o, value, "a number that is not negative");
    if (o->kind == BYI_OPTION_SECONDS && x > max_seconds)
        return refuse_value(command, o, value,
                            "a number of seconds from 0 to 1000000");
    *(double *)o->to = x;
    return -1;
}

/* Store the value of an option. Returns -1, or the exit code after an error. */
static int set_value(const struct byi_command *command,
                     const struct byi_option *o, const char *value)
{
    char *end;
    errno = 0;
    if (check_path(command, o, value) >= 0)
        return BYI_EXIT_USAGE;
    switch (o->kind) {
    case BYI_OPTION_FLAG:
        *(bool *)o->to = true;
        return -1;
    case BYI_OPTION_TEXT:
        *(const char **)o->to = value;
        return -1;
    case BYI_OPTION_LIST:
        byi_option_list_add(o->to, value);
        return -1;
    case BYI_OPTION_PATH:
        byi_option_list_add(o->to, make_absolute(value));
        return -1;
    case BYI_OPTION_PATHS:
        add_paths(o->to, value);
        return -1;
    case BYI_OPTION_COMMAS:
        split_commas(o->to, value);
        return -1;
    case BYI_OPTION_COUNT: {
        unsigned long long n = strtoull(value, &end, 10);
        if (errno || *end || *value < '0' || *value > '9' || n > INT32_MAX)
            return refuse_value(command, o, value,
                                "a whole number from 0 to 2147483647");
        *(uint32_t *)o->to = (uint32_t)n;
        return -1;
    }
    case BYI_OPTION_CHOICE:
        return set_choice(command, o, value);
    case BYI_OPTION_NUMBER:
    case BYI_OPTION_PERCENT:
    case BYI_OPTION_SECONDS:
    case BYI_OPTION_TOLERANCE:
        return set_number(command, o, value);
    case BYI_OPTION_LEVEL:
        if (strlen(value) != 1 || *value < '0' || *value > '3')
            return refuse_value(command, o, value, "a level of 0 to 3");
        *(enum byoc_opt *)o->to = (enum byoc_opt)(BYOC_O0 + (*value - '0'));
        return -1;
    }
    byi_unreachable();
}

/* The option that `arg` names; NULL: none. *value becomes the value in `arg`,
 * or NULL. */
static const struct byi_option *find_option(const struct byi_option *options,
                                            uint32_t n, const char *arg,
                                            const char **value)
{
    *value = NULL;
    if (arg[1] != '-') {
        for (uint32_t i = 0; i < n; i++)
            if (options[i].brief && options[i].brief == arg[1]) {
                if (arg[2])
                    *value = arg + 2 + (arg[2] == '=');
                return &options[i];
            }
        return NULL;
    }
    size_t length = strcspn(arg + 2, "=");
    for (uint32_t i = 0; i < n; i++)
        if (length && strlen(options[i].name) == length &&
            strncmp(options[i].name, arg + 2, length) == 0) {
            if (arg[2 + length] == '=')
                *value = arg + 3 + length;
            return &options[i];
        }
    return NULL;
}

/* Refuse options that have no effect with, or without, another option. Returns
 * -1, or the exit code after an error. */
static int check_pairs(const struct byi_command *command)
{
    static const struct {
        const char *other;
        bool needs; /* the options have no effect without the other one */
        const char *options[14];
    } pairs[] = {
        {"isolate", true, {"isolate-seconds", "isolate-mib"}},
        {"partition-by", true, {"measure-seconds", "cost-table"}},
        {"reduce", true, {"max-tests", "test-seconds"}},
        {"json", false, {"all"}},
        {"quiet", false, {"all"}},
        {"advise", false, {"all", "explain", "report"}},
        {"html", true, {"against"}},
        {"lint", false, {"json"}},
        {"clients", false, {"profile", "html", "svg"}},
        {"rate", false, {"profile", "html", "svg"}},
        {"native",
         false,
         {"backend", "exclude", "only", "forbid-ref", "keep-nan",
          "min-region-nodes", "min-region-flops", "max-regions", "partition-by",
          "codegen", "isolate", "require-backends"}},
    };
    for (size_t i = 0; i < BYI_COUNT(pairs); i++) {
        const char *other = pairs[i].other;
        const char *const *option = pairs[i].options;
        if (byi_option_is_given(other) == pairs[i].needs ||
            (strcmp(other, "native") == 0 && byi_option_is_given("pattern")))
            continue; /* --pattern rows are matched despite --native */
        while (*option && !byi_option_is_given(*option))
            option++;
        if (*option)
            return refuse(command, "--%s has no effect %s --%s; %s", *option,
                          pairs[i].needs ? "without" : "with", other,
                          pairs[i].needs ? "give both, or neither"
                                         : "leave out one");
    }
    return -1;
}

/* Refuse an output that is the same file as an argument, or as another output.
 * Returns -1, or the exit code after an error. */
static int check_outputs(const struct byi_command *command,
                         const struct byi_option *options, uint32_t n_options,
                         const char *const *inputs, uint32_t n_inputs)
{
    static const char *const names[] = {"output", "report",    "trace",
                                        "consts", "html",      "dot",
                                        "svg",    "dump-onnx", "dump-regions"};
    const char *outputs[BYI_COUNT(names)];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_options * BYI_COUNT(names); i++) {
        const struct byi_option *o = &options[i / BYI_COUNT(names)];
        if (strcmp(o->name, names[i % BYI_COUNT(names)]) != 0 ||
            o->kind != BYI_OPTION_TEXT || !byi_option_is_given(o->name) ||
            strncmp(o->value, "FILE", 4) != 0)
            continue;
        const char *path = *(const char **)o->to;
        for (uint32_t k = 0; k < n_inputs; k++)
            if (byi_same_file(path, inputs[k]))
                return refuse(command,
                              "%s: found the model as the output, expected a "
                              "file other than the input",
                              path);
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(path, outputs[k]) == 0)
                return refuse(command,
                              "--%s: found %s, which another option names as "
                              "its output, too, expected a file of its own",
                              o->name, path);
        if (n < BYI_COUNT(outputs))
            outputs[n++] = path;
    }
    return -1;
}

/* Check `arg`, which follows `n` positional arguments. Returns -1, or the exit
 * code after an error. */
static int check_positional(const struct byi_command *command, const char *arg,
                            uint32_t n, uint32_t max)
{
    if (n == max)
        return refuse(command, "found one argument too many, '%s', expected %s",
                      arg, command->usage);
    if (!*arg)
        return refuse(command, "found an empty argument, expected %s",
                      command->usage);
    if (n == 0 && command->first && !find_word(command->first, arg))
        return refuse(command,
                      "found '%s', expected %s; `byoc %s --help` says "
                      "more",
                      arg, command->first, command->name);
    return -1;
}

int byi_parse_options(const struct byi_command *command,
                      const struct byi_option *options, uint32_t n_options,
                      int argc, char **argv, uint32_t min_positional,
                      uint32_t max_positional, const char **positional,
                      uint32_t *n_positional)
{
    uint32_t n = 0;
    bool only_positional = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value;
        if (only_positional || arg[0] != '-' || !arg[1]) {
            const int code = check_positional(command, arg, n, max_positional);
            if (code >= 0)
                return code;
            positional[n++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            byi_help_printer(command, options, n_options);
            return BYI_EXIT_OK;
        }
        const struct byi_option *o =
            find_option(options, n_options, arg, &value);
        if (!o)
            return refuse_unknown(command, options, n_options, arg);
        if (o->kind == BYI_OPTION_FLAG && value)
            return refuse_value(command, o, value, "no value");
        if (o->kind != BYI_OPTION_FLAG && !value) {
            if (++i == argc)
                return refuse(command,
                              "%s: found no value, expected %s; `byoc %s "
                              "--help` says more",
                              arg, o->value, command->name);
            value = argv[i];
        }
        int code = set_value(command, o, value);
        if (code >= 0)
            return code;
        byi_option_list_add(&given_options, *o->name ? o->name : "O");
    }
    *n_positional = n;
    if (byi_option_is_given("json"))
        byi_terminal_json();
    if (n >= min_positional) {
        const int code = check_pairs(command);
        return code >= 0
                   ? code
                   : check_outputs(command, options, n_options, positional, n);
    }
    return refuse(
        command,
        "found %u of %u arguments, expected %s; `byoc %s --help` says more", n,
        min_positional, command->usage, command->name);
}

int byi_cli_print_error(const struct byi_command *command,
                        const struct byoc_error *err)
{
    struct byi_text line = {0};
    byi_printable_add(&line, err->text, strlen(err->text), BYI_PRINTABLE_LINE);
    fprintf(stderr, "byoc %s: %s\n", command->name, line.n ? line.at : "");
    byi_text_free(&line);
    switch (err->status) {
    case BYOC_EBACKEND:
        return BYI_EXIT_BACKEND;
    case BYOC_EINCOMPATIBLE:
        return BYI_EXIT_INCOMPATIBLE;
    default:
        return BYI_EXIT_USAGE;
    }
}
