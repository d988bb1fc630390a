/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.h: builds JSON from cJSON's nodes in an arena, which frees them.
 * If an allocation fails, control jumps to the guard (guard.h). Keys are not
 * copied and must be valid as long as the tree.
 */
#ifndef BYI_JSON_WRITE_H
#define BYI_JSON_WRITE_H

#include "base.h"

/* New values; `text` is copied. */
struct cJSON *byi_json_object(struct byi_arena *arena);
struct cJSON *byi_json_list(struct byi_arena *arena);
struct cJSON *byi_json_text(struct byi_arena *arena, const char *text);
struct cJSON *byi_json_number(struct byi_arena *arena, double value);
struct cJSON *byi_json_bool(struct byi_arena *arena, bool value);
/* Add the item at the end of an array, or as a member of an object; return it.
 */
struct cJSON *byi_json_append(struct cJSON *list, struct cJSON *item);
struct cJSON *byi_json_add(struct cJSON *object, const char *key,
                           struct cJSON *item);
/* Replace the value of member `key`, if it exists, in an object that was
 * parsed. The member then shares the content of `item`, whose arena must
 * outlive the object. */
void byi_json_replace(struct cJSON *object, const char *key,
                      const struct cJSON *item);
/* A number; or a string of digits if its magnitude exceeds 2^53, since cJSON's
 * numbers are doubles. */
struct cJSON *byi_json_integer(struct byi_arena *arena, int64_t value);
/* {"dtype": "float32", "shape": [1, "N"]} for a tensor type; for a tuple type,
 * the list of its fields. symbol(ctx, dim) returns the name of a symbolic dim,
 * which is copied. */
struct cJSON *byi_json_of_type(struct byi_arena *arena,
                               const struct byi_type *type,
                               const char *(*symbol)(void *, int64_t),
                               void *ctx);

#endif
