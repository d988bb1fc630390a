/* SPDX-License-Identifier: Apache-2.0 */
/* choosy_compile.c: choosy.c with a compile() that refuses. */
#define CHOOSY_COMPILES
#include "choosy.c"
