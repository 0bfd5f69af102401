/* Checks logits_logp's backward problem and fills in its defaults. */
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "plan/logits_logp_problem.h"

#define AT(field) offsetof(flp_logits_logp_backward_problem, field)

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(rows), .value_name = "rows" },
    { "v", FLP_PART_SIZE, AT(vocab), .value_name = "vocab" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "ls", FLP_PART_SIZE, AT(logits_stride), .value_name = "stride" },
    { "gs", FLP_PART_SIZE, AT(grad_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(pointer_alignment), .value_name = "bytes" },
    { "target_i32", FLP_PART_WORD, AT(target_dtype), .value = FLP_I32 },
    { "softcap", FLP_PART_NUMBER, AT(softcap), .value_name = "number" },
    { "entropy", FLP_PART_WORD, AT(entropy), .value = 1 },
    { "fused", FLP_PART_WORD, AT(fused), .value = 1 },
    { "sm_90a", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_logits_logp_backward_problem_syntax = { AT(dtype), sizes, options };

/* The part that it shares with the forward follows the forward's rules. */
static flp_status normalize_forward(flp_logits_logp_backward_problem *normal)
{
    const flp_logits_logp_problem given = {
        .dtype = normal->dtype, .rows = normal->rows, .vocab = normal->vocab, .logits_stride = normal->logits_stride,
        .pointer_alignment = normal->pointer_alignment, .target_dtype = normal->target_dtype, .softcap = normal->softcap,
        .entropy = normal->entropy, .backend = normal->backend,
    };
    flp_logits_logp_problem forward;
    flp_status status = flp_logits_logp_problem_normalize(&given, &forward);

    if (status != FLP_OK)
        return status;
    normal->logits_stride = forward.logits_stride;
    normal->pointer_alignment = forward.pointer_alignment;
    normal->target_dtype = forward.target_dtype;
    return FLP_OK;
}

flp_status flp_logits_logp_backward_problem_normalize(const void *given, void *filled)
{
    const flp_logits_logp_backward_problem *problem = given;
    flp_logits_logp_backward_problem *normal = filled;
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_logits_logp_backward_problem");
    *normal = *problem;
    status = normalize_forward(normal);
    if (status == FLP_OK)
        status = flp_problem_check_flag("fused", problem->fused);
    if (status == FLP_OK)
        status = flp_problem_fill_stride("grad_stride", FLP_PROBLEM_ROWS_MAX, normal->vocab, flp_dtype_bytes(normal->dtype), &normal->grad_stride);
    return status;
}

int flp_logits_logp_backward_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_logits_logp_backward_problem *problem = given;
    const unsigned choices[] = {
        (unsigned)problem->dtype, (unsigned)(problem->target_dtype ? problem->target_dtype : FLP_I64), (unsigned)problem->entropy,
        (unsigned)problem->fused, (unsigned)problem->backend
    };

    key->sizes[0] = (uint64_t)problem->vocab;
    key->sizes[1] = (uint64_t)(problem->logits_stride ? problem->logits_stride : problem->vocab);
    key->sizes[2] = (uint64_t)(problem->grad_stride ? problem->grad_stride : problem->vocab);
    memcpy(&key->sizes[3], &problem->softcap, sizeof(double));
    return flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}
