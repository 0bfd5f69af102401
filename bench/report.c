/* Facts of the run, the table and the results file. */
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/plot.h"
#include "cuda/nvrtc.h"

/* Device attributes in kHz: the highest clocks, since the driver API does not tell the current ones. */
enum { CLOCK_RATE = 13, MEMORY_CLOCK_RATE = 36 };

static json_t *describe_device(const flp_gpu *gpu)
{
    int clock = 0, memory_clock = 0;

    if (!gpu)
        return json_null();
    gpu->driver->device_attribute(&clock, CLOCK_RATE, gpu->device);
    gpu->driver->device_attribute(&memory_clock, MEMORY_CLOCK_RATE, gpu->device);
    return json_pack("{s:s, s:i, s:i, s:I, s:f, s:f}", "name", gpu->facts.name, "compute_capability", gpu->facts.compute_capability, "multiprocessors",
                     gpu->facts.multiprocessors, "memory_bytes", (json_int_t)gpu->facts.memory_bytes, "highest_clock_mhz", clock / 1e3,
                     "highest_memory_clock_mhz", memory_clock / 1e3);
}

static json_t *describe_nvrtc(void)
{
    flp_nvrtc_facts facts;
    int major, minor;

    if (flp_nvrtc_find(&facts) != FLP_OK || flp_nvrtc_version(&major, &minor) != FLP_OK)
        return json_null();
    return json_pack("{s:i, s:i, s:s}", "major", major, "minor", minor, "build", facts.build);
}

static json_t *pack_command(int argc, char **argv)
{
    json_t *command = json_array();

    for (int i = 0; i < argc; i++)
        json_array_append_new(command, json_string(argv[i]));
    return command;
}

json_t *flp_report_create(const flp_gpu *gpu, const char *commit, int argc, char **argv)
{
    const time_t now = time(NULL);
    struct tm parts;
    char date[32];

    strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &parts));
    return json_pack("{s:s, s:s?, s:o, s:s, s:o, s:i, s:[]}", "date", date, "commit", commit, "command", pack_command(argc, argv), "version", flp_version(),
                     "device", describe_device(gpu), "driver", gpu ? gpu->driver->version : 0, "cases");
}

static double number(json_t *object, const char *first, const char *second)
{
    json_t *inner = json_object_get(object, first);

    return json_number_value(second ? json_object_get(inner, second) : inner);
}

static const char *text(json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));

    return found ? found : "";
}

static void print_filter(json_t *result)
{
    printf("    filter %g kept %.0f of %.0f blocks; errors of grad_hidden, grad_weight %.2e, %.2e, of which the filter may make %.2e, %.2e; data: %s\n",
           number(result, "grad_filter_eps", NULL), number(result, "blocks_kept", NULL), number(result, "blocks", NULL), number(result, "relative_error", NULL),
           number(result, "grad_weight_error", NULL), number(result, "grad_hidden_bound", NULL), number(result, "grad_weight_bound", NULL),
           text(result, "data"));
}

static void print_energy(json_t *solo)
{
    const char *why = text(solo, "no_joules");

    if (*why)
        printf("    no joules: %s\n", why);
    else
        printf("    an operation alone: ours %.4g J at %.0f W, baseline %.4g J at %.0f W, ratio %.3f\n", number(solo, "ours_joules", NULL),
               number(solo, "ours_watts", NULL), number(solo, "baseline_joules", NULL), number(solo, "baseline_watts", NULL),
               number(solo, "energy_ratio", NULL));
}

void flp_report_print_case(json_t *result, int header)
{
    const double work = number(result, "work", NULL), mebi = 1 << 20;
    const char *regime;
    json_t *figures;

    if (header)
        printf("%-38s %-9s %9s %9s %9s %9s %-7s %6s %15s\n", "problem", "regime", "ours ms", "base ms", "ours", "base", "unit", "ratio", "10 .. 90 %");
    json_object_foreach (json_object_get(result, "regimes"), regime, figures)
        printf("%-38s %-9s %9.4f %9.4f %9.2f %9.2f %-7s %6.3f %6.3f .. %5.3f\n", text(result, "problem"), regime, number(figures, "ours_ms", "median"),
               number(figures, "baseline_ms", "median"), work / number(figures, "ours_ms", "median") * 1e3,
               work / number(figures, "baseline_ms", "median") * 1e3, text(result, "unit"), number(figures, "ratio", "median"), number(figures, "ratio", "p10"),
               number(figures, "ratio", "p90"));
    printf("    %s; baseline: %s; error against fp64 %.2e over %.0f rows; workspace %.2f MiB, taken from the device %.2f MiB\n",
           *text(result, "tile") ? text(result, "tile") : text(result, "kernel"), text(result, "baseline"), number(result, "relative_error", NULL),
           number(result, "rows_checked", NULL), number(result, "workspace_bytes", NULL) / mebi, number(result, "memory_bytes", NULL) / mebi);
    if (json_object_get(json_object_get(result, "regimes"), "solo"))
        print_energy(json_object_get(json_object_get(result, "regimes"), "solo"));
    if (json_object_get(result, "blocks"))
        print_filter(result);
    fflush(stdout);
}

void flp_report_print_statistics(const char *title, json_t *result)
{
    const char *name;
    json_t *value;

    printf("%s\n", title);
    json_object_foreach (result, name, value) {
        if (json_is_object(value))
            printf("    %-18s %10.3f  [%.3f .. %.3f]\n", name, number(result, name, "median"), number(result, name, "p10"), number(result, name, "p90"));
        else if (json_is_number(value))
            printf("    %-18s %10.3f\n", name, json_number_value(value));
        else
            printf("    %-18s %s\n", name, json_string_value(value));
    }
    fflush(stdout);
}

/* "NVIDIA H200" becomes "nvidia-h200". */
static void make_slug(const char *name, char *slug, size_t bytes)
{
    size_t length = 0;

    for (; *name && length + 1 < bytes; name++) {
        if (isalnum((unsigned char)*name))
            slug[length++] = (char)tolower((unsigned char)*name);
        else if (length && slug[length - 1] != '-')
            slug[length++] = '-';
    }
    slug[length] = 0;
}

flp_status flp_report_write(json_t *report, const char *path)
{
    char name[256], slug[128], directory[4096];
    const char *device = text(json_object_get(report, "device"), "name");
    flp_status status;

    /* Not earlier, because loading NVRTC is part of what is measured. */
    json_object_set_new(report, "nvrtc", describe_nvrtc());
    make_slug(*device ? device : "cpu", slug, sizeof(slug));
    snprintf(name, sizeof(name), "bench/results/%s-%s.json", text(report, "date"), slug);
    path = path ? path : name;
    snprintf(directory, sizeof(directory), "%s", path);
    status = flp_file_make_directories(dirname(directory), 0777);
    if (status == FLP_OK && json_dump_file(report, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
        status = flp_status_fail(FLP_IO_FAILED, "%s: %s", path, strerror(errno));
    if (status == FLP_OK)
        printf("results: %s\n", path);
    return status;
}

flp_status flp_report_plot(json_t *report, const char *path)
{
    flp_status status = flp_plot_ratios(report, "speed beside the baseline: median and 10 .. 90 % of the pairs", path);

    if (status == FLP_OK)
        printf("plot: %s\n", path);
    return status;
}
