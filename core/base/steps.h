/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h: floats that are integers times a step, as dequantised weights are.
 */
#ifndef BYI_STEPS_H
#define BYI_STEPS_H

#include "base.h"

/* Find the largest step of which the n floats, `stride` apart, are integers up
 * to 255, bit for bit. Writes the step and the n integers. Tries `guess` first.
 * False if there is none. */
bool byi_find_step(const float *at, int64_t n, int64_t stride, float guess,
                   float *step, int16_t *integers);

#endif
