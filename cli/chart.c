/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c: draws a profile as an SVG: three rows of bars, each as wide as its
 * time, the longest first.
 *
 *     | run                                   |
 *     | conv2d                  | dense | add |   operators
 *     | step     | step | step  | step  | ... |   their steps
 */
#include "cli.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* Pixels. */
enum {
    WIDTH = 1200, /* of the bar of a run */
    BAR = 34,     /* height of a bar */
    LETTER = 7,   /* width of a letter */
    MARGIN = 10,  /* around the chart */
    TOP = 34      /* y of the first row, below the title */
};

/* The bar of a step. */
struct bar {
    double us;
    const cJSON *step;
};

static int most_time_first(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    return (x->us < y->us) - (x->us > y->us);
}

/* The median time of a step or sum in microseconds. */
static double us_of(const cJSON *item)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(item, "median_us"));
}

static const char *text_of(const cJSON *item, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, name));
    return text ? text : "";
}

/* Append at most n bytes of `from`, which may be any bytes, as XML text. */
static void add_escaped(struct byi_text *out, const char *from, size_t n)
{
    for (; *from && n; from++, n--) {
        const unsigned char c = (unsigned char)*from;
        if (strchr("<>&\"'", c))
            byi_text_addf(out, "&#%d;", c);
        else if (c >= 0x20 && c < 0x7f)
            byi_text_addf(out, "%c", c);
        else
            byi_text_addf(out, "?");
    }
}

/* Add a line of a bar's label at (x, y). If it has more than `max_letters`
 * letters, it is cut and ends with an ellipsis, or is left out if only a few
 * would remain. */
static void add_label(struct byi_text *out, double x, int y, const char *line,
                      size_t max_letters)
{
    enum { MIN_LABEL = 6 };
    const bool fits = strlen(line) <= max_letters;
    if (!fits && max_letters < MIN_LABEL)
        return;
    byi_text_addf(out, "<text x=\"%.2f\" y=\"%d\">", x, y);
    add_escaped(out, line, fits ? max_letters : max_letters - 1);
    byi_text_addf(out, "%s</text>", fits ? "" : "&#8230;");
}

/* Append a bar of row `row` with a tooltip and, if they fit, two lines of text.
 * `colour`: a class of the style sheet. */
static void add_bar(struct byi_text *out, double x, int row, double width,
                    const char *colour, double us, double share,
                    const char *const lines[2])
{
    const int y = TOP + row * (BAR + 2);
    const size_t max_letters =
        width < 3 * LETTER ? 0 : (size_t)(width / LETTER) - 1;
    byi_text_addf(out,
                  "<g><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
                  "class=\"%s\"/><title>",
                  MARGIN + x, y, width > 1.5 ? width - 1 : width, BAR, colour);
    for (int i = 0; i < 2; i++) {
        add_escaped(out, lines[i], (size_t)-1);
        byi_text_addf(out, *lines[i] ? "\n" : "");
    }
    byi_text_addf(out, "%.1f us, %.1f%%</title>", us, 100 * share);
    for (int i = 0; i < 2 && max_letters; i++)
        add_label(out, MARGIN + x + 5, y + 14 + 14 * i, lines[i], max_letters);
    byi_text_addf(out, "</g>\n");
}

/* Whether the step counts under this operator. A fused step "a+b" counts under
 * "a". */
static bool is_step_of(const cJSON *step, const char *operator)
{
    const char *name = text_of(step, "operators");
    const size_t n = strcspn(name, "+");
    return strlen(operator) == n && memcmp(name, operator, n) == 0;
}

/* Append the bars of one operator's steps, starting at x. */
static void add_steps(struct byi_text *out, const cJSON *steps,
                      const char *operator, double x, double total_us)
{
    const cJSON *step;
    struct bar *bars =
        calloc((size_t)cJSON_GetArraySize(steps) + 1, sizeof *bars);
    size_t n = 0;
    cJSON_ArrayForEach(step, steps)
    {
        if (bars && is_step_of(step, operator))
            bars[n++] = (struct bar){us_of(step), step};
    }
    if (bars)
        qsort(bars, n, sizeof *bars, most_time_first);
    for (size_t i = 0; i < n; i++) {
        const double share = bars[i].us / total_us, width = share * WIDTH;
        const char *impl = text_of(bars[i].step, "implementation");
        const char *const lines[] = {text_of(bars[i].step, "nodes"), impl};
        add_bar(out, x, 2, width,
                strncmp(impl, "native", 6) == 0 ? "native" : "backend",
                bars[i].us, share, lines);
        x += width;
    }
    free(bars);
}

static const char svg_head[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
    "viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n"
    "<style>.page{fill:#fff}.run{fill:#d8dee4}.operator{fill:#b7d3e9}"
    ".backend{fill:#8cbfe6}.native{fill:#f0a671}</style>\n"
    "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n"
    "<text x=\"%d\" y=\"22\" font-size=\"14\">";

void byi_profile_add_svg(const cJSON *profile, const char *title,
                         struct byi_text *out)
{
    const cJSON *steps = cJSON_GetObjectItem(profile, "steps"), *sum;
    const cJSON *sums = cJSON_GetObjectItem(profile, "operators");
    const int width = WIDTH + 2 * MARGIN, height = TOP + 3 * (BAR + 2) + MARGIN;
    double total_us = 0, x = 0;
    cJSON_ArrayForEach(sum, sums) total_us += us_of(sum);
    byi_text_addf(out, svg_head, width, height, width, height, width, height,
                  MARGIN);
    add_escaped(out, title, 100);
    byi_text_addf(out, ": where the time of a run goes</text>\n");
    char line[100];
    snprintf(line, sizeof line, "%d steps, medians of %.0f runs",
             cJSON_GetArraySize(steps),
             cJSON_GetNumberValue(cJSON_GetObjectItem(profile, "runs")));
    char run[100];
    snprintf(run, sizeof run, "a run: %.1f us", total_us);
    if (total_us > 0)
        add_bar(out, 0, 0, WIDTH, "run", total_us, 1,
                (const char *const[]){run, line});
    cJSON_ArrayForEach(sum, sums)
    {
        const double us = us_of(sum), share = us / total_us;
        const char *operator= text_of(sum, "operator");
        snprintf(line, sizeof line, "%.1f us, %.1f%%", us, 100 * share);
        if (!(total_us > 0))
            continue;
        add_bar(out, x, 1, share * WIDTH, "operator", us, share,
                (const char *const[]){operator, line});
        add_steps(out, steps, operator, x, total_us);
        x += share * WIDTH;
    }
    byi_text_addf(out, "</svg>\n");
}
