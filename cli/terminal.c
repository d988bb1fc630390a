/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c: filters stdout and stderr, since a hostile model may name a node
 * with a terminal's escape sequence. Every byte that byoc prints goes
 * through this filter. It escapes control characters (except newlines and
 * tabs), invalid UTF-8 and characters that reorder text, and detects failed
 * writes.
 */
#include "cli.h"

#include "core/base/guard.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* stdout or stderr. */
struct terminal {
    int fd;
    bool json; /* escape as JSON does */
    int fault; /* errno of the first write that failed */
    /* an incomplete UTF-8 character at the end of the last write */
    char partial[4];
    size_t n_partial;
};

static struct terminal terminals[2] = {{.fd = STDOUT_FILENO},
                                       {.fd = STDERR_FILENO}};

/* Write to the descriptor. Returns false if a write fails, now or earlier. */
static bool write_all(struct terminal *t, const char *bytes, size_t n)
{
    while (n > 0 && !t->fault) {
        const ssize_t done = write(t->fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            t->fault = errno;
            break;
        }
        bytes += done;
        n -= (size_t)done;
    }
    return !t->fault;
}

/* The write function of the streams: escape, then write. */
static ssize_t write_escaped(void *cookie, const char *bytes, size_t n)
{
    struct terminal *t = cookie;
    struct byi_text bytes_to_escape = {0}, out = {0};
    BYI_BORDER_ELSE(0); /* a guard's longjmp must not cross the C library */
    byi_text_add(&bytes_to_escape, t->partial, t->n_partial);
    byi_text_add(&bytes_to_escape, bytes, n);
    const size_t rest = byi_utf8_partial(bytes_to_escape.at, bytes_to_escape.n);
    memcpy(t->partial, bytes_to_escape.at + bytes_to_escape.n - rest, rest);
    t->n_partial = rest;
    byi_printable_add(&out, bytes_to_escape.at, bytes_to_escape.n - rest,
                      t->json ? BYI_PRINTABLE_JSON : BYI_PRINTABLE_TEXT);
    byi_progress_clear();
    const bool ok = write_all(t, out.at, out.n);
    byi_text_free(&bytes_to_escape);
    byi_text_free(&out);
    return ok ? (ssize_t)n : 0;
}

void byi_terminal_open(void)
{
    const cookie_io_functions_t escaped = {.write = write_escaped};
    FILE *out = fopencookie(&terminals[0], "w", escaped);
    FILE *errors = fopencookie(&terminals[1], "w", escaped);
    if (out) {
        setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = out;
    }
    if (errors) {
        setvbuf(errors, NULL, _IONBF, 0);
        stderr = errors;
    }
}

void byi_terminal_json(void)
{
    terminals[0].json = true;
}

int byi_terminal_close(int code)
{
    struct terminal *t = &terminals[0];
    const bool failed = fflush(stdout) != 0 || ferror(stdout) || t->fault;
    if (t->n_partial) /* the output ended inside a character */
        (void)write_all(t, "?", 1);
    t->n_partial = 0;
    if (!failed && !t->fault)
        return code;
    fprintf(stderr, "byoc: cannot write to stdout: %s\n",
            t->fault ? strerror(t->fault) : "a write failed");
    return code == BYI_EXIT_OK ? BYI_EXIT_USAGE : code;
}
