/* A directory for one test, removed behind it. */
#ifndef FLP_TESTS_FAKE_DIRECTORY_H
#define FLP_TESTS_FAKE_DIRECTORY_H
#include <stddef.h>

/* Makes an empty directory of mode 0700; the path lives until the next one is made. */
const char *fake_directory_make(void);
/* Removes a directory and all that is in it. */
void fake_directory_remove(const char *path);

/* "DIRECTORY/NAME"; lives until the eighth call from here. */
const char *fake_directory_path(const char *directory, const char *name);
void fake_directory_write(const char *path, const void *bytes, size_t count);
/* malloc'ed, with a 0 byte behind the end; NULL where there is no such file. */
char *fake_directory_read(const char *path, size_t *count);
/* How many plain files lie in it, at any depth, whose name contains part. */
int fake_directory_count(const char *path, const char *part);
#endif
