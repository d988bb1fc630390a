/* SPDX-License-Identifier: Apache-2.0 */
/* ops_text.c: converts operators on strings. */
#include "frontend_onnx/import.h"

/* clang-format off */
BYI_ONNX_ROWS(onnx_text, BYI_ONNX,
    {"RegexFullMatch", 20, 1, 1, byi_import_convert_same, BYI_OP_TEXT_MATCHES},
    {"StringConcat", 20, 2, 2, byi_import_convert_same, BYI_OP_TEXT_CONCATENATE},
    {"StringNormalizer", 10, 1, 1, byi_import_convert_same, BYI_OP_TEXT_NORMALIZE},
    {"StringSplit", 20, 1, 1, byi_import_convert_same, BYI_OP_TEXT_SPLIT},
    {"TfIdfVectorizer", 9, 1, 1, byi_import_convert_same, BYI_OP_TEXT_TF_IDF})
/* clang-format on */
