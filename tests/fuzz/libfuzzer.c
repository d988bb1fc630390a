/* SPDX-License-Identifier: Apache-2.0 */
/* libfuzzer.c: the table of readers for clang's libFuzzer, in place of fuzz.c:
 *
 *     BYOC_FUZZ_READER=region libfuzzer -max_total_time=600 CORPUS
 */
#include "cover.h"

#include <stdlib.h>
#include <string.h>

/* libFuzzer's interface. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_bytes,
                               unsigned seed);

static const struct fuzz_reader *reader;
static char temp[] = "/tmp/byoc-libfuzzer-XXXXXX";

/* libFuzzer follows comparisons itself. */
bool fuzz_pick_hint(struct fuzz_rng *rng, struct fuzz_hint *hint)
{
    (void)rng, (void)hint;
    return false;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *name = getenv("BYOC_FUZZ_READER");
    reader = fuzz_find_reader(name ? name : "");
    setenv("BYOC_NUM_THREADS", "1", 0);
    if (!reader)
        fprintf(stderr,
                "BYOC_FUZZ_READER: found '%s', expected a reader of "
                "fuzz --list\n",
                name ? name : "");
    else if (!mkdtemp(temp) ||
             (reader->needs_written_seeds && !fuzz_make_seeds(temp)))
        fprintf(stderr, "cannot make the seeds in %s\n", temp);
    else
        return 0;
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_case c = {.reader = reader->name,
                          .origin = "digits",
                          .bytes = (const char *)data,
                          .n = n,
                          .rng = {n},
                          .temp = temp,
                          .seeds = temp};
    if (!reader->feed(&c)) {
        fprintf(stderr, "wrong: %s\n", c.why);
        abort();
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_bytes,
                               unsigned seed)
{
    struct fuzz_rng rng = {seed};
    struct byi_text bytes = {0}, other = {0};
    byi_text_add(&bytes, (const char *)data, n);
    byi_text_add(&other, (const char *)data, n);
    reader->mutate(&rng, &bytes, &other);
    const size_t m = bytes.n < max_bytes ? bytes.n : max_bytes;
    if (m)
        memcpy(data, bytes.at, m);
    byi_text_free(&bytes);
    byi_text_free(&other);
    return m;
}
