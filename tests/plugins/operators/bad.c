/* SPDX-License-Identifier: Apache-2.0 */
/* bad.c: a plug-in whose operator breaks the rule of byoc/custom.h that BAD_...
 * names.
 */
#include <byoc/custom.h>

#pragma GCC diagnostic ignored "-Woverride-init"

static struct byoc_fail *shape(const struct byoc_host *host,
                               const struct byoc_operator_call *call)
{
    (void)host, (void)call;
    return NULL;
}

static inline void drop(const struct byoc_host *host, void *made)
{
    (void)host, (void)made;
}

static const struct byoc_attr_row attrs[] = {
    {"a", BYOC_ATTR_INT, 0, "1"},
#if defined(BAD_kind)
    {"b", 99, 0, "1"},
#elif defined(BAD_duplicate)
    {"a", BYOC_ATTR_INT, 0, "1"},
#elif defined(BAD_json)
    {"b", BYOC_ATTR_INTS, 0, "[1,"},
#elif defined(BAD_type)
    {"b", BYOC_ATTR_INT, 0, "\"x\""},
#else
    {"b", BYOC_ATTR_INT, 0, "1"},
#endif
};

static const struct byoc_operator bad = {
    .struct_size = sizeof bad,
    .since = 1,
    .domain = "com.example",
    .name = "Bad",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_results = 1,
    .max_results = 1,
    .n_attrs = 2,
    .attrs = attrs,
    .shape = shape,
    .run = shape,
#if defined(BAD_size)
    .struct_size = 8,
#elif defined(BAD_name)
    .name = "",
#elif defined(BAD_run)
    .run = NULL,
#elif defined(BAD_make)
    .drop = drop,
#elif defined(BAD_inputs)
    .max_inputs = 65,
#elif defined(BAD_results)
    .min_results = 0,
#elif defined(BAD_table)
    .attrs = NULL,
#endif
};

static const struct byoc_operator *const operators[] = {&bad};

BYOC_OPERATORS_DEFINE("bad", "1", operators)
