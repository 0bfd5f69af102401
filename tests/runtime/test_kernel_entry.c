/* Loading a kernel into CUDA contexts, and what the driver refuses. */
#include "fake_store.h"

static void a_loaded_kernel_costs_nothing_more(void **state)
{
    const flp_kernel *first;

    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    first = fake_store.kernels[0];
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_ptr_equal(first, fake_store.kernels[0]);
    fake_store_assert_counters(1, 0, 1, 1);
    assert_int_equal(1, fake_driver.calls[FAKE_module_load]);
}

static void a_second_context_loads_the_same_image(void **state)
{
    const flp_kernel *first;

    (void)state;
    fake_store_open("", 0);
    assert_succeeds(fake_store_get(1, fake_store_small));
    first = fake_store.kernels[0];
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_ptr_not_equal(first, fake_store.kernels[0]);
    fake_store_assert_counters(1, 0, 1, 2);
    fake_driver.current = fake_driver_context(0);
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_ptr_equal(first, fake_store.kernels[0]);
}

static void large_shared_memory_is_asked_for(void **state)
{
    static const fake_variant large[] = { "fake:large:sm_90a" };

    (void)state;
    assert_succeeds(fake_store_get(1, large));
    assert_int_equal(100000, fake_driver_function_shared_bytes(fake_store.kernels[0]->function));
    fake_driver.current = fake_driver_context(1);
    fake_driver.shared_bytes = 65536;
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, large), "MAX_DYNAMIC_SHARED_SIZE_BYTES");
    assert_int_equal(1, fake_driver.live_modules);
}

static void destroying_unloads_in_contexts_that_are_alive(void **state)
{
    (void)state;
    assert_succeeds(fake_store_get(2, fake_store_pair));
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(fake_store_get(2, fake_store_pair));
    assert_int_equal(4, fake_driver.live_modules);
    fake_driver_destroy_context(0);
    assert_int_equal(2, fake_driver.live_modules);
    fake_driver.current = NULL;
    flp_kernel_store_destroy(fake_store.store);
    fake_store.store = NULL;
    assert_int_equal(0, fake_driver.live_modules);
    assert_null(fake_driver.current);
}

static void assert_compiled_once_more_after(CUresult rejection)
{
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_open(fake_store.root, 0);
    fake_driver_fail(FAKE_module_load, rejection, 1);
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(1, 1, 0, 1);
}

static void a_cached_cubin_that_the_driver_rejects_is_compiled_once_more(void **state)
{
    (void)state;
    assert_compiled_once_more_after(CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(1, fake_store.warnings);
    assert_int_equal(1, fake_directory_count(fake_store.root, ".flpk"));
    fake_store_open(fake_store.root, 0);
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_NO_BINARY_FOR_GPU, -1);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, fake_store_small), "cuModuleLoadData");
    fake_store_assert_counters(1, 1, 0, 0);
    assert_int_equal(FLP_CUDA_FAILED, fake_store_get(1, fake_store_small));
    fake_store_assert_counters(1, 1, 0, 0);
}

/* The fake GPU has 9.0. */
static void a_kernel_of_another_generation_is_loaded_as_ptx(void **state)
{
    static const fake_variant older[] = { "fake:small:sm_80" }, own[] = { "fake:small:sm_90" }, newer[] = { "fake:small:sm_100" },
                              bound[] = { "fake:tile:sm_100a" }, later[] = { "fake:small:sm_96" };

    (void)state;
    assert_succeeds(fake_store_get(1, own));
    assert_int_equal(0, fake_driver.ptx_modules);
    assert_succeeds(fake_store_get(1, older));
    assert_int_equal(1, fake_driver.ptx_modules);
    assert_int_equal(2, fake_driver.live_modules);
    fake_store_open(fake_store.root, FLP_CONTEXT_NO_COMPILE);
    assert_succeeds(fake_store_get(1, older));
    assert_int_equal(2, fake_driver.ptx_modules);
    assert_int_equal(2, fake_nvrtc.compiles);
    fake_store_open(fake_store.root, 0);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, newer), "cuModuleLoadData, of PTX");
    fake_nvrtc.newest_arch = 96;
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, later), "cuModuleLoadData, of PTX");
    fake_nvrtc.newest_arch = 0;
    assert_fails(FLP_NO_VARIANT, fake_store_get(1, bound), "neither its cubin nor a PTX is for compute capability 9.0");
}

