/* Finds the operator that a problem's string begins with. */
#include "cli/operators.h"
#include <string.h>
#include "base/status.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/logits/logits_logp_backward_plan.h"
#include "operators/logits/logits_logp_plan.h"
#include "operators/weighted_sum/weighted_sum_backward_plan.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

const flp_operator_calls *const flp_operators[] = { &flp_linear_logp_calls,           &flp_linear_logp_backward_calls,
                                                    &flp_linear_cross_entropy_calls,  &flp_logits_logp_calls,
                                                    &flp_logits_logp_backward_calls,  &flp_weighted_sum_calls,
                                                    &flp_weighted_sum_backward_calls, NULL };

flp_status flp_operators_parse(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem)
{
    const size_t length = strcspn(text, ":");
    flp_text names = { 0 };
    for (int i = 0; flp_operators[i] != NULL; i++) {
        const flp_operator *op = flp_operators[i]->op;

        *calls = flp_operators[i];
        if (strlen(op->name) == length && strncmp(op->name, text, length) == 0)
            return flp_problem_text_parse(op, text, problem, flp_header_sizes());
        flp_text_append(&names, "%s%s", i ? ", " : "", op->name);
    }
    flp_status status = flp_status_fail(FLP_BAD_ARGUMENT, "problem \"%.200s\": part 1: got \"%.*s\", wanted one of %s", text, (int)(length < 64 ? length : 64),
                                        text, names.data ? names.data : "the operators");
    flp_text_free(&names);
    return status;
}
