/* table.c: from an operator to its kernel, and a kernel run on its own.
 * The lookup walks every family's rows: it is done once per step of a plan, at
 * load, and needs no state that threads could race for.
 */
#include "rows.h"

static const struct byi_kernel_rows *const families[] = {
#define ROWS_OF(name) &byi_rows_##name,
    BYI_FAMILIES(ROWS_OF)
#undef ROWS_OF
};

const struct byi_kernel *byi_kernel_of(enum byi_op_id op)
{
    for (uint32_t f = 0; f < BYI_COUNT(families); f++)
        for (uint32_t i = 0; i < families[f]->n; i++)
            if (families[f]->at[i].op == op)
                return &families[f]->at[i].kernel;
    return NULL;
}

enum byoc_status byoc_internal_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    uint32_t threads, struct byoc_error *err)
{
    const struct byi_kernel *kernel = byi_kernel_of(op->id);
    if (!kernel)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: this build has no native kernel for it, "
                        "give the operator to a vendor",
                        op->name);

    struct byi_call call = {
        .op = op,
        .attrs = attrs,
        .n_in = n_in,
        .n_out = n_out,
        .in = in,
        .out = out,
        .threads = threads ? threads : 1,
    };
    uint64_t bytes = kernel->scratch ? kernel->scratch(&call) : 0;
    if (bytes) {
        call.scratch = byi_acquire(bytes);
        if (!call.scratch)
            return byi_fail(err, BYOC_ENOMEM,
                            "%s: %llu bytes of scratch are not to be had",
                            op->name, (unsigned long long)bytes);
    }
    enum byoc_status status = kernel->run(&call, err);
    byi_release(call.scratch);
    return status;
}
