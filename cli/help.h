/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help.h: shared by the files of `byoc help`, which prints the tables of
 * commands and options as text, manual pages or shell completions.
 */
#ifndef BYI_CLI_HELP_H
#define BYI_CLI_HELP_H

#include "cli.h"

/* --- help.c --------------------------------------------------------------- */

/* Run the command with --help, with `print` as the printer of its options.
 * Returns the exit code. */
int byi_print_command(const struct byi_command *command,
                      byi_print_options *print);

/* How a shell completes the value of an option. */
enum byi_completion_kind {
    BYI_COMPLETE_OTHER, /* no completion */
    BYI_COMPLETE_FILE,
    BYI_COMPLETE_FOLDER,
    BYI_COMPLETE_WORDS
};
/* The completion of a value. */
struct byi_completion {
    enum byi_completion_kind kind;
    const char *words; /* of BYI_COMPLETE_WORDS: "a b c"; otherwise NULL */
};
/* The completion of the value of `o`, which is not a flag. Its words are in
 * `arena`. */
struct byi_completion byi_completion_of(const struct byi_option *o,
                                        struct byi_arena *arena);
/* The words that are valid as a command's first argument, "a b c", in `arena`;
 * if `command` is NULL, the commands themselves. Returns NULL if the argument
 * is a file. */
const char *byi_first_words(const struct byi_command *command,
                            struct byi_arena *arena);

/* --- pages.c: manual pages, in the macros of man(7) ----------------------- */

byi_print_options byi_print_page; /* byoc-COMMAND(1) */
int byi_print_main_page(void);    /* byoc(1); returns the exit code */

/* --- complete.c: print completions of every command; return the exit code ---
 */

int byi_print_bash(void);
int byi_print_zsh(void);
int byi_print_fish(void);

#endif
