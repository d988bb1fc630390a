/* SPDX-License-Identifier: Apache-2.0 */
/* ops_text.c: converts operators on strings. */
#include "frontend_onnx/import.h"

#include <string.h>

/* Returns the node's attribute `name`, strings, as an attribute of the IR. */
static struct byi_attr read_strings(struct byi_import *o, const char *name)
{
    struct byi_attr a = {.name = name, .kind = BYI_ATTR_STRINGS};

    a.strings = byi_import_strings(o, name, &a.n);
    return a;
}

/* StringNormalizer(x, stopwords=["a"]) -> text.normalize(%x, stopwords=["a"])
 */
static void convert_normalizer(struct byi_import *o)
{
    const struct byi_attr attrs[] = {
        A_STRING("case", byi_import_string(o, "case_change_action", "NONE")),
        A_BOOL("case_sensitive",
               byi_import_int(o, "is_case_sensitive", 0) != 0),
        A_STRING("locale", byi_import_string(o, "locale", "")),
        read_strings(o, "stopwords"),
    };

    o->out[0] = byi_import_emit(o, BYI_OP_TEXT_NORMALIZE,
                                ARGS(byi_import_in(o, 0)), BYI_N(attrs), attrs);
}

static void convert_split(struct byi_import *o)
{
    const int64_t most = byi_import_int(o, "maxsplit", INT32_MAX);
    const byi_id both = byi_import_emit(
        o, BYI_OP_TEXT_SPLIT, ARGS(byi_import_in(o, 0)),
        ATTRS(A_STRING("delimiter", byi_import_string(o, "delimiter", "")),
              AN_INT("maxsplit", most)));

    o->out[0] = byi_import_get(o, both, 0);
    o->out[1] = byi_import_get(o, both, 1);
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"RegexFullMatch", 20, 1, 1, byi_import_convert_same, BYI_OP_TEXT_MATCHES},
    {"StringConcat", 20, 2, 2, byi_import_convert_same, BYI_OP_TEXT_CONCATENATE},
    {"StringNormalizer", 10, 1, 1, convert_normalizer, BYI_OP_NONE},
    {"StringSplit", 20, 1, 1, convert_split, BYI_OP_NONE},
    {"TfIdfVectorizer", 9, 1, 1, byi_import_convert_same, BYI_OP_TEXT_TF_IDF},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_text = {BYI_ONNX, rows, BYI_COUNT(rows)};
