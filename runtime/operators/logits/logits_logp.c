/* logits_logp, both directions: their calls. */
#include "core/call.h"
#include "operators/logits/logits_logp_args.h"
#include "operators/logits/logits_logp_launch.h"
#include "operators/logits/logits_logp_backward_plan.h"
#include "operators/logits/logits_logp_plan.h"

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_logits_logp_cpu(plan->context->pool, &((const flp_logits_logp_work *)work)->call, bad_count, bad_first);
}

/* ---- forward ---- */

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((flp_logits_logp_work *)work)->stream = ((const flp_logits_logp_args *)args)->stream;
    return flp_logits_logp_args_fill(normal, args, &((flp_logits_logp_work *)work)->call);
}

static const flp_operator_calls flp_logits_logp_calls = {
    .op = &flp_logits_logp_operator,
    .arguments = &flp_logits_logp_arguments,
    .check = check,
    .makes_work = 1,
    .launch = flp_logits_logp_launch,
    .run_on_cpu = run_on_cpu,
};
_Static_assert(sizeof(flp_logits_logp_work) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_logits_logp)

/* ---- backward ---- */

static flp_status check_backward(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((flp_logits_logp_work *)work)->stream = ((const flp_logits_logp_backward_args *)args)->stream;
    return flp_logits_logp_args_fill_backward(normal, args, &((flp_logits_logp_work *)work)->call);
}

static const flp_operator_calls flp_logits_logp_backward_calls = {
    .op = &flp_logits_logp_backward_operator,
    .arguments = &flp_logits_logp_backward_arguments,
    .check = check_backward,
    .makes_work = 1,
    .launch = flp_logits_logp_launch_backward,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_logits_logp_backward)
