/* A temporary directory for one test, which removes it at its end. */
#ifndef FLP_TESTS_FAKE_DIRECTORY_H
#define FLP_TESTS_FAKE_DIRECTORY_H
#include <stddef.h>

/* Makes an empty directory of mode 0700; the path lives until the next one is made. */
const char *fake_directory_make(void);
/* Removes a directory with all that is in it. */
void fake_directory_remove(const char *path);

/* "DIRECTORY/NAME"; lives until the eighth call from here. */
const char *fake_directory_path(const char *directory, const char *name);
void fake_directory_write(const char *path, const void *bytes, size_t count);
/* malloc'ed, with a 0 byte after the end; NULL if there is no such file. */
char *fake_directory_read(const char *path, size_t *count);
/* The number of plain files in it, at any depth, whose names contain part. */
int fake_directory_count(const char *path, const char *part);
#endif
