/* The current device, capture, and the facts that the public calls tell. */
#include "cuda/device.h"

#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"

static flp_device device;

static int install(void **state)
{
    (void)state;
    fake_library_install();
    return 0;
}

static void the_current_device_has_its_context_and_facts(void **state)
{
    (void)state;
    fake_driver.minor = 3;
    assert_succeeds(flp_device_current(&device));
    assert_ptr_equal(fake_driver_context(0), device.context);
    assert_int_equal(1000, device.context_id);
    assert_string_equal("Fake GPU 0", device.facts.name);
    assert_int_equal(93, device.facts.compute_capability);
    assert_int_equal(132, device.facts.multiprocessors);
    assert_int_equal(232448, device.facts.shared_bytes_per_block);
    assert_true(device.facts.memory_bytes == INT64_C(80) << 30);
}

static void asking_again_for_the_same_context_asks_the_driver_for_no_facts(void **state)
{
    int before;

    (void)state;
    assert_succeeds(flp_device_current(&device));
    before = fake_driver.calls[FAKE_device_attribute];
    assert_int_equal(4, before);
    assert_succeeds(flp_device_current(&device));
    assert_int_equal(before, fake_driver.calls[FAKE_device_attribute]);
    fake_driver.current = fake_driver_context(1);
    assert_succeeds(flp_device_current(&device));
    assert_int_equal(1001, device.context_id);
    assert_ptr_equal(fake_driver_context(1), device.context);
    assert_int_equal(2 * before, fake_driver.calls[FAKE_device_attribute]);
}

static void the_context_id_alone_asks_for_no_facts(void **state)
{
    unsigned long long id;

    (void)state;
    fake_driver.current = fake_driver_context(2);
    assert_succeeds(flp_device_current_id(&id));
    assert_int_equal(1002, id);
    assert_int_equal(0, fake_driver.calls[FAKE_device_attribute]);
}

static void no_current_context_is_the_wrong_context(void **state)
{
    unsigned long long id;

    (void)state;
    fake_driver.current = NULL;
    assert_fails(FLP_WRONG_CONTEXT, flp_device_current(&device), "no CUDA context is current");
    assert_fails(FLP_WRONG_CONTEXT, flp_device_current_id(&id), "no CUDA context is current");
}

static void a_destroyed_context_is_the_wrong_context(void **state)
{
    (void)state;
    fake_driver_destroy_context(0);
    assert_fails(FLP_WRONG_CONTEXT, flp_device_current(&device), "cuCtxGetId");
}

static void each_failing_question_is_named(void **state)
{
    const struct {
        int function;
        const char *name;
    } questions[] = {
        { FAKE_context_current, "cuCtxGetCurrent" },       { FAKE_context_id, "cuCtxGetId" },
        { FAKE_context_device, "cuCtxGetDevice" },         { FAKE_device_name, "cuDeviceGetName" },
        { FAKE_device_attribute, "cuDeviceGetAttribute" }, { FAKE_device_total_memory, "cuDeviceTotalMem" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        fake_library_install();
        fake_driver_fail(questions[i].function, CUDA_ERROR_INVALID_VALUE, -1);
        assert_fails(FLP_CUDA_FAILED, flp_device_current(&device), questions[i].name);
    }
}

static void without_a_driver_there_is_no_current_device(void **state)
{
    (void)state;
    fake_library.driver = 0;
    assert_fails(FLP_NO_DRIVER, flp_device_current(&device), "libcuda");
}

static void a_stream_under_capture_is_seen(void **state)
{
    int capturing = 9;

    (void)state;
    assert_succeeds(flp_device_is_capturing(NULL, &capturing));
    assert_int_equal(0, capturing);
    fake_driver.capture = 1;
    assert_succeeds(flp_device_is_capturing(NULL, &capturing));
    assert_int_equal(1, capturing);
    fake_driver.capture = 2; /* invalidated, but not ended */
    assert_succeeds(flp_device_is_capturing(NULL, &capturing));
    assert_int_equal(1, capturing);
}

static void the_legacy_stream_beside_a_capture_is_an_error_of_its_own(void **state)
{
    int capturing;

    (void)state;
    fake_driver_fail(FAKE_stream_is_capturing, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 1);
    assert_fails(FLP_CAPTURING, flp_device_is_capturing(NULL, &capturing), "cuStreamIsCapturing");
    assert_int_equal(0, capturing);
}

static void the_public_count_is_zero_without_a_driver(void **state)
{
    int count = 9;

    (void)state;
    fake_library.driver = 0;
    assert_succeeds(flp_device_count(&count));
    assert_int_equal(0, count);
    fake_library_install();
    fake_driver.devices = 3;
    assert_succeeds(flp_device_count(&count));
    assert_int_equal(3, count);
    assert_fails(FLP_BAD_ARGUMENT, flp_device_count(NULL), "count");
}

static void a_device_is_described_by_its_ordinal(void **state)
{
    flp_device_facts facts;

    (void)state;
    fake_driver.devices = 2;
    assert_succeeds(flp_device_describe(1, &facts));
    assert_string_equal("Fake GPU 1", facts.name);
    assert_int_equal(90, facts.compute_capability);
    assert_fails(FLP_BAD_ARGUMENT, flp_device_describe(2, &facts), "got 2, wanted 0 .. 1");
    assert_fails(FLP_BAD_ARGUMENT, flp_device_describe(-1, &facts), "got -1");
    assert_fails(FLP_BAD_ARGUMENT, flp_device_describe(0, NULL), "facts");
    fake_library_install();
    fake_library.driver = 0;
    assert_fails(FLP_NO_DRIVER, flp_device_describe(0, &facts), "libcuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_current_device_has_its_context_and_facts, install),
        cmocka_unit_test_setup(asking_again_for_the_same_context_asks_the_driver_for_no_facts, install),
        cmocka_unit_test_setup(the_context_id_alone_asks_for_no_facts, install),
        cmocka_unit_test_setup(no_current_context_is_the_wrong_context, install),
        cmocka_unit_test_setup(a_destroyed_context_is_the_wrong_context, install),
        cmocka_unit_test_setup(each_failing_question_is_named, install),
        cmocka_unit_test_setup(without_a_driver_there_is_no_current_device, install),
        cmocka_unit_test_setup(a_stream_under_capture_is_seen, install),
        cmocka_unit_test_setup(the_legacy_stream_beside_a_capture_is_an_error_of_its_own, install),
        cmocka_unit_test_setup(the_public_count_is_zero_without_a_driver, install),
        cmocka_unit_test_setup(a_device_is_described_by_its_ordinal, install),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
