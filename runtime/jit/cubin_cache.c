/* Loads compiled kernels from the user's and the system's cache directories, and stores and removes them in the user's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "jit/cubin_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "jit/cubin_cache_directory.h"
#include "jit/cubin_cache_file.h"
#include "jit/cubin_cache_state.h"

#ifndef FUSEDLOGP_SYSTEM_CACHE_DIRS
#define FUSEDLOGP_SYSTEM_CACHE_DIRS ""
#endif

static const int64_t default_bytes = INT64_C(1) << 30;
/* A hit updates the file's modification time, by which the least recently used files are found, at most this often, so that hits cause few writes. */
enum { REFRESH_SECONDS = 3600 };

/* Logs, once for each cache, that kernels are not stored; this thread's error message is the reason. A directory that cannot be used
 * slows every start, but is no error. */
static void warn_once(flp_cubin_cache *cache)
{
    if (!atomic_flag_test_and_set(&cache->warned))
        flp_log_warning("kernels stay in memory only: %s%s%s", cache->user, cache->user[0] ? ": " : "", flp_error_message());
}

flp_status flp_cubin_cache_create(const flp_cubin_cache_options *options, flp_cubin_cache **cache)
{
    const char *systems = options->system_directories ? options->system_directories : secure_getenv("FUSEDLOGP_SYSTEM_CACHE");
    flp_cubin_cache *made = calloc(1, sizeof(*made));

    *cache = NULL;
    if (!made || !(made->systems = flp_text_duplicate(systems ? systems : FUSEDLOGP_SYSTEM_CACHE_DIRS))) {
        free(made);
        return flp_status_fail(FLP_OUT_OF_MEMORY, "kernel cache: no memory");
    }
    made->shared = options->shared;
    made->limit = options->bytes ? options->bytes : default_bytes;
    pthread_mutex_init(&made->locks.mutex, NULL);
    if (flp_cubin_cache_directory_resolve(options->directory, made->user) != FLP_OK)
        warn_once(made);
    *cache = made;
    return FLP_OK;
}

void flp_cubin_cache_destroy(flp_cubin_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->locks.mutex);
    free(cache->systems);
    free(cache);
}

/* Never 0775, because a directory that its group may write to is refused. */
unsigned flp_cubin_cache_state_mode(const flp_cubin_cache *cache)
{
    return cache->shared ? 0755 : 0700;
}

unsigned flp_cubin_cache_state_file_mode(unsigned mode)
{
    return mode & 0666;
}

/* What was made before the cache was shared is private. */
static void share(int directory, unsigned mode)
{
    struct stat facts;
    int builds;

    flp_cubin_cache_directory_share(directory, mode);
    builds = flp_cubin_cache_directory_open_file(directory, "builds", &facts);
    if (builds < 0)
        return;
    flp_cubin_cache_directory_share(builds, flp_cubin_cache_state_file_mode(mode));
    close(builds);
}

int flp_cubin_cache_state_open_user(flp_cubin_cache *cache, int create)
{
    int directory = -1;

    if (!cache->user[0]) {
        flp_status_fail(FLP_IO_FAILED, "cache directory: none is configured");
        return -1;
    }
    if (create && flp_file_make_directories(cache->user, flp_cubin_cache_state_mode(cache)) != FLP_OK)
        warn_once(cache);
    else if (flp_cubin_cache_directory_open(cache->user, FLP_CUBIN_CACHE_USER, &directory) != FLP_OK && (create || errno != ENOENT))
        warn_once(cache);
    if (directory >= 0 && cache->shared)
        share(directory, flp_cubin_cache_state_mode(cache));
    return directory;
}

static void make_name(const flp_text *key_text, char name[FLP_CUBIN_CACHE_NAME_BYTES])
{
    char digest[FLP_DIGEST_TEXT_BYTES];

    flp_digest_format(key_text->data, key_text->length, digest);
    snprintf(name, FLP_CUBIN_CACHE_NAME_BYTES, "%.2s/%s.flpk", digest, digest);
}

/* A time in the future, of a clock that was ahead, is put right as well. */
static void refresh(int file, const struct stat *facts)
{
    const time_t age = time(NULL) - facts->st_mtim.tv_sec;

    if (age > REFRESH_SECONDS || age < -REFRESH_SECONDS)
        futimens(file, NULL);
}

