/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c: prints scripts for bash, zsh and fish that complete commands,
 * options and their values. Each script has a section for every command.
 */
#include "help.h"

#include <string.h>

/* Whether an option may be given several times. */
static bool is_repeatable(const struct byi_option *o)
{
    return o->kind == BYI_OPTION_LIST || o->kind == BYI_OPTION_PATH ||
           o->kind == BYI_OPTION_PATHS || o->kind == BYI_OPTION_COMMAS;
}

/* Print a string for use inside single quotes: a backslash before each
 * character of `special`, and `quote`, the shell's notation, for each single
 * quote. */
static void put_quoted(const char *text, const char *special, const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static int print_commands(byi_print_options *print)
{
    int code = BYI_EXIT_OK;
    for (uint32_t i = 0; byi_commands[i] && code == BYI_EXIT_OK; i++)
        code = byi_print_command(byi_commands[i], print);
    return code;
}

/* --- bash ----------------------------------------------------------------- */

/* Print those of "--name" and "-x" that exist, with `between` between them. */
static void put_names(const struct byi_option *o, const char *between)
{
    if (*o->name)
        printf("--%s", o->name);
    if (o->brief)
        printf("%s-%c", *o->name ? between : "", o->brief);
}

static void print_bash_command(const struct byi_command *command,
                               const struct byi_option *options, uint32_t n)
{
    struct byi_arena *arena = byi_arena_new();
    static const char *const kinds[] = {
        [BYI_COMPLETE_OTHER] = "other",
        [BYI_COMPLETE_FILE] = "file",
        [BYI_COMPLETE_FOLDER] = "folder",
        [BYI_COMPLETE_WORDS] = "words",
    };
    const char *first = byi_first_words(command, arena);
    printf("    %s)\n        first='%s'\n        options='", command->name,
           first ? first : "");
    for (uint32_t i = 0; i < n; i++) {
        put_names(&options[i], " ");
        putchar(' ');
    }
    printf("--help -h'\n        case $prev in\n");
    for (uint32_t i = 0; i < n; i++) {
        if (options[i].kind == BYI_OPTION_FLAG)
            continue;
        const struct byi_completion value =
            byi_completion_of(&options[i], arena);
        printf("        ");
        put_names(&options[i], " | ");
        printf(") kind=%s words='%s' ;;\n", kinds[value.kind],
               value.words ? value.words : "");
    }
    printf("        esac\n        ;;\n");
    byi_arena_free(&arena);
}

int byi_print_bash(void)
{
    struct byi_arena *arena = byi_arena_new();
    printf("# Completions of byoc for bash: `byoc help --format bash`\n"
           "_byoc()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]}"
           " prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local kind=argument words= first= options=\n"
           "    COMPREPLY=()\n"
           "    # readline also separates words at =\n"
           "    if [[ $cur == = ]]; then\n"
           "        cur=\n"
           "    elif [[ $prev == = ]] && ((COMP_CWORD > 2)); then\n"
           "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    fi\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '%s --help --version'"
           " -- \"$cur\")\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n",
           byi_first_words(NULL, arena));
    const int code = print_commands(print_bash_command);
    printf("    esac\n"
           "    if [[ $kind == argument && $cur == -* ]]; then\n"
           "        kind=words words=$options\n"
           "    elif [[ $kind == argument && $first ]] && ((COMP_CWORD == 2));"
           " then\n"
           "        kind=words words=$first\n"
           "    fi\n"
           "    # without words, readline completes files\n"
           "    case $kind in\n"
           "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" --"
           " \"$cur\") ;;\n"
           "    folder) compopt -o dirnames +o default ;;\n"
           "    other) compopt +o default ;;\n"
           "    esac\n"
           "}\n"
           "complete -o default -F _byoc byoc\n");
    byi_arena_free(&arena);
    return code;
}

/* --- zsh ------------------------------------------------------------------ */

static void put_zsh(const char *text)
{
    put_quoted(text, "[]:\\", "'\\''");
}

/* Print, for example, '(-o --output)'{-o+,--output=}'[help]:VALUE:_files'. */
static void put_zsh_option(const struct byi_option *o, struct byi_arena *arena)
{
    const bool takes_value = o->kind != BYI_OPTION_FLAG,
               repeatable = is_repeatable(o);
    printf("        '");
    if (repeatable)
        printf("*");
    else if (o->brief && *o->name)
        printf("(-%c --%s)", o->brief, o->name);
    if (o->brief)
        printf("%s-%c%s%s", *o->name ? "'{" : "", o->brief,
               takes_value ? "+" : "", *o->name ? "," : "");
    if (*o->name)
        printf("--%s%s%s", o->name, takes_value ? "=" : "",
               o->brief ? "}'" : "");
    printf("[");
    put_zsh(o->help);
    printf("]");
    if (takes_value) {
        const struct byi_completion value = byi_completion_of(o, arena);
        printf(":");
        put_zsh(o->value);
        if (value.kind == BYI_COMPLETE_WORDS)
            printf(":(%s)", value.words);
        else
            printf(":%s", value.kind == BYI_COMPLETE_FILE     ? "_files"
                          : value.kind == BYI_COMPLETE_FOLDER ? "_path_files -/"
                                                              : " ");
    }
    printf("' \\\n");
}

static void print_zsh_command(const struct byi_command *command,
                              const struct byi_option *options, uint32_t n)
{
    struct byi_arena *arena = byi_arena_new();
    printf("%s)\n    _arguments : \\\n", command->name);
    for (uint32_t i = 0; i < n; i++)
        put_zsh_option(&options[i], arena);
    printf("        '(- *)'{-h,--help}'[print the options]' \\\n");
    const char *first = byi_first_words(command, arena);
    if (first)
        printf("        '1:argument:(%s)' \\\n", first);
    printf("        '*:file:_files'\n    ;;\n");
    byi_arena_free(&arena);
}

int byi_print_zsh(void)
{
    printf("#compdef byoc\n"
           "# Completions of byoc for zsh: `byoc help --format zsh`\n"
           "if ((CURRENT == 2)); then\n"
           "    local -a subcommands=(\n");
    for (uint32_t i = 0; byi_commands[i]; i++) {
        printf("        '%s:", byi_commands[i]->name);
        put_quoted(byi_commands[i]->summary, "\\", "'\\''");
        printf("'\n");
    }
    printf("    )\n"
           "    _describe command subcommands\n"
           "    compadd -- --help --version\n"
           "    return\n"
           "fi\n"
           "shift words\n"
           "((CURRENT--))\n"
           "case $words[1] in\n");
    const int code = print_commands(print_zsh_command);
    printf("esac\n");
    return code;
}

/* --- fish ----------------------------------------------------------------- */

static void put_fish(const char *text)
{
    put_quoted(text, "\\", "\\'");
}

static void print_fish_command(const struct byi_command *command,
                               const struct byi_option *options, uint32_t n)
{
    struct byi_arena *arena = byi_arena_new();
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_option *o = &options[i];
        printf("complete -c byoc -n '__byoc_command %s'", command->name);
        if (*o->name)
            printf(" -l %s", o->name);
        if (o->brief)
            printf(" -s %c", o->brief);
        if (o->kind != BYI_OPTION_FLAG) {
            const struct byi_completion value = byi_completion_of(o, arena);
            if (value.kind == BYI_COMPLETE_WORDS)
                printf(" -x -a '%s'", value.words);
            else
                printf(" %s", value.kind == BYI_COMPLETE_FILE ? "-r -F"
                              : value.kind == BYI_COMPLETE_FOLDER
                                  ? "-x -a '(__fish_complete_directories)'"
                                  : "-x");
        }
        printf(" -d '");
        put_fish(o->help);
        printf("'\n");
    }
    printf("complete -c byoc -n '__byoc_command %s' -l help -s h -d 'print the "
           "options'\n",
           command->name);
    const char *first = byi_first_words(command, arena);
    if (first)
        printf("complete -c byoc -n '__byoc_command %s; and __byoc_words 2' -f "
               "-a '%s'\n",
               command->name, first);
    byi_arena_free(&arena);
}

int byi_print_fish(void)
{
    printf("# Completions of byoc for fish: `byoc help --format fish`\n"
           "function __byoc_words\n"
           "    test (count (commandline -opc)) -eq $argv[1]\n"
           "end\n"
           "function __byoc_command\n"
           "    set -l words (commandline -opc)\n"
           "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
           "end\n"
           "complete -c byoc -n '__byoc_words 1' -f -l version -d 'print the "
           "version'\n"
           "complete -c byoc -n '__byoc_words 1' -f -l help -s h -d 'print the "
           "commands'\n");
    for (uint32_t i = 0; byi_commands[i]; i++) {
        printf("complete -c byoc -n '__byoc_words 1' -f -a %s -d '",
               byi_commands[i]->name);
        put_fish(byi_commands[i]->summary);
        printf("'\n");
    }
    return print_commands(print_fish_command);
}
