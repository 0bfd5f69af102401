/* fusedlogp tune: finds the fastest tunings of problems on this machine's GPUs and keeps them as records. */
#ifndef FLP_CLI_TUNE_H
#define FLP_CLI_TUNE_H
#include <argz.h>
#include <jansson.h>
#include <signal.h>
#include "cli/tune_watch.h"
#include "core/tune_run.h"
#include "tune/records.h"

enum { FLP_TUNE_MOST_DEVICES = 64 };

typedef struct {
    char *problems, *models; /* argz */
    size_t problems_bytes, models_bytes;
    int untuned, probe, numerics, resume, dry_run, verify, json, quiet;
    double budget_seconds; /* for all problems; 0: no limit */
    double hang_seconds;   /* that a candidate's run may take */
    int64_t memory_bytes;  /* 0: what is free */
    int jobs, limit;       /* as flp_tuner_options and flp_tune_target_options have them */
    flp_regime regime;
    int devices[FLP_TUNE_MOST_DEVICES], device_count;
    const char *plot; /* NULL: none */
} flp_tune_command;

/* Exits on usage errors. */
void flp_tune_command_parse(int argc, char **argv, flp_tune_command *command);
void flp_tune_command_free(flp_tune_command *command);

/* The problems to be tuned. */
typedef struct {
    char *text; /* canonical string */
    char *arch; /* the architecture that it was requested on; NULL: any */
} flp_tune_item;
typedef struct {
    flp_tune_item *items;
    size_t count;
} flp_tune_list;

/* Collects the problems of the command line, of its models, of the list of problems that plans requested without a record, and of --probe, each once. Returns
 * an exit code, after saying why: FLP_EXIT_USAGE where a problem of the command line is malformed, FLP_EXIT_BAD_INPUT where a model's configuration is not
 * acceptable, FLP_EXIT_FAILED. */
int flp_tune_list_collect(const flp_tune_command *command, const char *records_directory, flp_tune_list *list);
void flp_tune_list_free(flp_tune_list *list);

/* A device, and what all problems that are tuned on it share. */
typedef struct {
    const flp_tune_command *command;
    flp_records *records;
    volatile sig_atomic_t *interrupted;
    flp_context *context;
    int ordinal;
    flp_device device;
    flp_environment environment;
    nvmlDevice_t clock; /* to read the device's clock; NULL: it is not known */
    flp_text *samples;  /* what all its problems took, for the performance model's calibration */
    double *sampled_seconds;
    flp_tune_slot *slot; /* what runs on it now */
} flp_tune_bench;

/* What came of one problem: for a person, and as JSON. */
typedef struct {
    char text[2048]; /* a line; "": nothing is to be said */
    json_t *json;    /* NULL: nothing */
    int failed;      /* --verify: the record loses too much, or there is none */
} flp_tune_outcome;

/* Tunes or verifies one problem in the CUDA context that is current, and publishes the record of a tuning. budget_seconds 0: no limit. Errors as
 * flp_tune_target_create and flp_tune_run; a record that cannot be written is a warning. */
flp_status flp_tune_problem(const flp_tune_bench *bench, const flp_tune_item *item, double budget_seconds, flp_tune_outcome *outcome);

/* A result as JSON, and what --plot draws of all of them. */
json_t *flp_tune_report_pack(const flp_tune_target *target, const flp_tuner_result *result, const flp_tune_bench *bench);
flp_status flp_tune_report_plot(json_t *results, const char *path);

#endif
