/* A file's bytes, memory-mapped, so that a file may be larger than the memory. A file that changes meanwhile is reported as an error: it never crashes the
 * program, and the zeros past the end of a shortened file are never taken for data. */
#ifndef FLP_CLI_MAPPED_FILE_H
#define FLP_CLI_MAPPED_FILE_H
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

typedef struct {
    void *bytes; /* NULL: closed */
    size_t count;
    int descriptor, guard; /* descriptor: -1 once forgotten. guard: an index of the signal handler's table; -1: none */
    struct stat facts;     /* when it was opened */
} flp_mapped_file;

/* Maps a regular file that is not empty. FLP_IO_FAILED, FLP_BAD_ARGUMENT: what path is instead; the message does not name path. If a byte cannot be read
 * later, because the file was cut short or its disk fails, the process prints a message that names path and exits with FLP_EXIT_FAILED. */
flp_status flp_mapped_file_open(const char *path, flp_mapped_file *file);
/* FLP_IO_FAILED: the file has another size or was written to since it was opened, so what was read may be of either state. */
flp_status flp_mapped_file_check(const flp_mapped_file *file);
/* Closes the descriptor of a file that will not be checked, so that any number of files can be mapped. */
void flp_mapped_file_forget(flp_mapped_file *file);
void flp_mapped_file_close(flp_mapped_file *file); /* a zeroed one is allowed */
#endif
