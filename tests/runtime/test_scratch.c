/* The shared scratch: whose it is, how it grows, and who may use it at a time. */
#include "plan/scratch.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/library.h"
#include "fake_cmocka.h"
#include "fake_driver.h"
#include "fake_library.h"

static flp_scratch *scratch;
static flp_device device;
static char streams[8];

static CUstream stream(int number)
{
    return (CUstream)(void *)&streams[number];
}

static int start(void **state)
{
    (void)state;
    fake_library_install();
    assert_succeeds(flp_device_current(&device));
    assert_succeeds(flp_scratch_create(&scratch));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_scratch_destroy(scratch);
    return fake_driver.live_blocks != 0;
}

/* Address of at least `bytes`, borrowed and given back. */
static void *borrow(CUstream from, int64_t bytes)
{
    flp_scratch_loan loan;

    assert_succeeds(flp_scratch_lend(scratch, &device, from, bytes, bytes, &loan));
    flp_scratch_return(&loan);
    return loan.address;
}

static void a_stream_keeps_its_buffer_and_streams_do_not_share(void **state)
{
    void *first = borrow(stream(0), 1000);

    (void)state;
    assert_ptr_equal(first, borrow(stream(0), 10));
    assert_ptr_not_equal(first, borrow(stream(1), 10));
    assert_ptr_not_equal(first, borrow(NULL, 10));
    assert_ptr_equal(first, borrow(stream(0), 1000));
    assert_int_equal(3, fake_driver.live_blocks);
}

static void cuda_contexts_do_not_share_their_default_stream(void **state)
{
    void *first = borrow(NULL, 10);

    (void)state;
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(flp_device_current(&device));
    assert_ptr_not_equal(first, borrow(NULL, 10));
}

static void *borrow_per_thread(void *unused)
{
    (void)unused;
    return borrow(CU_STREAM_PER_THREAD, 10);
}

static void special_streams_are_what_they_name(void **state)
{
    pthread_t thread;
    void *others;

    (void)state;
    assert_ptr_equal(borrow(NULL, 10), borrow(CU_STREAM_LEGACY, 10));
    assert_int_equal(0, pthread_create(&thread, NULL, borrow_per_thread, NULL));
    pthread_join(thread, &others);
    assert_ptr_not_equal(others, borrow(CU_STREAM_PER_THREAD, 10));
    assert_ptr_not_equal(borrow(NULL, 10), borrow(CU_STREAM_PER_THREAD, 10));
}

static void growing_waits_for_the_stream_and_frees_the_old_buffer(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    borrow(stream(0), 1000);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_synchronize]);
    assert_succeeds(flp_scratch_lend(scratch, &device, stream(0), 2000, 5000, &loan));
    flp_scratch_return(&loan);
    assert_int_equal(1, fake_driver.calls[FAKE_stream_synchronize]);
    assert_int_equal(1, fake_driver.live_blocks);
    assert_int_equal(5000, fake_driver.live_bytes);
    assert_ptr_equal(loan.address, borrow(stream(0), 5000));
}

static void growth_that_fails_is_an_error_once(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    borrow(stream(0), 1000);
    fake_driver_fail(FAKE_memory_allocate, CUDA_ERROR_OUT_OF_MEMORY, 1);
    assert_fails(FLP_OUT_OF_MEMORY, flp_scratch_lend(scratch, &device, stream(0), 2000, 2000, &loan), "2000 bytes of device memory for the "
                 "shared scratch");
    fake_driver_fail(FAKE_stream_is_capturing, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 1);
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(0), 2000, 2000, &loan), "cuStreamIsCapturing");
    assert_non_null(borrow(stream(0), 2000));
    assert_int_equal(1, fake_driver.live_blocks);
    fake_driver_fail(FAKE_stream_synchronize, CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_fails(FLP_CUDA_FAILED, flp_scratch_lend(scratch, &device, stream(0), 3000, 3000, &loan), "cuStreamSynchronize");
    assert_int_equal(2000, fake_driver.live_bytes);
}

static void it_does_not_grow_during_a_capture(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(0), 10, 10, &loan), "its scratch has 0 bytes, wanted 10");
    fake_driver.capture = 0;
    assert_succeeds(flp_scratch_reserve(scratch, &device, stream(0), 1000));
    fake_driver.capture = 1;
    borrow(stream(0), 1000);
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(0), 1001, 1001, &loan), "prepare the problem before the capture");
}

/* A graph may replay with the address it was captured with. */
static void what_a_capture_used_is_kept_when_the_scratch_grows(void **state)
{
    void *captured = borrow(stream(0), 1000);

    (void)state;
    fake_driver.capture = 1;
    borrow(stream(0), 1000);
    fake_driver.capture = 0;
    assert_ptr_not_equal(captured, borrow(stream(0), 2000));
    assert_int_equal(3000, fake_driver.live_bytes);
    borrow(stream(0), 4000); /* 2000 was in no graph */
    assert_int_equal(5000, fake_driver.live_bytes);
}

static atomic_int inside, overlaps;

static void *borrow_often(void *unused)
{
    flp_scratch_loan loan;

    (void)unused;
    for (int i = 0; i < 200; i++) {
        assert_succeeds(flp_scratch_lend(scratch, &device, stream(0), 10 + i, 10 + i, &loan));
        if (atomic_fetch_add(&inside, 1) != 0)
            atomic_fetch_add(&overlaps, 1);
        sched_yield();
        atomic_fetch_sub(&inside, 1);
        flp_scratch_return(&loan);
    }
    return NULL;
}

static void one_thread_at_a_time_has_a_streams_buffer(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, borrow_often, NULL));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(0, overlaps);
    assert_int_equal(1, fake_driver.live_blocks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_keeps_its_buffer_and_streams_do_not_share),
        TEST(cuda_contexts_do_not_share_their_default_stream),
        TEST(special_streams_are_what_they_name),
        TEST(growing_waits_for_the_stream_and_frees_the_old_buffer),
        TEST(growth_that_fails_is_an_error_once),
        TEST(it_does_not_grow_during_a_capture),
        TEST(what_a_capture_used_is_kept_when_the_scratch_grows),
        TEST(one_thread_at_a_time_has_a_streams_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
