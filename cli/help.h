/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help.h: what prints the tables of verbs and options: `byoc help`. */
#ifndef BYI_CLI_HELP_H
#define BYI_CLI_HELP_H

#include "cli.h"

/* --- help.c --------------------------------------------------------------- */

/* Print a verb's options that way. Returns the exit code. */
int byi_print_verb(const struct byi_verb *verb, byi_print_options *print);

/* What completes an option's value. */
enum byi_completion_kind {
    BYI_COMPLETE_OTHER, /* nothing that a shell knows */
    BYI_COMPLETE_FILE,
    BYI_COMPLETE_FOLDER,
    BYI_COMPLETE_WORDS
};
struct byi_completion {
    enum byi_completion_kind kind;
    const char *words; /* of BYI_COMPLETE_WORDS: "a b c" */
};
/* The option is no flag. Words are in the arena. */
struct byi_completion byi_completion_of(const struct byi_option *o,
                                        struct byi_arena *arena);
/* The words that the first argument of a verb may be, "a b c"; of the command
 * if `verb` is NULL. NULL: a file. */
const char *byi_first_words(const struct byi_verb *verb,
                            struct byi_arena *arena);

/* --- pages.c: manual pages, in the macros of man(7) ----------------------- */

byi_print_options byi_print_page; /* byoc-VERB(1) */
int byi_print_main_page(void);    /* byoc(1); returns the exit code */

/* --- complete.c: completions of every verb; they return the exit code ----- */

int byi_print_bash(void);
int byi_print_zsh(void);
int byi_print_fish(void);

#endif
