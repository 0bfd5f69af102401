/* Tuning records as files, and the records that a process knows. These are the records of the user's directory, which take precedence, and those of read-only
 * system directories. They are read once, at the first call that looks for one. All calls may come from any thread. */
#ifndef FLP_TUNE_RECORDS_H
#define FLP_TUNE_RECORDS_H
#include "base/text.h"
#include "tune/record.h"

/* ---- records in directories, one a file, and in exports: the texts of records in order, with an empty line between two of them ---- */

typedef struct {
    char *place;    /* the directory's path, or the export's and the line there */
    char name[256]; /* the file's; in an export the name that its file would have; "" where that is not known */
    char *text;     /* NULL: it cannot be read */
    char *fault;    /* why it is no record; NULL: it is one */
    int unreadable; /* 1: the system refused to read it, so that nothing is known of what it holds */
} flp_record_file;

typedef struct {
    flp_record_file *files;
    size_t count, capacity;
} flp_record_files;

void flp_record_files_free(flp_record_files *files);

/* Appends the files of a directory whose names end in ".record", sorted by name. Other files are ignored.
 * FLP_IO_FAILED: it cannot be listed (errno is ENOENT where it is missing). FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_read(const char *directory, flp_record_files *files);

/* Appends the entries of an export. place: its name, for messages. FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_split(const char *place, const char *export, flp_record_files *files);

/* Appends the export of those files that are records, sorted by their texts. Of files with the same name only the first is exported. FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_join(const flp_record_files *files, flp_text *export);

/* Puts a record into the list, in place of the one of the same directory and name, or in front if there is none. FLP_BAD_ARGUMENT: it is not a valid record;
 * FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_put(flp_record_files *files, const char *directory, const flp_record *record);

/* Writes a record into a directory, which is made where it is missing. FLP_BAD_ARGUMENT: it is not a valid record; FLP_IO_FAILED; FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_publish(const char *directory, const flp_record *record);

/* Deletes a file from its directory and removes it from the list. It is no failure if the file is gone already. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_record_files_remove(flp_record_files *files, size_t number);

/* ---- what a process knows ---- */

typedef struct flp_records flp_records;

typedef struct {
    const char *directory;          /* the user's; NULL: $FUSEDLOGP_RECORDS_DIR, $XDG_DATA_HOME/fusedlogp/records, ~/.local/share/fusedlogp/records;
                                     * "": none */
    const char *system_directories; /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_RECORDS, else what was configured */
} flp_records_options;

/* Reads nothing yet. If there is no user's directory, or it cannot be determined, the user has no records. FLP_OUT_OF_MEMORY. */
flp_status flp_records_create(const flp_records_options *options, flp_records **records);
void flp_records_destroy(flp_records *records);

/* The user's directory, absolute; "" where there is none. */
const char *flp_records_directory(const flp_records *records);

typedef enum { FLP_RECORD_NONE, FLP_RECORD_EXACT, FLP_RECORD_NEARBY } flp_record_match;

/* Finds the record of an identity. It is exact where the environment is the same too, else nearby. Of several nearby records, one of the same device is taken,
 * else the one whose number of multiprocessors, then L2 cache, then power limit is closest, else the first by name. Damaged files are ignored.
 * FLP_OUT_OF_MEMORY. */
flp_status flp_records_find(flp_records *records, const flp_record_identity *identity, const flp_environment *environment, flp_record *record,
                            flp_record_match *match);

/* Compares the environments of two records of one problem. 1: `one` is closer to `here`; 0: `other` is, or both are as close. */
int flp_records_is_closer(const flp_environment *one, const flp_environment *other, const flp_environment *here);

/* Calls visit with each record, the user's first, until it returns 1. No other thread can publish meanwhile. FLP_OUT_OF_MEMORY. */
flp_status flp_records_visit(flp_records *records, int (*visit)(void *data, const flp_record *record), void *data);

/* Writes a record to the user's directory, in place of one of the same identity and environment. Later calls of flp_records_find find it. FLP_BAD_ARGUMENT: it
 * is not a valid record; FLP_IO_FAILED: it could not be written, and only this process knows it. */
flp_status flp_records_publish(flp_records *records, const flp_record *record);

/* Removes the records of the user's directory for which `goes` returns 1. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_records_remove(flp_records *records, int (*goes)(void *data, const flp_record *record), void *data);

/* Reads all records again, and so those that other processes have published meanwhile. FLP_OUT_OF_MEMORY. */
flp_status flp_records_read_again(flp_records *records);

/* All files that were read: the user's, then the system directories' in their order. The list is valid until the records are changed or destroyed, which no
 * other thread may do meanwhile. FLP_OUT_OF_MEMORY. */
flp_status flp_records_list(flp_records *records, const flp_record_files **files);
#endif
