/* fusedlogp records: shows and maintains the records of tunings in the user's directory and in the system directories. */
#ifndef FLP_CLI_RECORDS_H
#define FLP_CLI_RECORDS_H
#include <jansson.h>
#include "tune/records.h"

typedef struct {
    char **words; /* after the action's name */
    int count;
    const char *directory, *out; /* NULL: the defaults */
    int all, json, quiet, dry_run, other_library;
    int older_than_days; /* 0: any age */
} flp_records_command;

/* What a command opens records for: to show them; for what needs all of the user's (export, lint, diff, prune); to add to them, in a directory that it makes. */
typedef enum { FLP_RECORDS_SHOWN, FLP_RECORDS_NEEDED, FLP_RECORDS_ADDED } flp_records_use;

/* Opens the records that this machine knows and lists their files. It is an error if the user's directory cannot be listed, or is named by the command and
 * missing; but a directory that nobody named is passed over with the library's warning where records are only shown. Returns an exit code; the caller destroys
 * *records, also after a failure. */
int flp_records_open(const flp_records_command *command, flp_records_use use, flp_records **records, const flp_record_files **files);

/* Appends the records of path: a directory, an export or, as "-", an export on standard input. Returns an exit code. */
int flp_records_read_named(const char *path, flp_record_files *files);

/* A record, or what is wrong with it, as a JSON object that the caller releases; NULL: out of memory. */
json_t *flp_records_pack(const flp_record_file *file);

/* The actions; each returns an exit code. */
int flp_records_export(const flp_records_command *command);
int flp_records_import(const flp_records_command *command);
int flp_records_diff(const flp_records_command *command);
int flp_records_lint(const flp_records_command *command);
int flp_records_prune(const flp_records_command *command);
#endif
