/* A file that a user named for results: what the name leads to, and writing there. */
#ifndef FLP_CLI_OUTPUT_FILE_H
#define FLP_CLI_OUTPUT_FILE_H
#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

typedef enum { FLP_OUTPUT_NEW, FLP_OUTPUT_REGULAR, FLP_OUTPUT_STREAM, FLP_OUTPUT_STDOUT } flp_output_kind;

typedef struct {
    flp_output_kind kind;
    char path[PATH_MAX]; /* behind all symbolic links; FLP_OUTPUT_STREAM: as given */
    struct stat facts;   /* of the file; FLP_OUTPUT_NEW: of the folder that it will lie in */
} flp_output_file;

/* What path leads to now, through symbolic links, dangling ones too; -: standard output, which may not be a terminal. FLP_IO_FAILED: its folder is missing, it is a folder itself,
 * links in a circle; the message starts with path. */
flp_status flp_output_file_find(const char *path, flp_output_file *file);
/* 1 where writing both would leave one: a file under two names, or the same new name. A character device (/dev/null) keeps nothing. */
int flp_output_file_is(const flp_output_file *file, const flp_output_file *other);

/* A regular or a new file appears whole or not at all, with the mode of the one before it, and links to it stay links. A stream (pipe,
 * device, standard output) gets the bytes as they come. FLP_IO_FAILED. */
flp_status flp_output_file_write(const char *path, const void *bytes, size_t count);
#endif
