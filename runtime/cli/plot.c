/* Draws ratios as an SVG that any browser shows, without a library. */
#include "cli/plot.h"
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "cli/output_file.h"

/* In pixels. */
enum { LEFT = 60, TOP = 50, HEIGHT = 300, BAR = 34, GAP = 8, BETWEEN = 30, BOTTOM = 70, MOST_WIDTH = 4000 };

typedef struct {
    flp_text svg;
    double largest; /* of the axis, which begins at 0 */
} canvas;

/* Text as XML has it, of so many bytes. */
static void write_words(canvas *c, const char *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        switch (words[i]) {
        case '&':
            flp_text_append(&c->svg, "&amp;");
            break;
        case '<':
            flp_text_append(&c->svg, "&lt;");
            break;
        case '>':
            flp_text_append(&c->svg, "&gt;");
            break;
        default:
            flp_text_append_bytes(&c->svg, &words[i], 1);
        }
}

static double place(const canvas *c, double ratio)
{
    return TOP + HEIGHT * (1 - ratio / c->largest);
}

static double figure(json_t *regime, const char *name)
{
    return json_number_value(json_object_get(json_object_get(regime, "ratio"), name));
}

static void draw_bar(canvas *c, double x, const char *regime, json_t *figures)
{
    double median = figure(figures, "median"), low = figure(figures, "p10"), high = figure(figures, "p90"), middle = x + BAR / 2.0;

    flp_text_append(&c->svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\"/>\n", x, place(c, median), BAR, HEIGHT * median / c->largest,
                    strcmp(regime, "burst") == 0  ? "#2a78b5"
                    : strcmp(regime, "solo") == 0 ? "#5b9a4b"
                                                  : "#e08a2c");
    flp_text_append(&c->svg, "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fh12M%.1f %.1fh12\" stroke=\"#222\" fill=\"none\"/>\n", middle, place(c, low), place(c, high),
                    middle - 6, place(c, low), middle - 6, place(c, high));
    flp_text_append(&c->svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.3f</text>\n", middle, place(c, fmax(median, high)) - 5, median);
}

/* "linear_logp:bf16:n4096:d2048:v131072": the operator and dtype on one line, the sizes on the next. */
static void draw_name(canvas *c, double middle, const char *problem, const char *baseline)
{
    const char *sizes = strstr(problem, ":n");
    const size_t head = sizes ? (size_t)(sizes - problem) : strlen(problem);

    flp_text_append(&c->svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", middle, TOP + HEIGHT + 18);
    write_words(c, problem, head);
    flp_text_append(&c->svg, "</text>\n<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", middle, TOP + HEIGHT + 34);
    if (sizes)
        write_words(c, sizes + 1, strlen(sizes + 1));
    flp_text_append(&c->svg, "</text>\n<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#666\">beside ", middle, TOP + HEIGHT + 50);
    write_words(c, baseline, strlen(baseline));
    flp_text_append(&c->svg, "</text>\n");
}

static double group_width(json_t *result)
{
    size_t bars = json_object_size(json_object_get(result, "regimes"));

    return fmax(170, (double)bars * (BAR + GAP));
}

static void draw_case(canvas *c, double x, json_t *result)
{
    json_t *regimes = json_object_get(result, "regimes"), *figures;
    double width = group_width(result), at = x + (width - (double)json_object_size(regimes) * (BAR + GAP) + GAP) / 2;
    const char *regime;

    json_object_foreach (regimes, regime, figures) {
        draw_bar(c, at, regime, figures);
        at += BAR + GAP;
    }
    draw_name(c, x + width / 2, json_string_value(json_object_get(result, "problem")), json_string_value(json_object_get(result, "baseline")));
}

static int has_solo(json_t *report)
{
    size_t i;
    json_t *result;

    json_array_foreach (json_object_get(report, "cases"), i, result)
        if (json_object_get(json_object_get(result, "regimes"), "solo"))
            return 1;
    return 0;
}

static void draw_frame(canvas *c, double width, const char *title, json_t *report)
{
    const char *device = json_string_value(json_object_get(json_object_get(report, "device"), "name"));
    const char *date = json_string_value(json_object_get(report, "date"));
    const char *const heading[] = { title, "; ", device ? device : "no device", ", ", date ? date : "no date" };

    flp_text_append(&c->svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", width,
                    TOP + HEIGHT + BOTTOM);
    flp_text_append(&c->svg, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    flp_text_append(&c->svg, "<text x=\"%d\" y=\"20\" font-size=\"14\">", LEFT);
    for (size_t i = 0; i < sizeof(heading) / sizeof(heading[0]); i++)
        write_words(c, heading[i], strlen(heading[i]));
    flp_text_append(&c->svg, "</text>\n");
    flp_text_append(&c->svg, "<text x=\"%d\" y=\"38\"><tspan fill=\"#2a78b5\">burst</tspan> <tspan fill=\"#e08a2c\">sustained</tspan>%s</text>\n", LEFT,
                    has_solo(report) ? " <tspan fill=\"#5b9a4b\">solo</tspan>" : "");
    for (double ratio = 0; ratio <= c->largest + 1e-9; ratio += 0.2)
        flp_text_append(&c->svg, "<path d=\"M%d %.1fH%.1f\" stroke=\"%s\" stroke-width=\"%s\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n",
                        LEFT, place(c, ratio), width - 10, fabs(ratio - 1) < 1e-9 ? "#c00" : "#ddd", fabs(ratio - 1) < 1e-9 ? "1.5" : "1", LEFT - 6,
                        place(c, ratio) + 4, ratio);
}

/* Finds the axis' end and the width; 1 where every case has what is drawn, and the width is not too large. */
static int measure_report(json_t *cases, double *largest, double *width)
{
    size_t i;
    json_t *result, *figures;
    const char *regime;

    *largest = 1;
    *width = LEFT + 10;
    json_array_foreach (cases, i, result) {
        if (!json_is_string(json_object_get(result, "problem")) || !json_is_string(json_object_get(result, "baseline")))
            return 0;
        *width += group_width(result) + BETWEEN;
        json_object_foreach (json_object_get(result, "regimes"), regime, figures) {
            if (!json_is_number(json_object_get(json_object_get(figures, "ratio"), "median")))
                return 0;
            *largest = fmax(*largest, fmax(figure(figures, "p90"), figure(figures, "median")));
        }
    }
    *largest = ceil(*largest * 5 + 0.25) / 5;
    return json_array_size(cases) > 0 && *width < MOST_WIDTH;
}

flp_status flp_plot_ratios(json_t *report, const char *title, const char *path)
{
    json_t *cases = json_object_get(report, "cases"), *result;
    double width, x = LEFT + BETWEEN / 2.0;
    canvas c = { 0 };
    flp_status status = FLP_OK;
    size_t i;

    if (!measure_report(cases, &c.largest, &width))
        return flp_status_fail(FLP_BAD_ARGUMENT, "the results hold no cases, or cases without problem, baseline and ratio");
    draw_frame(&c, width, title, report);
    json_array_foreach (cases, i, result) {
        draw_case(&c, x, result);
        x += group_width(result) + BETWEEN;
    }
    flp_text_append(&c.svg, "</svg>\n");
    if (c.svg.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "%s: a plot of %zu cases", path, json_array_size(cases));
    if (status == FLP_OK)
        status = flp_output_file_write(path, c.svg.data, c.svg.length);
    flp_text_free(&c.svg);
    return status;
}
