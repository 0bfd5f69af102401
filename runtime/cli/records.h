/* fusedlogp records: what tunings found, in the user's directory and in those of the system. */
#ifndef FLP_CLI_RECORDS_H
#define FLP_CLI_RECORDS_H
#include <jansson.h>
#include "tune/records.h"

typedef struct {
    char **words; /* behind the action's name */
    int count;
    const char *directory, *out; /* NULL: the usual ones */
    int all, json, quiet, dry_run, other_library;
    int older_than_days; /* 0: any age */
} flp_records_command;

/* What is known here. An exit code; the caller destroys *records, also after a failure. */
int flp_records_open(const flp_records_command *command, flp_records **records, const flp_record_files **files);

/* A directory's records, or an export's, which may be "-", standard input. An exit code. */
int flp_records_read_named(const char *path, flp_record_files *files);

/* As JSON has it; NULL: no memory. */
json_t *flp_records_pack(const flp_record_file *file);

/* The actions; each returns an exit code. */
int flp_records_export(const flp_records_command *command);
int flp_records_import(const flp_records_command *command);
int flp_records_diff(const flp_records_command *command);
int flp_records_lint(const flp_records_command *command);
int flp_records_prune(const flp_records_command *command);
#endif
