/* The shared scratch: whose it is, how it grows, and who may use it at a time. */
#include "core/scratch.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/library.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"

enum { MOST = FLP_SCRATCH_OWN + FLP_SCRATCH_SHARED };

static flp_scratch *scratch;
static flp_device device;
static char streams[256];

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
    return fake_driver.live_blocks != 0 || fake_driver.live_events != 0;
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
    assert_fails(FLP_OUT_OF_MEMORY, flp_scratch_lend(scratch, &device, stream(0), 2000, 2000, &loan),
                 "2000 bytes of device memory for the "
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

/* ---- streams that come and go ---- */

/* Work may still run on the stream that had the handle before. */
static void a_handle_given_out_again_is_another_stream(void **state)
{
    void *first = borrow(stream(0), 1000);

    (void)state;
    fake_driver.stream_age++;
    assert_ptr_not_equal(first, borrow(stream(0), 1000));
    fake_driver.stream_age--;
    assert_ptr_equal(first, borrow(stream(0), 1000));
}

static void the_default_streams_are_known_without_an_id(void **state)
{
    void *legacy = borrow(NULL, 10), *own = borrow(CU_STREAM_PER_THREAD, 10);

    (void)state;
    fake_driver.stream_age++;
    assert_ptr_equal(legacy, borrow(NULL, 10));
    assert_ptr_equal(own, borrow(CU_STREAM_PER_THREAD, 10));
    assert_int_equal(0, fake_driver.calls[FAKE_stream_id]);
}

static void a_few_streams_keep_their_buffers_and_record_nothing(void **state)
{
    void *first[FLP_SCRATCH_OWN];

    (void)state;
    for (int i = 0; i < FLP_SCRATCH_OWN; i++)
        first[i] = borrow(stream(i), 1000);
    assert_int_equal(0, fake_driver.calls[FAKE_event_record]);
    for (int i = 0; i < 100; i++)
        borrow(stream(100 + i), 1000);
    for (int i = 0; i < FLP_SCRATCH_OWN; i++)
        assert_ptr_equal(first[i], borrow(stream(i), 1000));
}

static void an_endless_sequence_of_streams_needs_no_more_buffers(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        borrow(stream(i), 1000);
    assert_int_equal(MOST, fake_driver.live_blocks);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_synchronize]);
    assert_int_equal(FLP_SCRATCH_SHARED, fake_driver.live_events);
}

/* The stream whose use is longest ago gives its buffer up, and the new one's work waits for its. */
static void a_buffer_goes_to_another_stream_behind_the_work_in_it(void **state)
{
    void *given, *later;

    (void)state;
    for (int i = 0; i < MOST; i++)
        borrow(stream(i), 1000);
    given = borrow(stream(FLP_SCRATCH_OWN + 1), 1000);
    later = borrow(stream(FLP_SCRATCH_OWN), 1000);
    for (int i = FLP_SCRATCH_OWN + 2; i < MOST; i++)
        borrow(stream(i), 1000);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_wait_event]);
    assert_ptr_equal(given, borrow(stream(100), 1000));
    assert_int_equal(1, fake_driver.calls[FAKE_stream_wait_event]);
    assert_int_equal(fake_driver_stream_id(stream(100)), fake_driver.wait.stream);
    assert_int_equal(fake_driver_stream_id(stream(FLP_SCRATCH_OWN + 1)), fake_driver.wait.behind);
    assert_ptr_equal(later, borrow(stream(101), 1000));
    assert_ptr_equal(given, borrow(stream(100), 1000));
    assert_int_equal(2, fake_driver.calls[FAKE_stream_wait_event]);
}

static void fill_all(void)
{
    for (int i = 0; i < MOST; i++)
        borrow(stream(i), 1000);
}

