/* SPDX-License-Identifier: Apache-2.0 */
/* ops_text.c: operators on strings. */
#include "frontend_onnx/import.h"

#include <string.h>

static struct byi_attr some_strings(struct byi_import *o, const char *name)
{
    struct byi_attr a = {.name = name, .kind = BYI_ATTR_STRINGS};

    a.strings = byi_o_strings(o, name, &a.n);
    return a;
}

/* StringNormalizer(x, stopwords=["a"]) -> text.normalize(%x, stopwords=["a"])
 */
static void convert_normalizer(struct byi_import *o)
{
    const struct byi_attr attrs[] = {
        A_STRING("case", byi_o_string(o, "case_change_action", "NONE")),
        A_BOOL("case_sensitive", byi_o_int(o, "is_case_sensitive", 0) != 0),
        A_STRING("locale", byi_o_string(o, "locale", "")),
        some_strings(o, "stopwords"),
    };

    o->out[0] = byi_o_emit(o, BYI_OP_TEXT_NORMALIZE, ARGS(byi_o_in(o, 0)),
                           BYI_N(attrs), attrs);
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"StringNormalizer", 10, 1, 1, convert_normalizer, BYI_OP_NONE},
    {"TfIdfVectorizer", 9, 1, 1, byi_o_convert_same, BYI_OP_TEXT_TF_IDF},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_text = {BYI_ONNX, rows, BYI_COUNT(rows)};
