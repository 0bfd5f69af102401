/* A file's bytes, mapped: a file larger than the memory works too. What happens to it meanwhile is an error, never a crash or old zeros. */
#ifndef FLP_CLI_MAPPED_FILE_H
#define FLP_CLI_MAPPED_FILE_H
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

typedef struct {
    void *bytes;
    size_t count; /* NULL: closed */
    int descriptor, guard;
    struct stat facts; /* when it was opened */
} flp_mapped_file;

/* Only regular files that are not empty: FLP_IO_FAILED and FLP_BAD_ARGUMENT say what path is instead, without naming it. A byte
 * that cannot be read later, because the file was cut short or its disk fails, ends the process: a message that names path, then
 * FLP_EXIT_FAILED. */
flp_status flp_mapped_file_open(const char *path, flp_mapped_file *file);
/* FLP_IO_FAILED: the file has another size or was written to since it was opened, so what was read may be of either state. */
flp_status flp_mapped_file_check(const flp_mapped_file *file);
void flp_mapped_file_close(flp_mapped_file *file); /* a zeroed one is allowed */
#endif
