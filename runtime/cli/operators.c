/* Finds the operator that a problem's string begins with. */
#include "cli/operators.h"
#include <string.h>
#include "base/status.h"
#include "core/problem.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/logits/logits_logp_plan.h"
#include "operators/scale/scale_plan.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

const flp_operator_calls *const flp_operators[] = { &flp_linear_logp_calls,
                                                    &flp_linear_logp_backward_calls,
                                                    &flp_linear_cross_entropy_calls,
                                                    &flp_logits_logp_calls,
                                                    &flp_logits_logp_backward_calls,
                                                    &flp_weighted_sum_calls,
                                                    &flp_weighted_sum_backward_calls,
                                                    &flp_scale_calls,
                                                    NULL };

static flp_status refuse(const char *text, size_t length)
{
    flp_text names = { 0 };
    for (int i = 0; flp_operators[i] != NULL; i++)
        flp_text_append(&names, "%s%s", i ? ", " : "", flp_operators[i]->op->name);
    flp_status status = flp_status_fail(FLP_BAD_ARGUMENT, "problem \"%.200s\": part 1: got \"%.*s\", wanted one of %s", text, (int)(length < 64 ? length : 64),
                                        text, names.data ? names.data : "the operators");
    flp_text_free(&names);
    return status;
}

flp_status flp_operators_parse(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem)
{
    const size_t length = strcspn(text, ":");
    for (int i = 0; flp_operators[i] != NULL; i++) {
        const char *name = flp_operators[i]->op->name;
        *calls = flp_operators[i];
        if (strlen(name) == length && strncmp(name, text, length) == 0)
            return flp_problem_text_parse(flp_operators[i]->op, text, problem, flp_header_sizes());
    }
    return refuse(text, length);
}

static int ends_part(char letter)
{
    return letter == ':' || letter == 0;
}

flp_status flp_operators_read(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem)
{
    char canonical[FLP_PROBLEM_TEXT_BYTES];
    size_t length = 0;
    if (strlen(text) >= sizeof canonical)
        return flp_operators_parse(text, calls, problem);
    for (const char *at = text; *at; at++) {
        const int is_dtype = strncmp(at, "fp16", 4) == 0 || strncmp(at, "fp32", 4) == 0;
        canonical[length++] = *at;
        if (is_dtype && at > text && strchr(":_", at[-1]) && ends_part(at[4]))
            at++; /* passes over the p */
    }
    canonical[length] = 0;
    return flp_operators_parse(canonical, calls, problem);
}
