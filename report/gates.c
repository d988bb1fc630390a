/* SPDX-License-Identifier: Apache-2.0 */
/* gates.c: checks whether the offloaded share reaches the user's gates, and
 * names the native operators if not. */
#include "gates.h"

#include "report/report.h"

#include <string.h>

/* The gates, in the order of byi_gates_check's lists. */
static const struct {
    const char *name;     /* of the option */
    const char *quantity; /* the gate requires an offloaded share of it */
} gates[] = {
    {"require-offload", "floating-point operations"},
    {"require-offload-nodes", "operators"},
};

/* A percentage; 100 if there is nothing to offload. */
static double percentage(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 100;
}

void byi_gates_check(struct byi_ledger *ledger,
                     const struct byoc_compile_params *params)
{
    const double rounding = 1e-9;
    const struct byi_coverage *c = byi_ledger_coverage(ledger);
    const double wanted[] = {params->require_offload,
                             params->require_offload_nodes};
    const double found[] = {
        percentage(c->flops_offloaded, c->flops),
        percentage(c->offloaded, byi_coverage_operators(c))};
    for (size_t i = 0; i < BYI_COUNT(gates); i++) {
        const struct byi_gate gate = {.name = gates[i].name,
                                      .wanted = wanted[i],
                                      .found = found[i],
                                      .passed =
                                          found[i] + rounding >= wanted[i]};
        if (wanted[i] > 0)
            byi_ledger_add_gate(ledger, &gate);
    }
}

/* The quantity whose share a gate limits: "operators". */
static const char *quantity_of(const char *gate)
{
    size_t i = 0;
    while (i + 1 < BYI_COUNT(gates) && strcmp(gates[i].name, gate) != 0)
        i++;
    return gates[i].quantity;
}

const char *byi_gates_verdict(const struct byi_text *ledger_json,
                              struct byi_arena *arena)
{
    struct byi_report r;
    struct byoc_error err;
    const char *verdict = NULL;
    if (!memmem(ledger_json->at, ledger_json->n, "\"passed\": false", 15) ||
        byi_report_read(ledger_json->at, ledger_json->n, &r, &err) != BYOC_OK)
        return NULL;
    for (uint32_t i = 0; i < r.n_gates && !verdict; i++) {
        const struct byi_gate *gate = &r.gates[i];
        struct byi_text why = {0};
        if (gate->passed)
            continue;
        byi_report_add_reasons(&r, &why);
        verdict = byi_arena_printf(
            arena, "--%s requires %.2f%% of the %s offloaded, found %.2f%%%s%s",
            gate->name, gate->wanted, quantity_of(gate->name), gate->found,
            why.n ? "; native: " : "", why.n ? why.at : "");
        byi_text_free(&why);
    }
    byi_report_free(&r);
    return verdict;
}
