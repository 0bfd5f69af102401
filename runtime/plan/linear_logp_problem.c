/* Checks linear_logp's problem field by field and fills in its defaults. */
#include "plan/linear_logp_problem.h"

#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"

#define AT(field) offsetof(flp_linear_logp_problem, field)

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(rows), .value_name = "rows" },
    { "d", FLP_PART_SIZE, AT(hidden), .value_name = "hidden" },
    { "v", FLP_PART_SIZE, AT(vocab), .value_name = "vocab" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "dv", FLP_PART_WORD, AT(weight_layout), .value = FLP_HIDDEN_VOCAB },
    { "hs", FLP_PART_SIZE, AT(hidden_stride), .value_name = "stride" },
    { "ws", FLP_PART_SIZE, AT(weight_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(pointer_alignment), .value_name = "bytes" },
    { "bias_", FLP_PART_DTYPE, AT(bias_dtype), .value_name = "dtype" },
    { "target_i32", FLP_PART_WORD, AT(target_dtype), .value = FLP_I32 },
    { "softcap", FLP_PART_NUMBER, AT(softcap), .value_name = "number" },
    { "argmax", FLP_PART_WORD, AT(argmax), .value = 1 },
    { "entropy", FLP_PART_WORD, AT(entropy), .value = 1 },
    { "exact", FLP_PART_WORD, AT(precision), .value = FLP_PRECISION_EXACT },
    { "sm_90a", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_linear_logp_problem_syntax = { AT(dtype), sizes, options };

static flp_status check_dtypes(const flp_linear_logp_problem *problem)
{
    flp_status status = flp_problem_check_float("dtype", problem->dtype);

    if (status == FLP_OK && problem->bias_dtype != FLP_NONE && flp_problem_check_float("bias_dtype", problem->bias_dtype) != FLP_OK)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "bias_dtype: got %d, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32",
                                 (int)problem->bias_dtype);
    return status;
}

static flp_status check_sizes(const flp_linear_logp_problem *problem)
{
    flp_status status = flp_problem_check_rows(problem->rows);

    if (status == FLP_OK)
        status = flp_problem_check_extent("hidden", problem->hidden);
    return status == FLP_OK ? flp_problem_check_extent("vocab", problem->vocab) : status;
}

static flp_status check_options(const flp_linear_logp_problem *problem)
{
    flp_status status = flp_problem_check_softcap(problem->softcap);

    if (status == FLP_OK && problem->weight_layout != FLP_VOCAB_HIDDEN && problem->weight_layout != FLP_HIDDEN_VOCAB)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "weight_layout: got %d, wanted FLP_VOCAB_HIDDEN or FLP_HIDDEN_VOCAB",
                                 (int)problem->weight_layout);
    if (status == FLP_OK)
        status = flp_problem_check_flag("argmax", problem->argmax);
    if (status == FLP_OK)
        status = flp_problem_check_flag("entropy", problem->entropy);
    if (status == FLP_OK && problem->precision != FLP_PRECISION_TENSOR && problem->precision != FLP_PRECISION_EXACT)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "precision: got %d, wanted FLP_PRECISION_TENSOR or FLP_PRECISION_EXACT",
                                 (int)problem->precision);
    if (status == FLP_OK && problem->precision == FLP_PRECISION_EXACT && problem->dtype != FLP_F32)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "precision: got FLP_PRECISION_EXACT with dtype %s, wanted it with f32 only",
                                 flp_dtype_name(problem->dtype));
    return status == FLP_OK ? flp_problem_check_backend(problem->backend) : status;
}

int flp_linear_logp_problem_element_bytes(const flp_linear_logp_problem *normal)
{
    return flp_dtype_bytes(normal->dtype);
}

static flp_status fill_defaults(flp_linear_logp_problem *normal)
{
    const int bytes = flp_linear_logp_problem_element_bytes(normal), transposed = normal->weight_layout == FLP_HIDDEN_VOCAB;
    flp_status status = flp_problem_fill_alignment(bytes, &normal->pointer_alignment);

    if (status == FLP_OK)
        status = flp_problem_fill_stride("hidden_stride", normal->rows, normal->hidden, bytes, &normal->hidden_stride);
    if (status == FLP_OK)
        status = flp_problem_fill_stride("weight_stride", transposed ? normal->hidden : normal->vocab,
                                         transposed ? normal->vocab : normal->hidden, bytes, &normal->weight_stride);
    return status;
}

flp_status flp_linear_logp_problem_normalize(const void *given, void *filled)
{
    const flp_linear_logp_problem *problem = given;
    flp_linear_logp_problem *normal = filled;
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_linear_logp_problem");
    *normal = *problem;
    status = check_dtypes(problem);
    if (status == FLP_OK)
        status = flp_problem_fill_target_dtype(&normal->target_dtype);
    if (status == FLP_OK)
        status = check_sizes(problem);
    if (status == FLP_OK)
        status = check_options(problem);
    return status == FLP_OK ? fill_defaults(normal) : status;
}

int flp_linear_logp_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_linear_logp_problem *problem = given;
    const unsigned choices[] = {
        (unsigned)problem->dtype, (unsigned)problem->weight_layout, (unsigned)problem->bias_dtype,
        (unsigned)(problem->target_dtype ? problem->target_dtype : FLP_I64), (unsigned)problem->argmax, (unsigned)problem->entropy,
        (unsigned)problem->precision, (unsigned)problem->backend
    };
    const int64_t weight_columns = problem->weight_layout == FLP_HIDDEN_VOCAB ? problem->vocab : problem->hidden;

    key->sizes[0] = (uint64_t)problem->hidden;
    key->sizes[1] = (uint64_t)problem->vocab;
    key->sizes[2] = (uint64_t)(problem->hidden_stride ? problem->hidden_stride : problem->hidden);
    key->sizes[3] = (uint64_t)(problem->weight_stride ? problem->weight_stride : weight_columns);
    memcpy(&key->sizes[4], &problem->softcap, sizeof(double));
    return flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}