static void a_buffer_that_cannot_be_ordered_is_handed_to_nobody(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    fill_all();
    fake_driver_fail(FAKE_stream_wait_event, CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_fails(FLP_CUDA_FAILED, flp_scratch_lend(scratch, &device, stream(100), 10, 10, &loan), "cuStreamWaitEvent");
    fake_driver_fail(FAKE_event_record, CUDA_ERROR_LAUNCH_FAILED, FLP_SCRATCH_SHARED);
    for (int i = FLP_SCRATCH_OWN; i < MOST; i++)
        borrow(stream(i), 1000);
    borrow(stream(100), 1000);
    assert_int_equal(MOST + 1, fake_driver.live_blocks);
    assert_int_equal(1, fake_driver.calls[FAKE_stream_wait_event]);
}

static void an_id_that_the_driver_does_not_give_is_an_error(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    fake_driver_fail(FAKE_stream_id, CUDA_ERROR_INVALID_VALUE, 1);
    assert_fails(FLP_CUDA_FAILED, flp_scratch_lend(scratch, &device, stream(0), 10, 10, &loan), "cuStreamGetId");
    borrow(stream(0), 10);
}

static void a_captured_stream_is_known_by_the_handle_that_it_was_last_seen_with(void **state)
{
    void *old = borrow(stream(0), 1000), *new;
    flp_scratch_loan loan;

    (void)state;
    fake_driver.stream_age++; /* the stream is gone, its handle is another's */
    new = borrow(stream(0), 1000);
    assert_ptr_not_equal(old, new);
    fake_driver.capture = 1;
    assert_ptr_equal(new, borrow(stream(0), 1000));
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(1), 1000, 1000, &loan), "scratch");
    fake_driver.capture = 0;
    assert_ptr_equal(new, borrow(stream(0), 1000));
    fake_driver.stream_age--;
    assert_ptr_equal(old, borrow(stream(0), 1000));
}

static void a_stream_beside_a_capture_is_known_by_its_handle(void **state)
{
    void *known = borrow(stream(0), 1000);
    flp_scratch_loan loan;

    (void)state;
    fake_driver_fail(FAKE_stream_id, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 2);
    assert_ptr_equal(known, borrow(stream(0), 1000));
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(1), 1000, 1000, &loan), "scratch");
    assert_int_equal(1, fake_driver.live_blocks);
}

static void what_was_prepared_or_captured_is_handed_to_nobody(void **state)
{
    void *prepared, *captured;

    (void)state;
    for (int i = 0; i < FLP_SCRATCH_OWN; i++)
        borrow(stream(i), 1000);
    borrow(stream(50), 1000); /* recorded behind this */
    assert_succeeds(flp_scratch_reserve(scratch, &device, stream(50), 1000));
    prepared = borrow(stream(50), 1000);
    captured = borrow(stream(51), 1000);
    fake_driver.capture = 1;
    borrow(stream(51), 1000);
    fake_driver.capture = 0;
    for (int i = 0; i < 50; i++)
        assert_int_not_equal((uintptr_t)captured, (uintptr_t)borrow(stream(100 + i), 1000));
    assert_ptr_equal(prepared, borrow(stream(50), 1000));
    assert_ptr_equal(captured, borrow(stream(51), 1000));
    assert_int_equal(MOST + 2, fake_driver.live_blocks);
}

/* A wait for work outside the capture would end it. */
static void a_captured_stream_takes_no_buffer_over(void **state)
{
    flp_scratch_loan loan;

    (void)state;
    fill_all();
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(100), 10, 10, &loan), "its scratch has 0 bytes, wanted 10");
    assert_int_equal(0, fake_driver.calls[FAKE_stream_wait_event]);
}

static void cuda_contexts_have_buffers_of_their_own_number(void **state)
{
    (void)state;
    fill_all();
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(flp_device_current(&device));
    fill_all();
    assert_int_equal(2 * MOST, fake_driver.live_blocks);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_wait_event]);
}

/* ---- release ---- */

static void released_buffers_are_freed_behind_their_contexts_work(void **state)
{
    (void)state;
    fill_all();
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_ptr_equal(fake_driver_context(1), fake_driver.current);
    assert_int_equal(0, fake_driver.live_blocks);
    assert_int_equal(0, fake_driver.live_events);
    assert_in_range(fake_driver.calls[FAKE_context_synchronize], 1, MOST);
    fake_driver.current = fake_driver_context(0);
    fill_all();
    assert_int_equal(MOST, fake_driver.live_blocks);
}

static void a_release_that_cannot_wait_frees_nothing(void **state)
{
    void *kept = borrow(stream(0), 1000);

    (void)state;
    fake_driver_fail(FAKE_context_synchronize, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1);
    assert_fails(FLP_CAPTURING, flp_scratch_release(scratch, 1), "cuCtxSynchronize");
    assert_ptr_equal(kept, borrow(stream(0), 1000));
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_int_equal(0, fake_driver.live_blocks);
}

