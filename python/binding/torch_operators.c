/* The list of the operators, and a call of one of them. */
#include "torch_operators.h"
#include "torch_device.h"
#include "torch_tensors.h"

const flp_torch_operator *const flp_torch_operators[FLP_TORCH_OPERATORS] = {
    &flp_torch_linear_logp,
    &flp_torch_linear_logp_partials,
    &flp_torch_linear_logp_merge,
    &flp_torch_linear_logp_backward,
    &flp_torch_linear_logp_backward_partial,
    &flp_torch_linear_logp_saving,
    &flp_torch_linear_logp_backward_saved,
    &flp_torch_linear_cross_entropy,
    &flp_torch_linear_cross_entropy_accumulate,
    &flp_torch_linear_cross_entropy_partials,
    &flp_torch_linear_cross_entropy_merge,
    &flp_torch_linear_cross_entropy_merge_accumulate,
    &flp_torch_logits_logp,
    &flp_torch_logits_logp_backward,
    &flp_torch_weighted_sum,
    &flp_torch_weighted_sum_backward,
    &flp_torch_scale,
};

int flp_torch_operator_count(void)
{
    return FLP_TORCH_OPERATORS;
}

const char *flp_torch_schema(int op)
{
    return flp_torch_operators[op]->schema;
}

int flp_torch_run(int op, flp_torch_frame *frame)
{
    bool changed = false;
    int failed;

    frame->error[0] = 0, frame->status = FLP_OK;
    if (frame->device >= 0 && !flp_torch_device_enter(frame->device, &changed))
        return flp_torch_fail(frame, "fusedlogp: the CUDA context of device %d cannot be made current", frame->device);
    failed = flp_torch_operators[op]->run(frame);
    flp_torch_device_leave(changed);
    return failed;
}
