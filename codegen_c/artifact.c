/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.c: writes an image as a shared library. Assembler source has a
 * section for each member of the image, and includes all members but the
 * weights from files. The compiler driver links it in a folder beside the
 * destination. Then the weights and the checksum are appended, and the file is
 * renamed to the destination. The result does not depend on the folder's name
 * or the time.
 */
#include "codegen_c.h"

#include "cc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/descriptor.h"
#include "core/base/machine.h"

/* The members, each a section, in the order of the descriptor. */
static const char *const members[] = {"manifest", "plan", "ledger", "blobs",
                                      "weights"};

/* The state of byi_artifact_write. */
struct artifact_job {
    const char *path;
    struct byi_destination destination;
    const struct byi_image *image;
    const struct byi_machine *machine; /* the machine to compile for */
    struct byi_cc cc;
    char symbol[64];
    struct byoc_error *err;
};

static enum byoc_status fail_io(const struct artifact_job *j, const char *what)
{
    return byi_fail(j->err, byi_io_status(errno), "%s: cannot write %s: %s",
                    j->path, what, strerror(errno));
}

/* --- the linker's input -------------------------------------------------- */

static enum byoc_status write_member(const struct artifact_job *j,
                                     const char *name, const void *data,
                                     size_t n)
{
    if (byi_cc_write(&j->cc, name, data, n, j->err) != BYOC_OK)
        return byi_prefix(j->err, "%s", j->path);
    return BYOC_OK;
}

/* Write the table of the backends' functions, and make them hidden, since the
 * library exports only one symbol. */
static void write_units(const struct artifact_job *j, FILE *f)
{
    const struct byi_image *image = j->image;
    char name[256];
    if (!image->n_sources)
        return;
    fprintf(f,
            "    .section .byoc.units, \"a\", %%progbits\n    .balign 8\n"
            ".Lunits:\n    .long %u\n    .long %d\n",
            image->n_sources, BYI_N_CODE_LEVELS);
    for (uint32_t level = 0; level < BYI_N_CODE_LEVELS; level++)
        for (uint32_t i = 0; i < image->n_sources; i++) {
            byi_c_unit_name(image->sources[i]->symbol, level, name,
                            sizeof name);
            fprintf(f, "    .hidden %s\n    .quad %s - .Lunits\n", name, name);
        }
}

/* Write the assembler source: the model's descriptor, the members' sections,
 * the backends' functions, the kernels and a note. */
static enum byoc_status write_source(const struct artifact_job *j)
{
    FILE *f = byi_cc_file(&j->cc, "model.s", "we");
    if (!f)
        return fail_io(j, "model.s");
    fprintf(f,
            "    .section .byoc.model, \"a\", %%progbits\n    .balign 8\n"
            "    .globl %s\n    .type %s, %%object\n%s:\n.Lmodel:\n"
            "    .ascii \"BYOCMDL\\n\"\n    .long %d\n    .long 0\n",
            j->symbol, j->symbol, j->symbol, BYI_ARTIFACT_VERSION);
    for (size_t i = 0; i < BYI_COUNT(members); i++)
        fprintf(f, "    .quad .L%s - .Lmodel\n    .quad .L%s_end - .L%s\n",
                members[i], members[i], members[i]);
    fprintf(f, "    .size %s, . - .Lmodel\n", j->symbol);
    for (size_t i = 0; i < BYI_COUNT(members); i++) {
        fprintf(f,
                "    .section .byoc.%s, \"a\", %%progbits\n    .balign %d\n"
                ".L%s:\n",
                members[i], BYI_ALIGN, members[i]);
        if (strcmp(members[i], "weights") != 0)
            fprintf(f, "    .incbin \"%s\"\n", members[i]);
        fprintf(f, ".L%s_end:\n    .byte 0\n", members[i]); /* never empty */
    }
    write_units(j, f);
    if (j->image->source) {
        fprintf(f,
                "    .section .byoc.kernels, \"a\", %%progbits\n"
                "    .balign 8\n.Lkernels:\n    .long %u\n    .long %u\n",
                j->image->n_kernels, j->machine->n_levels);
        for (uint32_t i = 0; i < j->machine->n_levels; i++)
            fprintf(f,
                    "    .hidden byoc_kernels_%u\n"
                    "    .quad byoc_kernels_%u - .Lkernels\n",
                    i, i);
        fprintf(f, "    .hidden byoc_kernels_begin\n"
                   "    .quad byoc_kernels_begin - .Lkernels\n");
    }
    fprintf(f, "    .section .note.byoc, \"a\", %%note\n    .balign 4\n"
               "    .long 5, 0, 1\n    .asciz \"BYOC\"\n    .balign 4\n"
               "    .section .note.GNU-stack, \"\", %%progbits\n");
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : fail_io(j, "model.s");
}

