/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.cpp: the operators SentencepieceTokenizer and SentencepieceDecoder of
 * ONNX Runtime's extensions, with the SentencePiece library (docs/custom.md).
 *
 * Inputs and outputs are those of version 0.10 of the extensions:
 *
 *   SentencepieceTokenizer(text, nbest_size, alpha, add_bos, add_eos, reverse,
 *                          fairseq or none)
 *       -> tokens, instance_indices, token_indices
 *   SentencepieceDecoder(ids, fairseq or none) -> text
 *
 * nbest_size and alpha have no effect there, and none here. The attribute
 * `model` of both holds the file that SentencePiece's trainer writes, as it is
 * or in base64. No exception leaves this file.
 */
#include <byoc/custom.h>

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
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

/* The number of elements. */
uint64_t count(const byoc_view &x)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < x.rank; d++)
        n *= static_cast<uint64_t>(x.dims[d]);
    return n;
}

/* --- the model ------------------------------------------------------------ */

/* The value of a base64 digit; -1 for other characters. */
int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? std::strchr(digits, c) : nullptr;
    return at ? static_cast<int>(at - digits) : -1;
}

/* The bytes that a base64 text with or without line ends encodes; empty if the
 * text is not base64. */
std::string from_base64(std::string_view text)
{
    std::string bytes;
    uint32_t bits = 0;
    int n = 0;
    for (const char c : text) {
        if (c == '=')
            break;
        if (c == '\n' || c == '\r')
            continue;
        const int value = digit(c);
        if (value < 0)
            return {};
        bits = bits << 6 | static_cast<uint32_t>(value);
        n += 6;
        if (n >= 8)
            bytes.push_back(static_cast<char>(bits >> (n -= 8)));
    }
    return bytes;
}

/* Load the model of the attribute; *made is the processor, which drop() frees.
 */
byoc_fail *make(const byoc_host *host, const byoc_operator_call *call,
                void **made)
{
    return guarded(host, [&]() -> byoc_fail * {
        const byoc_view &model = call->tensors[0];
        const std::string_view bytes(static_cast<const char *>(model.data),
                                     model.bytes);
        const std::string decoded = from_base64(bytes);
        auto processor = std::make_unique<SentencePieceProcessor>();
        const auto status = processor->LoadFromSerializedProto(
            decoded.empty() ? bytes : std::string_view(decoded));
        if (!status.ok())
            return invalid(
                host, "attribute 'model': found " +
                          std::to_string(model.bytes) +
                          " other bytes, expected a SentencePiece model: " +
                          status.ToString());
        *made = processor.release();
        return nullptr;
    });
}

void drop(const byoc_host *, void *made)
{
    delete static_cast<SentencePieceProcessor *>(made);
}

/* --- fairseq ---------------------------------------------------------------
 *
 * Models such as XLM-RoBERTa number tokens as fairseq does:
 *
 *                  0      1      2     3      4 ...
 *   SentencePiece  <unk>  <s>    </s>  first  second
 *   fairseq        <s>    <pad>  </s>  <unk>  first
 */
int to_fairseq(int id)
{
    return id == 0 ? 3 : id == 1 ? 0 : id == 2 ? 2 : id + 1;
}

