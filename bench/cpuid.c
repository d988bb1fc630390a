/* SPDX-License-Identifier: Apache-2.0 */
/* cpuid.c: a library for LD_PRELOAD that hides instruction sets from a process,
 * so that engines without a switch of their own can be compared on narrower
 * CPUs than this one. BYOC_BENCH_ISA is the widest set to show: sse4.2, avx2,
 * avx_vnni, avx512, avx512_vnni or avx512_bf16.
 *
 * Linux makes CPUID fault on Intel CPUs that allow it (arch_prctl(2),
 * ARCH_SET_CPUID). The handler executes the instruction and clears bits of the
 * result. By then the C library has already chosen its own functions for the
 * whole CPU.
 */
#include <asm/prctl.h>
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum level { SSE42, AVX2, AVX_VNNI, AVX512, VNNI, BF16, LEVELS };
static const char *const level_names[LEVELS] = {
    "sse4.2", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16"};

enum { EAX, EBX, ECX, EDX, REGISTERS };

/* Bits of CPUID's results (Intel's manual, volume 2A) that are hidden at levels
 * below `first`. */
static const struct feature {
    uint32_t leaf, subleaf;
    int reg;
    uint32_t bits;
    enum level first;
} features[] = {
    {1, 0, ECX, 1u << 12 | 1u << 28 | 1u << 29, AVX2}, /* FMA, AVX, F16C */
    {7, 0, EBX, 1u << 5, AVX2},
    /* F, DQ, IFMA, PF, ER, CD, BW, VL */
    {7, 0, EBX, 1u << 16 | 1u << 17 | 1u << 21 | 7u << 26 | 1u << 30 | 1u << 31,
     AVX512},
    {7, 0, ECX, 1u << 1, AVX512}, /* VBMI */
    {7, 0, ECX, 1u << 6 | 1u << 12 | 1u << 14,
     VNNI}, /* VBMI2, BITALG, POPCNT */
    {7, 0, ECX, 1u << 11, VNNI},
    {7, 0, EDX, 1u << 2 | 1u << 3 | 1u << 8, AVX512},
    {7, 0, EDX, 1u << 22 | 1u << 24 | 1u << 25, LEVELS}, /* AMX */
    {7, 0, EDX, 1u << 23, LEVELS},                       /* FP16 */
    {7, 1, EAX, 1u << 4, AVX_VNNI},
    {7, 1, EAX, 1u << 5, BF16},
    {7, 1, EAX, 1u << 21, LEVELS},   /* AMX with float16 */
    {7, 1, EAX, 1u << 23, AVX_VNNI}, /* IFMA with VEX */
    {7, 1, EDX, 1u << 4 | 1u << 5 | 1u << 8 | 1u << 10 | 1u << 19, LEVELS},
};

static enum level limit;

/* Switch CPUID on or off for this thread and those that it creates. */
static long allow_cpuid(unsigned long on)
{
    return syscall(SYS_arch_prctl, ARCH_SET_CPUID, on);
}

static void hide(uint32_t leaf, uint32_t subleaf, uint32_t *r)
{
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        const struct feature *f = &features[i];
        if (f->leaf == leaf && (leaf != 7 || f->subleaf == subleaf) &&
            limit < f->first)
            r[f->reg] &= ~f->bits;
    }
    /* CPUs with AVX-512 and without VNNI have no AVX-VNNI either */
    if (leaf == 7 && subleaf == 1 && limit == AVX512)
        r[EAX] &= ~(1u << 4);
}

/* The handler of SIGSEGV: emulates CPUID. Another fault is fatal. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    static const uint8_t cpuid[] = {0x0f, 0xa2};
    ucontext_t *c = context;
    greg_t *g = c->uc_mcontext.gregs;
    (void)signal;
    /* a general protection fault has no address */
    if (info->si_addr ||
        memcmp((const void *)(uintptr_t)g[REG_RIP], cpuid, sizeof cpuid) != 0)
        _exit(128 + SIGSEGV);
    const uint32_t leaf = (uint32_t)g[REG_RAX], subleaf = (uint32_t)g[REG_RCX];
    uint32_t r[REGISTERS];
    allow_cpuid(1);
    __cpuid_count(leaf, subleaf, r[EAX], r[EBX], r[ECX], r[EDX]);
    allow_cpuid(0);
    hide(leaf, subleaf, r);
    g[REG_RAX] = r[EAX];
    g[REG_RBX] = r[EBX];
    g[REG_RCX] = r[ECX];
    g[REG_RDX] = r[EDX];
    g[REG_RIP] += (greg_t)sizeof cpuid;
}

/* The next library's function of this name. */
static void *next_function(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);
typedef int sigmask_fn(int, const sigset_t *, sigset_t *);

/* Functions of the C library that must leave the handler in place, and the
 * signal unblocked, whatever the process asks for. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int sigaction(int signal, const struct sigaction *new_action,
                       struct sigaction *old_action)
{
    sigaction_fn *next;
    *(void **)&next = next_function("sigaction");
    return next(signal, signal == SIGSEGV ? NULL : new_action, old_action);
}

static int change_mask(const char *name, int how, const sigset_t *set,
                       sigset_t *old_set)
{
    sigmask_fn *next;
    sigset_t allowed;
    *(void **)&next = next_function(name);
    if (set) {
        allowed = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&allowed, SIGSEGV);
    }
    return next(how, set ? &allowed : NULL, old_set);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *old_set)
{
    return change_mask("pthread_sigmask", how, set, old_set);
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *old_set)
{
    return change_mask("sigprocmask", how, set, old_set);
}

/* Returns the value of a variable, which is removed, so that the processes that
 * this one starts, such as a C compiler, run without this library. */
static const char *take_variable(char **environment, const char *name)
{
    const size_t n = strlen(name);
    const char *value = "";
    char **to = environment;
    for (char **e = environment; *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            value = *e + n + 1;
        else
            *to++ = *e;
    *to = NULL;
    return value;
}

/* The linker's flag `initfirst` runs this before the constructors of the other
 * libraries, which read CPUID, and before getenv() works. */
__attribute__((constructor)) static void begin(int argc, char **argv,
                                               char **environment)
{
    const char *name = take_variable(environment, "BYOC_BENCH_ISA");
    const struct sigaction action = {.sa_sigaction = on_fault,
                                     .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction_fn *next;
    (void)argc, (void)argv;
    take_variable(environment, "LD_PRELOAD");
    while (limit < LEVELS && strcmp(name, level_names[limit]) != 0)
        limit++;
    if (limit == LEVELS) {
        fprintf(stderr,
                "BYOC_BENCH_ISA: found '%s', expected sse4.2, avx2, avx_vnni, "
                "avx512, avx512_vnni or avx512_bf16\n",
                name);
        _exit(2);
    }
    *(void **)&next = next_function("sigaction");
    next(SIGSEGV, &action, NULL);
    if (allow_cpuid(0) != 0) {
        fprintf(stderr,
                "found a CPU or kernel that cannot trap CPUID, expected "
                "cpuid_fault in /proc/cpuinfo\n");
        _exit(2);
    }
}
