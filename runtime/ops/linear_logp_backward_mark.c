/* What the forward of a plan with_forward leaves in the workspace for the backward that belongs to it. */
#include "ops/linear_logp_backward_mark.h"

#include <string.h>

#include "ops/arguments.h"

/* The finaliser of splitmix64: each bit of value changes half of the result's. */
static uint64_t mix(uint64_t mark, uint64_t value)
{
    mark += value + UINT64_C(0x9e3779b97f4a7c15);
    mark = (mark ^ (mark >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mark = (mark ^ (mark >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mark ^ (mark >> 31);
}

unsigned long long flp_backward_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    const int ignores = flp_arguments_ignore(args->flags);
    const double temperature = flp_arguments_temperature(args->temperature);
    uint64_t mark = mix(plan->serial, (uint64_t)args->rows), bits;

    memcpy(&bits, &temperature, sizeof(bits));
    mark = mix(mark, (uint64_t)ignores);
    mark = mix(mark, ignores ? (uint64_t)args->ignore_index : 0);
    mark = mix(mark, args->row_temperature ? 1 : 0);
    mark = mix(mark, bits);
    return mark ? mark : 1;
}
