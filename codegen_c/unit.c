/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c: compiles a backend's C separately, so that errors can be attributed
 * to it. It makes one object for each instruction set, and a library of all
 * objects. Linking the library shows that no symbol is missing; the host may
 * load it to run the function.
 */
#include "codegen_c.h"

#include "cc.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_MIB = 16,    /* limit of the source */
    SECONDS = 60,    /* limit of a run of the compiler */
    MAX_SYMBOL = 200 /* bytes of the symbol in names of files */
};

static const char *const level_options[] = {
#define LEVEL(id, name, options) options,
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
};

/* The state of byi_c_unit_compile. */
struct unit_job {
    struct byi_c_unit *unit;
    struct byi_cc cc;
    char source[MAX_SYMBOL + 8]; /* the file's name, as messages print it */
    struct byoc_error *err;
};

char *byi_c_unit_name(const char *symbol, uint32_t level, char *buf, size_t n)
{
    snprintf(buf, n, "%s_%u", symbol, level);
    return buf;
}

static void name_object(uint32_t level, char *buf, size_t n)
{
    snprintf(buf, n, "unit_%u.o", level);
}

/* --- the compiler's messages ---------------------------------------------- */

/* The line of a log with the first error of the compiler or linker; NULL: none.
 */
static const char *find_error_line(const char *log)
{
    static const char *const marks[] = {"undefined reference",
                                        "undefined symbol", "error: "};
    const char *found = NULL;
    for (size_t i = 0; i < BYI_COUNT(marks) && !found; i++)
        found = strstr(log, marks[i]);
    while (found && found > log && found[-1] != '\n')
        found--;
    return found;
}

/* Fail with `what` and the first error of a log; if the log has none, with the
 * text of j->err. */
static enum byoc_status report_error(const struct unit_job *j, const char *log,
                                     const char *what)
{
    struct byi_text text = {0};
    struct byoc_error unused;
    const char *line =
        byi_cc_read(&j->cc, log, &text, &unused) == BYOC_OK && text.n
            ? find_error_line(text.at)
            : NULL;
    const enum byoc_status status =
        line ? byi_fail(j->err, BYOC_EUNSUPPORTED, "%s: %.*s", what,
                        (int)strcspn(line, "\n"), line)
             : byi_prefix(j->err, "%s", what);
    byi_text_free(&text);
    return status;
}

/* --- compiling ------------------------------------------------------------ */

static enum byoc_status check_source(const struct unit_job *j)
{
    const struct byi_text *source = &j->unit->source;
    const char *nul = source->n ? memchr(source->at, '\0', source->n) : NULL;
    uint64_t line = 1;
    if (source->n == 0)
        return byi_fail(j->err, BYOC_EUNSUPPORTED, "it is empty, expected C");
    if (source->n > (uint64_t)MAX_MIB << 20)
        return byi_fail(j->err, BYOC_EUNSUPPORTED,
                        "it has %llu bytes, expected at most %d MiB",
                        (unsigned long long)source->n, MAX_MIB);
    if (!nul)
        return BYOC_OK;
    for (const char *c = source->at; c < nul; c++)
        line += *c == '\n';
    return byi_fail(j->err, BYOC_EUNSUPPORTED,
                    "line %llu has a NUL byte, expected text",
                    (unsigned long long)line);
}

/* Start the compiler for an instruction set. The options keep results equal to
 * the results of native kernels (see artifact.c), and the build reproducible:
 * the object contains no times or paths. */
static enum byoc_status start_level(const struct unit_job *j, uint32_t level,
                                    struct byi_cc_run *run)
{
    const char *symbol = j->unit->symbol;
    struct byi_text text = {0};
    char name[MAX_SYMBOL + 16];
    byi_text_addf(&text,
                  "-std=gnu11 -O3 -fPIC -fno-math-errno -fno-trapping-math "
                  "-ffp-contract=off -fno-asynchronous-unwind-tables "
                  "-fno-common -fdiagnostics-color=never -Werror=date-time "
                  "%s -D%s=%s -c %s",
                  level_options[level], symbol,
                  byi_c_unit_name(symbol, level, name, sizeof name), j->source);
    const enum byoc_status status = byi_cc_start(&j->cc, text.at, run, j->err);
    byi_text_free(&text);
    return status;
}

