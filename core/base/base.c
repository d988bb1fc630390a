/* SPDX-License-Identifier: Apache-2.0 */
/* base.c: records failures. byi_fail writes one sentence into the caller's
 * error; byi_prefix puts a place before it.
 */
#include "base.h"

#include <errno.h>
#include <string.h>

#ifndef BYI_VERSION
#define BYI_VERSION "0.0.0" /* compiled outside of the build system */
#endif

static const struct {
    enum byoc_status status;
    const char *text;
} statuses[] = {
#define STATUS(id, value, text) [value] = {BYOC_##id, text},
#include "status.def"
#undef STATUS
};

/* The status of this thread's last failure, for byi_prefix without an err. */
static _Thread_local enum byoc_status last_status = BYOC_EINTERNAL;

const char *byoc_status_text(enum byoc_status status)
{
    size_t i = (size_t)status;

    if (i >= BYI_COUNT(statuses))
        return "unknown status";
    return statuses[i].text;
}

const char *byoc_version(void)
{
    return BYI_VERSION;
}

/* Replace control characters: messages quote names from files, but must stay on
 * one line and must not control the terminal. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

enum byoc_status byi_fail(struct byoc_error *err, enum byoc_status status,
                          const char *fmt, ...)
{
    char text[sizeof err->text]; /* arguments may point into err->text */

    last_status = status;
    if (!err)
        return status;
    BYI_FORMAT(text, fmt);
    replace_controls(text);
    err->status = status;
    memcpy(err->text, text, sizeof text);
    return status;
}

enum byoc_status byi_io_status(int error)
{
    return error == ENOMEM ? BYOC_ENOMEM : BYOC_EIO;
}

enum byoc_status byi_fail_memory(struct byoc_error *err, uint64_t bytes,
                                 const char *what)
{
    return byi_fail(err, BYOC_ENOMEM, "out of memory for %llu bytes of %s",
                    (unsigned long long)bytes, what);
}

enum byoc_status byi_prefix(struct byoc_error *err, const char *fmt, ...)
{
    char text[sizeof err->text];
    size_t n;

    if (!err)
        return last_status;
    BYI_FORMAT(text, fmt);
    replace_controls(text);
    n = strlen(text);
    if (n + 3 < sizeof text) {
        size_t room = sizeof text - n - 3, length = strlen(err->text);
        memcpy(text + n, ": ", 2);
        memcpy(text + n + 2, err->text, length < room ? length : room);
        text[n + 2 + (length < room ? length : room)] = '\0';
    }
    memcpy(err->text, text, sizeof text);
    return err->status;
}