int flp_cubin_cache_state_read(int directory, const char *name, const flp_text *key_text, unsigned mode, flp_cubin *cubin)
{
    const char subdirectory_name[3] = { name[0], name[1], 0 };
    int subdirectory, file, found = 0;
    struct stat facts;
    char *bytes = NULL;
    size_t count;

    *cubin = (flp_cubin){ 0 };
    if (flp_cubin_cache_directory_open_inside(directory, subdirectory_name, 0, &subdirectory) != FLP_OK)
        return 0;
    flp_cubin_cache_directory_share(subdirectory, mode);
    file = flp_cubin_cache_directory_open_file(subdirectory, name + 3, &facts);
    close(subdirectory);
    if (file < 0)
        return 0;
    if (flp_file_read_descriptor(file, name, &bytes, &count) == FLP_OK) {
        found = flp_cubin_cache_file_decode(bytes, count, key_text, cubin);
        if (!found)
            flp_log_debug("cache: %s is damaged or foreign, so it is a miss", name);
        else if (mode) {
            flp_cubin_cache_directory_share(file, flp_cubin_cache_state_file_mode(mode));
            refresh(file, &facts);
        }
    }
    free(bytes);
    close(file);
    return found;
}

static flp_status load_build(int directory, const flp_cubin_key *key, const char *build, unsigned mode, flp_cubin *cubin, int *found)
{
    char name[FLP_CUBIN_CACHE_NAME_BYTES];
    flp_text key_text = { 0 };
    flp_status status = flp_cubin_cache_file_format_key(key, build, &key_text);

    if (status == FLP_OK) {
        make_name(&key_text, name);
        *found = flp_cubin_cache_state_read(directory, name, &key_text, mode, cubin);
    }
    flp_text_free(&key_text);
    return status;
}

/* Loads the key's kernel from a cache directory, and closes the directory. mode: as flp_cubin_cache_state_read. */
static flp_status load_from(int directory, const flp_cubin_key *key, unsigned mode, flp_cubin *cubin, int *found)
{
    flp_cubin_cache_builds builds;
    flp_status status = FLP_OK;

    if (key->nvrtc_build) {
        status = load_build(directory, key, key->nvrtc_build, mode, cubin, found);
    } else {
        flp_cubin_cache_builds_read(directory, &builds);
        for (size_t i = 0; i < builds.count && status == FLP_OK && !*found; i++)
            status = load_build(directory, key, builds.names[i], mode, cubin, found);
        flp_cubin_cache_builds_free(&builds);
    }
    close(directory);
    return status;
}

int flp_cubin_cache_state_next_system(const char **next, char path[FLP_CUBIN_CACHE_PATH_BYTES])
{
    while (**next) {
        const size_t length = strcspn(*next, ":");
        const char *start = *next;

        *next += length + (start[length] == ':');
        if (length && length < FLP_CUBIN_CACHE_PATH_BYTES) {
            memcpy(path, start, length);
            path[length] = 0;
            return 1;
        }
    }
    return 0;
}

/* Opens a system directory; -1 where it cannot be used, which is logged once for each index (those above 30 share a bit). A missing directory is not logged,
 * because the one that was configured at build time need not exist. */
static int open_system(flp_cubin_cache *cache, const char *path, unsigned index)
{
    const unsigned bit = 1u << (index < 31 ? index : 31);
    int directory;

    if (flp_cubin_cache_directory_open(path, FLP_CUBIN_CACHE_SYSTEM, &directory) != FLP_OK && errno != ENOENT &&
        !(atomic_fetch_or(&cache->systems_warned, bit) & bit))
        flp_log_warning("kernels are not read from the system %s", flp_error_message());
    return directory;
}

flp_status flp_cubin_cache_load(flp_cubin_cache *cache, const flp_cubin_key *key, flp_cubin *cubin, int *found)
{
    int directory = cache->user[0] ? flp_cubin_cache_state_open_user(cache, 0) : -1;
    flp_status status = FLP_OK;
    const char *next = cache->systems;
    char path[FLP_CUBIN_CACHE_PATH_BYTES];

    *cubin = (flp_cubin){ 0 };
    *found = 0;
    if (directory >= 0)
        status = load_from(directory, key, flp_cubin_cache_state_mode(cache), cubin, found);
    for (unsigned i = 0; !*found && status == FLP_OK && flp_cubin_cache_state_next_system(&next, path); i++)
        if ((directory = open_system(cache, path, i)) >= 0)
            status = load_from(directory, key, 0, cubin, found);
    return status;
}