static enum byoc_status compile_levels(const struct unit_job *j)
{
    struct byi_cc_run runs[BYI_N_CODE_LEVELS] = {{0}};
    char logs[BYI_N_CODE_LEVELS][16], objects[BYI_N_CODE_LEVELS][32];
    uint32_t failed = BYI_N_CODE_LEVELS;
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS && status == BYOC_OK; i++) {
        snprintf(logs[i], sizeof logs[i], "unit_%u.log", i);
        name_object(i, objects[i], sizeof objects[i]);
        runs[i].log = logs[i];
        runs[i].output = objects[i];
        status = start_level(j, i, &runs[i]);
    }
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS; i++) {
        const bool was_ok = status == BYOC_OK;
        status = byi_cc_finish(&j->cc, &runs[i], status, j->err);
        if (was_ok && status != BYOC_OK)
            failed = i;
    }
    return failed == BYI_N_CODE_LEVELS
               ? status
               : report_error(j, logs[failed], "it does not compile");
}

static enum byoc_status read_object(const struct unit_job *j, uint32_t level)
{
    struct byi_text *object = &j->unit->objects[level];
    char name[MAX_SYMBOL + 16], file[32];
    name_object(level, file, sizeof file);
    BYI_TRY(byi_cc_read(&j->cc, file, object, j->err));
    return byi_object_check(
        object, byi_c_unit_name(j->unit->symbol, level, name, sizeof name),
        j->err);
}

/* Link the objects to a library. */
static enum byoc_status link_levels(const struct unit_job *j)
{
    struct byi_text text = {0};
    struct byi_cc_run run = {.output = "unit.so", .log = "link.log"};
    byi_text_addf(&text, "-shared -nostartfiles -Wl,-z,defs "
                         "-Wl,--build-id=none -Wl,-z,noexecstack");
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS; i++) {
        char object[32];
        name_object(i, object, sizeof object);
        byi_text_addf(&text, " %s", object);
    }
    byi_text_addf(&text, " -lm");
    enum byoc_status status = byi_cc_start(&j->cc, text.at, &run, j->err);
    byi_text_free(&text);
    BYI_TRY(status);
    if (byi_cc_finish(&j->cc, &run, BYOC_OK, j->err) != BYOC_OK)
        return report_error(j, run.log,
                            "it needs more than the C and math libraries");
    return byi_cc_read(&j->cc, "unit.so", &j->unit->library, j->err);
}

static enum byoc_status compile_unit(struct unit_job *j)
{
    const struct byi_text *source = &j->unit->source;
    BYI_TRY(byi_cc_write(&j->cc, j->source, source->at, source->n, j->err));
    BYI_TRY(compile_levels(j));
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS; i++)
        BYI_TRY(read_object(j, i));
    return link_levels(j);
}

enum byoc_status byi_c_unit_compile(struct byi_c_unit *unit, const char *cc,
                                    struct byoc_error *err)
{
    const char *tmp = secure_getenv("TMPDIR");
    struct byoc_error local;
    struct unit_job j = {.unit = unit,
                         .cc = {.seconds = SECONDS, .bytes = UINT64_C(4) << 30},
                         .err = err ? err : &local};
    struct byi_text prefix = {0};
    snprintf(j.source, sizeof j.source, "%.*s.c", MAX_SYMBOL, unit->symbol);
    BYI_TRY(check_source(&j));
    byi_text_addf(&prefix, "%s/byoc-", tmp && *tmp ? tmp : "/tmp");
    enum byoc_status status = byi_cc_open(&j.cc, prefix.at, cc, j.err);
    byi_text_free(&prefix);
    if (status == BYOC_OK)
        status = compile_unit(&j);
    byi_cc_close(&j.cc);
    return status;
}

void byi_c_unit_free(struct byi_c_unit *unit)
{
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS; i++)
        byi_text_free(&unit->objects[i]);
    byi_text_free(&unit->library);
    byi_text_free(&unit->source);
    *unit = (struct byi_c_unit){0};
}
