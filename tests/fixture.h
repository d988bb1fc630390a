/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fixture.h: compiles a model from the text form to an image in memory,
 * as the pipeline does.
 */
#ifndef BYI_TESTS_FIXTURE_H
#define BYI_TESTS_FIXTURE_H

#include "codegen_json/codegen_json.h"

/* A compiled model. `image` refers to the other members. */
struct fixture {
    struct byi_module *m;
    struct byi_arena *arena;
    struct byi_plan plan;
    struct byi_text blobs, manifest;
    struct byi_image image;
};

/* Compile the module with the text `ir`. Functions with Compiler become
 * regions; the manifest lists each of their backends with version "1", compat
 * "BACKEND-1". After a failure there is nothing to close. */
enum byoc_status fixture_open(struct fixture *fixture, const char *ir,
                              struct byoc_error *err);
/* The same for a module, which the fixture owns from now on, also on failure.
 * Sets *m to NULL. */
enum byoc_status fixture_open_module(struct fixture *fixture,
                                     struct byi_module **m,
                                     struct byoc_error *err);
/* Free what the fixture owns. */
void fixture_close(struct fixture *fixture);

/* Run `state` on random inputs that depend on `seed`, and compare the outputs
 * with the interpreter's. If `caller_memory`, this function allocates the
 * outputs, otherwise they are in the state. Returns the run's error,
 * BYOC_EINTERNAL if an output differs, or BYOC_EUNSUPPORTED for an input type
 * that has no random values. */
enum byoc_status fixture_run(struct fixture *fixture, struct byoc_state *state,
                             uint64_t seed, bool caller_memory,
                             struct byoc_error *err);

#endif
