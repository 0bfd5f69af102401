/* A file that a user named for results: finds what the name leads to, and writes there. */
#ifndef FLP_CLI_OUTPUT_FILE_H
#define FLP_CLI_OUTPUT_FILE_H
#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

typedef enum { FLP_OUTPUT_NEW, FLP_OUTPUT_REGULAR, FLP_OUTPUT_STREAM, FLP_OUTPUT_STDOUT } flp_output_kind;

typedef struct {
    flp_output_kind kind;
    char path[PATH_MAX]; /* with all symbolic links resolved; FLP_OUTPUT_STREAM: as given */
    int descriptor;      /* of a stream that is named by its descriptor, as /dev/fd/3 and /dev/stderr; else -1 */
    struct stat facts;   /* of the file; FLP_OUTPUT_NEW: of the folder that it will be in */
} flp_output_file;

/* Finds what path leads to now, through symbolic links, also dangling ones; "-" is standard output, which may not be a terminal. FLP_IO_FAILED: its folder is
 * missing or takes no file (also for one that exists: what is written beside it takes its place), it is a folder itself, its links form a circle, or it is a
 * descriptor or standard output that is closed or only read; the message starts with path. */
flp_status flp_output_file_find(const char *path, flp_output_file *file);
/* 1 where what is written to path is part of standard output, whatever its name: "-", /dev/stdout, /dev/fd/1, or the file that standard output goes to. 0 for
 * a character device that is no terminal (/dev/null), since nothing can be mixed there. */
int flp_output_file_is_standard_output(const char *path);
/* 1 where writing both would leave only one of them: a file under two names, or the same new name. 0 for a character device (/dev/null): it keeps nothing. */
int flp_output_file_is(const flp_output_file *file, const flp_output_file *other);

/* Writes bytes[count] to path. A regular or new file is written completely or not at all, an existing one keeps its mode, and links to it stay links. A
 * stream (pipe, device, descriptor, standard output) gets the bytes as they come. FLP_IO_FAILED. */
flp_status flp_output_file_write(const char *path, const void *bytes, size_t count);
#endif
