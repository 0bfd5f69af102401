/* The kernel store: what is compiled when, also when many threads and processes want it at once. */
#include "fake_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/compile_order.h"

static void a_cold_kernel_is_compiled_stored_and_loaded(void **state)
{
    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_string_equal("kernel_small", fake_store.kernels[0]->manifest.kernel);
    assert_int_equal(128, fake_store.kernels[0]->manifest.threads);
    assert_non_null(fake_store.kernels[0]->function);
    fake_store_assert_counters(1, 0, 1, 1);
    assert_int_equal(1, fake_directory_count(fake_store.root, ".flpk"));
    assert_int_equal(0, fake_directory_count(fake_store.root, ".lock"));
    assert_int_equal(1, fake_driver.calls[FAKE_function_load]);
    assert_int_equal(0, fake_driver.calls[FAKE_function_set_attribute]);
    assert_contains(fake_nvrtc.options, "-arch=sm_90a\n-std=c++17\n-default-device\n--ptxas-options=-v\n");
    assert_null(strstr(fake_nvrtc.options, "fast"));
    assert_int_equal(0, fake_store.warnings);
}

static void a_warm_start_does_not_load_nvrtc(void **state)
{
    char library[256];

    (void)state;
    snprintf(library, sizeof(library), "%s/libnvrtc.so.13", fake_store.root);
    fake_nvrtc_write_library(library, "0102");
    fake_library.root = fake_store.root;
    setenv("LD_LIBRARY_PATH", fake_store.root, 1);
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_contains(fake_library.opened, "libnvrtc");
    fake_store_open(fake_store.root, 0);
    fake_library_install();
    fake_library.root = fake_store.root;
    assert_succeeds(fake_store_get(1, fake_store_small));
    unsetenv("LD_LIBRARY_PATH");
    fake_store_assert_counters(0, 1, 0, 1);
    assert_null(strstr(fake_library.opened, "libnvrtc"));
    assert_int_equal(0, fake_nvrtc.compiles);
}

static void several_kernels_compile_side_by_side(void **state)
{
    (void)state;
    fake_nvrtc.milliseconds = 100;
    assert_succeeds(fake_store_get(2, fake_store_pair));
    assert_string_equal("kernel_tile", fake_store.kernels[0]->manifest.kernel);
    assert_string_equal("kernel_combine", fake_store.kernels[1]->manifest.kernel);
    assert_int_equal(2, fake_nvrtc.most_at_once);
    fake_store_assert_counters(2, 0, 2, 2);
}

/* A core that has a long one last leaves the others idle. */
static void the_longest_compilations_begin_first(void **state)
{
    static const char *const variants[] = { "weighted_sum.bf16.t128.sm_90",
                                            "linear_logp_backward_gather.bf16.sm_90a",
                                            "token_loss.loss_cross_entropy.sm_90a",
                                            "linear_logp_combine.bm8.sm_90a",
                                            "linear_logp_backward_rows.sm_90a",
                                            "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.adds.sm_90a",
                                            "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4.sm_90a",
                                            "linear_logp_grad_logits.bf16.d4096.bm128.wg128.bv192.c1.p4.sm_90a",
                                            "linear_logp_save_exp.bf16.d4096.bm128.wg128.bv192.s132.c1.p4.sm_90a" };
    static const int wanted[] = { 8, 7, 6, 5, 4, 3, 2, 0, 1 };
    enum { COUNT = sizeof(wanted) / sizeof(*wanted) };
    int order[COUNT];

    (void)state;
    flp_compile_order(COUNT, variants, order);
    assert_memory_equal(wanted, order, sizeof(wanted));
    assert_int_equal(FLP_COMPILE_RANKS - 1, flp_compile_rank("linear_logp_save_exp_of_another_kind.sm_90a"));
}

/* The message is that of a compiler's thread. */
static void the_one_of_several_that_fails_is_named(void **state)
{
    static const fake_variant variants[3] = { "fake:tile:sm_90a", "fake:broken:sm_90a", "fake:combine:sm_90a" };

    (void)state;
    assert_fails(FLP_COMPILE_FAILED, fake_store_get(3, variants), "kernel fake:broken:sm_90a");
    fake_store_assert_counters(2, 0, 3, 0);
}

