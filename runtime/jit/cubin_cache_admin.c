/* Administration of a cache: its facts, listing and clearing it, and keeping the source of a kernel that did not compile. */
#include <errno.h>
#include <fcntl.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "jit/cubin_cache.h"
#include "jit/cubin_cache_state.h"

/* 1: a directory that does not exist yet could be created, because the nearest existing directory above it is writable. */
static int can_be_made(const char *path)
{
    char part[FLP_CUBIN_CACHE_PATH_BYTES];
    char *slash;

    snprintf(part, sizeof(part), "%s", path);
    while (access(part, F_OK) != 0 && errno == ENOENT && (slash = strrchr(part, '/')) && slash != part)
        *slash = 0;
    return access(part, W_OK | X_OK) == 0;
}

/* The user's directory as it is; -1, with this thread's error message and errno, where there is none or it is refused. Nothing is warned of. */
static int open_user(const flp_cubin_cache *cache)
{
    int directory = -1;

    if (cache->user[0])
        flp_cubin_cache_directory_open(cache->user, FLP_CUBIN_CACHE_USER, &directory);
    return directory;
}

static int64_t count_kernels(const flp_cubin_cache_list *list)
{
    return (int64_t)list->count - list->sources - list->refused_files;
}

void flp_cubin_cache_describe(flp_cubin_cache *cache, flp_cubin_cache_facts *facts)
{
    flp_cubin_cache_list list;
    int directory;

    *facts = (flp_cubin_cache_facts){ 0 };
    snprintf(facts->directory, sizeof(facts->directory), "%s", cache->user);
    if (!cache->user[0])
        return;
    directory = open_user(cache);
    if (directory < 0) {
        if (errno == ENOENT)
            facts->writable = can_be_made(cache->user);
        else
            snprintf(facts->refusal, sizeof(facts->refusal), "%s", flp_error_message());
        return;
    }
    flp_cubin_cache_list_read(directory, 0, &list);
    facts->files = count_kernels(&list);
    facts->sources = list.sources;
    facts->bytes = list.bytes - list.refused_bytes;
    facts->refused = list.refused;
    facts->writable = faccessat(directory, ".", W_OK | X_OK, 0) == 0;
    free(list.items);
    close(directory);
}

int flp_cubin_cache_describe_system(flp_cubin_cache *cache, int index, flp_cubin_cache_system_facts *facts)
{
    const char *next = cache->systems;
    flp_cubin_cache_list list;
    int directory;

    *facts = (flp_cubin_cache_system_facts){ .there = 1 };
    for (int i = 0; i <= index; i++)
        if (!flp_cubin_cache_state_next_system(&next, facts->directory))
            return 0;
    if (flp_cubin_cache_directory_open(facts->directory, FLP_CUBIN_CACHE_SYSTEM, &directory) != FLP_OK) {
        facts->there = errno != ENOENT;
        snprintf(facts->refusal, sizeof(facts->refusal), "%s", facts->there ? flp_error_message() : "there is no such directory");
        return 1;
    }
    flp_cubin_cache_list_read(directory, 0, &list);
    facts->files = count_kernels(&list);
    facts->sources = list.sources;
    facts->bytes = list.bytes - list.refused_bytes;
    facts->refused = list.refused;
    free(list.items);
    close(directory);
    return 1;
}

void flp_cubin_cache_visit(flp_cubin_cache *cache, int (*visit)(void *data, const char *file, const char *variant, int64_t bytes), void *data)
{
    flp_cubin_cache_list list;
    int stop = 0, directory = open_user(cache);

    if (directory < 0)
        return;
    flp_cubin_cache_list_read(directory, 0, &list);
    for (size_t i = 0; i < list.count && !stop; i++) {
        flp_cubin cubin;

        if (list.items[i].is_source)
            continue;
        flp_cubin_cache_state_read(directory, list.items[i].name, NULL, 0, &cubin);
        stop = visit(data, list.items[i].name, cubin.variant, list.items[i].bytes);
        flp_cubin_free(&cubin);
    }
    free(list.items);
    close(directory);
}

int64_t flp_cubin_cache_clear(flp_cubin_cache *cache)
{
    flp_cubin_cache_list list;
    int64_t removed = 0;
    int directory = open_user(cache);

    if (directory < 0)
        return 0;
    flp_cubin_cache_list_read(directory, 1, &list);
    for (size_t i = 0; i < list.count; i++)
        removed += unlinkat(directory, list.items[i].name, 0) == 0 && !list.items[i].is_source;
    unlinkat(directory, FLP_CUBIN_CACHE_FAILED, AT_REMOVEDIR);
    unlinkat(directory, "builds", 0);
    free(list.items);
    close(directory);
    return removed;
}

/* Makes a file name of a variant's string: characters that mean something in a shell or a path become '_'. */
static void make_file_name(const char *variant, char *name, size_t bytes)
{
    snprintf(name, bytes, "%.200s.cu", variant);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-:", *c))
            *c = '_';
    if (name[0] == '.')
        name[0] = '_';
}

flp_status flp_cubin_cache_keep_source(flp_cubin_cache *cache, const char *variant, const char *source, size_t source_bytes, char path[4096])
{
    char name[256];
    int failed, directory = flp_cubin_cache_state_open_user(cache, 1);
    flp_status status;

    path[0] = 0;
    if (directory < 0)
        return FLP_IO_FAILED;
    make_file_name(variant, name, sizeof(name));
    status = flp_cubin_cache_directory_open_inside(directory, FLP_CUBIN_CACHE_FAILED, flp_cubin_cache_state_mode(cache), &failed);
    if (status != FLP_OK) {
        close(directory);
        return status;
    }
    if (snprintf(path, 4096, "%s/" FLP_CUBIN_CACHE_FAILED "/%s", cache->user, name) >= 4096)
        status = flp_status_fail(FLP_IO_FAILED, "failed/%s: the path is too long in %s", name, cache->user);
    else
        status = flp_file_publish_as(failed, name, flp_cubin_cache_state_file_mode(flp_cubin_cache_state_mode(cache)), source, source_bytes);
    close(failed);
    if (status == FLP_OK)
        flp_cubin_cache_list_trim(directory, cache->limit);
    close(directory);
    if (status != FLP_OK)
        path[0] = 0;
    return status;
}
