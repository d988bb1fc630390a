/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c: the table of the kinds of machines that artifacts are compiled
 * for. */
#include "machine.h"

#include "descriptor.h"

#include <elf.h>
#include <string.h>

static const struct byi_machine_level x86_64[] = {
#define LEVEL(id, name, options) {name, options},
    BYI_CODE_LEVELS_X86_64(LEVEL)};
static const struct byi_machine_level aarch64[] = {
    BYI_CODE_LEVELS_AARCH64(LEVEL)};
static const struct byi_machine_level other[] = {BYI_CODE_LEVELS_OTHER(LEVEL)};
#undef LEVEL

#define LEVELS(list) BYI_COUNT(list), list
static const struct byi_machine machines[] = {
    {"x86_64", "x86_64-linux-gnu-gcc", EM_X86_64, LEVELS(x86_64)},
    {"aarch64", "aarch64-linux-gnu-gcc", EM_AARCH64, LEVELS(aarch64)},
    {"riscv64", "riscv64-linux-gnu-gcc", EM_RISCV, LEVELS(other)},
    {"unknown", NULL, EM_NONE, LEVELS(other)},
};

const struct byi_machine *byi_machine_host(void)
{
#if defined(__x86_64__)
    return &machines[0];
#elif defined(__aarch64__)
    return &machines[1];
#elif defined(__riscv) && __riscv_xlen == 64
    return &machines[2];
#else
    return &machines[3];
#endif
}

enum byoc_status byi_machine_find(const char *name,
                                  const struct byi_machine **machine,
                                  struct byoc_error *err)
{
    char list[100] = "";
    *machine = byi_machine_host();
    if (!name || !*name)
        return BYOC_OK;
    for (size_t i = 0; i < BYI_COUNT(machines); i++) {
        if (!machines[i].cc)
            continue;
        if (strcmp(name, machines[i].name) == 0) {
            *machine = &machines[i];
            return BYOC_OK;
        }
        strcat(list, *list ? ", " : "");
        strcat(list, machines[i].name);
    }
    return byi_fail(err, BYOC_EINVAL,
                    "target: found \"%.40s\", expected one of %s", name, list);
}
