/* SPDX-License-Identifier: Apache-2.0 */
/* status.c: converts statuses between byoc and ONNX Runtime, and writes to the
 * log of a session.
 */
#include "onnxruntime/provider.h"

enum byoc_status byi_ep_status(const OrtApi *ort, OrtStatus *status,
                               struct byoc_error *err)
{
    static const enum byoc_status codes[] = {
        [ORT_OK] = BYOC_EINTERNAL,
        [ORT_FAIL] = BYOC_EINTERNAL,
        [ORT_INVALID_ARGUMENT] = BYOC_EINVAL,
        [ORT_NO_SUCHFILE] = BYOC_EIO,
        [ORT_NOT_IMPLEMENTED] = BYOC_EUNSUPPORTED,
        [ORT_INVALID_GRAPH] = BYOC_EPARSE,
    };
    if (!status)
        return BYOC_OK;
    const OrtErrorCode code = ort->GetErrorCode(status);
    const enum byoc_status result =
        (size_t)code < BYI_COUNT(codes) && codes[code] ? codes[code]
                                                       : BYOC_EINTERNAL;
    byi_fail(err, result, "ONNX Runtime: %.900s", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return result;
}

OrtStatus *byi_ep_fail(const OrtApi *ort, enum byoc_status status,
                       const struct byoc_error *err)
{
    static const OrtErrorCode codes[] = {
        [BYOC_EINVAL] = ORT_INVALID_ARGUMENT,
        [BYOC_EPARSE] = ORT_INVALID_GRAPH,
        [BYOC_ETYPE] = ORT_INVALID_ARGUMENT,
        [BYOC_EUNSUPPORTED] = ORT_NOT_IMPLEMENTED,
        [BYOC_ENOMEM] = ORT_FAIL,
        [BYOC_EIO] = ORT_FAIL,
        [BYOC_EINCOMPATIBLE] = ORT_EP_FAIL,
        [BYOC_EBACKEND] = ORT_EP_FAIL,
        [BYOC_ELIMIT] = ORT_FAIL,
        [BYOC_EINTERNAL] = ORT_EP_FAIL,
        [BYOC_ECANCELLED] = ORT_FAIL,
    };
    char text[sizeof err->text + 32];
    if (status == BYOC_OK)
        return NULL;
    snprintf(text, sizeof text, "byoc: %s",
             *err->text ? err->text : byoc_status_text(status));
    return ort->CreateStatus(
        (size_t)status < BYI_COUNT(codes) ? codes[status] : ORT_FAIL, text);
}

void byi_ep_log(const struct byi_ep *ep, OrtLoggingLevel level, const char *fmt,
                ...)
{
    char text[2048];
    BYI_FORMAT(text, fmt);
    OrtStatus *status = ep->ort->Logger_LogMessage(
        ep->logger, level, text, __FILE__, __LINE__, __func__);
    if (status)
        ep->ort->ReleaseStatus(status);
}
