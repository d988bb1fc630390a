/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h: the parser's state, shared by parse*.c only. The parser reads the
 * text once for the signatures of functions and once for their bodies, with
 * explicit stacks instead of recursion. Functions that return a status fail
 * with BYOC_EPARSE, BYOC_ETYPE or BYOC_ELIMIT, and a message in the parser's
 * err.
 */
#ifndef BYI_PARSE_H
#define BYI_PARSE_H

#include "core/base/index.h"
#include "lex.h"
#include "text.h"

/* A name in the text: %x, or a source. */
struct byi_parsed_name {
    const char *text; /* NULL: a number */
    uint32_t binding; /* 1 + the newest binding of %text that is visible */
    uint32_t stamp;   /* the last parameter list that contains it */
    uint32_t source;  /* 1 + the source with this name */
};

/* %name stands for a value of the function at nesting depth `depth`; value
 * BYI_NO_ID: for that function itself. */
struct byi_parse_binding {
    uint32_t name, before; /* before: the binding that this one hides */
    uint32_t depth;
    byi_id value;
};

/* A function whose body is being read. */
struct byi_parse_scope {
    uint32_t func;
    struct byi_func *f;
    uint32_t n_declared;      /* parameters that are not captures */
    uint32_t bindings;        /* number of bindings outside */
    byi_id self;              /* the function as a value; BYI_NO_ID: not used */
    BYI_VEC(byi_id) captures; /* values of the enclosing scope */
};

/* A table of pairs: (func, value) -> capture; a type's address -> its size. */
struct byi_parse_pair {
    uint64_t a, b;  /* the key; b is 0 for a type */
    uint32_t value; /* not 0 */
};
struct byi_parse_pairs {
    BYI_VEC(struct byi_parse_pair) pairs;
    struct byi_index index;
};

/* The state of parsing a module. */
struct byi_parser {
    struct byi_lexer lex;
    struct byi_module *m;
    struct byoc_error *err;
    struct byi_arena *scratch;
    const char *side_path; /* of the side file, or NULL */
    struct byi_side *side; /* NULL: not opened yet */
    BYI_VEC(struct byi_parsed_name) names;
    struct byi_index names_by_text;
    BYI_VEC(uint32_t) numbers; /* for each number: 1 + index in names */
    uint32_t stamp;            /* of the current parameter list */
    BYI_VEC(struct byi_parse_binding) bindings;
    BYI_VEC(struct byi_parse_scope) scopes;
    struct byi_parse_pairs captures, sizes;
    /* counts for the limits in text.h */
    uint32_t n_nodes, n_funcs;
    uint64_t types_size, random_bytes;
};

/* --- parse.c ------------------------------------------------------------ */

/* Read "(%a: T, Composite="x") -> T" into the function, and set *result to its
 * declared result type or NULL. The current token is the '('. */
enum byoc_status byi_parse_signature(struct byi_parser *p, struct byi_func *f,
                                     const struct byi_type **result);
/* Set the type of `f` as its signature declares, for calls that come before the
 * end of its body. */
void byi_parse_declare(struct byi_parser *p, struct byi_func *f,
                       const struct byi_type *result);

/* --- parse_body.c ------------------------------------------------------- */

/* Read the body of a function, from after its '{' to its '}'. */
enum byoc_status byi_parse_body(struct byi_parser *p, uint32_t func,
                                const struct byi_type *result);

/* --- parse_names.c ------------------------------------------------------ */

/* Fail because a limit is exceeded: "found too many nodes, expected at most
 * 4194304". */
enum byoc_status byi_parse_limit(struct byi_parser *p,
                                 const struct byi_token *tok, const char *what,
                                 uint64_t limit);
/* The index of the name `tok` in p->names, to which it is added if new. */
uint32_t byi_parse_name(struct byi_parser *p, const struct byi_token *tok);
/* Let name p->names[name] stand for a value of the innermost function. */
void byi_parse_bind(struct byi_parser *p, uint32_t name, byi_id value);
/* The value that `tok` (%name) stands for in the innermost function, which
 * captures values of outer functions. */
enum byoc_status byi_parse_resolve(struct byi_parser *p,
                                   const struct byi_token *tok, byi_id *value);
/* Enter the body of a function: bind its parameters, and the name with index
 * `self` (BYI_NO_ID: none) to the function itself. */
enum byoc_status byi_parse_enter(struct byi_parser *p, uint32_t func,
                                 const struct byi_token *tok, uint32_t self);
/* Leave the innermost body: move the parameters of its captures after its own
 * parameters. The n *captures are values of the enclosing function; the caller
 * frees them with byi_vec_free. */
void byi_parse_leave(struct byi_parser *p, byi_id **captures, uint32_t *n);
/* Count a new node, and check the size of its type. */
enum byoc_status byi_parse_count_node(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      const struct byi_node *node);
/* Count a type that the printer will write. */
enum byoc_status byi_parse_count_type(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      const struct byi_type *type);

/* --- parse_types.c ------------------------------------------------------ */

/* Read a type. */
enum byoc_status byi_parse_type(struct byi_parser *p,
                                const struct byi_type **type);
/* Read "[(1, N), float32" of a tensor type, up to the ']' or ','. */
enum byoc_status byi_parse_shape(struct byi_parser *p,
                                 const struct byi_type **type);
/* Read the value of an attribute. */
enum byoc_status byi_parse_attr_value(struct byi_parser *p,
                                      struct byi_attr *attr);
/* Annotations "@[...]" and "#[...]", in any order. */
struct byi_parse_annotations {
    bool any; /* at least one was read */
    uint32_t backend, region;
    const struct byi_sources *sources; /* or NULL */
};
enum byoc_status byi_parse_annotations(struct byi_parser *p,
                                       struct byi_parse_annotations *notes);

/* --- parse_const.c ------------------------------------------------------ */

/* Whether a literal starts here. */
bool byi_parse_is_at_literal(const struct byi_parser *p);
/* Read the literal, and set *constant to the index of its constant. */
enum byoc_status byi_parse_literal(struct byi_parser *p, uint32_t *constant);

#endif