int64_t from_fairseq(int64_t id)
{
    return id == 3 ? 0 : id == 0 ? 1 : id == 2 ? 2 : id - 1;
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

/* The tokens of all strings: their ids; the byte of its string at which each
 * begins; and the index at which the tokens of each string begin. */
struct Tokens {
    std::vector<int32_t> ids, bytes;
    std::vector<int64_t> begin;

    void add(int id, size_t byte)
    {
        ids.push_back(id);
        bytes.push_back(static_cast<int32_t>(byte));
    }
};

/* Add the tokens of one string to *to: bos if requested, its pieces, eos if
 * requested. */
byoc_fail *tokenize_one(const byoc_host *host, const byoc_operator_call *call,
                        const char *text, Tokens *to)
{
    const auto *p = static_cast<const SentencePieceProcessor *>(call->made);
    sentencepiece::ImmutableSentencePieceText pieces;
    const auto status = p->Encode(text, pieces.mutable_proto());
    if (!status.ok())
        return invalid(host, status.ToString());
    if (flag(call, ADD_BOS))
        to->add(p->bos_id(), 0);
    for (const auto &piece : pieces.pieces())
        to->add(static_cast<int>(piece.id()), piece.begin());
    if (flag(call, ADD_EOS))
        to->add(p->eos_id(), std::strlen(text));
    return nullptr;
}

/* Add the tokens of all strings to *to, reversed or renumbered if requested. */
byoc_fail *tokenize(const byoc_host *host, const byoc_operator_call *call,
                    Tokens *to)
{
    const auto *texts =
        static_cast<const char *const *>(call->inputs[TEXT].data);
    const uint64_t n = count(call->inputs[TEXT]);
    to->begin.push_back(0);
    for (uint64_t i = 0; i < n; i++) {
        if (byoc_fail *fail = tokenize_one(host, call, texts[i], to))
            return fail;
        if (flag(call, REVERSE)) {
            std::reverse(to->ids.begin() + to->begin.back(), to->ids.end());
            std::reverse(to->bytes.begin() + to->begin.back(), to->bytes.end());
        }
        to->begin.push_back(static_cast<int64_t>(to->ids.size()));
    }
    if (flag(call, FAIRSEQ))
        std::transform(to->ids.begin(), to->ids.end(), to->ids.begin(),
                       to_fairseq);
    return nullptr;
}

byoc_fail *check(const byoc_host *host, const byoc_operator_call *call)
{
    if (call->inputs[TEXT].dtype != BYOC_STRING)
        return invalid(host, "input 0: found another type, expected strings");
    if (call->inputs[NBEST_SIZE].dtype != BYOC_I64)
        return invalid(host, "nbest_size: found another type, expected int64");
    if (flag(call, FAIRSEQ) && flag(call, REVERSE))
        return invalid(host, "found fairseq numbers in reverse, expected at "
                             "most one of fairseq and reverse");
    return nullptr;
}

/* Whether the elements of all inputs are known. */
bool are_inputs_known(const byoc_operator_call *call)
{
    for (uint32_t i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].dtype != BYOC_NONE && !call->inputs[i].data)
            return false;
    return call->made != nullptr;
}

/* Set the shapes of tokens and token_indices, (tokens), and of
 * instance_indices, (strings + 1). */
byoc_fail *tokenizer_shape(const byoc_host *host,
                           const byoc_operator_call *call)
{
    return guarded(host, [&]() -> byoc_fail * {
        if (byoc_fail *fail = check(host, call))
            return fail;
        for (uint32_t i = 0; i < call->n_results; i++) {
            call->results[i].dtype = i == 1 ? BYOC_I64 : BYOC_I32;
            call->results[i].rank = 1;
            call->results[i].dims[0] = BYOC_SIZE_UNKNOWN;
        }
        if (!are_inputs_known(call))
            return nullptr;
        Tokens tokens;
        if (byoc_fail *fail = tokenize(host, call, &tokens))
            return fail;
        for (uint32_t i = 0; i < call->n_results; i++)
            call->results[i].dims[0] = static_cast<int64_t>(
                i == 1 ? tokens.begin.size() : tokens.ids.size());
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
        if (call->n_results > 2)
            std::copy(tokens.bytes.begin(), tokens.bytes.end(),
                      static_cast<int32_t *>(call->results[2].data));
        return nullptr;
    });
}

/* --- SentencepieceDecoder ------------------------------------------------- */

/* The input is (n) or (1, n) ids, the result one string. */
byoc_fail *decoder_shape(const byoc_host *host, const byoc_operator_call *call)
{
    if (call->inputs[0].dtype != BYOC_I64)
        return invalid(host, "input 0: found another type, expected int64");
    const byoc_view &ids = call->inputs[0];
    if (ids.rank != 1 && (ids.rank != 2 || ids.dims[0] != 1))
        return invalid(host,
                       "input 0: found another shape, expected (n) or (1, n)");
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
            const int64_t id =
                x[i] >= 0 && flag(call, 1) ? from_fairseq(x[i]) : x[i];
            if (id < 0 || id >= p->GetPieceSize())
                return invalid(host, "input 0: found the id " +
                                         std::to_string(x[i]) +
                                         ", expected one of the " +
                                         std::to_string(p->GetPieceSize()) +
                                         " tokens of the model");
            ids.push_back(static_cast<int>(id));
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

/* Exporters write one of these domains. */
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
    op.max_results = 3;
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
