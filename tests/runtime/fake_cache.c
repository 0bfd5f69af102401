/* The fixture of the cache's tests. */
#include "fake_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/log.h"

fake_cache_state fake_cache;
const flp_cubin_key fake_cache_key = { "source text", 11, NULL, "-std=c++17\n", "sm_90a", "aa11" };
const flp_cubin fake_cache_kernel = { "variant:one", "variant one\n", "\177ELF\0cubin", 11, NULL };

static void hear(void *user_data, flp_log_level level, const char *message)
{
    (void)user_data;
    if (level == FLP_LOG_WARNING) {
        fake_cache.warnings++;
        snprintf(fake_cache.last_warning, sizeof(fake_cache.last_warning), "%s", message);
    }
}

void fake_cache_open(const char *directory, const char *systems, int64_t bytes)
{
    const flp_cubin_cache_options options = { directory, systems, bytes, 0 };

    flp_cubin_cache_destroy(fake_cache.cache);
    assert_succeeds(flp_cubin_cache_create(&options, &fake_cache.cache));
}

int fake_cache_make(void **state)
{
    (void)state;
    memset(&fake_cache, 0, sizeof(fake_cache));
    fake_cache.begun = time(NULL);
    fake_cache.root = fake_directory_make();
    snprintf(fake_cache.user, sizeof(fake_cache.user), "%s/user", fake_cache.root);
    flp_log_set_callback(hear, NULL);
    fake_cache_open(fake_cache.user, "", 0);
    return 0;
}

int fake_cache_clean(void **state)
{
    (void)state;
    flp_cubin_cache_destroy(fake_cache.cache);
    flp_log_set_callback(NULL, NULL);
    fake_directory_remove(fake_cache.root);
    return 0;
}

int fake_cache_has(const flp_cubin_key *key)
{
    flp_cubin cubin;
    int found = 9;

    assert_succeeds(flp_cubin_cache_load(fake_cache.cache, key, &cubin, &found));
    flp_cubin_free(&cubin);
    return found;
}

flp_status fake_cache_store(void)
{
    return flp_cubin_cache_store(fake_cache.cache, &fake_cache_key, &fake_cache_kernel);
}

typedef struct {
    const char *variant; /* NULL: any */
    char path[256];
    int64_t bytes;
} wanted_file;

static int take(void *data, const char *file, const char *variant, int64_t bytes)
{
    wanted_file *wanted = data;

    if (wanted->variant && (!variant || strcmp(variant, wanted->variant) != 0))
        return 0;
    snprintf(wanted->path, sizeof(wanted->path), "%s/%s", fake_cache.user, file);
    wanted->bytes = bytes;
    return 1;
}

static const char *find(const char *variant, int64_t *bytes)
{
    static wanted_file wanted;

    wanted = (wanted_file){ .variant = variant };
    flp_cubin_cache_visit(fake_cache.cache, take, &wanted);
    if (bytes)
        *bytes = wanted.bytes;
    return wanted.path;
}

const char *fake_cache_path(void)
{
    return find(NULL, NULL);
}

const char *fake_cache_numbered_path(int number, int64_t *bytes)
{
    char variant[16];

    snprintf(variant, sizeof(variant), "v%02d", number);
    return find(variant, bytes);
}

flp_cubin_key fake_cache_numbered_key(char source[16], int number)
{
    flp_cubin_key numbered = fake_cache_key;

    numbered.source_bytes = (size_t)snprintf(source, 16, "source %02d", number);
    numbered.source = source;
    return numbered;
}

void fake_cache_store_numbered(int number, int seconds_old)
{
    struct timespec times[2] = { { fake_cache.begun - seconds_old, 0 }, { fake_cache.begun - seconds_old, 0 } };
    char source[16], variant[16];
    flp_cubin_key numbered = fake_cache_numbered_key(source, number);
    flp_cubin kernel = fake_cache_kernel;

    snprintf(variant, sizeof(variant), "v%02d", number);
    kernel.variant = variant;
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &numbered, &kernel));
    if (seconds_old)
        assert_int_equal(0, utimensat(AT_FDCWD, fake_cache_numbered_path(number, NULL), times, 0));
}