/* Write the backends' objects, and the response file that lists them. */
static enum byoc_status write_objects(const struct artifact_job *j)
{
    struct byi_text list = {0};
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < j->image->n_sources; i++)
        for (uint32_t level = 0; level < BYI_N_CODE_LEVELS && status == BYOC_OK;
             level++) {
            char name[40];
            const struct byi_text *object =
                &j->image->sources[i]->objects[level];
            snprintf(name, sizeof name, "unit_%u_%u.o", i, level);
            byi_text_addf(&list, "%s\n", name);
            status = write_member(j, name, object->at, object->n);
        }
    if (status == BYOC_OK && list.n)
        status = write_member(j, "units", list.at, list.n);
    byi_text_free(&list);
    return status;
}

static enum byoc_status write_members(const struct artifact_job *j)
{
    const struct byi_image *image = j->image;
    BYI_TRY(
        write_member(j, "manifest", image->manifest, image->manifest_bytes));
    BYI_TRY(write_member(j, "plan", image->plan, image->plan_bytes));
    BYI_TRY(write_member(j, "ledger", image->ledger, image->ledger_bytes));
    BYI_TRY(write_member(j, "blobs", image->blobs, image->blobs_bytes));
    if (image->source)
        BYI_TRY(
            write_member(j, "kernels.c", image->source, image->source_bytes));
    BYI_TRY(write_objects(j));
    return write_source(j);
}

/* --- the compiler driver ------------------------------------------------ */

/* Compile the fused kernels for all instruction sets in parallel. The options
 * keep results equal to the results of native kernels: the compiler contracts
 * multiply-adds and reorders sums only where the source requests it. */
static enum byoc_status compile_kernels(const struct artifact_job *j)
{
    struct byi_cc_run runs[BYI_MAX_CODE_LEVELS] = {{0}};
    char logs[BYI_MAX_CODE_LEVELS][40], outputs[BYI_MAX_CODE_LEVELS][40];
    const uint32_t n = j->machine->n_levels;
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        const struct byi_machine_level *level = &j->machine->levels[i];
        struct byi_text options = {0};
        byi_text_addf(&options,
                      "-std=gnu11 -Wall -Wextra -O3 -fPIC -fopenmp "
                      "-fvisibility=hidden -fno-math-errno -fno-trapping-math "
                      "-ffp-contract=off -fno-asynchronous-unwind-tables %s "
                      "-DBYOC_KERNELS=byoc_kernels_%u -c kernels.c",
                      level->options, i);
        snprintf(logs[i], sizeof logs[i], "kernels_%s.log", level->name);
        snprintf(outputs[i], sizeof outputs[i], "kernels_%s.o", level->name);
        runs[i].log = logs[i];
        runs[i].output = outputs[i];
        status = byi_cc_start(&j->cc, options.at, &runs[i], j->err);
        byi_text_free(&options);
    }
    for (uint32_t i = 0; i < n; i++)
        status = byi_cc_finish(&j->cc, &runs[i], status, j->err);
    return status;
}

static enum byoc_status link_model(const struct artifact_job *j)
{
    const struct byi_image *image = j->image;
    struct byi_text options = {0};
    byi_text_addf(
        &options,
        "-shared %s -Wl,--build-id=none -Wl,-s -Wl,-z,noexecstack model.s",
        image->source || image->n_sources ? "-nostartfiles -Wl,-z,defs"
                                          : "-nostdlib");
    for (uint32_t i = 0; image->source && i < j->machine->n_levels; i++)
        byi_text_addf(&options, " kernels_%s.o", j->machine->levels[i].name);
    if (image->n_sources)
        byi_text_addf(&options, " @units -Wl,--as-needed -lm");
    struct byi_cc_run run = {.output = "model.so", .log = "cc.log"};
    enum byoc_status status = byi_cc_start(&j->cc, options.at, &run, j->err);
    byi_text_free(&options);
    return byi_cc_finish(&j->cc, &run, status, j->err);
}

/* --- checksum and rename ------------------------------------------------ */

/* Open the library as the loader does, and append the checksum of its bytes
 * except the weights. */
