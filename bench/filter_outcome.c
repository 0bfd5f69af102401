/* Takes a plan's counters and packs them. */
#include "filter_outcome.h"

#include "peaked_inputs.h"

flp_status flp_filter_outcome_take(flp_plan *plan, double eps, flp_filter_outcome *outcome)
{
    *outcome = (flp_filter_outcome){ .eps = eps };
    return flp_plan_filter_statistics(plan, &outcome->blocks, &outcome->passed_over);
}

int flp_filter_outcome_add(const flp_filter_outcome *outcome, const flp_backward_errors *errors, json_t *result)
{
    json_t *more;
    int added;

    if (outcome->eps == 0)
        return 1;
    more = json_pack("{s:f, s:s, s:I, s:I, s:f, s:f}", "grad_filter_eps", outcome->eps, "data", FLP_PEAKED_INPUTS_NAME, "blocks", (json_int_t)outcome->blocks,
                     "blocks_kept", (json_int_t)(outcome->blocks - outcome->passed_over), "grad_hidden_bound", errors->hidden.bound, "grad_weight_bound",
                     errors->weight.bound);
    added = more && json_object_update(result, more) == 0;
    json_decref(more);
    return added;
}
