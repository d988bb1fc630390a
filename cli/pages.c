/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c: prints manual pages, in the macros of man(7). */
#include "help.h"

#include <ctype.h>
#include <string.h>

/* Print text of a page: escape the characters that roff would interpret or
 * replace. */
static void put_escaped(const char *text, size_t n)
{
    static const struct {
        char c;
        const char *roff;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'^', "\\(ha"},
                   {'~', "\\(ti"}, {'`', "\\(ga"}, {'\'', "\\(aq"},
                   {'"', "\\(dq"}};
    for (size_t i = 0; i < n; i++) {
        const char *roff = NULL;
        for (size_t k = 0; k < BYI_COUNT(escapes); k++)
            if (escapes[k].c == text[i])
                roff = escapes[k].roff;
        if (text[i] == '.' && i == 0)
            roff = "\\&.";
        if (roff)
            fputs(roff, stdout);
        else
            putchar(text[i]);
    }
}

static void put_text(const char *text)
{
    put_escaped(text, strlen(text));
}

static void put_upper(const char *text)
{
    for (; *text; text++)
        putchar(toupper((unsigned char)*text));
}

/* Print a summary as a sentence, with a capital letter and a full stop. */
static void put_sentence(const char *text)
{
    putchar(toupper((unsigned char)*text));
    put_text(text + 1);
    puts(".");
}

/* Print the title, name and synopsis of a command's page, or, if `command` is
 * NULL, of the page of byoc. */
static void put_head(const struct byi_command *command, const char *summary,
                     const char *usage)
{
    printf(".TH BYOC");
    if (command) {
        printf("\\-");
        put_upper(command->name);
    }
    printf(" 1 \"%s\" \"byoc %s\" \"User Commands\"\n", BYI_DATE, BYI_VERSION);
    printf(".SH NAME\nbyoc%s%s \\- ", command ? "\\-" : "",
           command ? command->name : "");
    put_text(summary);
    printf("\n.SH SYNOPSIS\n.B byoc%s%s\n", command ? " " : "",
           command ? command->name : "");
    put_text(usage);
    puts("");
}

static void put_option(const struct byi_option *o)
{
    printf(".TP\n");
    if (o->brief)
        printf("\\fB\\-%c\\fR%s", o->brief, *o->name ? ", " : "");
    if (*o->name) {
        printf("\\fB\\-\\-");
        put_text(o->name);
        printf("\\fR");
    }
    if (o->value) {
        printf("%s\\fI", *o->name ? " " : "");
        put_text(o->value);
        printf("\\fR");
    }
    puts("");
    put_sentence(o->help);
}

static void put_exit_codes(void)
{
    puts(".SH EXIT STATUS\n"
         ".TP\n.B 0\nSuccess.\n"
         ".TP\n.B 1\nA mismatch, or a failed gate.\n"
         ".TP\n.B 2\nWrong usage, or bad input.\n"
         ".TP\n.B 3\nA backend failed.\n"
         ".TP\n.B 4\nAn artifact of another version or machine.");
}

void byi_print_page(const struct byi_command *command,
                    const struct byi_option *options, uint32_t n)
{
    static const struct byi_option help = {
        .name = "help", .brief = 'h', .help = "print the options"};
    put_head(command, command->summary, command->usage);
    puts(".SH DESCRIPTION");
    put_sentence(command->summary);
    puts(".SH OPTIONS");
    for (uint32_t i = 0; i < n; i++)
        put_option(&options[i]);
    put_option(&help);
    put_exit_codes();
    if (command->example)
        puts(".SH EXAMPLES\n.nf");
    for (const char *at = command->example; at && *at;
         at = strchr(at, '\n') + 1) {
        put_escaped(at, strcspn(at, "\n"));
        puts("");
    }
    puts(command->example ? ".fi\n.SH SEE ALSO\n.BR byoc (1)"
                          : ".SH SEE ALSO\n.BR byoc (1)");
}

/* The environment variables that byoc and the runtime read. */
static const char *const variables[][2] = {
    {"BYOC_PLUGIN_PATH", "plug-ins and folders of plug-ins, separated by "
                         "colons, as for --plugin"},
    {"BYOC_NUM_THREADS", "number of threads of a run, if the program does not "
                         "set one"},
    {"OMP_NUM_THREADS", "the same, if BYOC_NUM_THREADS is not set"},
    {"BYOC_WAIT_POLICY", "how threads wait for work: brief, sleep or spin"},
    {"BYOC_CACHE_SHAPES", "maximum number of specialisations of a model with "
                          "symbolic dims"},
    {"BYOC_CACHE_BYTES", "maximum memory of specialisations, in bytes"},
    {"BYOC_PROGRESS", "0: print no progress of commands that take over 2 s"},
    {"BYOC_CACHE_DIR", "folder of measured times (default: "
                       "$XDG_CACHE_HOME/byoc or ~/.cache/byoc)"},
    {"BYOC_MAX_ISA", "widest instruction set, such as sse2, avx2, "
                     "avx512_vnni or avx512_amx"},
    {"BYOC_DNNL_LAYOUT", "layout of activations in regions of oneDNN: plain or "
                         "channels-last"},
    {"CC", "C compiler of a compile (default: cc)"},
    {"TMPDIR", "folder of temporary files (default: /tmp)"},
    {"ONNX_TESTDATA", "folder of ONNX's own cases, for byoc conform"},
};

int byi_print_main_page(void)
{
    put_head(NULL,
             "compile neural networks for backends' kernels, and run them",
             "COMMAND [OPTIONS]");
    puts(".SH DESCRIPTION\n"
         "Compiles ONNX models.\n"
         "Finds the regions of a model that the kernels of a backend, such as\n"
         "oneDNN, can run, and passes them to that backend; native kernels\n"
         "run the rest.\n"
         "The result is a shared library that any C program can load and run.\n"
         "For every operator, byoc reports where it runs and why.\n"
         "Results go to standard output, everything else to standard error.\n"
         ".SH COMMANDS");
    for (uint32_t i = 0; byi_commands[i]; i++) {
        printf(".TP\n.BR byoc\\-%s (1)\n", byi_commands[i]->name);
        put_sentence(byi_commands[i]->summary);
    }
    puts(".SH OPTIONS\n"
         ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint the commands.\n"
         ".TP\n\\fB\\-\\-version\\fR\nPrint the version.");
    put_exit_codes();
    puts(".SH ENVIRONMENT");
    for (size_t i = 0; i < BYI_COUNT(variables); i++) {
        printf(".TP\n.B %s\n", variables[i][0]);
        put_sentence(variables[i][1]);
    }
    puts(".SH SEE ALSO");
    for (uint32_t i = 0; byi_commands[i]; i++)
        printf(".BR byoc\\-%s (1)%s\n", byi_commands[i]->name,
               byi_commands[i + 1] ? "," : "");
    return BYI_EXIT_OK;
}
