/* Reads, and appends to, the file `builds` of a cache directory: the NVRTC builds whose kernels are stored there. */
#include "jit/cubin_cache_state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "jit/cubin_cache_directory.h"

enum { LONGEST_BUILD = 95 };

static int is_build(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++)
        if (!isgraph((unsigned char)name[i]))
            return 0;
    return length >= 1 && length <= LONGEST_BUILD;
}

/* The file may name a build twice, where two processes added it at once. */
static int known(const flp_cubin_cache_builds *builds, const char *name)
{
    for (size_t i = 0; i < builds->count; i++)
        if (strcmp(builds->names[i], name) == 0)
            return 1;
    return 0;
}

static void split_lines(flp_cubin_cache_builds *builds, size_t bytes)
{
    char *rest = NULL;

    builds->names = calloc(bytes / 2 + 1, sizeof(*builds->names));
    for (char *line = builds->names ? strtok_r(builds->text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (is_build(line) && !known(builds, line))
            builds->names[builds->count++] = line;
}

void flp_cubin_cache_builds_read(int directory, flp_cubin_cache_builds *builds)
{
    struct stat facts;
    size_t bytes;
    int file = flp_cubin_cache_directory_open_file(directory, "builds", &facts);

    *builds = (flp_cubin_cache_builds){ 0 };
    if (file < 0)
        return;
    if (flp_file_read_descriptor(file, "builds", &builds->text, &bytes) == FLP_OK)
        split_lines(builds, bytes);
    close(file);
}

void flp_cubin_cache_builds_free(flp_cubin_cache_builds *builds)
{
    free(builds->names);
    free(builds->text);
    *builds = (flp_cubin_cache_builds){ 0 };
}

/* The leading newline ends a previous line that was cut short by a full disk. */
static flp_status append_line(int directory, unsigned mode, const char *build)
{
    char line[LONGEST_BUILD + 3];
    int length = snprintf(line, sizeof(line), "\n%s\n", build);

    return flp_file_append(directory, "builds", mode, line, (size_t)length);
}

flp_status flp_cubin_cache_builds_add(int directory, unsigned mode, const char *build)
{
    flp_cubin_cache_builds builds;
    flp_status status = FLP_OK;

    if (!is_build(build))
        return flp_status_fail(FLP_INTERNAL, "NVRTC build \"%s\": wanted 1 .. %d printable characters", build, LONGEST_BUILD);
    flp_cubin_cache_builds_read(directory, &builds);
    if (!known(&builds, build))
        status = append_line(directory, mode, build);
    flp_cubin_cache_builds_free(&builds);
    return status;
}
