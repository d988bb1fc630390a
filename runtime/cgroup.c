/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c: reads the limits of the cgroups that this process is in, version 1
 * and 2 (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst). The
 * ancestors of a cgroup limit it too, so the lowest limit counts. */
#include "internal.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool byi_cgroup_read_line(const char *path, char *line, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool was_read = fgets(line, (int)n, f) != NULL;
    fclose(f);
    return was_read;
}

/* The lower of two limits, of which 0 means no limit. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* The lowest limit of a cgroup and its ancestors. In a container the path may
 * not exist below the mounted root; then the root's limit counts. */
static uint64_t lowest_limit(const char *root, const char *path,
                             uint64_t (*limit)(const char *folder))
{
    char folder[4096];
    size_t base = strlen(root);
    int n = snprintf(folder, sizeof folder, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof folder)
        return 0;
    uint64_t least = 0;
    for (;;) {
        least = lesser(least, limit(folder));
        char *slash = strrchr(folder + base, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Whether `list`, n bytes such as "cpu,cpuacct", names the controller. */
static bool has_controller(const char *list, size_t n, const char *controller)
{
    const size_t k = strlen(controller);
    for (size_t i = 0; i + k <= n; i++) {
        bool begins = i == 0 || list[i - 1] == ',';
        bool ends = i + k == n || list[i + k] == ',';
        if (begins && ends && memcmp(list + i, controller, k) == 0)
            return true;
    }
    return false;
}

/* The limit of the cgroup in a line of /proc/self/cgroup, "0::/path" or
 * "4:cpu,cpuacct:/path"; 0: none. */
static uint64_t limit_of_line(const char *root, char *line,
                              const struct byi_cgroup_limit *limit)
{
    line[strcspn(line, "\n")] = '\0';
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;
    if (!path)
        return 0;
    list++;
    size_t n = (size_t)(path - list);
    path++;
    if (n == 0)
        return lowest_limit(root, path, limit->v2);
    if (!has_controller(list, n, limit->controller))
        return 0;
    char mount_point[4096];
    snprintf(mount_point, sizeof mount_point, "%s/%s", root, limit->controller);
    uint64_t lowest = lowest_limit(mount_point, path, limit->v1);
    if (lowest)
        return lowest;
    snprintf(mount_point, sizeof mount_point, "%s/%.*s", root, (int)n, list);
    return lowest_limit(mount_point, path, limit->v1);
}

uint64_t byi_cgroup_least(const char *self, const char *root,
                          const struct byi_cgroup_limit *limit)
{
    FILE *f = fopen(self, "re");
    if (!f)
        return 0;
    uint64_t least = 0;
    char line[4096];
    while (fgets(line, sizeof line, f))
        least = lesser(least, limit_of_line(root, line, limit));
    fclose(f);
    return least;
}

/* --- memory --------------------------------------------------------------- */

/* The number in a file. 0, which means no limit, if the file cannot be read,
 * has no number ("max"), or has a very large one. For "no limit", version 1
 * writes INT64_MAX rounded down to pages. */
static uint64_t read_bytes(const char *folder, const char *name)
{
    char path[4200], line[64], *end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!byi_cgroup_read_line(path, line, sizeof line))
        return 0;
    unsigned long long bytes = strtoull(line, &end, 10);
    return end == line || bytes > (unsigned long long)INT64_MAX / 2 ? 0 : bytes;
}

static uint64_t memory_v1(const char *folder)
{
    return read_bytes(folder, "memory.limit_in_bytes");
}

static uint64_t memory_v2(const char *folder)
{
    return read_bytes(folder, "memory.max");
}

uint64_t byi_memory_limit_from(const char *self, const char *root)
{
    static const struct byi_cgroup_limit memory = {"memory", memory_v1,
                                                   memory_v2};
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const uint64_t machine = pages > 0 && size > 0
                                 ? (uint64_t)pages * (uint64_t)size
                                 : UINT64_C(1) << 40;
    return lesser(machine, byi_cgroup_least(self, root, &memory));
}

uint64_t byi_memory_limit(void)
{
    return byi_memory_limit_from("/proc/self/cgroup", "/sys/fs/cgroup");
}