static enum byoc_status append_checksum(const struct artifact_job *j,
                                        const char *linked)
{
    struct byi_artifact a;
    BYI_TRY(byoc_internal_artifact_open_unfinished(linked, j->machine->elf, &a,
                                                   j->err));
    const char *at = a.map;
    const char *weights = a.image.weights ? a.image.weights : at + a.map_bytes;
    const char *after = weights + a.image.weights_bytes;
    struct byi_sha256 s;
    char sum[BYI_SUM_BYTES + 1] = BYI_SUM_MAGIC;
    byi_sha256_init(&s);
    byi_sha256_add(&s, at, (size_t)(weights - at));
    byi_sha256_add(&s, after, (size_t)(at + a.map_bytes - after));
    byi_sha256_hex(&s, sum + strlen(BYI_SUM_MAGIC));
    byoc_internal_artifact_close(&a);
    FILE *f = fopen(linked, "abe");
    if (!f)
        return fail_io(j, "the checksum");
    bool ok = fwrite(sum, 1, BYI_SUM_BYTES, f) == BYI_SUM_BYTES;
    ok = fclose(f) == 0 && ok;
    return ok ? BYOC_OK : fail_io(j, "the checksum");
}

/* Append weights and checksum to the linked file, and rename it to the
 * destination.
 */
static enum byoc_status put_in_place(const struct artifact_job *j)
{
    char *linked = byi_cc_path(&j->cc, "model.so");
    if (!linked)
        return byi_fail(j->err, BYOC_ENOMEM, "%s: out of memory", j->path);
    enum byoc_status status = byi_artifact_append(linked, j->image, j->err);
    if (status == BYOC_OK)
        status = append_checksum(j, linked);
    if (status == BYOC_OK && chmod(linked, 0644) != 0)
        status = byi_fail(j->err, byi_io_status(errno),
                          "%s: cannot set the file mode to 0644: %s", j->path,
                          strerror(errno));
    if (status == BYOC_OK)
        status = byi_file_place(linked, &j->destination, j->err);
    free(linked);
    return status;
}

/* --- the symbol --------------------------------------------------------- */

/* Set j->symbol to the symbol in the manifest. */
static enum byoc_status read_symbol(struct artifact_job *j)
{
    struct cJSON *json = NULL;
    const char *symbol;
    BYI_TRY(byi_json_parse(j->image->manifest, j->image->manifest_bytes,
                           SIZE_MAX, &json, j->err));
    struct byi_json root = byi_json_root(json);
    enum byoc_status status = byi_json_string(&root, "symbol", &symbol, j->err);
    static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (status == BYOC_OK &&
        (strlen(symbol) >= sizeof j->symbol || strspn(symbol, word) == 0 ||
         symbol[strspn(symbol, word)] != '\0'))
        status = byi_fail(j->err, BYOC_EINVAL,
                          "manifest: symbol: found \"%.60s\", expected 1 to "
                          "%zu lower-case letters, digits and underscores",
                          symbol, sizeof j->symbol - 1);
    if (status == BYOC_OK)
        snprintf(j->symbol, sizeof j->symbol, "%s", symbol);
    byi_json_free(&json);
    return status;
}

/* --- writing the artifact ----------------------------------------------- */

/* Make the folder beside the destination, so that the rename stays in one file
 * system. If the destination is a device, FIFO or standard stream, which is
 * written to directly, make the folder in $TMPDIR. */
static enum byoc_status make_folder(struct artifact_job *j, const char *cc)
{
    const char *destination = j->destination.path,
               *slash = strrchr(destination, '/');
    const char *tmp = secure_getenv("TMPDIR");
    struct byi_text prefix = {0};
    if (j->destination.written_directly)
        byi_text_addf(&prefix, "%s/byoc-", tmp && *tmp ? tmp : "/tmp");
    else
        byi_text_addf(&prefix, "%.*s.byoc-",
                      slash ? (int)(slash - destination) + 1 : 0, destination);
    const enum byoc_status status = byi_cc_open(&j->cc, prefix.at, cc, j->err);
    byi_text_free(&prefix);
    if (status == BYOC_EIO)
        return byi_prefix(j->err, "%s", j->path);
    return status;
}

enum byoc_status byi_artifact_write(const char *path,
                                    const struct byi_image *image,
                                    const char *cc, struct byoc_error *err)
{
    const struct byi_machine *host = byi_machine_host();
    struct artifact_job j = {.path = path,
                             .image = image,
                             .machine = image->machine ? image->machine : host,
                             .err = err};
    if (!cc && j.machine != host)
        cc = j.machine->cc; /* not $CC, which compiles for the host */
    BYI_TRY(read_symbol(&j));
    BYI_TRY(byi_destination_find(path, &j.destination, err));
    enum byoc_status status = make_folder(&j, cc);
    if (status == BYOC_OK)
        status = write_members(&j);
    if (status == BYOC_OK && image->source)
        status = compile_kernels(&j);
    if (status == BYOC_OK)
        status = link_model(&j);
    if (status == BYOC_OK)
        status = put_in_place(&j);
    byi_cc_close(&j.cc);
    byi_destination_free(&j.destination);
    return status;
}
