/* SPDX-License-Identifier: Apache-2.0 */
/* fast.c: a backend that computes nothing, and therefore is the fastest. */
#define BACKEND "fast"
#define WAIT_US 0.0
#include "timed.h"
