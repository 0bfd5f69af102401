/* Checks logits_logp's problem and fills in its defaults. */
#include "plan/logits_logp_problem.h"

#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"

#define AT(field) offsetof(flp_logits_logp_problem, field)

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(rows), .value_name = "rows" },
    { "v", FLP_PART_SIZE, AT(vocab), .value_name = "vocab" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "ls", FLP_PART_SIZE, AT(logits_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(pointer_alignment), .value_name = "bytes" },
    { "target_i32", FLP_PART_WORD, AT(target_dtype), .value = FLP_I32 },
    { "softcap", FLP_PART_NUMBER, AT(softcap), .value_name = "number" },
    { "argmax", FLP_PART_WORD, AT(argmax), .value = 1 },
    { "entropy", FLP_PART_WORD, AT(entropy), .value = 1 },
    { "sm_90a", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_logits_logp_problem_syntax = { AT(dtype), sizes, options };

flp_status flp_logits_logp_problem_normalize(const void *given, void *filled)
{
    const flp_logits_logp_problem *problem = given;
    flp_logits_logp_problem *normal = filled;
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_logits_logp_problem");
    *normal = *problem;
    status = flp_problem_check_float("dtype", problem->dtype);
    if (status == FLP_OK)
        status = flp_problem_fill_target_dtype(&normal->target_dtype);
    if (status == FLP_OK)
        status = flp_problem_check_rows(problem->rows);
    if (status == FLP_OK)
        status = flp_problem_check_extent("vocab", problem->vocab);
    if (status == FLP_OK)
        status = flp_problem_check_softcap(problem->softcap);
    if (status == FLP_OK)
        status = flp_problem_check_flag("argmax", problem->argmax);
    if (status == FLP_OK)
        status = flp_problem_check_flag("entropy", problem->entropy);
    if (status == FLP_OK)
        status = flp_problem_check_backend(problem->backend);
    if (status == FLP_OK)
        status = flp_problem_fill_alignment(flp_dtype_bytes(problem->dtype), &normal->pointer_alignment);
    /* With an index the logits have more rows than a call: as many as any tensor may have. */
    if (status == FLP_OK)
        status = flp_problem_fill_stride("logits_stride", FLP_PROBLEM_ROWS_MAX, normal->vocab, flp_dtype_bytes(problem->dtype),
                                         &normal->logits_stride);
    return status;
}

int flp_logits_logp_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_logits_logp_problem *problem = given;
    const unsigned choices[] = {
        (unsigned)problem->dtype, (unsigned)(problem->target_dtype ? problem->target_dtype : FLP_I64), (unsigned)problem->argmax,
        (unsigned)problem->entropy, (unsigned)problem->backend
    };

    key->sizes[0] = (uint64_t)problem->vocab;
    key->sizes[1] = (uint64_t)(problem->logits_stride ? problem->logits_stride : problem->vocab);
    memcpy(&key->sizes[2], &problem->softcap, sizeof(double));
    return flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}
