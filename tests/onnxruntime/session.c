/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: opens and runs sessions of ONNX Runtime, and compares their
 * results (session.h).
 */
#include "tests/onnxruntime/session.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <glob.h>
#include <math.h>

const OrtApi *ort;
OrtEnv *ort_env;
int session_threads = 2;
static const OrtEpDevice *device;
static bool have_bodies;

void must(OrtStatus *status)
{
    if (status)
        fail_msg("%s", ort->GetErrorMessage(status));
}

void sessions_begin(const char *library, const char *provider)
{
    const OrtEpDevice *const *devices;
    size_t n;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    const OrtApiBase *(*base)(void);
    void *symbol = dlsym(handle, "OrtGetApiBase");
    assert_non_null(symbol);
    memcpy(&base, &symbol, sizeof base);
    ort = base()->GetApi(ORT_API_VERSION);
    if (!ort)
        fail_msg("%s is ONNX Runtime %s, expected 1.%d or newer", library,
                 base()->GetVersionString(), ORT_API_VERSION);
    print_message("ONNX Runtime %s\n", base()->GetVersionString());
    have_bodies = atoi(base()->GetVersionString() + 2) >= 30;
    must(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &ort_env));
    must(ort->RegisterExecutionProviderLibrary(ort_env, "byoc", provider));
    must(ort->GetEpDevices(ort_env, &devices, &n));
    for (size_t i = 0; i < n; i++)
        if (strcmp(ort->EpDevice_EpName(devices[i]), "ByocExecutionProvider") ==
            0)
            device = devices[i];
    assert_non_null(device);
    assert_string_equal(ort->EpDevice_EpVendor(device), "byoc");
}

bool sessions_have_bodies(void)
{
    return have_bodies;
}

void sessions_end(void)
{
    must(ort->UnregisterExecutionProviderLibrary(ort_env, "byoc"));
    ort->ReleaseEnv(ort_env);
}

/* --- sessions ------------------------------------------------------------- */

OrtSession *session_try(const void *model, size_t n, session_options options,
                        char why[2048])
{
    const char *keys[16], *values[16];
    OrtSessionOptions *o;
    OrtSession *session = NULL;
    const bool provider = options;
    size_t pairs = 0;
    must(ort->CreateSessionOptions(&o));
    must(ort->SetIntraOpNumThreads(o, session_threads));
    must(ort->SetSessionLogSeverityLevel(o, ORT_LOGGING_LEVEL_FATAL));
    for (; options && options[0]; options += 2) {
        if (strncmp(options[0], "ep.", 3) == 0) {
            must(ort->AddSessionConfigEntry(o, options[0], options[1]));
            continue;
        }
        keys[pairs] = options[0];
        values[pairs++] = options[1];
    }
    if (provider)
        must(ort->SessionOptionsAppendExecutionProvider_V2(
            o, ort_env, &device, 1, keys, values, pairs));
    OrtStatus *status =
        ort->CreateSessionFromArray(ort_env, model, n, o, &session);
    if (status) {
        snprintf(why, 2048, "%s", ort->GetErrorMessage(status));
        ort->ReleaseStatus(status);
        session = NULL;
    }
    ort->ReleaseSessionOptions(o);
    return session;
}

OrtSession *session_open(const void *model, size_t n, session_options options)
{
    char why[2048];
    OrtSession *session = session_try(model, n, options, why);
    if (!session)
        fail_msg("%s", why);
    return session;
}

OrtSession *session_of(struct build *b, session_options options)
{
    const size_t n = onnx__model_proto__get_packed_size(b->model);
    uint8_t *bytes = byi_arena_alloc(b->arena, n + 1);
    onnx__model_proto__pack(b->model, bytes);
    return session_open(bytes, n, options);
}

/* --- runs ----------------------------------------------------------------- */

static OrtValue *make_value(const struct session_value *v)
{
    const size_t n = (size_t)byi_elements(v->rank, v->dims);
    OrtAllocator *allocator;
    OrtValue *value;
    void *data;
    must(ort->GetAllocatorWithDefaultOptions(&allocator));
    must(ort->CreateTensorAsOrtValue(allocator, v->dims, v->rank, v->type,
                                     &value));
    if (v->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        must(ort->FillStringTensor(value, v->data, n));
        return value;
    }
    size_t bytes;
    must(ort->GetTensorMutableData(value, &data));
    must(ort->GetTensorSizeInBytes(value, &bytes));
    memcpy(data, v->data, bytes);
    return value;
}

