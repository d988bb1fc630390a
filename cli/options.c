/* options.c: one table-driven parser for every verb's options. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Options live as long as the process: nobody frees what they hold. */
static struct byi_arena *kept(void)
{
    static struct byi_arena *arena;
    if (!arena)
        arena = byi_arena_new();
    return arena;
}

void byi_list_add(struct byi_list *list, const char *text)
{
    const char **longer = byi_arena_calloc(kept(), list->n + 2, sizeof *longer);
    for (uint32_t i = 0; i < list->n; i++)
        longer[i] = list->at[i];
    list->at = longer;
    list->at[list->n++] = text;
    list->at[list->n] = NULL;
}

static void print_help(const struct byi_verb *verb,
                       const struct byi_option *options, uint32_t n)
{
    printf("usage: byoc %s %s\n%s\n\n", verb->name, verb->usage, verb->summary);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_option *o = &options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%c%s%s%s%s%s", o->brief ? "-" : "",
                 o->brief ? o->brief : ' ', o->brief && *o->name ? ", " : "",
                 *o->name ? "--" : "", o->name, o->value && *o->name ? " " : "",
                 o->value ? o->value : "");
        printf("  %-34s %s\n", left, o->help);
    }
}

/* How many single-character edits apart two names are, at most `limit`. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[40];
    size_t na = strlen(a), nb = strlen(b);
    if (na > 32 || nb > 32)
        return 99;
    for (uint32_t j = 0; j <= nb; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= na; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= nb; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[nb];
}

static int unknown(const struct byi_verb *verb,
                   const struct byi_option *options, uint32_t n,
                   const char *arg)
{
    const char *name = arg + strspn(arg, "-"), *nearest = NULL;
    uint32_t best = 3;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = distance(name, options[i].name);
        if (d < best && *options[i].name) {
            best = d;
            nearest = options[i].name;
        }
    }
    fprintf(stderr, "byoc %s: unknown option '%s'; ", verb->name, arg);
    if (nearest)
        fprintf(stderr, "did you mean '--%s'?\n", nearest);
    else
        fprintf(stderr, "`byoc %s --help` lists them\n", verb->name);
    return BYI_EXIT_USAGE;
}

static int bad_value(const struct byi_verb *verb, const struct byi_option *o,
                     const char *value, const char *expected)
{
    fprintf(stderr, "byoc %s: %s%s: found '%s', expected %s\n", verb->name,
            *o->name ? "--" : "-", *o->name ? o->name : "O", value, expected);
    return BYI_EXIT_USAGE;
}

static void split_commas(struct byi_list *list, const char *value)
{
    char *copy = byi_arena_str(kept(), value), *next = NULL;
    for (char *part = strtok_r(copy, ",", &next); part;
         part = strtok_r(NULL, ",", &next))
        byi_list_add(list, part);
}

static int set_value(const struct byi_verb *verb, const struct byi_option *o,
                     const char *value)
{
    char *end;
    errno = 0;
    switch (o->kind) {
    case BYI_OPTION_FLAG:
        *(bool *)o->to = true;
        return -1;
    case BYI_OPTION_TEXT:
        *(const char **)o->to = value;
        return -1;
    case BYI_OPTION_LIST:
        byi_list_add(o->to, value);
        return -1;
    case BYI_OPTION_COMMAS:
        split_commas(o->to, value);
        return -1;
    case BYI_OPTION_COUNT: {
        unsigned long long n = strtoull(value, &end, 10);
        if (errno || *end || *value < '0' || *value > '9' || n > INT32_MAX)
            return bad_value(verb, o, value, "a count");
        *(uint32_t *)o->to = (uint32_t)n;
        return -1;
    }
    case BYI_OPTION_NUMBER: {
        double x = strtod(value, &end);
        if (errno || end == value || (*end && strcmp(end, "%")) || !(x >= 0))
            return bad_value(verb, o, value, "a number that is not negative");
        *(double *)o->to = x;
        return -1;
    }
    case BYI_OPTION_LEVEL:
        if (strlen(value) != 1 || *value < '0' || *value > '3')
            return bad_value(verb, o, value, "a level of 0 to 3");
        *(int *)o->to = 1 + (*value - '0');
        return -1;
    }
    byi_unreachable();
}

static const struct byi_option *find(const struct byi_option *options,
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

int byi_options(const struct byi_verb *verb, const struct byi_option *options,
                uint32_t n_options, int argc, char **argv, uint32_t least,
                uint32_t most, const char **positional, uint32_t *n_positional)
{
    uint32_t n = 0;
    bool only_positional = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value;
        if (only_positional || arg[0] != '-' || !arg[1]) {
            if (n == most) {
                fprintf(stderr,
                        "byoc %s: found one argument too many, '%s'; expected "
                        "%s\n",
                        verb->name, arg, verb->usage);
                return BYI_EXIT_USAGE;
            }
            positional[n++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            print_help(verb, options, n_options);
            return BYI_EXIT_OK;
        }
        const struct byi_option *o = find(options, n_options, arg, &value);
        if (!o)
            return unknown(verb, options, n_options, arg);
        if (o->kind == BYI_OPTION_FLAG && value)
            return bad_value(verb, o, value, "no value");
        if (o->kind != BYI_OPTION_FLAG && !value) {
            if (++i == argc) {
                fprintf(stderr,
                        "byoc %s: %s: found no value, expected %s; `byoc %s "
                        "--help` says more\n",
                        verb->name, arg, o->value, verb->name);
                return BYI_EXIT_USAGE;
            }
            value = argv[i];
        }
        int code = set_value(verb, o, value);
        if (code >= 0)
            return code;
    }
    *n_positional = n;
    if (n >= least)
        return -1;
    fprintf(stderr,
            "byoc %s: found %u of %u arguments; expected %s; `byoc %s --help` "
            "says more\n",
            verb->name, n, least, verb->usage, verb->name);
    return BYI_EXIT_USAGE;
}

int byi_complain(const struct byi_verb *verb, const struct byoc_error *err)
{
    fprintf(stderr, "byoc %s: %s\n", verb->name, err->text);
    switch (err->status) {
    case BYOC_EBACKEND:
        return BYI_EXIT_BACKEND;
    case BYOC_EINCOMPATIBLE:
        return BYI_EXIT_INCOMPATIBLE;
    default:
        return BYI_EXIT_USAGE;
    }
}
