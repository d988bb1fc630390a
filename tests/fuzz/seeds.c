/* SPDX-License-Identifier: Apache-2.0 */
/* seeds.c: writes the seeds that are not files of the tree: artifacts and their
 * parts, a model with external weights, patterns, attributes and small texts.
 */
#include <byoc/byoc.h>

#include <string.h>

#include "fuzz.h"
#include "onnx.pb-c.h"

#include "core/ir/ir.h"
#include "runtime/plan.h"
#include "runtime_dnnl/patterns.h"

static const struct {
    const char *name, *path;
} models[] = {
    {"digits", TEST_DIR "/../examples/digits/digits.onnx"},
    {"if", TEST_DIR "/core/text_if.ir"},
    {"shape", TEST_DIR "/fuzz/seeds/varies.ir"},
    {"block", TEST_DIR "/fuzz/seeds/block.ir"},
    {"attention", TEST_DIR "/fuzz/seeds/attention.ir"},
    {"recursion", TEST_DIR "/fuzz/seeds/recursion.ir"},
    {"closures", TEST_DIR "/run/if_function.ir"},
    {"captures", TEST_DIR "/fuzz/seeds/captures.ir"},
};

bool fuzz_read(const char *path, struct byi_text *bytes)
{
    char piece[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    byi_text_add(bytes, "", 0);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        byi_text_add(bytes, piece, n);
    bool good = !ferror(f);
    fclose(f);
    return good;
}

bool fuzz_write(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool good = fwrite(bytes, 1, n, f) == n;
    return fclose(f) == 0 && good;
}

/* Write the file FOLDER/NAME.SUFFIX. */
static bool write_seed(const char *folder, const char *name, const char *suffix,
                       const char *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    return fuzz_write(path, bytes, n);
}

/* Write the plan, manifest, ledger and regions of the artifact `so`. */
static bool write_parts(const char *folder, const char *name, const char *so)
{
    struct byi_artifact a;
    struct byi_plan_tables *plan = NULL;
    struct byoc_error err;
    char suffix[32];
    if (byoc_internal_artifact_open(so, &a, &err) != BYOC_OK ||
        byi_plan_read(&a.image, &plan, &err) != BYOC_OK) {
        printf("%s: %s\n", so, err.text);
        return false;
    }
    const struct byi_image *i = &a.image;
    bool good =
        write_seed(folder, name, "plan", i->plan, i->plan_bytes) &&
        write_seed(folder, name, "manifest", i->manifest, i->manifest_bytes) &&
        write_seed(folder, name, "ledger", i->ledger, i->ledger_bytes);
    for (uint32_t k = 0; k < plan->n_regions && good; k++) {
        snprintf(suffix, sizeof suffix, "%u.region", k);
        good =
            write_seed(folder, name, suffix, i->blobs + plan->regions[k].blob,
                       (size_t)plan->regions[k].blob_bytes);
    }
    byi_plan_tables_free(&plan);
    byoc_internal_artifact_close(&a);
    return good;
}

/* Compile a model, and write the artifact and its parts. */
static bool make_artifact(const char *folder, const char *name,
                          const char *model)
{
    const struct byoc_compile_params params = {
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so", .threads = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    bool good = byoc_compile(model, &params, &compiled, &err) == BYOC_OK &&
                byoc_compiled_write(compiled, path, &err) == BYOC_OK;
    if (!good)
        printf("%s: %s\n", model, err.text);
    byoc_compiled_free(&compiled);
    return good && write_parts(folder, name, path);
}

/* --- a model with external weights ---------------------------------------- */

static bool make_external(const char *folder)
{
    Onnx__TensorShapeProto__Dimension n =
        ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    Onnx__TensorShapeProto__Dimension four = n, *dims[] = {&n, &four};
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__ValueInfoProto x = ONNX__VALUE_INFO_PROTO__INIT, y = x;
    Onnx__ValueInfoProto *inputs[] = {&x}, *outputs[] = {&y};
    Onnx__StringStringEntryProto where = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    Onnx__StringStringEntryProto from = where, length = where;
    Onnx__StringStringEntryProto *entries[] = {&where, &from, &length};
    Onnx__TensorProto w = ONNX__TENSOR_PROTO__INIT, *weights[] = {&w};
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes[] = {&node};
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *opsets[] = {&opset};
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    char sum[] = "sum", *in[] = {(char *)"x", (char *)"w"},
         *out[] = {(char *)"y"};
    int64_t size = 4;
    char path[512];
    n.value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    n.dim_param = (char *)"N";
    four.value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    four.dim_value = 4;
    shape.n_dim = 2, shape.dim = dims;
    tensor.has_elem_type = 1, tensor.elem_type = 1, tensor.shape = &shape;
    type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type.tensor_type = &tensor;
    x.name = in[0], x.type = &type, y.name = out[0], y.type = &type;
    where.key = (char *)"location", where.value = (char *)"external.bin";
    from.key = (char *)"offset", from.value = (char *)"64";
    length.key = (char *)"length", length.value = (char *)"16";
    w.name = in[1], w.n_dims = 1, w.dims = &size;
    w.has_data_type = 1, w.data_type = 1;
    w.n_external_data = 3, w.external_data = entries;
    w.has_data_location = 1;
    w.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    node.name = sum, node.op_type = (char *)"Add";
    node.n_input = 2, node.input = in, node.n_output = 1, node.output = out;
    graph.name = sum, graph.n_node = 1, graph.node = nodes;
    graph.n_input = 1, graph.input = inputs;
    graph.n_output = 1, graph.output = outputs;
    graph.n_initializer = 1, graph.initializer = weights;
    opset.has_version = 1, opset.version = 13;
    model.has_ir_version = 1, model.ir_version = 8, model.graph = &graph;
    model.n_opset_import = 1, model.opset_import = opsets;
    static uint8_t packed[4096];
    const size_t bytes = onnx__model_proto__get_packed_size(&model);
    if (bytes > sizeof packed)
        return false;
    onnx__model_proto__pack(&model, packed);
    static const char zeros[4096];
    snprintf(path, sizeof path, "%s/external.bin", folder);
    return fuzz_write(path, zeros, sizeof zeros) &&
           write_seed(folder, "external", "onnx", (const char *)packed, bytes);
}

/* --- texts ---------------------------------------------------------------- */

static bool write_text(const char *folder, const char *name, const char *suffix,
                       const struct byi_text *t)
{
    return write_seed(folder, name, suffix, t->at, t->n);
}

static bool make_patterns(const char *folder)
{
    char name[32];
    bool good = true;
    for (uint32_t i = 0; i < byi_dnnl_n_patterns && good; i++) {
        const char *row = byi_dnnl_patterns[i].pattern;
        snprintf(name, sizeof name, "row%u", i);
        good = write_seed(folder, name, "pattern", row, strlen(row));
    }
    return good;
}

/* Write a seed for every operator, with a value for each of its attributes. */
static bool make_attributes(const char *folder)
{
    static const char *const values[] = {
        [BYI_ATTR_BOOL] = "true",       [BYI_ATTR_INT] = "1",
        [BYI_ATTR_FLOAT] = "0.5",       [BYI_ATTR_STRING] = "\"\"",
        [BYI_ATTR_DTYPE] = "\"int64\"", [BYI_ATTR_INTS] = "[1, 1]"};
    bool good = true;
    for (uint32_t i = 1; i < BYI_N_OPS && good; i++) {
        const struct byi_op *op = byi_op((enum byi_op_id)i);
        struct byi_text t = {0};
        char name[32];
        byi_text_addf(&t, "%s {", op->name);
        for (uint32_t k = 0; k < op->n_attrs; k++) {
            const uint32_t kind = (uint32_t)op->attrs[k].kind;
            const char *value =
                kind < BYI_COUNT(values) ? values[kind] : "[0.5]";
            byi_text_addf(&t, "%s\"%s\": %s", k ? ", " : "", op->attrs[k].name,
                          value ? value : "[]");
        }
        byi_text_addf(&t, "}");
        snprintf(name, sizeof name, "op%u", i);
        good = write_text(folder, name, "attributes", &t);
        byi_text_free(&t);
    }
    return good;
}

/* A text with a constant in the side file. */
static bool make_large(const char *folder)
{
    struct byi_text t = {0}, printed = {0};
    struct byi_module *m = NULL;
    struct byoc_error err;
    char path[512];
    byi_text_addf(&t, "def @main(%%x: Tensor[(20), float32]) {\n"
                      "  add(%%x, Tensor[(20), float32] {");
    for (int i = 0; i < 20; i++)
        byi_text_addf(&t, "%s%d.0", i ? ", " : "", i);
    byi_text_addf(&t, "})\n}\n");
    bool good = byi_parse_module(t.at, t.n, "large", NULL, &m, &err) == BYOC_OK;
    snprintf(path, sizeof path, "%s/large.consts", folder);
    FILE *side = fopen(path, "wb");
    if (good && side)
        byi_print_module(m, &printed, side);
    good = side && fclose(side) == 0 && good && printed.n &&
           write_text(folder, "large", "ir", &printed);
    byi_module_free(&m);
    byi_text_free(&t);
    byi_text_free(&printed);
    return good;
}

/* clang-format off */
static const struct {
    const char *name, *suffix, *text;
} texts[] = {
    {"list", "passes", "FoldConstant,[FuseOps,[EliminateDeadCode]]\nFuseOps.max_depth=4\n"},
    {"dims", "params", "dims: N=4\nwarm: N=1,2,8\n"},
    {"shapes", "params", "shapes: x=3x4\nbackends: dnnl\ncodegen: 1\n"},
    {"values", "params", "dims: N=2\nvalues: x=1.5\nexclude: Add\n"},
    {"lists", "params", "passes: FoldConstant,[FuseOps]\noptions: FuseOps.max_depth=4\ndisable: FuseOps\n"},
    {"rows", "params", "patterns: a.add=add(%x, const %y)\nonly: sum\nstop_after: PartitionGraph\n"},
    {"estimated", "params", "partition_by: 2\nadd_passes: FoldConstant\nrequire: FuseOps\n"},
    {"one", "costs", "{\"format\": \"byoc-costs\", \"version\": 1, \"costs\": [\n{\"key\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"ns\": 12, \"of\": \"a\"}\n]}\n"},
    {"all", "json", "{\"a\": [1, -2.5e3, true, false, null, \"\\u00e4\\n\\ud83d\\ude00\"], \"b\": {\"c\": {}, \"d\": []}}"},
    {"v2", "cgroup", "0::/a/b\n--\n150000 100000\n"},
    {"v1", "cgroup", "4:cpu,cpuacct:/\n1:name=systemd:/x\n--\n250000\n"},
};
/* clang-format on */

static bool make_texts(const char *folder)
{
    for (size_t i = 0; i < BYI_COUNT(texts); i++)
        if (!write_seed(folder, texts[i].name, texts[i].suffix, texts[i].text,
                        strlen(texts[i].text)))
            return false;
    return true;
}

static bool make_plugin(const char *folder)
{
    struct byi_text bytes = {0};
    const bool good = fuzz_read(PLUGIN_DIR "/abi_this.so", &bytes) &&
                      write_text(folder, "this", "plugin", &bytes);
    byi_text_free(&bytes);
    return good;
}

bool fuzz_make_seeds(const char *folder)
{
    static const struct {
        bool (*make)(const char *folder);
        const char *seeds;
    } makers[] = {
        {make_external, "a model with external weights"},
        {make_patterns, "patterns"},
        {make_attributes, "attributes of operators"},
        {make_large, "a text with a large constant"},
        {make_texts, "texts"},
        {make_plugin, "a plug-in"},
    };
    for (size_t i = 0; i < BYI_COUNT(makers); i++)
        if (!makers[i].make(folder)) {
            printf("cannot make the seeds of %s in %s\n", makers[i].seeds,
                   folder);
            return false;
        }
    for (size_t i = 0; i < BYI_COUNT(models); i++)
        if (!make_artifact(folder, models[i].name, models[i].path))
            return false;
    return true;
}
