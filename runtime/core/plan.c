/* What can be asked of a plan, and what operators ask when they set one up. */
#include "core/plan.h"

/* roles: not empty. */
static const char *first_word(flp_role_set roles)
{
    return flp_role_word((flp_role)__builtin_ctz(roles));
}

flp_status flp_plan_check_kernels(const flp_plan *plan, flp_role_set wanted, flp_role_set optional)
{
    flp_role_set chosen = 0;

    for (unsigned role = 0; role < FLP_ROLES; role++)
        chosen |= (flp_role_set)(plan->kernels[role] != NULL) << role;
    if (wanted & ~chosen)
        return flp_status_fail(FLP_INTERNAL, "the generator chose no kernel for the role %s of %s", first_word(wanted & ~chosen), plan->op->name);
    if (chosen & ~(wanted | optional))
        return flp_status_fail(FLP_INTERNAL, "the generator chose a kernel for the role %s, which %s does not have", first_word(chosen & ~(wanted | optional)),
                               plan->op->name);
    return FLP_OK;
}

flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *op, flp_role_set roles, flp_plan *pass)
{
    pass->context = plan->context;
    pass->op = op;
    pass->device = plan->device;
    pass->choice.path = plan->choice.path;
    for (unsigned role = 0; role < FLP_ROLES; role++)
        pass->kernels[role] = roles >> role & 1 ? plan->kernels[role] : NULL;
    return op->set_up(pass);
}

int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows)
{
    flp_workspace workspace;

    if (!plan || rows < 0 || rows > flp_plan_rows(plan))
        return -1;
    if (!flp_plan_on_gpu(plan) && plan->op->cpu_workspace_bytes)
        return plan->op->cpu_workspace_bytes(plan, rows);
    flp_plan_lay_out(plan, flp_plan_most_rows(plan, rows), &workspace);
    return workspace.bytes;
}

flp_backend flp_plan_backend(const flp_plan *plan)
{
    return plan ? plan->choice.path : FLP_BACKEND_AUTO;
}

const char *flp_plan_reason(const flp_plan *plan)
{
    return plan ? plan->choice.reason : "";
}

const char *flp_plan_numerics(const flp_plan *plan)
{
    return plan ? plan->numerics : "";
}

const char *flp_plan_describe(const flp_plan *plan)
{
    return plan ? plan->description : "";
}
