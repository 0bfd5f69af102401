/* linear_logp's problem: its fields, a row each, and what holds between them. */
#include "operators/linear/linear_logp_problem.h"

#include "base/dtype.h"
#include "base/status.h"

#define AT(field) offsetof(flp_linear_logp_problem, field)

const flp_field flp_linear_logp_field_inputs[] = {
    { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
    FLP_FIELD_ROWS(AT(rows)),
    FLP_FIELD_EXTENT("hidden", AT(hidden), "d"),
    FLP_FIELD_EXTENT("vocab", AT(vocab), "v"),
    { "weight_layout", FLP_FIELD_CHOICE, AT(weight_layout), .words = { [FLP_HIDDEN_VOCAB] = "dv" },
      .allowed = FLP_FIELD_ALLOWS(FLP_VOCAB_HIDDEN) | FLP_FIELD_ALLOWS(FLP_HIDDEN_VOCAB), .wanted = "FLP_VOCAB_HIDDEN or FLP_HIDDEN_VOCAB" },
    { "hidden_stride", FLP_FIELD_STRIDE, AT(hidden_stride), .prefix = "hs", .value_name = "stride", .rows_at = AT(rows), .columns_at = AT(hidden) },
    { "weight_stride", FLP_FIELD_STRIDE, AT(weight_stride), .prefix = "ws", .value_name = "stride", .rows_at = AT(vocab), .columns_at = AT(hidden),
      .transposed_at = AT(weight_layout) },
    FLP_FIELD_POINTERS(AT(pointer_alignment)),
    { "bias_dtype", FLP_FIELD_DTYPE, AT(bias_dtype), .prefix = "bias_", FLP_FIELD_FLOAT_OR_NONE },
    FLP_FIELD_TARGETS(AT(target_dtype)),
    FLP_FIELD_SOFTCAP(AT(softcap)),
    { .name = NULL }
};
static const flp_field outputs[] = { { "argmax", FLP_FIELD_CHOICE, AT(argmax), .words = { [1] = "argmax" }, FLP_FIELD_FLAG },
                                     { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
                                     { .name = NULL } };
const flp_field flp_linear_logp_field_precision[] = { { "precision", FLP_FIELD_CHOICE, AT(precision), .words = { [FLP_PRECISION_EXACT] = "exact" },
                                                        .allowed = FLP_FIELD_ALLOWS(FLP_PRECISION_TENSOR) | FLP_FIELD_ALLOWS(FLP_PRECISION_EXACT),
                                                        .wanted = "FLP_PRECISION_TENSOR or FLP_PRECISION_EXACT" },
                                                      { .name = NULL } };
const flp_field flp_linear_logp_field_backend[] = { FLP_FIELD_BACKEND(AT(backend)), { .name = NULL } };

const flp_field *const flp_linear_logp_fields[] = { flp_linear_logp_field_inputs, outputs, flp_linear_logp_field_precision, flp_linear_logp_field_backend,
                                                    NULL };

flp_status flp_linear_logp_problem_check(void *normal)
{
    const flp_linear_logp_problem *problem = normal;

    if (problem->precision != FLP_PRECISION_EXACT || problem->dtype == FLP_F32)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "precision: got FLP_PRECISION_EXACT with dtype %s, wanted it with f32 only", flp_dtype_name(problem->dtype));
}
