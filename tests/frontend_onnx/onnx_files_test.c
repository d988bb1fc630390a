/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_files_test.c: tests the sources of a model's numbers (typed fields, raw
 * bytes, the mapped file, external files), files of single tensors, and files
 * that are not models.
 */
#include "models.h"

/* --- tensors -------------------------------------------------------------- */

static void import_one_weight(struct build *b, Onnx__TensorProto *t,
                              const char *text)
{
    weight(b, t);
    node(b, "Identity", "w", "y");
    output(b, "y");
    EXPECT(b, text);
}

static void typed_data(void **state)
{
    const int64_t two[] = {2};
    struct build b = begin(13);
    (void)state;

    Onnx__TensorProto *t =
        tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 1, two);
    t->n_float_data = 2;
    t->float_data = (float[]){1.5f, -2};
    import_one_weight(&b, t, "[1.5, -2.0]");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){-128, 127};
    import_one_weight(&b, t, "Tensor[(2), int8] {-128, 127}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){0x3c00, 0xc000};
    import_one_weight(&b, t, "Tensor[(2), float16] {1.0, -2.0}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){0x3f80, 0xc000};
    import_one_weight(&b, t, "Tensor[(2), bfloat16] {1.0, -2.0}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__UINT32, 1, two);
    t->n_uint64_data = 2;
    t->uint64_data = (uint64_t[]){0, 4294967295u};
    import_one_weight(&b, t, "Tensor[(2), uint32] {0, 4294967295}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, 1, two);
    t->n_double_data = 2;
    t->double_data = (double[]){0.25, 1e300};
    import_one_weight(&b, t, "Tensor[(2), float64] {0.25, ");
}

/* Large weights stay in the mapped file, with the same values. */
static void mapped_weights(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byi_tensor t = {0};
    (void)state;

    floats(&b, "small", 1, (const int64_t[]){3});
    floats(&b, "big", 2, (const int64_t[]){50, 100});
    floats(&b, "last", 1, (const int64_t[]){1});
    node(&b, "Concat", "big big", "y");
    attr_int(&b, b.graph->node[0], "axis", 0);
    output(&b, "y");
    save(&b);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, NULL), BYOC_OK);
    assert_true(byi_const_view(m, m->funcs.at[0], 0, &t));
    assert_int_equal(t.rank, 2);
    for (int64_t i = 0; i < 5000; i++) {
        float found;
        memcpy(&found, (const char *)t.data + i * 4, 4);
        assert_true(found == (float)i);
    }
    byi_module_free(&m);
    end(&b);
}

static void wrong_tensors(void **state)
{
    const int64_t dims[] = {2, 2}, huge[] = {INT64_MAX, 4}, below[] = {-1};
    struct build b = begin(13);
    (void)state;

    floats(&b, "w", 2, dims)->raw_data.len = 12;
    node(&b, "Exp", "w", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE,
           "tensor 'w': found 12 bytes, expected 16 for float32 of dims "
           "(2, 2)");
    for (uint32_t i = 0; i < 2; i++) {
        b = begin(13);
        Onnx__TensorProto *t =
            tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, i ? 1 : 2,
                   i ? below : huge);
        weight(&b, t);
        node(&b, "Exp", "w", "y");
        output(&b, "y");
        refuse(&b, BYOC_EPARSE, "tensor 'w' has dims");
    }
    b = begin(13);
    Onnx__TensorProto *t =
        tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 1, dims);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){1, 300};
    weight(&b, t);
    node(&b, "Exp", "w", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "element 1 is 300, which does not fit uint8");
}

static void external_data(void **state)
{
    const float data[] = {7, 8, 9};
    struct build b = begin(13);
    char path[128];
    (void)state;

    snprintf(path, sizeof path, "%s/w.bin", b.folder);
    write_file(path, data, sizeof data);
    Onnx__TensorProto *t = floats(&b, "w", 1, (const int64_t[]){2});
    external(&b, t, "location", "w.bin");
    external(&b, t, "offset", "4");
    external(&b, t, "length", "8");
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    EXPECT(&b, "[8.0, 9.0]");
}

static void refuse_external(const char *location, const char *offset,
                            enum byoc_status status, const char *text)
{
    struct build b = begin(13);
    char path[128];

    snprintf(path, sizeof path, "%s/w.bin", b.folder);
    write_file(path, "12345678", 8);
    snprintf(path, sizeof path, "%s/link", b.folder);
    assert_int_equal(symlink("/dev/null", path), 0);
    Onnx__TensorProto *t = floats(&b, "w", 1, (const int64_t[]){2});
    if (location)
        external(&b, t, "location", location);
    external(&b, t, "offset", offset);
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    refuse(&b, status, text);
}