static void the_same_variant_twice_is_one_kernel(void **state)
{
    static const fake_variant twins[] = { "fake:small:sm_90a", "fake:small:sm_90a" };

    (void)state;
    assert_succeeds(fake_store_get(2, twins));
    assert_ptr_equal(fake_store.kernels[0], fake_store.kernels[1]);
    fake_store_assert_counters(1, 0, 1, 1);
    assert_succeeds(fake_store_get(0, twins));
}

static void *get_small(void *argument)
{
    const flp_kernel **kernel = argument;
    flp_device mine;
    flp_status status = flp_device_current(&mine);

    if (status == FLP_OK)
        status = flp_kernel_store_get(fake_store.store, &mine, 1, fake_store_small, kernel);
    return (void *)(intptr_t)status;
}

static void threads_that_want_one_kernel_compile_it_once(void **state)
{
    pthread_t threads[8];
    const flp_kernel *got[8];

    (void)state;
    fake_nvrtc.milliseconds = 50;
    for (int i = 0; i < 8; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, get_small, &got[i]));
    for (int i = 0; i < 8; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal(FLP_OK, (intptr_t)status);
        assert_ptr_equal(got[0], got[i]);
    }
    fake_store_assert_counters(1, 0, 1, 1);
}

static void a_long_compilation_holds_up_no_other_kernel(void **state)
{
    const flp_kernel *slow;
    pthread_t thread;

    (void)state;
    assert_succeeds(fake_store_get(2, fake_store_pair));
    fake_nvrtc.milliseconds = 500;
    assert_int_equal(0, pthread_create(&thread, NULL, get_small, &slow));
    while (!atomic_load(&fake_nvrtc.at_once))
        usleep(1000);
    assert_succeeds(fake_store_get(2, fake_store_pair));
    assert_int_equal(1, fake_nvrtc.at_once);
    pthread_join(thread, NULL);
}

enum { PROCESSES = 64 };

static void processes_that_want_one_kernel_compile_it_once(void **state)
{
    atomic_int *compiles = mmap(NULL, sizeof(*compiles), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES];

    (void)state;
    fake_nvrtc.milliseconds = 100;
    fake_nvrtc.shared = compiles;
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int compiled = 9;
            _exit(flp_kernel_store_prebuild(fake_store.store, fake_store_small[0], &compiled, NULL) == FLP_OK ? compiled : 9);
        }
    }
    int sum = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int result;
        assert_int_equal(children[i], waitpid(children[i], &result, 0));
        sum += WEXITSTATUS(result);
    }
    assert_int_equal(1, sum);
    assert_int_equal(1, *compiles);
    assert_int_equal(1, fake_directory_count(fake_store.root, ".flpk"));
    assert_int_equal(0, fake_directory_count(fake_store.root, ".lock"));
    munmap(compiles, sizeof(*compiles));
}

static void processes_without_locks_still_all_get_it(void **state)
{
    pid_t children[2];

    (void)state;
    fake_store_open("", 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(fake_store_get(1, fake_store_small) == FLP_OK ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        int result;
        assert_int_equal(children[i], waitpid(children[i], &result, 0));
        assert_int_equal(0, result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_cold_kernel_is_compiled_stored_and_loaded),    STORE_TEST(a_warm_start_does_not_load_nvrtc),
        STORE_TEST(several_kernels_compile_side_by_side),           cmocka_unit_test(the_longest_compilations_begin_first),
        STORE_TEST(the_one_of_several_that_fails_is_named),         STORE_TEST(the_same_variant_twice_is_one_kernel),
        STORE_TEST(threads_that_want_one_kernel_compile_it_once),   STORE_TEST(a_long_compilation_holds_up_no_other_kernel),
        STORE_TEST(processes_that_want_one_kernel_compile_it_once), STORE_TEST(processes_without_locks_still_all_get_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