static flp_status store_in(int directory, unsigned mode, const flp_cubin_key *key, const flp_text *key_text, const flp_cubin *cubin)
{
    char name[FLP_CUBIN_CACHE_NAME_BYTES], subdirectory_name[3];
    int subdirectory;
    flp_text file = { 0 };
    flp_status status;

    make_name(key_text, name);
    snprintf(subdirectory_name, sizeof(subdirectory_name), "%.2s", name);
    status = flp_cubin_cache_file_encode(key_text, cubin, &file);
    if (status == FLP_OK)
        status = flp_cubin_cache_directory_open_inside(directory, subdirectory_name, mode, &subdirectory);
    if (status == FLP_OK) {
        /* The build comes first: one without kernels does no harm, but a kernel whose build is not listed is not found without an NVRTC. */
        status = flp_cubin_cache_builds_add(directory, flp_cubin_cache_state_file_mode(mode), key->nvrtc_build);
        if (status == FLP_OK)
            status = flp_file_publish_as(subdirectory, name + 3, flp_cubin_cache_state_file_mode(mode), file.data, file.length);
        close(subdirectory);
    }
    flp_text_free(&file);
    return status;
}

flp_status flp_cubin_cache_store(flp_cubin_cache *cache, const flp_cubin_key *key, const flp_cubin *cubin)
{
    flp_text key_text = { 0 };
    flp_status status;
    int directory;

    if (!key->nvrtc_build)
        return flp_status_fail(FLP_INTERNAL, "kernel cache: a kernel of no NVRTC build was to be stored");
    directory = flp_cubin_cache_state_open_user(cache, 1);
    if (directory < 0)
        return FLP_IO_FAILED;
    status = flp_cubin_cache_file_format_key(key, key->nvrtc_build, &key_text);
    if (status == FLP_OK)
        status = store_in(directory, flp_cubin_cache_state_mode(cache), key, &key_text, cubin);
    if (status == FLP_OK)
        flp_cubin_cache_list_trim(directory, cache->limit);
    else
        warn_once(cache);
    flp_text_free(&key_text);
    close(directory);
    return status;
}

/* Opens the user's directory and makes the key's file name in it; -1 where there is no directory, or the key has no NVRTC build to make a name with. */
static int open_for_key(flp_cubin_cache *cache, const flp_cubin_key *key, int create, char name[FLP_CUBIN_CACHE_NAME_BYTES])
{
    flp_text key_text = { 0 };
    int directory = -1;

    if (key->nvrtc_build && cache->user[0] && flp_cubin_cache_file_format_key(key, key->nvrtc_build, &key_text) == FLP_OK) {
        make_name(&key_text, name);
        directory = flp_cubin_cache_state_open_user(cache, create);
    }
    flp_text_free(&key_text);
    return directory;
}

void flp_cubin_cache_evict(flp_cubin_cache *cache, const flp_cubin_key *key)
{
    char name[FLP_CUBIN_CACHE_NAME_BYTES];
    int directory = open_for_key(cache, key, 0, name);

    if (directory < 0)
        return;
    unlinkat(directory, name, 0);
    close(directory);
}

void flp_cubin_cache_lock(flp_cubin_cache *cache, const flp_cubin_key *key, double seconds, int *lock)
{
    char name[FLP_CUBIN_CACHE_NAME_BYTES], subdirectory_name[3];
    int subdirectory, directory = open_for_key(cache, key, 1, name);

    *lock = -1;
    if (directory < 0)
        return;
    snprintf(subdirectory_name, sizeof(subdirectory_name), "%.2s", name);
    memcpy(strrchr(name, '.'), ".lock", sizeof(".lock"));
    if (flp_cubin_cache_directory_open_inside(directory, subdirectory_name, flp_cubin_cache_state_mode(cache), &subdirectory) == FLP_OK) {
        *lock = flp_cubin_cache_lock_take(&cache->locks, subdirectory, name + 3, seconds);
        close(subdirectory);
    }
    close(directory);
}

void flp_cubin_cache_unlock(flp_cubin_cache *cache, int lock)
{
    flp_cubin_cache_lock_release(&cache->locks, lock);
}
