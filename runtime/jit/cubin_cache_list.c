/* Lists a cache directory's kernels and kept sources, and removes the least recently used. */
#include "jit/cubin_cache_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "jit/cubin_cache_lock.h"

/* A last use further in the future than this is not believed: by so much may the clocks of machines that share the directory differ. */
enum { FUTURE_SECONDS = 3600 };

static int ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static void append(flp_cubin_cache_list *list, const char *subdirectory, const char *name, int is_source, const struct stat *facts)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        flp_cubin_cache_item *items = realloc(list->items, capacity * sizeof(*items));

        if (!items)
            return;
        list->items = items;
        list->capacity = capacity;
    }
    flp_cubin_cache_item *item = &list->items[list->count];
    if ((size_t)snprintf(item->name, sizeof(item->name), "%s/%s", subdirectory, name) >= sizeof(item->name))
        return;
    item->is_source = is_source;
    item->bytes = facts->st_size;
    item->used = facts->st_mtim;
    list->bytes += item->bytes;
    list->sources += is_source;
    list->count++;
}

static void refuse(flp_cubin_cache_list *list, const struct stat *facts)
{
    list->refused++;
    list->refused_files++;
    list->refused_bytes += facts->st_size;
}

static void sweep_leftover(int directory, const char *name, const struct stat *facts)
{
    if (!flp_file_is_leftover(facts))
        return;
    if (strstr(name, FLP_FILE_PRIVATE_MARK))
        unlinkat(directory, name, 0);
    else if (ends_with(name, ".lock"))
        flp_cubin_cache_lock_sweep(directory, name);
}

static void read_subdirectory(int parent, const char *subdirectory, int sweep, flp_cubin_cache_list *list)
{
    const int of_sources = strcmp(subdirectory, FLP_CUBIN_CACHE_FAILED) == 0;
    int directory;
    DIR *stream;
    struct dirent *entry;

    if (flp_cubin_cache_directory_open_inside(parent, subdirectory, 0, &directory) != FLP_OK) {
        list->refused += errno != ENOENT;
        return;
    }
    stream = fdopendir(directory);
    if (!stream) {
        close(directory);
        return;
    }
    while ((entry = readdir(stream))) {
        struct stat facts;

        if (fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
            continue;
        if (ends_with(entry->d_name, of_sources ? ".cu" : ".flpk")) {
            append(list, subdirectory, entry->d_name, of_sources, &facts);
            if (of_sources)
                continue;
            if (!flp_cubin_cache_directory_trusts(&facts) || faccessat(directory, entry->d_name, R_OK, AT_EACCESS) != 0)
                refuse(list, &facts);
        } else if (sweep)
            sweep_leftover(directory, entry->d_name, &facts);
    }
    closedir(stream);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const flp_cubin_cache_item *)left)->name, ((const flp_cubin_cache_item *)right)->name);
}

static int by_use(const void *left, const void *right)
{
    const struct timespec *a = &((const flp_cubin_cache_item *)left)->used, *b = &((const flp_cubin_cache_item *)right)->used;

    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    if (a->tv_nsec != b->tv_nsec)
        return a->tv_nsec < b->tv_nsec ? -1 : 1;
    return by_name(left, right);
}

void flp_cubin_cache_list_read(int directory, int sweep, flp_cubin_cache_list *list)
{
    *list = (flp_cubin_cache_list){ 0 };
    for (int i = 0; i < 256; i++) {
        char name[3];

        snprintf(name, sizeof(name), "%02x", i);
        read_subdirectory(directory, name, sweep, list);
    }
    read_subdirectory(directory, FLP_CUBIN_CACHE_FAILED, sweep, list);
    if (list->count)
        qsort(list->items, list->count, sizeof(list->items[0]), by_name);
}

/* When files were used that have a time in the future, of a clock that was ahead, is not known: they count as the oldest. Else they would outlive all others. */
static void forget_future(flp_cubin_cache_list *list)
{
    const time_t now = time(NULL);

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].used.tv_sec > now + FUTURE_SECONDS)
            list->items[i].used = (struct timespec){ 0 };
}

void flp_cubin_cache_list_trim(int directory, int64_t limit)
{
    flp_cubin_cache_list list;

    flp_cubin_cache_list_read(directory, 1, &list);
    forget_future(&list);
    if (list.bytes > limit)
        qsort(list.items, list.count, sizeof(list.items[0]), by_use);
    for (size_t i = 0; i < list.count && list.bytes > limit; i++) {
        if (unlinkat(directory, list.items[i].name, 0) == 0)
            flp_log_debug("cache: %s removed, %lld bytes were over the limit", list.items[i].name, (long long)(list.bytes - limit));
        list.bytes -= list.items[i].bytes;
    }
    free(list.items);
}
