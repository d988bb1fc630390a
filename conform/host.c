/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: implements the host that plug-ins get from the kit: the runtime's
 * services, with records of all live blocks. A block is between a head and a
 * tail. release() checks the head's mark, which detects memory of others and
 * blocks that are released twice, and the whole tail, which detects writes past
 * the end.
 */
#include "kit.h"

#include "core/base/failure.h"
#include "region/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 2, /* the number that the host reports to plug-ins */
    TAIL = 64    /* bytes behind a block, to detect writes past its end */
};

static uint32_t n_threads = THREADS;

/* values of host_block.mark */
static const uint64_t live_mark = 0x6b636f6c62636f79,
                      dead_mark = 0x646165646b636f6c;

/* The head of a block, one cache line long. */
struct host_block {
    uint64_t mark;
    uint64_t bytes;
    struct host_block *older, *newer; /* list of the live blocks */
    char place[32];                   /* the call in which it was acquired */
};
_Static_assert(sizeof(struct host_block) == 64,
               "the memory behind the head is aligned");

static struct byi_kit *current_kit;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* written under `lock`, and read without it while no call is running: */
static struct byi_host_records records;
static uint32_t exhausted_at = UINT32_MAX; /* the first call that fails */
static struct host_block *newest;

static void *acquire(void *ctx, uint64_t bytes)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    const bool fails = records.acquired++ >= exhausted_at;
    pthread_mutex_unlock(&lock);
    if (fails || bytes > (uint64_t)1 << 40)
        return NULL;
    struct host_block *head = byi_acquire(sizeof *head + bytes + TAIL);
    if (!head)
        return NULL;
    *head = (struct host_block){.mark = live_mark, .bytes = bytes};
    memcpy(head->place, byi_child_step_text(), sizeof head->place - 1);
    memset((char *)(head + 1), 0xcd, bytes); /* memory is not zeroed */
    memset((char *)(head + 1) + bytes, 0xa5, TAIL);
    pthread_mutex_lock(&lock);
    records.live++;
    records.bytes += bytes;
    head->older = newest;
    if (newest)
        newest->newer = head;
    newest = head;
    pthread_mutex_unlock(&lock);
    return head + 1;
}

static void release(void *ctx, void *memory)
{
    (void)ctx;
    if (!memory)
        return;
    struct host_block *head = (struct host_block *)memory - 1;
    const unsigned char *tail = (const unsigned char *)memory + head->bytes;
    if (head->mark != live_mark)
        byi_kit_failed(current_kit, BYI_RULE_BALANCE, "%s released %s",
                       byi_child_step_text(),
                       head->mark == dead_mark
                           ? "a block twice"
                           : "memory that the host did not allocate");
    for (uint32_t i = 0; i < TAIL; i++)
        if (tail[i] != 0xa5)
            byi_kit_failed(current_kit, BYI_RULE_WRITES,
                           "wrote to byte %llu of a block of %llu bytes that "
                           "was acquired in %s",
                           (unsigned long long)(head->bytes + i),
                           (unsigned long long)head->bytes, head->place);
    head->mark = dead_mark;
    pthread_mutex_lock(&lock);
    records.live--;
    records.bytes -= head->bytes;
    if (head->older)
        head->older->newer = head->newer;
    *(head->newer ? &head->newer->older : &newest) = head->older;
    pthread_mutex_unlock(&lock);
    byi_release(head);
}

static void count_fails(int by)
{
    pthread_mutex_lock(&lock);
    records.fails += (uint32_t)by;
    pthread_mutex_unlock(&lock);
}

static struct byoc_fail *host_fail(void *ctx, uint32_t code, const char *text)
{
    (void)ctx;
    count_fails(1);
    return byi_failure_new(code, text ? text : "");
}

static void fail_free(struct byoc_fail *fail)
{
    count_fails(-1);
    byi_failure_free(fail);
}

static void host_log(void *ctx, const char *line)
{
    (void)ctx, (void)line;
}

static uint32_t host_threads(void *ctx)
{
    (void)ctx;
    return n_threads;
}

void byi_host_serial(void)
{
    n_threads = 1;
    setenv("BYOC_NUM_THREADS", "1", 1); /* for byoc's pool in plug-ins */
    setenv("OMP_NUM_THREADS", "1", 1);
}

static void parallel_for(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg)
{
    (void)ctx;
    if (n_threads > 1) {
        byoc_internal_parallel_for(n, fn, arg);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
}

const struct byoc_host *byi_kit_host(struct byi_kit *kit)
{
    static struct byoc_host host;
    current_kit = kit;
    if (host.struct_size)
        return &host;
    host = (struct byoc_host){.struct_size = sizeof host,
                              .abi = BYOC_BACKEND_ABI,
                              .acquire = acquire,
                              .release = release,
                              .fail = host_fail,
                              .fail_text = byi_failure_text,
                              .fail_code = byi_failure_code,
                              .fail_free = fail_free,
                              .log = host_log,
                              .threads = host_threads,
                              .parallel_for = parallel_for,
                              .graph_open = byi_graph_open,
                              .graph_close = byi_graph_close};
    byi_match_host(&host);
    return &host;
}

struct byi_host_records byi_host_records(void)
{
    return records;
}

void byi_host_exhaust(uint32_t n)
{
    pthread_mutex_lock(&lock);
    exhausted_at = n == UINT32_MAX ? n : records.acquired + n;
    pthread_mutex_unlock(&lock);
}

void byi_host_check_balance(struct byi_kit *kit,
                            const struct byi_host_records *before,
                            const char *after)
{
    const struct byi_host_records b = records;
    if (b.live > before->live)
        byi_kit_failed(
            kit, BYI_RULE_BALANCE,
            "%u block%s of %llu bytes that the host gave %s not "
            "released after %s; the last one was acquired in %s",
            b.live - before->live, b.live - before->live > 1 ? "s" : "",
            (unsigned long long)(b.bytes - before->bytes),
            b.live - before->live > 1 ? "are" : "is", after, newest->place);
    if (b.fails > before->fails)
        byi_kit_failed(kit, BYI_RULE_BALANCE,
                       "%u failure%s made with host->fail() and neither "
                       "returned nor freed by the end of %s",
                       b.fails - before->fails,
                       b.fails - before->fails > 1 ? "s were" : " was", after);
}

const char *byi_kit_read_and_free_fail(struct byoc_fail *fail, uint32_t *code)
{
    static char copy[1000];
    snprintf(copy, sizeof copy, "%s", byi_failure_text(fail));
    if (code)
        *code = byi_failure_code(fail);
    fail_free(fail);
    return copy;
}
