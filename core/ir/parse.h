/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h: the parser's state, shared by parse*.c only. The parser walks
 * the text once for the heads of functions and once for their bodies, with
 * stacks of its own instead of recursion.
 */
#ifndef BYI_PARSE_H
#define BYI_PARSE_H

#include "core/base/index.h"
#include "lex.h"
#include "text.h"

/* A name that occurs: %x, a source. */
struct byi_pname {
    const char *text; /* NULL: a number */
    uint32_t binding; /* 1 + the newest binding of %text that is visible */
    uint32_t stamp;   /* the parameter list it was last seen in */
    uint32_t source;  /* 1 + the source of this name */
};

/* %name stands for a value of the function that `depth` others surround;
 * value BYI_NO_ID: for that function itself. */
struct byi_pbinding {
    uint32_t name, before; /* before: the binding that this one hides */
    uint32_t depth;
    byi_id value;
};

/* A function whose body is being read. */
struct byi_pscope {
    uint32_t func;
    struct byi_func *f;
    uint32_t n_own;           /* parameters that are no captures */
    uint32_t bindings;        /* how many there were outside */
    byi_id self;              /* the function as a value, BYI_NO_ID: unread */
    BYI_VEC(byi_id) captures; /* values of the scope around */
};

/* A table of pairs: (func, value) -> capture; a type's address -> its size. */
struct byi_ppair {
    uint64_t a, b;
    uint32_t value; /* not 0 */
};
struct byi_ppairs {
    BYI_VEC(struct byi_ppair) all;
    struct byi_index index;
};

struct byi_parser {
    struct byi_lexer lex;
    struct byi_module *m;
    struct byoc_error *err;
    struct byi_arena *scratch;
    const char *side_path;
    struct byi_side *side;
    BYI_VEC(struct byi_pname) names;
    struct byi_index names_by_text;
    BYI_VEC(uint32_t) numbers; /* by number: 1 + index in names */
    uint32_t stamp;
    BYI_VEC(struct byi_pbinding) bindings;
    BYI_VEC(struct byi_pscope) scopes;
    struct byi_ppairs captures, sizes;
    uint32_t n_nodes, n_funcs;
    uint64_t types_size, random_bytes;
};

/* --- parse.c ------------------------------------------------------------ */

/* "(%a: T, Composite="x") -> T" into the function, and its declared result or
 * NULL. The current token is the '('. */
enum byoc_status byi_parse_head(struct byi_parser *p, struct byi_func *f,
                                const struct byi_type **result);
/* Give `f`, whose head is read, the type that its head declares, for calls
 * from before the end of its body. */
void byi_parse_declare(struct byi_parser *p, struct byi_func *f,
                       const struct byi_type *result);
/* A stated limit is exceeded: "too many nodes (limit is 4194304)". */
enum byoc_status byi_parse_limit(struct byi_parser *p,
                                 const struct byi_token *tok, const char *what,
                                 uint64_t limit);

/* --- parse_body.c ------------------------------------------------------- */

/* The body of a function from behind its '{' to its '}'. */
enum byoc_status byi_parse_body(struct byi_parser *p, uint32_t func,
                                const struct byi_type *result);

/* --- parse_names.c ------------------------------------------------------ */

/* The index of a name in p->names. */
uint32_t byi_parse_name(struct byi_parser *p, const struct byi_token *tok);
void byi_parse_bind(struct byi_parser *p, uint32_t name, byi_id value);
/* What `tok` (%name) stands for in the innermost function; it captures what
 * an outer one has. */
enum byoc_status byi_parse_resolve(struct byi_parser *p,
                                   const struct byi_token *tok, byi_id *value);
/* Enter the body of a function, parameters bound, and `self` (BYI_NO_ID: none)
 * as its own name; leave it: its captures move behind its own parameters, and
 * are left in *captures for the caller to free with byi_vec_free. */
enum byoc_status byi_parse_enter(struct byi_parser *p, uint32_t func,
                                 const struct byi_token *tok, uint32_t self);
void byi_parse_leave(struct byi_parser *p, byi_id **captures, uint32_t *n);
/* Count a node that was made; check the size of its type. */
enum byoc_status byi_parse_made(struct byi_parser *p,
                                const struct byi_token *tok,
                                const struct byi_node *node);
/* Count a type that the printer will write. */
enum byoc_status byi_parse_printed(struct byi_parser *p,
                                   const struct byi_token *tok,
                                   const struct byi_type *type);

/* --- parse_types.c ------------------------------------------------------ */

enum byoc_status byi_parse_type(struct byi_parser *p,
                                const struct byi_type **type);
/* "[(1, N), float32" of a tensor type, up to the ']' or ','. */
enum byoc_status byi_parse_shape(struct byi_parser *p,
                                 const struct byi_type **type);
/* The value of an attribute, as the text has it. */
enum byoc_status byi_parse_attr_value(struct byi_parser *p,
                                      struct byi_attr *attr);
/* "@[...]" and "#[...]", in any order, where they stand. */
struct byi_pnotes {
    bool any;
    uint32_t target, region;
    const struct byi_sources *sources; /* or NULL */
};
enum byoc_status byi_parse_notes(struct byi_parser *p,
                                 struct byi_pnotes *notes);

/* --- parse_const.c ------------------------------------------------------ */

/* Does a literal start here? */
bool byi_parse_at_literal(const struct byi_parser *p);
/* Read it; the index of the constant. */
enum byoc_status byi_parse_literal(struct byi_parser *p, uint32_t *constant);

#endif
