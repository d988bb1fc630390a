/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.cpp: the operators SentencepieceTokenizer and SentencepieceDecoder of
 * ONNX Runtime's extensions, with the SentencePiece library (docs/custom.md).
 *
 * The attribute `model` of both contains the file that SentencePiece's trainer
 * writes. No exception leaves this file.
 */
#include <byoc/custom.h>

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace
{

using sentencepiece::SentencePieceProcessor;

byoc_fail *invalid(const byoc_host *host, const std::string &why)
{
    return host->fail(host->ctx, BYOC_FAIL_INVALID, why.c_str());
}

/* Call `body`, and convert exceptions, such as bad_alloc, to failures. */
template <class Body> byoc_fail *guarded(const byoc_host *host, Body body)
{
    try {
        return body();
    } catch (const std::exception &e) {
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, e.what());
    }
}

uint64_t count(const byoc_view &x)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < x.rank; d++)
        n *= static_cast<uint64_t>(x.dims[d]);
    return n;
}

/* --- the model ------------------------------------------------------------ */

byoc_fail *make(const byoc_host *host, const byoc_operator_call *call,
                void **made)
{
    return guarded(host, [&]() -> byoc_fail * {
        const byoc_view &model = call->tensors[0];
        auto processor = std::make_unique<SentencePieceProcessor>();
        const auto status = processor->LoadFromSerializedProto(
            {static_cast<const char *>(model.data), model.bytes});
        if (!status.ok())
            return invalid(host,
                           "attribute 'model' is not a SentencePiece model: " +
                               status.ToString());
        *made = processor.release();
        return nullptr;
    });
}

void drop(const byoc_host *, void *made)
{
    delete static_cast<SentencePieceProcessor *>(made);
}

/* --- SentencepieceTokenizer ----------------------------------------------- */

enum { TEXT, NBEST_SIZE, ALPHA, ADD_BOS, ADD_EOS, REVERSE, FAIRSEQ };

/* The value of a bool input; false if it is absent. */
bool flag(const byoc_operator_call *call, uint32_t i)
{
    return i < call->n_inputs && call->inputs[i].dtype == BYOC_BOOL &&
           call->inputs[i].bytes > 0 &&
           *static_cast<const uint8_t *>(call->inputs[i].data) != 0;
}

/* The tokens of all strings, and the index of each string's first token. */
struct Tokens {
    std::vector<int> ids;
    std::vector<int64_t> begin;
};

byoc_fail *tokenize(const byoc_host *host, const byoc_operator_call *call,
                    Tokens *to)
{
    const auto *p = static_cast<const SentencePieceProcessor *>(call->made);
    const auto *texts =
        static_cast<const char *const *>(call->inputs[TEXT].data);
    const uint64_t n = count(call->inputs[TEXT]);
    for (uint64_t i = 0; i < n; i++) {
        std::vector<int> ids;
        const auto status = p->Encode(texts[i], &ids);
        if (!status.ok())
            return invalid(host, status.ToString());
        if (flag(call, REVERSE))
            std::reverse(ids.begin(), ids.end());
        to->begin.push_back(static_cast<int64_t>(to->ids.size()));
        if (flag(call, ADD_BOS))
            to->ids.push_back(p->bos_id());
        to->ids.insert(to->ids.end(), ids.begin(), ids.end());
        if (flag(call, ADD_EOS))
            to->ids.push_back(p->eos_id());
    }
    to->begin.push_back(static_cast<int64_t>(to->ids.size()));
    return nullptr;
}

byoc_fail *check(const byoc_host *host, const byoc_operator_call *call)
{
    const auto *nbest =
        static_cast<const int64_t *>(call->inputs[NBEST_SIZE].data);
    if (call->inputs[TEXT].dtype != BYOC_STRING)
        return invalid(host, "its first input has no strings");
    if (call->inputs[NBEST_SIZE].dtype != BYOC_I64)
        return invalid(host, "nbest_size is not int64");
    if (nbest && call->inputs[NBEST_SIZE].bytes && (*nbest < 0 || *nbest > 1))
        return invalid(host, "nbest_size asks for a random sample; give 0");
    if (flag(call, FAIRSEQ))
        return invalid(host, "fairseq numbers are not supported");
    return nullptr;
}

bool all_known(const byoc_operator_call *call)
{
    for (uint32_t i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].dtype != BYOC_NONE && !call->inputs[i].data)
            return false;
    return call->made != nullptr;
}

