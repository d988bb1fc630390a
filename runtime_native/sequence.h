/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h: calls of recurrent operators, as sequence.c reads them for
 * recurrent.c. */
#ifndef BYI_SEQUENCE_H
#define BYI_SEQUENCE_H

#include "kernel.h"

/* A call of nn.rnn, nn.gru or nn.lstm with its operands by name; absent
 * operands are NULL. Of the results only y_c may be NULL, for operators without
 * a cell state. */
struct byi_sequence {
    struct byi_recurrent r;
    enum byi_op_id op;
    bool batch_first;
    bool linear_before_reset, input_forget;
    double clip;
    int64_t time, batch, input, hidden;
    const struct byi_tensor *x, *weights, *recurrent, *bias, *lengths;
    const struct byi_tensor *initial_h, *initial_c, *peepholes;
    struct byi_tensor *y, *y_h, *y_c;
};
/* Read the call's attributes and operands; *s points into the call. */
void byi_sequence_read(const struct byi_call *call, struct byi_sequence *s);
/* Check that no length is negative or larger than `time`. Errors: BYOC_EINVAL.
 */
enum byoc_status byi_sequence_check(const struct byi_sequence *s,
                                    const struct byi_call *call,
                                    struct byoc_error *err);
/* Number of steps of sequence n. */
static inline int64_t byi_sequence_length(const struct byi_sequence *s,
                                          int64_t n)
{
    return s->lengths ? ((const int32_t *)s->lengths->data)[n] : s->time;
}
/* Offsets of the first element at time t, of sequence n, in direction d: in x,
 * in y, and in the states. */
static inline int64_t byi_sequence_x(const struct byi_sequence *s, int64_t t,
                                     int64_t n)
{
    return (s->batch_first ? n * s->time + t : t * s->batch + n) * s->input;
}
static inline int64_t byi_sequence_y(const struct byi_sequence *s, int64_t d,
                                     int64_t t, int64_t n)
{
    const int64_t directions = s->r.directions;
    return (s->batch_first ? (n * s->time + t) * directions + d
                           : (t * directions + d) * s->batch + n) *
           s->hidden;
}
static inline int64_t byi_sequence_state(const struct byi_sequence *s,
                                         int64_t d, int64_t n)
{
    return (s->batch_first ? n * s->r.directions + d : d * s->batch + n) *
           s->hidden;
}

#endif
