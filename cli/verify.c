/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c: `byoc verify`: checks an artifact's hashes, without running any of
 * its code.
 */
#include "cli.h"

#include "runtime/internal.h"

static int run(int argc, char **argv)
{
    const char *path;
    uint32_t n;
    int code = byi_parse_options(&byi_command_verify, NULL, 0, argc, argv, 1, 1,
                                 &path, &n);
    if (code >= 0)
        return code;
    struct byi_artifact a;
    struct byoc_error err;
    if (byi_explain_artifact(path, byoc_internal_artifact_open(path, &a, &err),
                             &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_verify, &err);
    enum byoc_status status = byoc_internal_artifact_verify(&a, &err);
    if (status == BYOC_OK) {
        printf("ok %s: the checksum of headers, code and relocations and the "
               "hashes of plan, ledger, blobs and weights match (%zu bytes)\n",
               path, a.map_bytes);
    } else {
        byi_prefix(&err, "%s", path);
        byi_cli_print_error(&byi_command_verify, &err);
    }
    byoc_internal_artifact_close(&a);
    return status == BYOC_OK ? BYI_EXIT_OK : BYI_EXIT_VERDICT;
}

const struct byi_command byi_command_verify = {
    .name = "verify",
    .usage = "MODEL.so",
    .summary = "check every hash of an artifact",
    .example = "byoc verify digits.so\n",
    .run = run,
};