/* The shapes: tokens (number of tokens), instance_indices (strings + 1). */
byoc_fail *tokenizer_shape(const byoc_host *host,
                           const byoc_operator_call *call)
{
    return guarded(host, [&]() -> byoc_fail * {
        if (byoc_fail *fail = check(host, call))
            return fail;
        for (uint32_t i = 0; i < call->n_results; i++) {
            call->results[i].dtype = i ? BYOC_I64 : BYOC_I32;
            call->results[i].rank = 1;
            call->results[i].dims[0] = BYOC_SIZE_UNKNOWN;
        }
        if (!all_known(call))
            return nullptr;
        Tokens tokens;
        if (byoc_fail *fail = tokenize(host, call, &tokens))
            return fail;
        call->results[0].dims[0] = static_cast<int64_t>(tokens.ids.size());
        if (call->n_results > 1)
            call->results[1].dims[0] =
                static_cast<int64_t>(tokens.begin.size());
        return nullptr;
    });
}

byoc_fail *tokenizer_run(const byoc_host *host, const byoc_operator_call *call)
{
    return guarded(host, [&]() -> byoc_fail * {
        Tokens tokens;
        if (byoc_fail *fail = tokenize(host, call, &tokens))
            return fail;
        std::copy(tokens.ids.begin(), tokens.ids.end(),
                  static_cast<int32_t *>(call->results[0].data));
        if (call->n_results > 1)
            std::copy(tokens.begin.begin(), tokens.begin.end(),
                      static_cast<int64_t *>(call->results[1].data));
        return nullptr;
    });
}

/* --- SentencepieceDecoder ------------------------------------------------- */

/* The shape: one string for all ids. */
byoc_fail *decoder_shape(const byoc_host *host, const byoc_operator_call *call)
{
    if (call->inputs[0].dtype != BYOC_I64)
        return invalid(host, "its input is not int64");
    if (flag(call, 1))
        return invalid(host, "fairseq numbers are not supported");
    call->results[0].dtype = BYOC_STRING;
    call->results[0].rank = 1;
    call->results[0].dims[0] = 1;
    return nullptr;
}

byoc_fail *decoder_run(const byoc_host *host, const byoc_operator_call *call)
{
    return guarded(host, [&]() -> byoc_fail * {
        const auto *p = static_cast<const SentencePieceProcessor *>(call->made);
        const auto *x = static_cast<const int64_t *>(call->inputs[0].data);
        std::vector<int> ids;
        for (uint64_t i = 0; i < count(call->inputs[0]); i++) {
            if (x[i] < 0 || x[i] >= p->GetPieceSize())
                return invalid(host, "the id " + std::to_string(x[i]) +
                                         " is not in the vocabulary of " +
                                         std::to_string(p->GetPieceSize()));
            ids.push_back(static_cast<int>(x[i]));
        }
        std::string text;
        const auto status = p->Decode(ids, &text);
        if (!status.ok())
            return invalid(host, status.ToString());
        text.resize(std::strlen(text.c_str())); /* byoc's strings end at NUL */
        char *to = call->text(call, text.size());
        if (!to)
            return host->fail(host->ctx, BYOC_FAIL_RESOURCE, nullptr);
        std::memcpy(to, text.c_str(), text.size() + 1);
        static_cast<const char **>(call->results[0].data)[0] = to;
        return nullptr;
    });
}

/* --- the table -------------------------------------------------------------
 */

const byoc_attr_row attrs[] = {{"model", BYOC_ATTR_BYTES, 0, nullptr}};

/* Exporters write one of two domains. */
const char contrib[] = "ai.onnx.contrib",
           extensions[] = "com.microsoft.extensions";

byoc_operator tokenizer_in(const char *domain)
{
    byoc_operator op = {};
    op.struct_size = sizeof op;
    op.since = 1;
    op.domain = domain;
    op.name = "SentencepieceTokenizer";
    op.min_inputs = 6;
    op.max_inputs = 7;
    op.min_results = 1;
    op.max_results = 2;
    op.n_attrs = 1;
    op.attrs = attrs;
    op.make = make;
    op.drop = drop;
    op.shape = tokenizer_shape;
    op.run = tokenizer_run;
    return op;
}

byoc_operator decoder_in(const char *domain)
{
    byoc_operator op = tokenizer_in(domain);
    op.name = "SentencepieceDecoder";
    op.min_inputs = 1;
    op.max_inputs = 2;
    op.max_results = 1;
    op.shape = decoder_shape;
    op.run = decoder_run;
    return op;
}

const byoc_operator rows[] = {tokenizer_in(contrib), tokenizer_in(extensions),
                              decoder_in(contrib), decoder_in(extensions)};
const byoc_operator *const operators[] = {&rows[0], &rows[1], &rows[2],
                                          &rows[3]};

} // namespace

BYOC_OPERATORS_DEFINE("tokens", "1.0", operators)
