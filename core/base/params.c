/* SPDX-License-Identifier: Apache-2.0 */
/* params.c: reads structs of callers that were compiled against another version
 * of the headers. struct_size says which members the caller's struct has.
 */
#include "base.h"

#include <string.h>

/* a larger struct_size is taken for memory that the caller did not initialise
 */
enum { MAX_BYTES = 4096 };

enum byoc_status byi_params_read(void *params,
                                 const struct byi_params_size *known,
                                 const void *input, struct byoc_error *err)
{
    uint32_t size = 0;

    memset(params, 0, known->bytes);
    memcpy((char *)params + known->offset, &known->bytes, sizeof known->bytes);
    if (!input)
        return BYOC_OK;
    memcpy(&size, (const char *)input + known->offset, sizeof size);
    if (size == 0)
        size = known->first;
    if (size < known->first)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: struct_size is %u, expected at least %u; set it "
                        "to the sizeof of the struct",
                        known->name, size, known->first);
    if (size > MAX_BYTES)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: struct_size is %u, expected at most %d; set the "
                        "struct to zero, then struct_size to its sizeof",
                        known->name, size, MAX_BYTES);
    for (uint32_t i = known->bytes; i < size; i++)
        if (((const char *)input)[i])
            return byi_fail(err, BYOC_EINVAL,
                            "%s: byte %u is set, expected zeros after the %u "
                            "bytes that byoc %s knows; use a newer libbyoc, or "
                            "leave newer members zero",
                            known->name, i, known->bytes, byoc_version());
    memcpy(params, input, size < known->bytes ? size : known->bytes);
    memcpy((char *)params + known->offset, &known->bytes, sizeof known->bytes);
    return BYOC_OK;
}

enum byoc_status byi_reserved_check(uint32_t value, struct byoc_error *err)
{
    if (value == 0)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL, "reserved: found %u, expected 0", value);
}

enum byoc_status byi_enum_check(const char *name, uint32_t value, uint32_t last,
                                struct byoc_error *err)
{
    if (value <= last)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL, "%s: found %u, expected 0 to %u", name,
                    value, last);
}

enum byoc_status byi_load_params_read(struct byoc_load_params *params,
                                      const struct byoc_load_params *input,
                                      struct byoc_error *err)
{
    BYI_TRY(byi_params_read(
        params, BYI_PARAMS_SIZE(byoc_load_params, parallel_ctx), input, err));
    if (!params->allocate != !params->release)
        return byi_fail(err, BYOC_EINVAL,
                        "allocate and release: found one of them, expected "
                        "both or neither");
    if (params->runners > 4096)
        return byi_fail(err, BYOC_EINVAL,
                        "runners: found %u, expected at most 4096",
                        params->runners);
    return byi_enum_check("log_severity", params->log_severity, BYOC_ERROR,
                          err);
}