char *session_try_run(OrtSession *session, const struct session_value *in,
                      size_t n_in, OrtValue **out, size_t n_out)
{
    const char *in_names[16], *out_names[16];
    OrtValue *values[16];
    OrtAllocator *allocator;
    char *why = NULL;
    must(ort->GetAllocatorWithDefaultOptions(&allocator));
    for (size_t i = 0; i < n_in; i++) {
        in_names[i] = in[i].name;
        values[i] = make_value(&in[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        char *name;
        must(ort->SessionGetOutputName(session, i, allocator, &name));
        out_names[i] = name;
        out[i] = NULL;
    }
    OrtStatus *status =
        ort->Run(session, NULL, in_names, (const OrtValue *const *)values, n_in,
                 out_names, n_out, out);
    if (status) {
        why = strdup(ort->GetErrorMessage(status));
        ort->ReleaseStatus(status);
    }
    for (size_t i = 0; i < n_in; i++)
        ort->ReleaseValue(values[i]);
    for (size_t i = 0; i < n_out; i++)
        must(ort->AllocatorFree(allocator, (void *)out_names[i]));
    return why;
}

/* --- comparison ----------------------------------------------------------- */

static void expect_equal_strings(const OrtValue *a, const OrtValue *b,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[2][256];
        size_t n[2];
        const OrtValue *values[2] = {a, b};
        for (int k = 0; k < 2; k++) {
            must(ort->GetStringTensorElementLength(values[k], i, &n[k]));
            assert_true(n[k] < sizeof text[k]);
            must(ort->GetStringTensorElement(values[k], n[k], i, text[k]));
            text[k][n[k]] = '\0';
        }
        assert_string_equal(text[0], text[1]);
    }
}

static size_t shape_of(const OrtValue *value, int64_t dims[8], size_t *rank,
                       ONNXTensorElementDataType *type)
{
    OrtTensorTypeAndShapeInfo *info;
    size_t count;
    must(ort->GetTensorTypeAndShape(value, &info));
    must(ort->GetDimensionsCount(info, rank));
    assert_true(*rank <= 8);
    must(ort->GetDimensions(info, dims, *rank));
    must(ort->GetTensorElementType(info, type));
    must(ort->GetTensorShapeElementCount(info, &count));
    ort->ReleaseTensorTypeAndShapeInfo(info);
    return count;
}

static void expect_equal_tensors(OrtValue *a, OrtValue *b)
{
    int64_t dims[2][8];
    size_t rank[2], bytes;
    ONNXTensorElementDataType type[2];
    void *x, *y;
    const size_t n = shape_of(a, dims[0], &rank[0], &type[0]);
    shape_of(b, dims[1], &rank[1], &type[1]);
    assert_int_equal(type[0], type[1]);
    assert_int_equal(rank[0], rank[1]);
    assert_memory_equal(dims[0], dims[1], rank[0] * sizeof dims[0][0]);
    if (type[0] == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        expect_equal_strings(a, b, n);
        return;
    }
    must(ort->GetTensorMutableData(a, &x));
    must(ort->GetTensorMutableData(b, &y));
    must(ort->GetTensorSizeInBytes(a, &bytes));
    if (type[0] != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        assert_memory_equal(x, y, bytes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float expected = ((float *)x)[i], found = ((float *)y)[i];
        if (fabsf(expected - found) > 1e-4F * (1 + fabsf(expected)))
            fail_msg("element %zu: found %g, expected %g", i, (double)found,
                     (double)expected);
    }
}

static void expect_equal_values(OrtValue *a, OrtValue *b)
{
    enum ONNXType kinds[2];
    size_t n[2];
    OrtAllocator *allocator;
    must(ort->GetValueType(a, &kinds[0]));
    must(ort->GetValueType(b, &kinds[1]));
    assert_int_equal(kinds[0], kinds[1]);
    if (kinds[0] == ONNX_TYPE_TENSOR) {
        expect_equal_tensors(a, b);
        return;
    }
    assert_int_equal(kinds[0], ONNX_TYPE_SEQUENCE);
    must(ort->GetAllocatorWithDefaultOptions(&allocator));
    must(ort->GetValueCount(a, &n[0]));
    must(ort->GetValueCount(b, &n[1]));
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        OrtValue *x, *y;
        must(ort->GetValue(a, (int)i, allocator, &x));
        must(ort->GetValue(b, (int)i, allocator, &y));
        expect_equal_tensors(x, y);
        ort->ReleaseValue(x);
        ort->ReleaseValue(y);
    }
}

void expect_same(OrtSession *reference, OrtSession *byoc,
                 const struct session_value *in, size_t n_in)
{
    OrtValue *x[16], *y[16];
    size_t n;
    must(ort->SessionGetOutputCount(reference, &n));
    assert_true(n <= 16);
    char *why = session_try_run(reference, in, n_in, x, n);
    if (why)
        fail_msg("the reference session: %s", why);
    why = session_try_run(byoc, in, n_in, y, n);
    if (why)
        fail_msg("the session with byoc: %s", why);
    for (size_t i = 0; i < n; i++) {
        expect_equal_values(x[i], y[i]);
        ort->ReleaseValue(x[i]);
        ort->ReleaseValue(y[i]);
    }
}

/* --- reports of claims ---------------------------------------------------- */

static void count_claimed(const char *path, unsigned *claimed, unsigned *nodes)
{
    const void *data;
    size_t n;
    struct byoc_error err;
    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_OK);
    cJSON *root = cJSON_ParseWithLength(data, n), *node;
    assert_non_null(root);
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(root, "nodes"))
    {
        const bool has = cJSON_HasObjectItem(node, "group");
        assert_true(has || cJSON_HasObjectItem(node, "reason"));
        *claimed += has;
        ++*nodes;
    }
    cJSON_Delete(root);
    byi_unmap(data, n);
}

void expect_claimed(struct build *b, const struct session_value *in,
                    size_t n_in, unsigned claimed, unsigned nodes)
{
    unsigned n[2] = {0, 0};
    char pattern[128];
    glob_t found;
    OrtSession *reference = session_of(b, NULL);
    OrtSession *byoc = session_of(b, WITH("report", b->folder));
    expect_same(reference, byoc, in, n_in);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    snprintf(pattern, sizeof pattern, "%s/graph-*.json", b->folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        count_claimed(found.gl_pathv[i], &n[0], &n[1]);
    globfree(&found);
    end(b);
    assert_int_equal(n[0], claimed);
    assert_int_equal(n[1], nodes);
}

/* --- models --------------------------------------------------------------- */

struct build start(void)
{
    struct build b = begin(17);
    import_opset(&b, "com.microsoft", 1);
    b.graph->name = "test";
    return b;
}
