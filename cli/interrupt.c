/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c: handles signals that end byoc: ends child processes, such as
 * compilers, and removes temporary files. If byoc crashes, or is interrupted
 * during a long call of a plug-in, a message names the plug-in and the call: a
 * plug-in runs in byoc's process unless the compile is isolated.
 */
#include "cli.h"

#include "core/base/child.h"
#include "core/base/clock.h"
#include "core/base/temp.h"
#include "runtime/internal.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* Signals that an instruction or abort() raises, as strsignal() calls them;
 * strsignal() itself must not be called in a handler. */
static const struct {
    int number;
    const char *name;
} crashes[] = {
    {SIGSEGV, "Segmentation fault"},
    {SIGBUS, "Bus error"},
    {SIGILL, "Illegal instruction"},
    {SIGFPE, "Floating point exception"},
    {SIGABRT, "Aborted"},
    {SIGSYS, "Bad system call"},
};

static const char *command_name;
static pid_t command_process;

/* --- in a signal handler: system calls only ------------------------------- */

/* A message that is being composed. */
struct crash_text {
    size_t n;
    char at[8192];
};

/* Add a string, without control characters: it may be a name from a plug-in. */
static void add(struct crash_text *t, const char *text)
{
    for (; *text && t->n < sizeof t->at; text++)
        t->at[t->n++] = *text < ' ' && *text >= 0 ? '?' : *text;
}

static void add_number(struct crash_text *t, int number)
{
    char digits[16];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    add(t, digits + at);
}

/* Reads /proc/self/maps. */
struct maps_reader {
    int fd;
    ssize_t n, at;
    char bytes[1024];
};

/* Returns the next character, or 0 at the end. */
static char next_char(struct maps_reader *r)
{
    if (r->at >= r->n) {
        r->n = read(r->fd, r->bytes, sizeof r->bytes);
        r->at = 0;
    }
    return r->n > 0 ? r->bytes[r->at++] : '\0';
}

/* Read a hexadecimal number and the character behind it. */
static uintptr_t next_number(struct maps_reader *r)
{
    uintptr_t value = 0;
    for (char c; (c = next_char(r)) >= '0' && c <= 'f';)
        value = value * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    return value;
}

/* Get the path of the file that is mapped at an address, cut to n - 1 bytes; ""
 * if there is none. */
static void find_file(uintptr_t address, char *path, size_t n)
{
    struct maps_reader r = {.fd = open("/proc/self/maps", O_RDONLY)};
    bool found = false;
    *path = '\0';
    while (r.fd >= 0 && !found && r.n >= 0) {
        const uintptr_t begin = next_number(&r), end = next_number(&r);
        size_t used = 0;
        char c;
        while ((c = next_char(&r)) && c != '\n')
            if ((used || c == '/') && used + 1 < n)
                path[used++] = c;
        path[used] = '\0';
        found = address >= begin && address < end;
        if (!c)
            break;
    }
    if (!found)
        *path = '\0';
    if (r.fd >= 0)
        close(r.fd);
}

/* The address of the instruction that a signal interrupted; 0: not known. */
static uintptr_t address_of(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)c->uc_mcontext.pc;
#else
    return (void)c, 0;
#endif
}

static const char *crash_name(int number)
{
    for (size_t i = 0; i < BYI_COUNT(crashes); i++)
        if (crashes[i].number == number)
            return crashes[i].name;
    return NULL;
}

uint64_t byi_plugin_step(const char **plugin, const char **step)
{
    const uint64_t began = byi_child_step_now(plugin, step);
    return began ? began : byoc_internal_step_now(plugin, step);
}

/* Whether a step that began at this time seems to hang. */
static bool is_long(uint64_t began)
{
    const uint64_t two_seconds = 2000000000, now = byi_now_ns();
    return began && began < now && now - began > two_seconds;
}

/* Say what the signal interrupted. An interrupt needs no message, unless a call
 * of a plug-in seems to hang. */
static void report(int number, const void *context)
{
    struct crash_text t = {0};
    char file[4096];
    const char *plugin, *step, *name = crash_name(number);
    const uint64_t began = byi_plugin_step(&plugin, &step);
    if (!command_name || command_process != getpid() ||
        (!name && !is_long(began)))
        return;
    add(&t, "byoc ");
    add(&t, command_name);
    add(&t, name ? ": crashed with signal " : ": ended by signal ");
    add_number(&t, number);
    add(&t, name ? " (" : "");
    add(&t, name ? name : "");
    add(&t, name ? ")" : "");
    if (began) {
        add(&t, " in ");
        add(&t, step);
        add(&t, " of the plug-in ");
        add(&t, plugin);
        add(&t, "; `byoc conform` tests plug-ins, and `byoc compile --isolate` "
                "compiles without one that crashes or hangs");
    } else {
        find_file(address_of(context), file, sizeof file);
        add(&t, *file ? " in the code of " : "");
        add(&t, file);
        add(&t, "; `byoc conform` tests plug-ins");
    }
    t.at[t.n < sizeof t.at ? t.n++ : t.n - 1] = '\n';
    byi_progress_forget();
    (void)!write(STDERR_FILENO, t.at, t.n);
}

/* Clean up, and let the signal end the process. */
static void end_process(int number, siginfo_t *info, void *context)
{
    signal(number, SIG_DFL); /* also if this handler crashes */
    report(number, context);
    byi_temp_clear();
    byoc_internal_temp_clear();
    /* an instruction that crashed is executed again, so that a core file has
     * the state of the crash; another signal is raised again, and delivered
     * when the handler returns */
    if (!crash_name(number) || info->si_code <= 0)
        raise(number);
}

/* --- installation --------------------------------------------------------- */

/* Install the handler, unless the signal is ignored, such as SIGHUP under
 * nohup, or a sanitizer handles it. */
static void watch(int number)
{
    struct sigaction before, action = {.sa_sigaction = end_process,
                                       .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        (void)sigaction(number, &action, NULL);
}

void byi_interrupt_watch(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU};
    static char stack[65536]; /* the stack overflows, too */
    (void)sigaltstack(&(const stack_t){.ss_sp = stack, .ss_size = sizeof stack},
                      NULL);
    for (size_t i = 0; i < BYI_COUNT(numbers); i++)
        watch(numbers[i]);
    for (size_t i = 0; i < BYI_COUNT(crashes); i++)
        watch(crashes[i].number);
    (void)signal(SIGXFSZ, SIG_IGN); /* write() then fails with EFBIG */
}

void byi_interrupt_command(const char *name)
{
    command_name = name;
    command_process = getpid();
    byi_child_record_steps();
    byoc_internal_record_steps();
}
