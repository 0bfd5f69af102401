/* Reads whole files, appends to files, and publishes files atomically: neither a crash nor a second writer leaves half a file. */
#ifndef FLP_BASE_FILE_H
#define FLP_BASE_FILE_H
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

/* Part of the temporary name under which flp_file_publish writes. A file of such a name that remains was left by a killed process. */
#define FLP_FILE_PRIVATE_MARK ".writing-"

/* 1: a file of these facts that a process may still have been writing was left by one that was killed: it is an hour old, or so far in the future that a clock
 * must have been ahead. */
int flp_file_is_leftover(const struct stat *facts);

/* Reads a whole file into malloc'ed *bytes, with a 0 byte after the end that *count does not include. path is relative to a directory descriptor
 * (or AT_FDCWD). FLP_IO_FAILED names path and reason, and errno is the reason; FLP_OUT_OF_MEMORY. */
flp_status flp_file_read(int directory, const char *path, char **bytes, size_t *count);

/* The same; a file that does not exist, or whose directory does not, reads as an empty one. */
flp_status flp_file_read_if_any(int directory, const char *path, char **bytes, size_t *count);

/* As flp_file_read for an open descriptor, which stays open; path is its name in messages. */
flp_status flp_file_read_descriptor(int file, const char *path, char **bytes, size_t *count);

/* Writes a temporary file in the same directory, fsyncs it and renames it to path: a reader sees the old file, the new one
 * or none, never a part. On failure no file is left. FLP_IO_FAILED names path and reason, and errno is the reason. */
flp_status flp_file_publish(int directory, const char *path, const void *bytes, size_t count);

/* The same for a file of this mode, less what the umask takes; flp_file_publish has 0644. */
flp_status flp_file_publish_as(int directory, const char *path, unsigned mode, const void *bytes, size_t count);

/* Appends the bytes by one write, beside other writers; creates the file, with this mode less what the umask takes. A symbolic link is refused. FLP_IO_FAILED
 * names path and reason. */
flp_status flp_file_append(int directory, const char *path, unsigned mode, const void *bytes, size_t count);

/* mkdir -p with mode; an existing directory is no error. FLP_IO_FAILED names path and reason, and errno is the reason. */
flp_status flp_file_make_directories(const char *path, unsigned mode);
#endif