/* A cached one is compiled once more, by the NVRTC that is here; PTX and what that one made are not. */
static void a_driver_that_is_older_than_the_compiler_is_said_to_be(void **state)
{
    static const fake_variant older[] = { "fake:small:sm_80" };

    (void)state;
    assert_compiled_once_more_after(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    fake_store_open(fake_store.root, 0);
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, -1);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, fake_store_small), "is older than the NVRTC that made it: update the driver");
    assert_contains(flp_error_message(), "fake:small:sm_90a");
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, older), "cuModuleLoadData, of PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver, which is CUDA ");
    assert_int_equal(0, fake_driver.live_modules);
}

static void a_fresh_cubin_that_the_driver_rejects_is_an_error_at_once(void **state)
{
    (void)state;
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_INVALID_IMAGE, -1);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, fake_store_small), "CUDA_ERROR_INVALID_IMAGE");
    assert_contains(flp_error_message(), "fake:small:sm_90a");
    assert_int_equal(1, fake_nvrtc.compiles);
}

static void a_rejected_cubin_without_nvrtc_says_both(void **state)
{
    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_open(fake_store.root, 0);
    fake_library_install();
    fake_library.nvrtc = 0;
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_INVALID_IMAGE, -1);
    assert_fails(FLP_NO_NVRTC, fake_store_get(1, fake_store_small), "the driver rejects the cached kernel");
    assert_contains(flp_error_message(), "libnvrtc");
    fake_store_open(fake_store.root, FLP_CONTEXT_NO_COMPILE);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, fake_store_small), "CUDA_ERROR_INVALID_IMAGE");
    assert_int_equal(1, fake_directory_count(fake_store.root, ".flpk"));
}

static void each_driver_failure_leaves_nothing_loaded(void **state)
{
    static const fake_variant large[] = { "fake:large:sm_90a" }, nameless[] = { "fake:nameless:sm_90a" };
    const struct {
        int function;
        CUresult result;
        flp_status status;
        const char *call;
    } failures[] = {
        { FAKE_module_load, CUDA_ERROR_OUT_OF_MEMORY, FLP_OUT_OF_MEMORY, "cuModuleLoadData" },
        { FAKE_module_load, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, FLP_CAPTURING, "cuModuleLoadData" },
        { FAKE_module_load, CUDA_ERROR_INVALID_CONTEXT, FLP_WRONG_CONTEXT, "cuModuleLoadData" },
        { FAKE_module_function, CUDA_ERROR_NOT_FOUND, FLP_CUDA_FAILED, "cuModuleGetFunction" },
        { FAKE_function_set_attribute, CUDA_ERROR_INVALID_VALUE, FLP_CUDA_FAILED, "cuFuncSetAttribute" },
        { FAKE_function_load, CUDA_ERROR_OUT_OF_MEMORY, FLP_OUT_OF_MEMORY, "cuFuncLoad" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        fake_driver_fail(failures[i].function, failures[i].result, 1);
        assert_fails(failures[i].status, fake_store_get(1, large), failures[i].call);
        assert_contains(flp_error_message(), "fake:large:sm_90a");
        assert_int_equal(0, fake_driver.live_modules);
    }
    assert_succeeds(fake_store_get(1, large));
    fake_store_assert_counters(1, 0, 1, 1);
    assert_fails(FLP_CUDA_FAILED, fake_store_get(1, nameless), "cuModuleGetFunction");
}

static void a_driver_without_eager_loading_still_serves(void **state)
{
    (void)state;
    fake_library_install();
    fake_library.missing = "cuFuncLoad";
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_int_equal(0, fake_driver.calls[FAKE_function_load]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_loaded_kernel_costs_nothing_more),
        STORE_TEST(a_second_context_loads_the_same_image),
        STORE_TEST(large_shared_memory_is_asked_for),
        STORE_TEST(destroying_unloads_in_contexts_that_are_alive),
        STORE_TEST(a_cached_cubin_that_the_driver_rejects_is_compiled_once_more),
        STORE_TEST(a_kernel_of_another_generation_is_loaded_as_ptx),
        STORE_TEST(a_driver_that_is_older_than_the_compiler_is_said_to_be),
        STORE_TEST(a_fresh_cubin_that_the_driver_rejects_is_an_error_at_once),
        STORE_TEST(a_rejected_cubin_without_nvrtc_says_both),
        STORE_TEST(each_driver_failure_leaves_nothing_loaded),
        STORE_TEST(a_driver_without_eager_loading_still_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
