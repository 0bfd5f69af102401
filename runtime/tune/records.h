/* The records that a process knows: those of the user's directory, over those of read-only system directories. They are read once, at the first call
 * that looks for one. All calls may come from any thread. */
#ifndef FLP_TUNE_RECORDS_H
#define FLP_TUNE_RECORDS_H
#include "tune/records.h"
#include "base/text.h"
#include "tune/record.h"

/* ---- as they lie in directories, one a file, and in an export, which is their texts in order with an empty line between each two ---- */

typedef struct {
    char *place;    /* the directory's path, or the export's and the line there */
    char name[256]; /* the file's; one of an export has the name that its file would have; "" where neither is known */
    char *text;     /* NULL: it cannot be read */
    char *fault;    /* why it is no record; NULL: it is one */
    int unreadable; /* 1: the system refused to read it, so that nothing is known of what it holds */
} flp_record_file;

typedef struct {
    flp_record_file *files;
    size_t count, capacity;
} flp_record_files;

void flp_record_files_free(flp_record_files *files);

/* Appends what a directory holds: every name that ends in ".record", in their order. What lies there else is not looked at.
 * FLP_IO_FAILED: it cannot be listed (errno is ENOENT where it is missing). FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_read(const char *directory, flp_record_files *files);

/* Appends the entries of an export, which place names in messages. FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_split(const char *place, const char *export, flp_record_files *files);

/* Appends the export of files that are records: each once, the first of a name, in the order of their texts. FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_join(const flp_record_files *files, flp_text *export);

/* Puts a record of a directory in the place of the one there of the same name, else in front. FLP_BAD_ARGUMENT: no record; FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_put(flp_record_files *files, const char *directory, const flp_record *record);

/* Writes a record into a directory, which is made where it is missing. FLP_BAD_ARGUMENT: no record; FLP_IO_FAILED; FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_publish(const char *directory, const flp_record *record);

/* Removes a file of a directory, there and from the list. FLP_IO_FAILED; that it is gone already is no failure. */
flp_status flp_record_files_remove(flp_record_files *files, size_t number);

/* ---- what a process knows ---- */

typedef struct flp_records flp_records;

typedef struct {
    const char *directory;          /* the user's; NULL: $FUSEDLOGP_RECORDS_DIR, $XDG_DATA_HOME/fusedlogp/records, ~/.local/share/fusedlogp/records;
                                     * "": none */
    const char *system_directories; /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_RECORDS, else what was configured */
} flp_records_options;

/* Reads nothing yet, and never fails for a directory's sake: none that can be named is as one that is empty. FLP_OUT_OF_MEMORY. */
flp_status flp_records_create(const flp_records_options *options, flp_records **records);
void flp_records_destroy(flp_records *records);

/* The user's directory, absolute; "" where there is none. */
const char *flp_records_directory(const flp_records *records);

typedef enum { FLP_RECORD_NONE, FLP_RECORD_EXACT, FLP_RECORD_NEARBY } flp_record_match;

/* The record of an identity: exact where the environment is the same too. Of several nearby ones that of the same device, then that whose
 * multiprocessors, L2 cache and power limit, in this order, are closest, then the first name. What is damaged is as if it were not there. FLP_OUT_OF_MEMORY. */
flp_status flp_records_find(flp_records *records, const flp_record_identity *identity, const flp_environment *environment, flp_record *record,
                            flp_record_match *match);

/* Two records of one problem: 1 where the first one's environment is closer to this one, 0 where the second's is or both are as close. */
int flp_records_is_closer(const flp_environment *one, const flp_environment *other, const flp_environment *here);

/* Calls visit with each record until one is answered with 1, the user's first, while no other thread can publish. FLP_OUT_OF_MEMORY. */
flp_status flp_records_visit(flp_records *records, int (*visit)(void *data, const flp_record *record), void *data);

/* Into the user's directory, over what was there of the same problem and machine; later calls of find know it. FLP_BAD_ARGUMENT: no record;
 * FLP_IO_FAILED: it could not be written, and this process alone knows it. */
flp_status flp_records_publish(flp_records *records, const flp_record *record);

/* Removes those of the user's directory that `goes` answers with 1. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_records_remove(flp_records *records, int (*goes)(void *data, const flp_record *record), void *data);

/* Takes in what other processes have published since. FLP_OUT_OF_MEMORY. */
flp_status flp_records_read_again(flp_records *records);

/* What was read, the user's before the systems' in their order; for one who has the records to itself, until they are published to or destroyed.
 * FLP_OUT_OF_MEMORY. */
flp_status flp_records_list(flp_records *records, const flp_record_files **files);
#endif
