/* Ratios of many cases as a picture. */
#ifndef FLP_CLI_PLOT_H
#define FLP_CLI_PLOT_H
#include <jansson.h>
#include "fusedlogp.h"

/* Draws a bar with its range for each regime of each case, as SVG. report: { "device": { "name" }, "date", "cases": [{ "problem", "baseline",
 * "regimes": { REGIME: { "ratio": { "median", "p10", "p90" }}}}]}; of a case without regimes the name alone is drawn.
 * The file appears whole or not at all, as flp_output_file_write writes it. FLP_BAD_ARGUMENT: report is not of this form; FLP_IO_FAILED: path cannot be
 * written; FLP_OUT_OF_MEMORY. */
flp_status flp_plot_ratios(json_t *report, const char *title, const char *path);
#endif
