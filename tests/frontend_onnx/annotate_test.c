/* SPDX-License-Identifier: Apache-2.0 */
/* annotate_test.c: tests writing a model with metadata on its nodes: each entry
 * is on its node, and everything else is unchanged.
 */
#include "models.h"

#include "frontend_onnx/wire.h"

#include <sys/stat.h>

enum { N_NODES = 3 };

/* Conv without a name, and two nodes of one name. */
static struct build three_nodes(void)
{
    struct build b = begin(13);

    input(&b, "x", "1 3 8 8");
    floats(&b, "w", 4, (const int64_t[]){1, 3, 3, 3});
    node(&b, "Conv", "x w", "c");
    node(&b, "Relu", "c", "r")->name = byi_arena_str(b.arena, "twin");
    node(&b, "Abs", "r", "y")->name = byi_arena_str(b.arena, "twin");
    output(&b, "y");
    return b;
}

static const struct byi_onnx_notes *notes_of(struct byi_arena *arena,
                                             const char *backend)
{
    static const char *const ops[N_NODES] = {"Conv", "Relu", "Abs"};
    struct byi_onnx_notes *notes =
        byi_arena_calloc(arena, N_NODES, sizeof *notes);

    for (uint32_t i = 0; i < N_NODES; i++) {
        struct byi_onnx_note *at = byi_arena_calloc(arena, 2, sizeof *at);
        at[0] = (struct byi_onnx_note){"byoc.backend", backend};
        at[1] = (struct byi_onnx_note){"byoc.reason",
                                       byi_arena_printf(arena, "r%u", i)};
        notes[i] = (struct byi_onnx_notes){
            .n = i == 1 ? 1 : 2, .at = at, .op_type = ops[i]};
    }
    return notes;
}

static enum byoc_status annotate(struct build *b, const char *to,
                                 const struct byi_onnx_notes *notes, uint32_t n,
                                 struct byoc_error *err)
{
    static const struct byi_onnx_note summary[] = {{"byoc.summary", "three"}};
    static const struct byi_onnx_notes model = {.n = 1, .at = summary};

    return byi_onnx_annotate(b->path, to, n, notes, &model, err);
}

/* Append a node's metadata, as "byoc.backend=dnnl byoc.reason=r0 ". It is in
 * fields that this protobuf-c does not know. */
static void read_notes(const Onnx__NodeProto *node, struct byi_text *out)
{
    for (unsigned i = 0; i < node->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *u = &node->base.unknown_fields[i];
        struct byi_wire_reader w = {u->data, u->data + u->len};
        assert_int_equal(u->tag, BYI_FIELD_NODE_METADATA);
        while (*w.at++ & 0x80) /* its length, to the end */
            ;
        Onnx__StringStringEntryProto *e =
            onnx__string_string_entry_proto__unpack(
                NULL, (size_t)(w.end - w.at), w.at);
        assert_non_null(e);
        byi_text_addf(out, "%s=%s ", e->key, e->value);
        onnx__string_string_entry_proto__free_unpacked(e, NULL);
    }
}

static Onnx__ModelProto *read_model(const char *path)
{
    const void *data = NULL;
    size_t n = 0;
    struct byoc_error err;

    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_OK);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, n, data);
    byi_unmap(data, n);
    assert_non_null(model);
    return model;
}

static void expect_notes(const char *path, uint32_t i, const char *expected)
{
    Onnx__ModelProto *model = read_model(path);
    struct byi_text found = {0};

    assert_int_equal(model->graph->n_node, N_NODES);
    byi_text_addf(&found, "%s", "");
    read_notes(model->graph->node[i], &found);
    assert_string_equal(found.at, expected);
    byi_text_free(&found);
    onnx__model_proto__free_unpacked(model, NULL);
}

