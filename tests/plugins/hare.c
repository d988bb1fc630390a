/* SPDX-License-Identifier: Apache-2.0 */
/* hare.c: a backend that computes nothing, and therefore is the fastest. */
#define BACKEND "hare"
#define WAIT_US 0.0
#include "timed.h"
