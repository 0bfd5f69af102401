/* One case of logits_logp in device memory. */
#include "device/logits_on_device.h"

#include <string.h>

/* With --quick an allocation ends with the data, so that a sanitizer sees an access to the first byte past them. */
static size_t copied_bytes(const flp_logits_buffer *buffer)
{
    return flp_device_test.quick ? buffer->offset + buffer->data_bytes : buffer->bytes;
}

static void upload(flp_logits_on_device *on, flp_logits_role role)
{
    const flp_logits_buffer *buffer = &on->data.buffer[role];

    if (buffer->base)
        assert_succeeds(flp_gpu_upload(&flp_device_test.gpu, on->base[role], buffer->base, copied_bytes(buffer)));
}

void flp_logits_on_device_set_up(flp_logits_on_device *on)
{
    assert_true(flp_logits_case_make(&on->c, &on->data));
    assert_true(flp_logits_case_compute(&on->c, &on->data, &on->wanted));
    for (int role = 0; role < FLP_LOGITS_ROLES; role++) {
        if (!on->data.buffer[role].base)
            continue;
        assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, copied_bytes(&on->data.buffer[role]), &on->base[role]));
        on->bases[role] = flp_gpu_pointer(on->base[role]);
        upload(on, (flp_logits_role)role);
    }
}

void flp_logits_on_device_tear_down(flp_logits_on_device *on)
{
    flp_logits_wanted_free(&on->wanted);
    flp_logits_case_free(&on->data);
    flp_gpu_free_all(&flp_device_test.gpu);
}

void flp_logits_on_device_prepare(flp_logits_on_device *on, flp_logits_form form)
{
    const flp_logits_buffer *logits = &on->data.buffer[FLP_LOGITS_LOGITS], *gradients = &on->data.buffer[FLP_LOGITS_GRAD];

    flp_logits_case_poison(&on->data);
    if (form == FLP_LOGITS_IN_PLACE)
        memcpy(gradients->base + gradients->offset, logits->base + logits->offset, logits->data_bytes);
    for (int role = FLP_LOGITS_LOGP; role < FLP_LOGITS_ROLES; role++)
        upload(on, (flp_logits_role)role);
}

void flp_logits_on_device_fetch(flp_logits_on_device *on)
{
    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
    for (int role = FLP_LOGITS_LOGP; role < FLP_LOGITS_ROLES; role++)
        if (on->base[role])
            assert_succeeds(flp_gpu_download(&flp_device_test.gpu, on->data.buffer[role].base, on->base[role], copied_bytes(&on->data.buffer[role])));
}

static void check_plan(const flp_logits_on_device *on, flp_plan *plan, flp_backend backend)
{
    int64_t count, first;

    if (backend != FLP_BACKEND_AUTO)
        assert_int_equal(backend, flp_plan_backend(plan));
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(on->wanted.bad_count, count);
    assert_int_equal(on->wanted.bad_first, first);
}

void flp_logits_on_device_execute(flp_logits_on_device *on, flp_logits_form form, flp_backend backend)
{
    flp_logits_logp_problem forward = on->c.problem;
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args backward;
    flp_logits_logp_args args;
    flp_plan *plan;

    forward.backend = backend;
    if (form == FLP_LOGITS_FORWARD) {
        flp_logits_case_forward(&on->c, &on->data, on->bases, &args);
        assert_succeeds(flp_logits_logp_plan_create(flp_device_test.context, &forward, &plan));
        assert_succeeds(flp_logits_logp_execute(plan, &args));
    } else {
        flp_logits_case_backward(&on->c, &on->data, on->bases, form, &problem, &backward);
        problem.backend = backend;
        assert_succeeds(flp_logits_logp_backward_plan_create(flp_device_test.context, &problem, &plan));
        assert_succeeds(flp_logits_logp_backward_execute(plan, &backward));
    }
    check_plan(on, plan, backend);
    flp_logits_on_device_fetch(on);
    flp_plan_destroy(plan);
}

void *flp_logits_on_device_bits(const flp_logits_on_device *on, flp_logits_role role)
{
    return on->data.buffer[role].base + on->data.buffer[role].offset;
}
