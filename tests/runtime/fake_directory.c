/* Temporary directories and small files of the tests. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif
#include "fake_directory.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *wanted_part;
static int counted;

const char *fake_directory_make(void)
{
    static char path[64];

    strcpy(path, "/tmp/flp-test-XXXXXX");
    if (!mkdtemp(path))
        abort();
    return path;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

void fake_directory_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fake_directory_path(const char *directory, const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;

    next = (next + 1) % 8;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", directory, name);
    return paths[next];
}

void fake_directory_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    if (!file || (count && fwrite(bytes, count, 1, file) != 1) || fclose(file) != 0)
        abort();
}

char *fake_directory_read(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    char *bytes;

    if (!file)
        return NULL;
    if (fstat(fileno(file), &facts) != 0 || !(bytes = malloc((size_t)facts.st_size + 1)))
        abort();
    *count = fread(bytes, 1, (size_t)facts.st_size, file);
    bytes[*count] = 0;
    fclose(file);
    return bytes;
}

static int count_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    counted += kind == FTW_F && strstr(path + place->base, wanted_part) != NULL;
    return 0;
}

int fake_directory_count(const char *path, const char *part)
{
    wanted_part = part;
    counted = 0;
    nftw(path, count_one, 16, FTW_PHYS);
    return counted;
}
