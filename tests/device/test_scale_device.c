/* scale on the GPU: every case of the CPU tests, through a plan and by dispatch; and more elements than 32 bits can count. */
#include <stdlib.h>

#include "device/device_test.h"
#include "scale_cases.h"

static flp_gpu *const gpu = &flp_device_test.gpu;

/* With --quick an allocation ends with x, so that a sanitizer sees an access to the first byte past it. */
static void check(const flp_scale_case *c, int by_dispatch)
{
    flp_scale_data data;
    CUdeviceptr base, factor;
    char message[256];

    assert_true(flp_scale_case_make(c, &data));
    const size_t bytes = flp_device_test.quick ? data.offset + data.x_bytes : data.bytes;
    assert_succeeds(flp_gpu_copy_in(gpu, data.base, bytes, &base));
    assert_succeeds(flp_gpu_copy_in(gpu, &data.factor, sizeof(data.factor), &factor));
    const flp_scale_args args = { .rows = c->problem.rows, .x = flp_gpu_pointer(base + data.offset), .factor = flp_gpu_pointer(factor) };
    if (by_dispatch) {
        assert_succeeds(flp_scale(flp_device_test.context, &c->problem, &args));
    } else {
        flp_plan *plan;

        assert_succeeds(flp_scale_plan_create(flp_device_test.context, &c->problem, &plan));
        assert_string_equal("portable", flp_backend_name(flp_plan_backend(plan)));
        assert_succeeds(flp_scale_execute(plan, &args));
        flp_plan_destroy(plan);
    }
    assert_succeeds(flp_gpu_synchronize(gpu));
    assert_succeeds(flp_gpu_download(gpu, data.base, base, bytes));
    if (!flp_scale_case_check(c, &data, message, sizeof(message)))
        fail_msg("%s: %s", c->name, message);
    flp_scale_case_free(&data);
    flp_gpu_free_all(gpu);
}

static void a_case_is_exact(void **state)
{
    const flp_scale_case *c = (const flp_scale_case *)*state;

    check(c, 0);
    check(c, 1);
}

/* 5 GiB, whose last element is 2^31 + 2^29 elements behind the first. */
static void elements_beyond_32_bits_are_reached(void **state)
{
    enum { ROWS = 5 << 16, COLUMNS = 8192, LAST = 1000 };
    const size_t bytes = (size_t)ROWS * COLUMNS * 2;
    const float three = 3;
    uint16_t last[LAST];
    CUdeviceptr x, factor;

    (void)state;
    assert_succeeds(flp_gpu_allocate(gpu, bytes, &x));
    assert_succeeds(flp_gpu_set(gpu, x, 0x40, bytes)); /* 0x4040: 3 */
    assert_succeeds(flp_gpu_copy_in(gpu, &three, sizeof(three), &factor));
    assert_succeeds(flp_scale(flp_device_test.context, &(flp_scale_problem){ .dtype = FLP_BF16, .rows = ROWS, .columns = COLUMNS },
                              &(flp_scale_args){ .rows = ROWS, .x = flp_gpu_pointer(x), .factor = flp_gpu_pointer(factor) }));
    assert_succeeds(flp_gpu_synchronize(gpu));
    for (size_t at = 0; at <= bytes - sizeof(last); at += (bytes - sizeof(last)) / 5) {
        assert_succeeds(flp_gpu_download(gpu, last, x + at / 2 * 2, sizeof(last)));
        for (int i = 0; i < LAST; i++)
            assert_int_equal(0x4110, last[i]); /* 9 */
    }
}

static flp_scale_case *cases;

static struct CMUnitTest test_at(int index)
{
    flp_scale_case_get(index, &cases[index]);
    return flp_device_test_case(cases[index].name, a_case_is_exact, &cases[index]);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest large[] = { flp_device_test_of(elements_beyond_32_bits_are_reached) };
    int code = flp_device_test_start(argc, argv), count, failed;

    if (code != 0)
        return code;
    count = flp_device_test.quick ? FLP_SCALE_QUICK : flp_scale_case_count();
    cases = calloc((size_t)count, sizeof(*cases));
    if (!cases)
        return 1;
    failed = flp_device_test_run_cases("scale on the device", count, test_at);
    if (!flp_device_test.quick)
        failed += cmocka_run_group_tests_name("large arrays", large, NULL, NULL);
    flp_device_test_finish();
    free(cases);
    return failed;
}
