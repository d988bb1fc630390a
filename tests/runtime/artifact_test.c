/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_test.c: tests artifacts as files: they are written, loaded,
 * reproducible, and refused if any byte was changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen_c/codegen_c.h"
#include "tests/fixture.h"
#include "tests/folder.h"
#include "tests/open_files.h"

static const char ir[] =
    "def @main(%x: Tensor[(2, 4), float32]) {\n"
    "  %0 = nn.relu(%x);\n"
    "  %1 = add(%0, Tensor[(4), float32] {1.0, 2.0, 3.0, 4.0});\n"
    "  multiply(%1, Tensor[(3, 2, 4), float32] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0,"
    " 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0,"
    " 19.0, 20.0, 21.0, 22.0, 23.0, 24.0})\n"
    "}\n";

/* A folder of a test, the paths of two artifacts in it, and a model. */
struct folder {
    char path[TEST_PATH], model[TEST_PATH + 16], other[TEST_PATH + 16];
    struct fixture x;
};

static int make_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    struct byoc_error err;
    if (!f || !make_inner_folder(f->path))
        return -1;
    snprintf(f->model, sizeof f->model, "%s/model.so", f->path);
    snprintf(f->other, sizeof f->other, "%s/other.so", f->path);
    if (fixture_open(&f->x, ir, &err) != BYOC_OK)
        return -1;
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    fixture_close(&f->x);
    unlink(f->model);
    unlink(f->other);
    int code = rmdir(f->path); /* fails if the writer left a file */
    free(f);
    return code;
}

static void write_model(struct folder *f, const char *path)
{
    struct byoc_error err;
    if (byi_artifact_write(path, &f->x.image, NULL, &err) != BYOC_OK)
        fail_msg("%s", err.text);
}

