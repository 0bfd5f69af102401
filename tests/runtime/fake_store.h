/* A kernel store over the fakes, with a cache directory of its own, for one test. */
#ifndef FLP_TESTS_FAKE_STORE_H
#define FLP_TESTS_FAKE_STORE_H
#include <stdatomic.h>
#include "assertions.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_nvrtc.h"
#include "jit/kernel.h"

typedef char fake_variant[FLP_VARIANT_BYTES];

typedef struct {
    const char *root; /* the test's directory, and the store's cache */
    flp_kernel_store *store;
    const flp_kernel *kernels[4]; /* of the last fake_store_get */
    atomic_int warnings;          /* logged since the test began */
} fake_store_state;

extern fake_store_state fake_store;
extern const fake_variant fake_store_small[1], fake_store_broken[1], fake_store_pair[2];

/* Set-up and tear-down of a test, which does not find this machine's own NVRTC. */
int fake_store_make(void **state);
int fake_store_clean(void **state);

/* Opens another store in place of the current one; flags: FLP_CONTEXT_... */
void fake_store_open(const char *directory, unsigned flags);
/* Obtains count kernels for the current context. */
flp_status fake_store_get(int count, const fake_variant *variants);
void fake_store_assert_counters(int compiled, int disk_hits, int disk_misses, int loaded);

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, fake_store_make, fake_store_clean)
#endif