static void memory_that_cannot_be_freed_is_still_held(void **state)
{
    void *kept = borrow(stream(0), 1000);
    flp_scratch_loan loan;

    (void)state;
    fake_driver_fail(FAKE_memory_free, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1);
    assert_fails(FLP_CAPTURING, flp_scratch_release(scratch, 1), "cuMemFree");
    assert_ptr_equal(kept, borrow(stream(0), 1000));
    fake_driver_fail(FAKE_memory_free, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1);
    assert_fails(FLP_CAPTURING, flp_scratch_lend(scratch, &device, stream(0), 1 << 20, 1 << 20, &loan), "cuMemFree");
    assert_int_equal(1, fake_driver.live_blocks);
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_int_equal(0, fake_driver.live_blocks);
}

static void what_graphs_hold_is_released_on_demand(void **state)
{
    void *captured = borrow(stream(0), 1000);

    (void)state;
    fake_driver.capture = 1;
    borrow(stream(0), 1000);
    fake_driver.capture = 0;
    borrow(stream(1), 1000);
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_int_equal(1, fake_driver.live_blocks);
    assert_ptr_equal(captured, borrow(stream(0), 1000));
    borrow(stream(0), 2000); /* outgrown, and still the graph's */
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_int_equal(1000, fake_driver.live_bytes);
    assert_succeeds(flp_scratch_release(scratch, 1));
    assert_int_equal(0, fake_driver.live_blocks);
}

static void a_context_that_is_gone_is_released_without_it(void **state)
{
    void *block = borrow(stream(0), 1000);
    const flp_driver *driver;

    (void)state;
    fake_driver_destroy_context(0);
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(flp_scratch_release(scratch, 0));
    assert_int_equal(0, fake_driver.calls[FAKE_context_synchronize]);
    assert_int_equal(1, fake_driver.live_blocks); /* went with the context, whose memory the fake does not free by itself */
    assert_succeeds(flp_driver_get(&driver));
    assert_int_equal(CUDA_SUCCESS, driver->memory_free((CUdeviceptr)(uintptr_t)block));
}

/* ---- threads ---- */

static atomic_int inside, overlaps;

static void *borrow_from_many(void *first)
{
    flp_scratch_loan loan;

    for (int i = 0; i < 300; i++) {
        const CUstream from = stream((i * 7 + *(int *)first) % 40);
        assert_succeeds(flp_scratch_lend(scratch, &device, from, 10, 10, &loan));
        if (atomic_fetch_add((atomic_int *)loan.address, 1) != 0)
            atomic_fetch_add(&overlaps, 1);
        sched_yield();
        atomic_fetch_sub((atomic_int *)loan.address, 1);
        flp_scratch_return(&loan);
    }
    return NULL;
}

static void threads_with_more_streams_than_buffers_do_not_meet(void **state)
{
    static const int firsts[] = { 0, 1, 2, 3 };
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < MOST; i++)
        *(int *)borrow(stream(i), 10) = 0;
    overlaps = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, borrow_from_many, (void *)&firsts[i]));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(0, overlaps);
    assert_int_equal(MOST, fake_driver.live_blocks);
}

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
        TEST(a_handle_given_out_again_is_another_stream),
        TEST(the_default_streams_are_known_without_an_id),
        TEST(a_few_streams_keep_their_buffers_and_record_nothing),
        TEST(an_endless_sequence_of_streams_needs_no_more_buffers),
        TEST(a_buffer_goes_to_another_stream_behind_the_work_in_it),
        TEST(a_buffer_that_cannot_be_ordered_is_handed_to_nobody),
        TEST(an_id_that_the_driver_does_not_give_is_an_error),
        TEST(a_captured_stream_is_known_by_the_handle_that_it_was_last_seen_with),
        TEST(a_stream_beside_a_capture_is_known_by_its_handle),
        TEST(what_was_prepared_or_captured_is_handed_to_nobody),
        TEST(a_captured_stream_takes_no_buffer_over),
        TEST(cuda_contexts_have_buffers_of_their_own_number),
        TEST(released_buffers_are_freed_behind_their_contexts_work),
        TEST(a_release_that_cannot_wait_frees_nothing),
        TEST(memory_that_cannot_be_freed_is_still_held),
        TEST(what_graphs_hold_is_released_on_demand),
        TEST(a_context_that_is_gone_is_released_without_it),
        TEST(threads_with_more_streams_than_buffers_do_not_meet),
        TEST(one_thread_at_a_time_has_a_streams_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
