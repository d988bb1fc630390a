/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: writes lines of a model and its plug-ins to the host's log. */
#include "internal.h"

#include <string.h>

void byi_log_init(struct byi_log *log, const struct byoc_load_params *params)
{
    *log = (struct byi_log){.log = params->log,
                            .log_line = params->log ? NULL : params->log_line,
                            .ctx = params->log_ctx,
                            .least = params->log_severity};
    if (log->least == 0)
        log->least = log->log ? BYOC_INFO : BYOC_DEBUG;
}

void byi_log_line(const struct byi_log *log, enum byoc_severity severity,
                  const char *line)
{
    if (severity < log->least)
        return;
    if (log->log)
        log->log(log->ctx, severity, line);
    else if (log->log_line)
        log->log_line(log->ctx, line);
}

void byi_log(const struct byi_log *log, enum byoc_severity severity,
             const char *fmt, ...)
{
    static const char warning[] = "warning: ";
    char line[1400];
    va_list args;
    size_t n = 0;
    if (severity < log->least || (!log->log && !log->log_line))
        return;
    if (log->log_line && severity >= BYOC_WARNING)
        n = strlen(strcpy(line, warning));
    va_start(args, fmt);
    vsnprintf(line + n, sizeof line - n, fmt, args);
    va_end(args);
    byi_log_line(log, severity, line);
}
