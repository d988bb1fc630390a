/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: writes runs as a Chrome trace, the "JSON Array Format" of the Trace
 * Event Format document. Events are complete (ph "X"), and times are
 * microseconds since the trace was opened. The file appears when the trace
 * ends. */
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/temp.h"
#include "core/base/utf8.h"

/* The destination of events, and their tag. */
struct byi_trace {
    struct byi_file file; /* `stream` is NULL: events are not written to a file
                           */
    uint64_t start_ns;
    bool has_event; /* in the file */
    /* the callback for events; NULL: no callback */
    void (*callback)(void *ctx, const struct byoc_event *event);
    void *ctx;
    const char *tag; /* of the current run; NULL: none */
};

static enum byoc_status ensure_trace(struct byi_trace **trace,
                                     struct byoc_error *err)
{
    if (!*trace)
        *trace = byi_alloc(1, sizeof **trace);
    return *trace ? BYOC_OK
                  : byi_fail(err, BYOC_ENOMEM,
                             "out of memory for a trace (%zu bytes)",
                             sizeof **trace);
}

/* Free the trace if it has neither a file nor a callback. */
static void drop_unused(struct byi_trace **trace)
{
    if (!*trace || (*trace)->file.stream || (*trace)->callback)
        return;
    free(*trace);
    *trace = NULL;
}

static enum byoc_status open_file(struct byi_trace **trace, const char *path,
                                  struct byoc_error *err)
{
    BYI_TRY(ensure_trace(trace, err));
    struct byi_trace *t = *trace;
    const enum byoc_status status = byi_file_create(path, &t->file, err);
    if (status != BYOC_OK) {
        t->file.stream = NULL;
        return status;
    }
    t->start_ns = byi_now_ns();
    t->has_event = false;
    fputs("[", t->file.stream);
    return BYOC_OK;
}

static enum byoc_status close_file(struct byi_trace *t, struct byoc_error *err)
{
    if (!t || !t->file.stream)
        return BYOC_OK;
    fputs("\n]\n", t->file.stream);
    const enum byoc_status status = byi_file_commit(&t->file, err);
    t->file.stream = NULL;
    return status;
}

enum byoc_status byi_trace_file(struct byi_trace **trace, const char *path,
                                struct byoc_error *err)
{
    enum byoc_status status = close_file(*trace, err);
    if (status == BYOC_OK && path)
        status = open_file(trace, path, err);
    drop_unused(trace);
    return status;
}

enum byoc_status byi_trace_set_callback(
    struct byi_trace **trace,
    void (*callback)(void *ctx, const struct byoc_event *event), void *ctx,
    struct byoc_error *err)
{
    if (callback)
        BYI_TRY(ensure_trace(trace, err));
    if (*trace) {
        (*trace)->callback = callback;
        (*trace)->ctx = ctx;
    }
    drop_unused(trace);
    return BYOC_OK;
}

void byi_trace_tag(struct byi_trace *trace, const char *tag)
{
    trace->tag = tag;
}

/* Remove this library's temporary files, such as the file of a trace that has
 * not ended. */
void byoc_internal_temp_clear(void)
{
    byi_temp_clear();
}

/* Write a JSON string. It is valid UTF-8, although names of backends and models
 * may not be. */
static void put_string(FILE *f, const char *text)
{
    const size_t n = text ? strlen(text) : 0;
    fputc('"', f);
    for (size_t i = 0, length; i < n; i += length ? length : 1) {
        const unsigned char c = (unsigned char)text[i];
        length = byi_utf8_character(text + i, n - i);
        if (!length)
            fputs(BYI_UTF8_REPLACEMENT, f);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fwrite(text + i, 1, length, f);
    }
    fputc('"', f);
}

static void put_micros(FILE *f, uint64_t ns)
{
    fprintf(f, "%llu.%03llu", (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

static void write_event(struct byi_trace *t, const struct byoc_event *e)
{
    FILE *f = t->file.stream;
    const uint64_t begin =
        e->begin_ns > t->start_ns ? e->begin_ns - t->start_ns : 0;
    const uint64_t length =
        e->end_ns > e->begin_ns ? e->end_ns - e->begin_ns : 0;
    fputs(t->has_event ? ",\n" : "\n", f);
    t->has_event = true;
    fputs("{\"name\": ", f);
    put_string(f, e->name);
    fputs(", \"cat\": ", f);
    put_string(f, e->kind);
    fputs(", \"ph\": \"X\", \"ts\": ", f);
    put_micros(f, begin);
    fputs(", \"dur\": ", f);
    put_micros(f, length);
    fprintf(f,
            ", \"pid\": %d, \"tid\": %d, \"args\": {\"impl\": ", (int)getpid(),
            (int)gettid());
    put_string(f, e->impl);
    fputs(", \"sources\": ", f);
    put_string(f, e->sources);
    if (t->tag) {
        fputs(", \"tag\": ", f);
        put_string(f, t->tag);
    }
    fputs("}}", f);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void byi_trace_event(struct byi_trace *t, const struct byoc_event *source)
{
    struct byoc_event event = *source;
    event.name = or_empty(event.name);
    event.impl = or_empty(event.impl);
    event.sources = or_empty(event.sources);
    event.tag = or_empty(t->tag);
    event.end_ns = event.end_ns ? event.end_ns : byi_now_ns();
    if (t->file.stream)
        write_event(t, &event);
    if (t->callback)
        t->callback(t->ctx, &event);
}
