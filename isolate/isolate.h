/* SPDX-License-Identifier: Apache-2.0 */
/* isolate/isolate.h: a plug-in in a process of its own, while a model is
 * compiled. What the compiler asks of it, matching predicates included, goes
 * there and back as messages; nothing of the library is ever mapped here. Where
 * the process dies, or takes too long, the plug-in has fallen: it takes nothing
 * any more, and the model is compiled again without it.
 */
#ifndef BYI_ISOLATE_H
#define BYI_ISOLATE_H

#include "runtime/internal.h"

struct byi_isolate_limits {
    double seconds; /* for one answer; 0: 10 */
    uint64_t bytes; /* of address space beyond what byoc has; 0: 4 GiB */
};

/* As byoc_internal_plugin_open, in a process of its own; load() there builds
 * the region and drops it again, and nothing can be run. Calls: one thread at a
 * time. One that falls while it is opened is there, without rows, by the name
 * that its file has. */
enum byoc_status byi_isolate_open(const char *path, uint32_t threads,
                                  const struct byi_isolate_limits *limits,
                                  struct byi_plugin **plugin,
                                  struct byoc_error *err);
/* Why it fell; NULL: it did not. Lives as long as the plug-in. */
const char *byi_isolate_fall(const struct byi_plugin *plugin);
/* Call a plug-in that fell before it said its name so, once; whether it is
 * one. `name` outlives it. */
bool byi_isolate_take_for(struct byi_plugin *plugin, const char *name);
/* An extension of a region that is loaded there: the library that has its code,
 * as a file in memory. Between byoc and that process; plug-ins never see it. */
enum { BYI_ISOLATE_LIBRARY = 0xffff };
struct byi_isolate_library {
    struct byoc_ext head;
    const struct byi_text *file;
};
/* End the process. */
void byi_isolate_close(struct byi_plugin **plugin);

/* --- between isolate.c and isolate_child.c -------------------------------- */

/* What messages are. Requests are answered by REPLY; until then the plug-in may
 * send lines for the log, and ask about the match that it looks at, which is
 * answered by REPLY as well. */
enum byi_isolate_op {
    BYI_ISOLATE_REPLY,
    BYI_ISOLATE_LOG,
    BYI_ISOLATE_ASK,  /* an enum byi_isolate_ask, an index, a name */
    BYI_ISOLATE_OPEN, /* sent by nobody: the process begins with its reply */
    BYI_ISOLATE_ACCEPT,
    BYI_ISOLATE_PROBE,
    BYI_ISOLATE_LAYOUT,
    BYI_ISOLATE_COST,
    BYI_ISOLATE_COMPILE,
    BYI_ISOLATE_LOAD,
    BYI_ISOLATE_N_OPS
};
extern const char *const byi_isolate_names[BYI_ISOLATE_N_OPS];

/* Accessors of struct byoc_host. */
enum byi_isolate_ask {
    BYI_ASK_TYPE,
    BYI_ASK_CONST,
    BYI_ASK_N_OPS,
    BYI_ASK_OP,
    BYI_ASK_OP_TYPE,
    BYI_ASK_FIND,
    BYI_ASK_INTS,
    BYI_ASK_FLOATS,
    BYI_ASK_STRINGS,
    BYI_ASK_FLOAT,
    BYI_ASK_STRING,
    BYI_ASK_SAY,
    BYI_ASK_SHOW,
    BYI_ASK_SHOW_OP,
    BYI_N_ASKS
};

/* What a backend can be asked, in the reply to OPEN. */
enum {
    BYI_ISOLATE_HAS_PROBE = 1,
    BYI_ISOLATE_HAS_LAYOUT = 2,
    BYI_ISOLATE_HAS_COST = 4,
    BYI_ISOLATE_HAS_COMPILE = 8
};

/* The process: open the plug-in, answer on `fd`, never return. */
_Noreturn void byi_isolate_serve(const char *path, uint32_t threads, int fd,
                                 uint64_t bytes);

#endif