static void wrong_external_data(void **state)
{
    (void)state;
    refuse_external(NULL, "0", BYOC_EPARSE, "without a location");
    refuse_external("/etc/passwd", "0", BYOC_EUNSUPPORTED, "relative path");
    refuse_external("a/../../x", "0", BYOC_EUNSUPPORTED, "without '..'");
    refuse_external("link", "0", BYOC_EUNSUPPORTED, "a link out of");
    refuse_external("none", "0", BYOC_EIO, "cannot open its external data");
    refuse_external("w.bin", "4", BYOC_EPARSE, "inside a file of 8");
    refuse_external("w.bin", "18446744073709551615", BYOC_EPARSE,
                    "inside a file of 8");
    refuse_external("w.bin", "-1", BYOC_EPARSE,
                    "offset '-1', expected a number");
}

static void tensor_files(void **state)
{
    struct build b = begin(13);
    struct byi_tensor t = {0};
    struct byoc_error err = {0};
    const char *name = NULL;
    (void)state;

    Onnx__TensorProto *proto =
        tensor(&b, "words", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, 1,
               (const int64_t[]){2});
    ProtobufCBinaryData words[] = {{3, (uint8_t *)"one"}, {0, NULL}};
    proto->n_string_data = 2;
    proto->string_data = words;
    uint8_t bytes[256];
    const size_t n = onnx__tensor_proto__pack(proto, bytes);
    write_file(b.path, bytes, n);
    assert_int_equal(byi_onnx_tensor(b.path, b.arena, &t, &name, &err),
                     BYOC_OK);
    assert_string_equal(name, "words");
    assert_string_equal(((const char **)t.data)[0], "one");
    assert_string_equal(((const char **)t.data)[1], "");
    write_file(b.path, bytes, n - 1);
    assert_int_equal(byi_onnx_tensor(b.path, b.arena, &t, &name, &err),
                     BYOC_EPARSE);
    end(&b);
}

/* --- files that are not models -------------------------------------------- */

static void truncated_models(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    (void)state;

    input(&b, "x", "1 3 8 8");
    floats(&b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    node(&b, "Conv", "x w", "y");
    output(&b, "y");
    const size_t n = save(&b);
    uint8_t *bytes = byi_arena_alloc(b.arena, n);
    FILE *file = fopen(b.path, "rb");
    assert_int_equal(fread(bytes, 1, n, file), n);
    fclose(file);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(b.path, bytes, cut);
        assert_int_not_equal(byi_onnx_import(b.path, NULL, &m, NULL), BYOC_OK);
        assert_null(m);
    }
    end(&b);
}

/* A model with a graph with a node with an attribute with a graph and so on,
 * nested more deeply than the stack of a recursive reader allows. */
static void nested_messages(void **state)
{
    enum { LEVELS = 40000 };
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    static const uint8_t tags[] = {1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    uint8_t *bytes = byi_arena_alloc(b.arena, LEVELS * 18 + 16);
    size_t at = LEVELS * 18 + 16, n = 0;
    (void)state;

    for (uint32_t i = 0; i < 3 * LEVELS + 1; i++) {
        uint8_t header[6];
        size_t k = 0;
        header[k++] = i == 3 * LEVELS ? 7 << 3 | 2 : tags[2 - i % 3];
        size_t length = n;
        do
            header[k++] = (uint8_t)(length & 0x7f) | (length > 0x7f ? 0x80 : 0);
        while (length >>= 7);
        at -= k;
        n += k;
        memcpy(bytes + at, header, k);
    }
    write_file(b.path, bytes + at, n);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_ELIMIT);
    assert_non_null(strstr(err.text, "too deeply nested"));
    end(&b);
}

/* Field numbers start at 1; 0 is refused with every type of value. */
static void field_zero(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } fields[] = {
        {"\x00\x01", 2},                             /* varint */
        {"\x01\x00\x00\x00\x00\x00\x00\x00\x00", 9}, /* 64 bits */
        {"\x02\x01\x00", 3},                         /* bytes */
        {"\x05\x00\x00\x00\x00", 5},                 /* 32 bits */
    };
    struct build b = begin(13);
    struct byi_module *m = NULL;
    (void)state;

    for (size_t i = 0; i < BYI_COUNT(fields); i++) {
        struct byoc_error err = {0};
        write_file(b.path, fields[i].bytes, fields[i].n);
        assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EPARSE);
        if (!strstr(err.text, "found an invalid field at byte 0 of"))
            fail_msg(
                "field %zu: found \"%s\", expected an invalid field at byte 0",
                i, err.text);
    }
    end(&b);
}

static void not_a_model(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    (void)state;

    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EIO);
    assert_int_equal(byi_onnx_import(b.folder, NULL, &m, &err), BYOC_EIO);
    write_file(b.path, "", 0);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EPARSE);
    write_file(b.path, "hello, world", 12);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EPARSE);
    assert_null(m);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_data),
        cmocka_unit_test(mapped_weights),
        cmocka_unit_test(wrong_tensors),
        cmocka_unit_test(external_data),
        cmocka_unit_test(wrong_external_data),
        cmocka_unit_test(tensor_files),
        cmocka_unit_test(truncated_models),
        cmocka_unit_test(nested_messages),
        cmocka_unit_test(field_zero),
        cmocka_unit_test(not_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
