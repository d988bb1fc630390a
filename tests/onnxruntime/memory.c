/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: every allocation of the execution provider fails once while ONNX
 * Runtime creates a session and runs it. Each time the session must work, or
 * the message must say that memory ran out; no memory leaks.
 *
 *     memory LIBONNXRUNTIME.so LIBBYOC_ONNXRUNTIME.so
 */
#include "tests/onnxruntime/session.h"

#include "tests/folder.h"
#include "tests/memory/heap.h"

/* y = softmax(x) w */
static struct build small_model(void)
{
    struct build b = start();
    input(&b, "x", "3 3");
    floats(&b, "w", 2, (int64_t[]){3, 3});
    node(&b, "Softmax", "x", "a");
    node(&b, "MatMul", "a w", "y");
    typed_output(&b, "y", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "3 3");
    return b;
}

/* Create a session, run it, and release it. Returns whether this succeeded;
 * otherwise the message is in `why`. */
static bool use_session(const void *model, size_t n, const char *folder,
                        char why[2048])
{
    static const float x[9] = {4, 1, 0, 2, 5, 1, 0, 3, 6};
    static const struct session_value in = {
        "x", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, {3, 3}, x};
    OrtValue *out[1] = {NULL};
    OrtSession *session =
        session_try(model, n, WITH("cache_dir", folder, "report", folder), why);
    if (!session)
        return false;
    char *failure = session_try_run(session, &in, 1, out, 1);
    if (failure)
        snprintf(why, 2048, "%s", failure);
    ort->ReleaseValue(out[0]);
    ort->ReleaseSession(session);
    const bool works = !failure;
    free(failure);
    return works;
}

static void failed_allocations(void **state)
{
    struct build b = small_model();
    const size_t n = onnx__model_proto__get_packed_size(b.model);
    uint8_t *bytes = byi_arena_alloc(b.arena, n + 1);
    char why[2048];
    unsigned n_refused = 0;
    (void)state;
    onnx__model_proto__pack(b.model, bytes);
    assert_true(use_session(bytes, n, b.folder, why)); /* fills the cache */
    heap_spare_except("libbyoc_onnxruntime");
    assert_true(use_session(bytes, n, b.folder, why));
    const int64_t blocks = heap.blocks;
    heap.fail_n = 1;
    heap.fail_at = 0;
    do {
        heap.calls = 0;
        heap.armed = 1;
        const bool works = use_session(bytes, n, b.folder, why);
        heap.armed = 0;
        n_refused += !works;
        if (!works && !strstr(why, "memory"))
            fail_msg("allocation %u: found \"%s\", expected \"memory\" in it",
                     (unsigned)heap.fail_at, why);
        if (heap.blocks != blocks)
            fail_msg("allocation %u: found %d blocks leaked, expected 0",
                     (unsigned)heap.fail_at, (int)(heap.blocks - blocks));
    } while (heap.calls > heap.fail_at++);
    print_message("%u allocations, %u of them refused\n",
                  (unsigned)heap.fail_at, n_refused);
    assert_true(n_refused > 10);
    end(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_allocations)};
    if (argc != 3) {
        fprintf(stderr, "usage: %s LIBONNXRUNTIME LIBBYOC_ONNXRUNTIME\n",
                argv[0]);
        return 2;
    }
    session_threads = 1;
    sessions_begin(argv[1], argv[2]);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sessions_end();
    return failed;
}
