/* SPDX-License-Identifier: Apache-2.0 */
/* zones.c: provides guarded memory, which ends before an inaccessible page. A
 * forbidden access is a fault; the signal handler finds the zone of the
 * address, and ends the case with a message.
 */
#include "kit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    AROUND = 0xa5, /* value of the bytes around a zone's data */
    MAX_ZONES = 4096
};

/* See kit.h. The data are the last `bytes` bytes of the mapping, except for the
 * gap that their alignment requires. */
struct byi_zone {
    char *base;
    /* accessible bytes from base; the page after them is not accessible */
    size_t mapped;
    char *data;
    size_t bytes;
    enum byi_zone_access access; /* the plug-in's, now */
    char name[60];               /* for messages */
};

static struct byi_zone zones[MAX_ZONES]; /* a ring buffer once it is full */
static uint32_t n_zones, oldest;
static struct byi_kit *current_kit;

/* The size of a memory page in bytes. */
static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* An unused element of `zones` or, if all are used, the oldest that is GONE. */
static struct byi_zone *take_zone(struct byi_kit *kit)
{
    if (n_zones < MAX_ZONES)
        return &zones[n_zones++];
    for (uint32_t i = 0; i < MAX_ZONES; i++) {
        struct byi_zone *z = &zones[oldest];
        oldest = (oldest + 1) % MAX_ZONES;
        if (z->access == BYI_LENT_GONE) {
            munmap(z->base, z->mapped + page_bytes());
            return z;
        }
    }
    byi_kit_end(kit, BYI_UNTESTED, 0,
                "found more than %d buffers in use at once, expected at most "
                "that many; generate smaller graphs with another --seed",
                (int)MAX_ZONES);
}

struct byi_zone *byi_zone_new(struct byi_kit *kit, uint64_t bytes,
                              uint64_t align, const char *what)
{
    const size_t p = page_bytes();
    const size_t lead = align ? (bytes + align - 1) / align * align : bytes;
    const size_t mapped = (lead + p - 1) / p * p + p;
    char *base =
        mmap(NULL, mapped + p, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED ||
        mprotect(base, mapped, PROT_READ | PROT_WRITE) != 0)
        byi_kit_end(kit, BYI_UNTESTED, 0, "cannot map %zu bytes for %s: %s",
                    mapped + p, what, strerror(errno));
    struct byi_zone *z = take_zone(kit);
    *z = (struct byi_zone){.base = base,
                           .mapped = mapped,
                           .data = base + mapped - lead,
                           .bytes = bytes,
                           .access = BYI_LENT_WRITE};
    snprintf(z->name, sizeof z->name, "%s", what);
    memset(base, AROUND, mapped);
    return z;
}

void *byi_zone_data(const struct byi_zone *zone)
{
    return zone->data;
}

void byi_zone_lend(struct byi_zone *zone, enum byi_zone_access access)
{
    static const int rights[] = {[BYI_LENT_READ] = PROT_READ,
                                 [BYI_LENT_WRITE] = PROT_READ | PROT_WRITE,
                                 [BYI_LENT_GONE] = PROT_NONE};
    zone->access = access;
    mprotect(zone->base, zone->mapped, rights[access]);
    if (access == BYI_LENT_GONE) /* free the pages themselves */
        madvise(zone->base, zone->mapped, MADV_DONTNEED);
}

void byi_zone_check(struct byi_kit *kit, const struct byi_zone *zone)
{
    const unsigned char *at = (const unsigned char *)zone->base;
    const size_t before = (size_t)(zone->data - zone->base);
    for (size_t i = 0; i < zone->mapped; i++) {
        if (i == before)
            i += zone->bytes;
        if (i < zone->mapped && at[i] != AROUND)
            byi_kit_failed(kit, BYI_RULE_WRITES,
                           "%s wrote %zd bytes %s %s (%zu bytes)",
                           byi_child_step_text(),
                           i < before ? (ssize_t)(before - i)
                                      : (ssize_t)(i - before - zone->bytes + 1),
                           i < before ? "before" : "past the end of",
                           zone->name, zone->bytes);
    }
}

void byi_zone_free(struct byi_kit *kit, const void *data)
{
    for (uint32_t i = 0; i < n_zones; i++)
        if (zones[i].data == data && zones[i].access != BYI_LENT_GONE) {
            byi_zone_check(kit, &zones[i]);
            byi_zone_lend(&zones[i], BYI_LENT_GONE);
            return;
        }
}

/* End the case because the plug-in accessed memory that it must not access.
 * `verb` is the kind of access, such as "read"; `past_rule` is the rule against
 * accesses past the end. */
static void report_access(const struct byi_zone *z, const char *at,
                          const char *verb, enum byi_conform_rule past_rule)
{
    struct byi_kit *kit = current_kit;
    if (z->access == BYI_LENT_GONE)
        byi_kit_failed(kit, BYI_RULE_KEPT,
                       "%s %s %s of an earlier call, which is over",
                       byi_child_step_text(), verb, z->name);
    if (at < z->base + z->mapped)
        byi_kit_failed(kit, BYI_RULE_CONSTANT, "%s %s %s, which is read-only",
                       byi_child_step_text(), verb, z->name);
    byi_kit_failed(kit, past_rule, "%s %s byte %td of %s, which has %zu bytes",
                   byi_child_step_text(), verb, at - z->data, z->name,
                   z->bytes);
}

/* Handle SIGSEGV and SIGBUS: if the address is in a zone, end the case. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    const char *verb = "touched";
    enum byi_conform_rule past_rule = BYI_RULE_READS;
#if defined(__x86_64__)
    const ucontext_t *c = context;
    const bool write = c->uc_mcontext.gregs[REG_ERR] & 2;
    verb = write ? "wrote to" : "read";
    past_rule = write ? BYI_RULE_WRITES : BYI_RULE_READS;
#else
    (void)context;
#endif
    for (uint32_t i = n_zones; i-- > 0;)
        if (at >= zones[i].base &&
            at < zones[i].base + zones[i].mapped + page_bytes())
            report_access(&zones[i], at, verb, past_rule);
    /* not in a zone: the access faults again, and then ends the process */
    signal(number, SIG_DFL);
}

void byi_zones_watch(struct byi_kit *kit)
{
    static char stack[1 << 16];
    const stack_t handler_stack = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    current_kit = kit;
    sigaltstack(&handler_stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
