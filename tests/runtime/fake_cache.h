/* A kernel cache in a directory of its own, for one test. */
#ifndef FLP_TESTS_FAKE_CACHE_H
#define FLP_TESTS_FAKE_CACHE_H
#include <stdatomic.h>
#include <time.h>
#include "assertions.h"
#include "fake_directory.h"
#include "jit/cubin_cache.h"

typedef struct {
    const char *root; /* the test's directory */
    char user[128];   /* the cache's directory in it, which does not exist yet */
    flp_cubin_cache *cache;
    time_t begun;        /* when the test began: ages are counted from it, so that equal ages are equal times */
    atomic_int warnings; /* logged since the test began */
    char last_warning[512];
} fake_cache_state;

extern fake_cache_state fake_cache;
extern const flp_cubin_key fake_cache_key;
extern const flp_cubin fake_cache_kernel; /* without PTX */

/* Set-up and tear-down of a test. */
int fake_cache_make(void **state);
int fake_cache_clean(void **state);

/* Opens another cache in place of the current one. */
void fake_cache_open(const char *directory, const char *systems, int64_t bytes);
/* 1: a load finds the key. */
int fake_cache_has(const flp_cubin_key *key);
flp_status fake_cache_store(void); /* fake_cache_kernel under fake_cache_key */
/* The path of the first kernel in the user's directory. */
const char *fake_cache_path(void);

/* Stores a kernel of variant "v00", "v01", ..., in a file that is so many seconds old. */
void fake_cache_store_numbered(int number, int seconds_old);
flp_cubin_key fake_cache_numbered_key(char source[16], int number);
/* The path of its file, "" if there is none; *bytes (bytes may be NULL) receives its size. */
const char *fake_cache_numbered_path(int number, int64_t *bytes);

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, fake_cache_make, fake_cache_clean)
#endif
