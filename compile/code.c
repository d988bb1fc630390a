/* SPDX-License-Identifier: Apache-2.0 */
/* code.c: compiles the C of backends, each source once. A region is built
 * several times, to be tried, timed and written.
 */
#include "code.h"

#include <ctype.h>
#include <string.h>

/* --- names ---------------------------------------------------------------- */

/* "@dnnl_0" becomes byoc_dnnl_0. In a name that is not an identifier, '_'
 * replaces other characters; a long name is cut. The function's number then
 * makes the result unique: byocx3_a_b. */
const char *byi_code_symbol(const struct byi_module *m, uint32_t func,
                            struct byi_arena *arena)
{
    enum { MAX_NAME = 100 };
    const char *name = m->funcs.at[func]->name;
    size_t n = 0;
    while (name[n] == '_' || isalnum((unsigned char)name[n]))
        n++;
    if (!name[n] && n <= MAX_NAME)
        return byi_arena_printf(arena, "byoc_%s", name);
    char *symbol =
        byi_arena_printf(arena, "byocx%u_%.*s", func, MAX_NAME, name);
    for (char *c = symbol; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return symbol;
}

/* --- code ----------------------------------------------------------------- */

struct byi_code *byi_code_get(struct byi_codes *codes, const char *symbol,
                              const void *source, size_t n)
{
    for (uint32_t i = 0; i < codes->list.n; i++) {
        struct byi_code *code = codes->list.at[i];
        if (strcmp(code->unit.symbol, symbol) == 0 &&
            code->unit.source.n == n &&
            (n == 0 || memcmp(code->unit.source.at, source, n) == 0))
            return code;
    }
    struct byoc_error err;
    struct byi_code *code = byi_arena_alloc(codes->arena, sizeof *code);
    *code = (struct byi_code){
        .unit = {.symbol = byi_arena_str(codes->arena, symbol)}};
    byi_text_add(&code->unit.source, source, n);
    if (byi_c_unit_compile(&code->unit, codes->cc, &err) != BYOC_OK)
        code->fault = byi_arena_str(codes->arena, err.text);
    BYI_PUSH(&codes->list, code);
    return code;
}

enum byoc_status byi_code_map(struct byi_code *code, struct byoc_error *err)
{
    const uint32_t levels = byi_code_levels(BYI_N_CODE_LEVELS);
    const struct byi_text *library = &code->unit.library;
    char name[256];
    if (code->fault || code->library.handle || levels == 0)
        return BYOC_OK;
    BYI_TRY(byoc_internal_library_map(library->at, library->n, &code->library,
                                      err));
    code->function = byoc_internal_library_function(
        &code->library,
        byi_c_unit_name(code->unit.symbol, levels - 1, name, sizeof name));
    return BYOC_OK;
}

void byi_codes_free(struct byi_codes *codes)
{
    for (uint32_t i = 0; i < codes->list.n; i++) {
        byoc_internal_library_unmap(&codes->list.at[i]->library);
        byi_c_unit_free(&codes->list.at[i]->unit);
    }
    byi_vec_free(codes->list.at);
}
