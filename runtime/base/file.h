/* Files: whole reads, and publishing that a crash or a second writer cannot tear. */
#ifndef FLP_BASE_FILE_H
#define FLP_BASE_FILE_H
#include <stddef.h>
#include "fusedlogp.h"

/* Part of the private name under which flp_file_publish writes; a file with it that stays behind belongs to a killed process. */
#define FLP_FILE_PRIVATE_MARK ".writing-"

/* Reads a whole file below a directory descriptor (or AT_FDCWD) into malloc'ed *bytes with a 0 byte behind the end.
 * FLP_IO_FAILED names path and reason; errno is kept. */
flp_status flp_file_read(int directory, const char *path, char **bytes, size_t *count);

/* The same for an open descriptor, which stays open; path is what messages call it. */
flp_status flp_file_read_descriptor(int file, const char *path, char **bytes, size_t *count);

/* Writes a private name in the same directory, fsyncs it, renames it over path: a reader sees the old file, the new one
 * or none, never a part. On failure nothing stays behind. FLP_IO_FAILED names path and reason; errno is kept. */
flp_status flp_file_publish(int directory, const char *path, const void *bytes, size_t count);

/* mkdir -p with mode; an existing directory is fine. FLP_IO_FAILED; errno is kept. */
flp_status flp_file_make_directories(const char *path, unsigned mode);
#endif
