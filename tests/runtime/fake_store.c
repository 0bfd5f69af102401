/* The fixture of the kernel store's tests. */
#include "fake_store.h"

#include "base/log.h"

fake_store_state fake_store;
const fake_variant fake_store_small[1] = { "fake:small:sm_90a" };
const fake_variant fake_store_broken[1] = { "fake:broken:sm_90a" };
const fake_variant fake_store_pair[2] = { "fake:tile:sm_90a", "fake:combine:sm_90a" };

static void hear(void *user_data, flp_log_level level, const char *message)
{
    (void)user_data;
    (void)message;
    fake_store.warnings += level == FLP_LOG_WARNING;
}

void fake_store_open(const char *directory, unsigned flags)
{
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "", .flags = flags };

    flp_kernel_store_destroy(fake_store.store);
    assert_succeeds(flp_kernel_store_create(&options, &fake_store.store));
}

int fake_store_make(void **state)
{
    (void)state;
    memset(&fake_store, 0, sizeof(fake_store));
    fake_store.root = fake_directory_make();
    fake_library_install();
    flp_log_set_callback(hear, NULL);
    fake_store_open(fake_store.root, 0);
    return 0;
}

int fake_store_clean(void **state)
{
    (void)state;
    flp_kernel_store_destroy(fake_store.store);
    flp_log_set_callback(NULL, NULL);
    fake_directory_remove(fake_store.root);
    return 0;
}

flp_status fake_store_get(int count, const fake_variant *variants)
{
    flp_device device;

    assert_succeeds(flp_device_current(&device));
    return flp_kernel_store_get(fake_store.store, &device, count, variants, fake_store.kernels);
}

void fake_store_assert_counters(int compiled, int disk_hits, int disk_misses, int loaded)
{
    flp_counters counters = { .plans = 77 };

    flp_kernel_store_counters(fake_store.store, &counters);
    assert_int_equal(compiled, counters.compiled);
    assert_int_equal(disk_hits, counters.disk_hits);
    assert_int_equal(disk_misses, counters.disk_misses);
    assert_int_equal(loaded, counters.loaded);
    assert_int_equal(77, counters.plans); /* not the store's */
}