/* Run a loaded model, compare with plain loops, and free it. */
static void run_and_free(struct fixture *x, struct byoc_model **model)
{
    struct byoc_error err;
    struct byoc_state *s = NULL;
    assert_int_equal(byoc_state_new(*model, &s, &err), BYOC_OK);
    if (fixture_run(x, s, 1, true, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_state_free(&s);
    byoc_model_free(model);
}

static void test_load_and_run(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    write_model(f, f->model);
    if (byoc_model_load(f->model, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_string_equal(byoc_model_input(model, 0)->name, "x");
    assert_null(byoc_model_input(model, 1));
    run_and_free(&f->x, &model);
}

static void test_verify(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byi_artifact a;
    write_model(f, f->model);
    assert_int_equal(byoc_internal_artifact_open(f->model, &a, &err), BYOC_OK);
    assert_int_equal((uintptr_t)a.image.weights % BYI_ALIGN, 0);
    if (byoc_internal_artifact_verify(&a, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_internal_artifact_close(&a);
}

static void *read_file(const char *path, size_t *n)
{
    struct byoc_error err;
    const void *data;
    assert_int_equal(byi_map_file(path, &data, n, &err), BYOC_OK);
    void *copy = malloc(*n);
    memcpy(copy, data, *n);
    byi_unmap(data, *n);
    return copy;
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The model of `ir` with another operator. */
static void make_other(struct folder *f, struct fixture *other)
{
    struct byoc_error err;
    char *text = strdup(ir);
    memcpy(strstr(text, "nn.relu"), "sigmoid", 7);
    if (fixture_open(other, text, &err) != BYOC_OK ||
        byi_artifact_write(f->other, &other->image, NULL, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    free(text);
}

/* A file that is renamed to the path of a loaded model loads beside it. */
static void test_replaced(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *old = NULL, *model = NULL;
    struct fixture other;
    write_model(f, f->model);
    make_other(f, &other);
    if (byoc_model_load(f->model, NULL, &old, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(rename(f->other, f->model), 0);
    if (byoc_model_load(f->model, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    run_and_free(&other, &model);
    run_and_free(&f->x, &old);
    fixture_close(&other);
}

/* A file that is loaded twice, through two descriptors, is one library to the
 * loader. One of the descriptors is then the number of another file. */
static void test_descriptor_used_again(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *models[3] = {NULL};
    struct fixture other;
    size_t n;
    write_model(f, f->model);
    make_other(f, &other);
    void *data = read_file(f->other, &n);
    const int fd = open(f->model, O_RDONLY | O_CLOEXEC);
    const int n_open = count_open_files();
    for (int i = 0; i < 2; i++)
        if (byoc_model_load_fd(fd, NULL, &models[i], &err) != BYOC_OK)
            fail_msg("%s", err.text);
    run_and_free(&f->x, &models[0]);
    if (byoc_model_load_memory(data, n, NULL, &models[2], &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(count_open_files(), n_open);
    run_and_free(&other, &models[2]);
    run_and_free(&f->x, &models[1]);
    fixture_close(&other);
    close(fd);
    free(data);
}

static void test_same_bytes(void **state)
{
    struct folder *f = *state;
    size_t n, k;
    write_model(f, f->model);
    write_model(f, f->other);
    void *a = read_file(f->model, &n), *b = read_file(f->other, &k);
    assert_int_equal(n, k);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* Load a possibly damaged artifact: the result is an error or a model, never a
 * crash. */
static enum byoc_status try_load(const char *path, struct byoc_error *err)
{
    struct byoc_model *model = NULL;
    enum byoc_status status = byoc_model_load(path, NULL, &model, err);
    if (status == BYOC_OK)
        byoc_model_free(&model);
    else
        assert_true(model == NULL && err->text[0] != '\0');
    return status;
}

static void test_truncated(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    size_t n;
    write_model(f, f->model);
    char *data = read_file(f->model, &n);
    for (size_t cut = 0; cut < n - BYI_SUM_BYTES; cut += 97) {
        write_file(f->other, data, cut);
        assert_int_equal(try_load(f->other, &err), BYOC_EPARSE);
    }
    free(data);
}

/* Outside of the weights every flipped bit is detected; in the weights by
 * verify. Without the checksum at the end the ELF reader must refuse the file
 * before the loader maps it. */
static void test_flipped(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byi_artifact a;
    size_t n;
    write_model(f, f->model);
    char *data = read_file(f->model, &n);
    assert_int_equal(byoc_internal_artifact_open(f->model, &a, &err), BYOC_OK);
    size_t from = (size_t)((const char *)a.image.weights - (const char *)a.map);
    size_t to = from + a.image.weights_bytes;
    byoc_internal_artifact_close(&a);
    for (size_t i = 0; i < n - BYI_SUM_BYTES; i += 13) {
        data[i] ^= (char)(1 << i % 8);
        write_file(f->other, data, n);
        if (i < from || i >= to)
            assert_int_not_equal(try_load(f->other, &err), BYOC_OK);
        write_file(f->other, data, n - BYI_SUM_BYTES);
        if (byoc_internal_artifact_open(f->other, &a, &err) == BYOC_OK) {
            if (i >= from && i < to)
                assert_int_equal(byoc_internal_artifact_verify(&a, &err),
                                 BYOC_EPARSE);
            byoc_internal_artifact_close(&a);
        }
        data[i] ^= (char)(1 << i % 8);
    }
    free(data);
}

static void test_not_an_artifact(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    char path[128];
    snprintf(path, sizeof path, "%s/none.so", f->path);
    assert_int_equal(try_load(path, &err), BYOC_EIO);
    write_file(f->other, "not an ELF file", 15);
    assert_int_equal(try_load(f->other, &err), BYOC_EPARSE);
    write_file(f->other, "", 0);
    assert_int_equal(try_load(f->other, &err), BYOC_EPARSE);
    assert_int_equal(try_load("/proc/self/exe", &err), BYOC_EPARSE);
    assert_non_null(strstr(err.text, ".byoc."));
}

/* Messages name the descriptor, and not the path that the loader is given. */
static void test_descriptor(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    char name[40];
    write_model(f, f->model);
    const int fd = open(f->model, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (byoc_model_load_fd(fd, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_model_free(&model);
    assert_int_equal(fchmod(fd, 0606), 0);
    assert_int_equal(byoc_model_load_fd(fd, NULL, &model, &err), BYOC_EINVAL);
    snprintf(name, sizeof name, "file descriptor %d: everybody", fd);
    assert_int_equal(strncmp(err.text, name, strlen(name)), 0);
    close(fd);
    assert_int_equal(byoc_model_load_fd(fd, NULL, &model, &err), BYOC_EINVAL);
    const int folder = open(f->path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(byoc_model_load_fd(folder, NULL, &model, &err),
                     BYOC_EINVAL);
    assert_non_null(strstr(err.text, "regular file"));
    close(folder);
    assert_null(model);
}

static void test_no_descriptors_left(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    struct rlimit old_limit;
    size_t n;
    write_model(f, f->model);
    void *data = read_file(f->model, &n);
    const int fd = open(f->model, O_RDONLY | O_CLOEXEC), next = dup(fd);
    assert_true(fd >= 0 && next > 3);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
    const struct rlimit new_limit = {(rlim_t)next, old_limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &new_limit), 0);
    assert_int_equal(byoc_model_load_fd(fd, NULL, &model, &err), BYOC_EIO);
    assert_int_equal(byoc_model_load_memory(data, n, NULL, &model, &err),
                     BYOC_EIO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
    if (byoc_model_load_memory(data, n, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_model_free(&model);
    close(fd);
    free(data);
}

/* How many kilobytes of the mapping of a file are resident. */
static long resident_of(const char *path)
{
    char line[2 * TEST_PATH];
    long total = 0, kilobytes;
    bool is_file = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "Rss: %ld", &kilobytes) == 1)
            total += is_file ? kilobytes : 0;
        else if (strchr(line, '-') && strchr(line, '/'))
            is_file = strstr(line, path) != NULL;
        else if (strstr(line, " 00:00 0"))
            is_file = false;
    }
    fclose(maps);
    return total;
}

/* After packing, the file's pages with the weights are not resident. */
static void test_packed_weights_dropped(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    static const char large[] =
        "def @main(%x: Tensor[(64, 1024), float32]) {\n"
        "  nn.matmul(%x, random[(1024, 4096), float32, seed=1])\n"
        "}\n";
    fixture_close(&f->x);
    if (fixture_open(&f->x, large, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    write_model(f, f->model);
    if (byoc_model_load(f->model, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    const long kilobytes = resident_of(f->model);
    if (kilobytes <= 0 || kilobytes >= 2048) /* the plan's pages are resident */
        fail_msg("found %ld kB of the artifact resident, expected 1 to 2047",
                 kilobytes);
    byoc_model_free(&model);
}

static void test_cannot_write(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    char path[128];
    snprintf(path, sizeof path, "%s/no/model.so", f->path);
    assert_int_equal(byi_artifact_write(path, &f->x.image, NULL, &err),
                     BYOC_EIO);
    assert_int_equal(
        byi_artifact_write(f->model, &f->x.image, "no-such-cc -x", &err),
        BYOC_EIO);
    assert_non_null(strstr(err.text, "no-such-cc"));
    assert_int_equal(
        byi_artifact_write(f->model, &f->x.image, "cc -fno-such-flag", &err),
        BYOC_EIO);
    assert_non_null(strstr(err.text, "fno-such-flag"));
    assert_int_not_equal(access(f->model, F_OK), 0);
}

/* A model whose plan was replaced is refused, since the manifest has the hash
 * of its plan. */
static void test_other_plan(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byi_image image = f->x.image;
    char *plan = strdup(image.plan);
    char *relu = strstr(plan, "nn.relu");
    assert_non_null(relu);
    memcpy(relu, "sigmoid", 7);
    image.plan = plan;
    assert_int_equal(byi_artifact_write(f->model, &image, NULL, &err),
                     BYOC_EPARSE);
    assert_non_null(strstr(err.text, "section plan hashes to"));
    free(plan);
}

static void test_ledger(void **state)
{
    struct folder *f = *state;
    struct byoc_error err;
    struct byoc_model *model = NULL;
    uint64_t bytes = 0;
    write_model(f, f->model);
    if (byoc_model_load(f->model, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    const char *ledger = byoc_model_ledger(model, &bytes);
    assert_int_equal(bytes, f->x.image.ledger_bytes);
    assert_memory_equal(ledger, f->x.image.ledger, bytes);
    byoc_model_free(&model);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_load_and_run), TEST(test_verify),
        TEST(test_same_bytes),   TEST(test_truncated),
        TEST(test_flipped),      TEST(test_not_an_artifact),
        TEST(test_cannot_write), TEST(test_other_plan),
        TEST(test_descriptor),   TEST(test_no_descriptors_left),
        TEST(test_ledger),       TEST(test_packed_weights_dropped),
        TEST(test_replaced),     TEST(test_descriptor_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
