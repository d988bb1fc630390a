/* core/descriptor.h: what the one exported symbol of an artifact points to:
 * written by codegen_c/artifact.c as assembler, read by runtime/model.c. Places
 * are relative to the descriptor, so nothing has to be relocated.
 */
#ifndef BYI_DESCRIPTOR_H
#define BYI_DESCRIPTOR_H

#include <stdint.h>

#define BYI_DESCRIPTOR_MAGIC "BYOCMDL\n" /* 8 bytes, without NUL */

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

#endif
