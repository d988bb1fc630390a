/* SPDX-License-Identifier: Apache-2.0 */
/* choosy_compile.c: choosy.c, which refuses when it compiles. */
#define CHOOSY_COMPILES
#include "choosy.c"