static char *text_of(const char *path)
{
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    struct byi_text text = {0};

    if (byi_onnx_import(path, NULL, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_print_module(m, &text, NULL);
    byi_module_free(&m);
    return text.at;
}

static void notes_are_written(void **state)
{
    struct build b = three_nodes();
    struct byoc_error err = {0};
    char to[128], again[128];
    (void)state;

    save(&b);
    snprintf(to, sizeof to, "%s/noted.onnx", b.folder);
    snprintf(again, sizeof again, "%s/again.onnx", b.folder);
    if (annotate(&b, to, notes_of(b.arena, "dnnl"), N_NODES, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    expect_notes(to, 0, "byoc.backend=dnnl byoc.reason=r0 ");
    expect_notes(to, 1, "byoc.backend=dnnl ");
    expect_notes(to, 2, "byoc.backend=dnnl byoc.reason=r2 ");
    char *before = text_of(b.path), *after = text_of(to);
    assert_string_equal(before, after);
    byi_vec_free(before);
    byi_vec_free(after);

    /* a second time: its notes replace the first one's */
    memcpy(b.path, to, sizeof b.path);
    assert_int_equal(
        annotate(&b, again, notes_of(b.arena, "ref"), N_NODES, &err), BYOC_OK);
    expect_notes(again, 2, "byoc.backend=ref byoc.reason=r2 ");
    Onnx__ModelProto *model = read_model(again);
    assert_int_equal(model->n_metadata_props, 1);
    assert_string_equal(model->metadata_props[0]->key, "byoc.summary");
    assert_string_equal(model->metadata_props[0]->value, "three");
    onnx__model_proto__free_unpacked(model, NULL);
    end(&b);
}

/* Metadata of other programs stays in place; invalid UTF-8 is not written. */
static void notes_of_other_programs_stay(void **state)
{
    static const Onnx__StringStringEntryProto proto =
        ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    struct build b = three_nodes();
    struct byoc_error err = {0};
    char to[128];
    (void)state;

    Onnx__StringStringEntryProto *e =
        byi_arena_copy(b.arena, &proto, sizeof proto);
    e->key = byi_arena_str(b.arena, "author");
    e->value = byi_arena_str(b.arena, "somebody");
    b.model->metadata_props =
        list_add(b.arena, NULL, &b.model->n_metadata_props, e);
    ProtobufCMessageUnknownField foreign = {
        .tag = BYI_FIELD_NODE_METADATA,
        .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
        .len = 9,
        .data = (uint8_t *)(uintptr_t) "\x08\x0a\x01k\x12\x03"
                                       "abc"};
    b.graph->node[1]->base.unknown_fields = &foreign;
    b.graph->node[1]->base.n_unknown_fields = 1;
    save(&b);
    snprintf(to, sizeof to, "%s/noted.onnx", b.folder);
    if (annotate(&b, to, notes_of(b.arena, "d\xff"), N_NODES, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    expect_notes(to, 1, "k=abc byoc.backend=d\xef\xbf\xbd ");
    Onnx__ModelProto *model = read_model(to);
    assert_int_equal(model->n_metadata_props, 2);
    assert_string_equal(model->metadata_props[0]->key, "author");
    onnx__model_proto__free_unpacked(model, NULL);
    end(&b);
}

static void expect_refused(struct build *b, const char *to, uint32_t n,
                           const struct byi_onnx_notes *notes,
                           enum byoc_status status, const char *text)
{
    struct byoc_error err = {0};

    assert_int_equal(annotate(b, to, notes, n, &err), status);
    if (!strstr(err.text, text))
        fail_msg("found '%s', expected '%s'", err.text, text);
}

static void refused(void **state)
{
    struct build b = three_nodes();
    const struct byi_onnx_notes *notes = notes_of(b.arena, "dnnl");
    char to[128];
    (void)state;

    const size_t n = save(&b);
    snprintf(to, sizeof to, "%s/noted.onnx", b.folder);
    expect_refused(&b, b.path, N_NODES, notes, BYOC_EINVAL,
                   "found the model as the output");
    expect_refused(&b, to, 2, notes, BYOC_EINVAL, "node 2 is Abs");
    expect_refused(&b, to, 2, notes + 1, BYOC_EINVAL,
                   "node 0 is Conv, expected Relu");
    snprintf(to, sizeof to, "%s/none/noted.onnx", b.folder);
    expect_refused(&b, to, N_NODES, notes, BYOC_EIO, "none/noted.onnx");
    snprintf(to, sizeof to, "%s/noted.onnx", b.folder);
    b.graph->n_node = 2;
    save(&b);
    expect_refused(&b, to, N_NODES, notes, BYOC_EINVAL,
                   "found 2 nodes, expected 3");
    b.graph->n_node = N_NODES;
    save(&b);
    assert_int_equal(truncate(b.path, (off_t)n - 3), 0);
    expect_refused(&b, to, N_NODES, notes, BYOC_EPARSE, "expected a complete");
    assert_int_not_equal(access(to, F_OK), 0); /* no temporary file is left */
    end(&b);
}

/* Weights in another file: the copy must find them. */
static void external_weights(void **state)
{
    static const float weights[27] = {1, 2, 3};
    struct build b = three_nodes();
    struct byoc_error err = {0};
    char to[160], data[128], folder[128];
    (void)state;

    external(&b, b.graph->initializer[0], "location", "weights.bin");
    snprintf(data, sizeof data, "%s/weights.bin", b.folder);
    write_file(data, weights, sizeof weights);
    save(&b);
    const struct byi_onnx_notes *notes = notes_of(b.arena, "dnnl");
    snprintf(folder, sizeof folder, "%s/other", b.folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(to, sizeof to, "%s/other/noted.onnx", b.folder);
    expect_refused(&b, to, N_NODES, notes, BYOC_EINVAL,
                   "write the copy to the model's folder");
    snprintf(to, sizeof to, "%s/other/../noted.onnx", b.folder);
    if (annotate(&b, to, notes, N_NODES, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    char *before = text_of(b.path), *after = text_of(to);
    assert_string_equal(before, after);
    byi_vec_free(before);
    byi_vec_free(after);
    end(&b);
}

/* A graph of one node, as an attribute of `owner`. */
static void add_branch(struct build *b, Onnx__NodeProto *owner,
                       const char *name, const char *op)
{
    Onnx__GraphProto *outer = enter(b);
    char *out = byi_arena_printf(b->arena, "%s_out", name);

    node(b, op, "x", out);
    output(b, out);
    attr_graph(b, owner, name, leave(b, outer));
}

/* Nodes of inner graphs get notes by the source names that the importer gives
 * them; their operators are checked too. */
static void notes_of_inner_graphs(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    char to[128];
    (void)state;

    input(&b, "x", "4");
    node(&b, "Exp", "x", "e");
    b.graph->input =
        list_add(b.arena, b.graph->input, &b.graph->n_input,
                 value(&b, "c", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "1"));
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    add_branch(&b, n, "else_branch", "Neg"); /* converted last, stands first */
    add_branch(&b, n, "then_branch", "Abs");
    node(&b, "Add", "y e", "z");
    output(&b, "z");
    save(&b);
    snprintf(to, sizeof to, "%s/noted.onnx", b.folder);
    if (byi_onnx_import(b.path, NULL, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(m->sources.n, 5);
    struct byi_onnx_notes notes[5];
    struct byi_onnx_note note[5];
    for (uint32_t i = 0; i < 5; i++) {
        note[i] = (struct byi_onnx_note){"byoc.reason", m->sources.at[i].op};
        notes[i] = (struct byi_onnx_notes){
            .n = 1, .at = &note[i], .op_type = m->sources.at[i].op};
    }
    if (annotate(&b, to, notes, 5, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    Onnx__ModelProto *model = read_model(to);
    Onnx__GraphProto *graph = model->graph;
    const Onnx__NodeProto *nodes[] = {graph->node[0], graph->node[1],
                                      graph->node[1]->attribute[0]->g->node[0],
                                      graph->node[1]->attribute[1]->g->node[0],
                                      graph->node[2]};
    for (size_t i = 0; i < BYI_COUNT(nodes); i++) {
        struct byi_text found = {0}, expected = {0};
        read_notes(nodes[i], &found);
        byi_text_addf(&expected, "byoc.reason=%s ", nodes[i]->op_type);
        assert_string_equal(found.at, expected.at);
        byi_text_free(&found);
        byi_text_free(&expected);
    }
    onnx__model_proto__free_unpacked(model, NULL);
    char *before = text_of(b.path), *after = text_of(to);
    assert_string_equal(before, after);
    byi_vec_free(before);
    byi_vec_free(after);
    byi_module_free(&m);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_written),
        cmocka_unit_test(notes_of_other_programs_stay),
        cmocka_unit_test(refused),
        cmocka_unit_test(external_weights),
        cmocka_unit_test(notes_of_inner_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
