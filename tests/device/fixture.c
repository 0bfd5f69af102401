/* Sets up a small case, and compares what later executions write. */
#include "device/fixture.h"

#include "device/edge_cases.h"

enum { CASE = 2 };

static const uint32_t output_word = 0xc5c5c5c5; /* four bytes of a poisoned output */

static flp_gpu *const gpu = &flp_device_test.gpu;

void flp_fixture_fetch(const flp_fixture *f, uint32_t *logp)
{
    assert_succeeds(flp_gpu_synchronize(gpu));
    assert_succeeds(flp_gpu_download(gpu, logp, (CUdeviceptr)(uintptr_t)f->args.logp, (size_t)f->args.rows * 4));
}

void flp_fixture_expect_result(const flp_fixture *f)
{
    uint32_t got[FLP_FIXTURE_ROWS];

    flp_fixture_fetch(f, got);
    assert_memory_equal(f->expected, got, (size_t)f->args.rows * 4);
}

void flp_fixture_expect_nothing_written(const flp_fixture *f)
{
    uint32_t got[FLP_FIXTURE_ROWS];

    flp_fixture_fetch(f, got);
    for (int64_t i = 0; i < f->args.rows; i++)
        assert_int_equal(output_word, got[i]);
}

void flp_fixture_poison(flp_fixture *f)
{
    assert_succeeds(flp_device_case_poison(gpu, &f->data, &f->on_device));
}

static void upload(flp_fixture *f)
{
    int64_t bytes = flp_plan_workspace_bytes(f->plan, f->c.problem.rows);

    assert_succeeds(flp_device_case_upload(gpu, &f->data, 0, &f->on_device));
    assert_succeeds(flp_device_case_add_workspace(gpu, bytes, 0, &f->on_device));
    flp_device_case_args(&f->c, &f->data, &f->on_device, &f->args);
    flp_device_case_use_workspace(&f->on_device, &f->args);
    f->args.stream = f->stream;
}

void flp_fixture_set_up(flp_fixture *f)
{
    *f = (flp_fixture){ 0 };
    flp_edge_case_quick_get(CASE, &f->c);
    assert_true(flp_case_make_data(&f->c, &f->data));
    assert_succeeds(flp_gpu_check(gpu, gpu->driver->stream_create(&f->stream, FLP_FIXTURE_NON_BLOCKING), "cuStreamCreate"));
    assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, &f->c.problem, &f->plan));
    upload(f);
    assert_succeeds(flp_linear_logp_execute(f->plan, &f->args));
    flp_fixture_fetch(f, f->expected);
    flp_fixture_poison(f);
}

void flp_fixture_tear_down(flp_fixture *f)
{
    flp_plan_destroy(f->plan);
    flp_case_free_data(&f->data);
    gpu->driver->stream_destroy(f->stream);
}
