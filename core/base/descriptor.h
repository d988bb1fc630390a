/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.h: the descriptor, the one exported symbol of an artifact.
 * codegen_c/artifact.c writes it as assembler; runtime/artifact.c and
 * runtime/load.c read it.
 * Offsets are relative to the descriptor, so nothing needs relocation.
 */
#ifndef BYI_DESCRIPTOR_H
#define BYI_DESCRIPTOR_H

#include <stdint.h>

#include <byoc/runtime.h>

#define BYI_DESCRIPTOR_MAGIC "BYOCMDL\n" /* 8 bytes, without NUL */

/* The int64_t members are distances from the descriptor to the sections. */
struct byi_descriptor {
    char magic[8];
    uint32_t version; /* BYI_ARTIFACT_VERSION */
    uint32_t reserved;
    int64_t manifest;
    uint64_t manifest_bytes;
    int64_t plan;
    uint64_t plan_bytes;
    int64_t ledger;
    uint64_t ledger_bytes;
    int64_t blobs;
    uint64_t blobs_bytes;
    int64_t weights;
    uint64_t weights_bytes;
};

/* Section .byoc.kernels of artifacts with fused kernels: their code, compiled
 * once for each level. levels[i] is the distance from this table to an array of
 * n_kernels functions. levels[n_levels] is the distance to a byi_begin_fn. The
 * runtime calls this function before the first kernel, to give the kernels the
 * functions that run their parallel loops. The tables of older compilers end
 * before this element; their kernels use libgomp. */
typedef void (*byi_fused_fn)(void *const *buffers, int threads); /* a kernel */
struct byi_omp_calls; /* core/base/openmp.h */
typedef void (*byi_begin_fn)(const struct byi_omp_calls *calls);
struct byi_code_table {
    uint32_t n_kernels, n_levels;
    int64_t levels[];
};

/* Section .byoc.units of artifacts with regions that backends wrote as C:
 * places[level * n_units + unit] is the distance from this table to the
 * function of the unit, compiled for that level. Units are in the order of the
 * plan's regions with "code". */
struct byi_unit_table {
    uint32_t n_units, n_levels;
    int64_t places[];
};

/* The code levels of each kind of machine: the instruction sets for which fused
 * kernels and units are compiled, lowest first. LEVEL(id, name, options): `id`
 * is one of core/base/isa.h's, `options` are the C compiler's. BYI_CODE_LEVELS
 * is the list of the machine for which this file is compiled. */
#define BYI_CODE_LEVELS_X86_64(LEVEL)                                          \
    LEVEL(SSE42, "sse4.2", "-msse4.2")                                         \
    LEVEL(AVX2, "avx2", "-mavx2 -mfma")                                        \
    LEVEL(AVX512, "avx512",                                                    \
          "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma "                  \
          "-mprefer-vector-width=512")
#define BYI_CODE_LEVELS_AARCH64(LEVEL) LEVEL(BASE, "neon", "")
#define BYI_CODE_LEVELS_OTHER(LEVEL) LEVEL(BASE, "base", "")
#if defined(__x86_64__)
#define BYI_CODE_LEVELS BYI_CODE_LEVELS_X86_64
#elif defined(__aarch64__)
#define BYI_CODE_LEVELS BYI_CODE_LEVELS_AARCH64
#else
#define BYI_CODE_LEVELS BYI_CODE_LEVELS_OTHER
#endif
enum { BYI_MAX_CODE_LEVELS = 3 }; /* the most levels that a machine has */
/* runtime/artifact.c: like byoc_internal_artifact_open, for a file that is
 * being written and has no checksum yet. `machine` is its e_machine. The caller
 * closes *a. Errors: those of byoc_internal_artifact_open. */
struct byi_artifact;
BYOC_API enum byoc_status byoc_internal_artifact_open_unfinished(
    const char *path, uint16_t machine, struct byi_artifact *a,
    struct byoc_error *err);

enum byi_code_level {
#define LEVEL(id, name, options) BYI_CODE_##id,
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
        BYI_N_CODE_LEVELS
};

/* isa.c: how many of the first `n` levels this process can run; 0: none. They
 * are the lowest ones, and the code of the highest of them is the fastest. */
uint32_t byi_code_levels(uint32_t n);
/* "avx2" and so on, a static text; level < BYI_N_CODE_LEVELS. */
const char *byi_code_level_name(uint32_t level);

#endif
