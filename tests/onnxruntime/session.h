/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: sessions of ONNX Runtime, with and without byoc's provider, for
 * the tests of the provider. Failures end the test.
 */
#ifndef BYI_TESTS_SESSION_H
#define BYI_TESTS_SESSION_H

#include <onnxruntime_c_api.h>

#include "tests/frontend_onnx/models.h"

/* The functions and the environment of ONNX Runtime, from sessions_begin() to
 * sessions_end(). */
extern const OrtApi *ort;
extern OrtEnv *ort_env;

/* Threads of each session. */
extern int session_threads;

/* Load ONNX Runtime from the file `library`, and register the provider, the
 * file `provider`. */
void sessions_begin(const char *library, const char *provider);
/* Unregister the provider and release the environment, after all sessions. */
void sessions_end(void);
/* Whether this ONNX Runtime can run fused nodes in bodies of If, Loop and Scan,
 * which 1.23 cannot. */
bool sessions_have_bodies(void);
/* End the test if the status is an error. */
void must(OrtStatus *status);

/* Options of the provider, or, when they start with "ep.", of the session:
 * pairs of key and value; NULL ends them. NULL instead of the list: no
 * provider. */
typedef const char *const *session_options;
#define WITH(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__, NULL                                                      \
    }
#define NO_OPTIONS ((const char *const[]){NULL})

/* Open a session for a model, the n bytes at `model` or `b`. session_try
 * returns NULL on failure, with the message in `why`. The caller releases the
 * session.
 */
OrtSession *session_try(const void *model, size_t n, session_options options,
                        char why[2048]);
OrtSession *session_open(const void *model, size_t n, session_options options);
OrtSession *session_of(struct build *b, session_options options);

/* An input. Of strings, data is an array of char pointers. */
struct session_value {
    const char *name;
    ONNXTensorElementDataType type;
    uint32_t rank;
    int64_t dims[8];
    const void *data;
};

/* Run with the n_in inputs; out[] gets the first n_out outputs, which the
 * caller releases. Returns NULL, or the message of the failure, which the
 * caller frees. */
char *session_try_run(OrtSession *session, const struct session_value *in,
                      size_t n_in, OrtValue **out, size_t n_out);
/* Check that both sessions give the same results: equal strings and integers,
 * floats within 1e-4. */
void expect_same(OrtSession *reference, OrtSession *byoc,
                 const struct session_value *in, size_t n_in);
/* Check that the model gives the same results with and without the provider,
 * which claims `claimed` of its nodes, of which there are `nodes`. Ends `b`. */
void expect_claimed(struct build *b, const struct session_value *in,
                    size_t n_in, unsigned claimed, unsigned nodes);

/* A model to fill, of opset 17 and com.microsoft 1. */
struct build start(void);

#endif
