/* SPDX-License-Identifier: Apache-2.0 */
/* hare.c: faster than anything that computes. */
#define VENDOR "hare"
#define WAIT_US 0.0
#include "timed.h"
