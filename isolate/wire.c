/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: messages between byoc and the process of an isolated plug-in. */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MAX_BODY (UINT64_C(1) << 36)

/* --- writing -------------------------------------------------------------- */

void byi_wire_u64(struct byi_text *body, uint64_t value)
{
    byi_text_add(body, (const char *)&value, sizeof value);
}

void byi_wire_string(struct byi_text *body, const char *text)
{
    const uint64_t n = text ? strlen(text) + 1 : 0;
    byi_wire_u64(body, n);
    byi_text_add(body, text ? text : "", n);
}

void byi_wire_bytes(struct byi_text *body, const void *data, uint64_t n)
{
    static const char zeros[BYI_ALIGN];
    byi_wire_u64(body, n);
    byi_text_add(body, zeros, (BYI_ALIGN - body->n % BYI_ALIGN) % BYI_ALIGN);
    byi_text_add(body, data ? data : "", n);
}

/* --- reading -------------------------------------------------------------- */

/* The next n bytes; NULL: there are not so many. */
static const char *take(struct byi_wire *w, uint64_t n)
{
    if (w->bad || n > w->n - w->pos) {
        w->bad = true;
        return NULL;
    }
    const char *at = w->at + w->pos;
    w->pos += n;
    return at;
}

uint64_t byi_wire_get_u64(struct byi_wire *w)
{
    uint64_t value = 0;
    const char *at = take(w, sizeof value);
    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

const char *byi_wire_get_string(struct byi_wire *w)
{
    const uint64_t n = byi_wire_get_u64(w);
    if (n == 0)
        return NULL;
    const char *text = take(w, n);
    if (text && text[n - 1] == '\0')
        return text;
    w->bad = true;
    return NULL;
}

const void *byi_wire_get_bytes(struct byi_wire *w, uint64_t *n)
{
    const uint64_t count = byi_wire_get_u64(w);
    take(w, (BYI_ALIGN - w->pos % BYI_ALIGN) % BYI_ALIGN);
    const void *at = take(w, count);
    *n = at ? count : 0;
    return at;
}

void byi_wire_free(struct byi_wire *w)
{
    byi_release(w->at);
    *w = (struct byi_wire){0};
}

/* --- between processes ---------------------------------------------------- */

struct wire_head {
    uint64_t op, n;
};

uint64_t byi_wire_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Wait until fd may be read or written. */
static bool await(int fd, short what, uint64_t deadline, bool *late)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = what};
        const uint64_t now = byi_wire_now();
        int ms = -1;
        if (deadline)
            ms = now < deadline ? (int)((deadline - now) / 1000000) + 1 : 0;
        const int n = poll(&p, 1, ms);
        if (n > 0)
            return true;
        if (n == 0)
            *late = true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

static bool send_all(int fd, const char *data, uint64_t n, uint64_t deadline,
                     bool *late)
{
    while (n > 0) {
        if (!await(fd, POLLOUT, deadline, late))
            return false;
        const ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        data += sent > 0 ? sent : 0;
        n -= sent > 0 ? (uint64_t)sent : 0;
    }
    return true;
}

static bool receive_all(int fd, char *data, uint64_t n, uint64_t deadline,
                        bool *late)
{
    while (n > 0) {
        if (!await(fd, POLLIN, deadline, late))
            return false;
        const ssize_t got = recv(fd, data, n, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        data += got > 0 ? got : 0;
        n -= got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

bool byi_wire_send(int fd, uint32_t op, const struct byi_text *body,
                   uint64_t deadline, bool *late)
{
    const struct wire_head head = {.op = op, .n = body ? body->n : 0};
    *late = false;
    return send_all(fd, (const char *)&head, sizeof head, deadline, late) &&
           send_all(fd, body ? body->at : NULL, head.n, deadline, late);
}

bool byi_wire_receive(int fd, struct byi_wire *w, uint64_t deadline, bool *late)
{
    struct wire_head head = {0};
    *w = (struct byi_wire){0};
    *late = false;
    if (!receive_all(fd, (char *)&head, sizeof head, deadline, late) ||
        head.op > UINT32_MAX || head.n > MAX_BODY)
        return false;
    w->op = (uint32_t)head.op;
    w->n = head.n;
    if (!head.n)
        return true;
    w->at = byi_acquire(head.n);
    if (w->at && receive_all(fd, w->at, head.n, deadline, late))
        return true;
    byi_wire_free(w);
    return false;
}
