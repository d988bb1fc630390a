/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: runs as a Chrome trace: the "JSON Array Format" of the Trace Event
 * Format document, complete events (ph "X"), times in microseconds from the
 * moment the trace was opened. The file appears when the trace ends.
 */
#include "plan.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/temp.h"

struct byi_trace {
    struct byi_file file;
    uint64_t start_ns;
    bool any;
};

uint64_t byi_trace_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

enum byoc_status byi_trace_open(const char *path, struct byi_trace **trace,
                                struct byoc_error *err)
{
    struct byi_trace *t = byi_alloc(1, sizeof *t);
    if (!t)
        return byi_fail(err, BYOC_ENOMEM, "no memory for a trace");
    const enum byoc_status status = byi_file_create(path, &t->file, err);
    if (status != BYOC_OK) {
        free(t);
        return status;
    }
    t->start_ns = byi_trace_now();
    fputs("[", t->file.stream);
    *trace = t;
    return BYOC_OK;
}

enum byoc_status byi_trace_close(struct byi_trace **trace,
                                 struct byoc_error *err)
{
    struct byi_trace *t = *trace;
    *trace = NULL;
    if (!t)
        return BYOC_OK;
    fputs("\n]\n", t->file.stream);
    const enum byoc_status status = byi_file_commit(&t->file, err);
    free(t);
    return status;
}

void byoc_internal_temp_clear(void)
{
    byi_temp_clear();
}

static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (const char *s = text ? text : ""; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void put_micros(FILE *f, uint64_t ns)
{
    fprintf(f, "%llu.%03llu", (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

void byi_trace_event(struct byi_trace *t, const char *kind, const char *name,
                     const char *impl, const char *sources, uint64_t begin_ns,
                     uint64_t end_ns)
{
    FILE *f = t->file.stream;
    uint64_t begin = begin_ns > t->start_ns ? begin_ns - t->start_ns : 0;
    uint64_t length = end_ns > begin_ns ? end_ns - begin_ns : 0;
    fputs(t->any ? ",\n" : "\n", f);
    t->any = true;
    fputs("{\"name\": ", f);
    put_string(f, name);
    fputs(", \"cat\": ", f);
    put_string(f, kind);
    fputs(", \"ph\": \"X\", \"ts\": ", f);
    put_micros(f, begin);
    fputs(", \"dur\": ", f);
    put_micros(f, length);
    fprintf(f,
            ", \"pid\": %d, \"tid\": %d, \"args\": {\"impl\": ", (int)getpid(),
            (int)gettid());
    put_string(f, impl);
    fputs(", \"sources\": ", f);
    put_string(f, sources);
    fputs("}}", f);
}
