/* The results: one JSON object, as a file, as a table, as a plot. */
#ifndef FLP_BENCH_REPORT_H
#define FLP_BENCH_REPORT_H
#include <jansson.h>

#include "device/gpu.h"

/* {date, commit, command, version, device, driver, cases: []}; gpu NULL: without a device. commit may be NULL. Loads no NVRTC. */
json_t *flp_report_create(const flp_gpu *gpu, const char *commit, int argc, char **argv);

/* Prints one case as lines of the table; header: the columns' names first. */
void flp_report_print_case(json_t *result, int header);

/* Prints an object of statistics, name: median [10 %, 90 %]; others as they are. */
void flp_report_print_statistics(const char *title, json_t *result);

/* Adds nvrtc to the report, writes it and prints the path. path NULL: bench/results/DATE-DEVICE.json. Missing directories are made. */
flp_status flp_report_write(json_t *report, const char *path);

/* Bars of the ratios' medians with whiskers from 10 to 90 %, one a case and regime, and the line at 1. FLP_BAD_ARGUMENT: not a results file. */
flp_status flp_report_plot(json_t *report, const char *path);
#endif
