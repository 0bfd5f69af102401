/* Records as they lie in directories, one a file, and in an export, which is their texts in order with an empty line between each two. */
#ifndef FLP_TUNE_RECORD_FILES_H
#define FLP_TUNE_RECORD_FILES_H
#include "base/text.h"
#include "tune/record.h"

typedef struct {
    char *place;    /* the directory's path, or the export's and the line there */
    char name[256]; /* the file's; one of an export has the name that its file would have; "" where neither is known */
    char *text;     /* NULL: it cannot be read */
    char *fault;    /* why it is no record; NULL: it is one */
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
#endif
