/* logits_logp's problems, both directions: their fields, a row each. */
#include "operators/logits/logits_logp_problem.h"

#define AT(field) offsetof(flp_logits_logp_problem, field)
#define BACKWARD_AT(field) offsetof(flp_logits_logp_backward_problem, field)

/* With an index the logits have more rows than a call: as many as any tensor may have. */
static const flp_field forward[] = { { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
                                     FLP_FIELD_ROWS(AT(rows)),
                                     FLP_FIELD_EXTENT("vocab", AT(vocab), "v"),
                                     { "logits_stride", FLP_FIELD_STRIDE, AT(logits_stride), .prefix = "ls", .value_name = "stride", .columns_at = AT(vocab) },
                                     FLP_FIELD_POINTERS(AT(pointer_alignment)),
                                     FLP_FIELD_TARGETS(AT(target_dtype)),
                                     FLP_FIELD_SOFTCAP(AT(softcap)),
                                     { "argmax", FLP_FIELD_CHOICE, AT(argmax), .words = { [1] = "argmax" }, FLP_FIELD_FLAG },
                                     { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
                                     FLP_FIELD_BACKEND(AT(backend)),
                                     { .name = NULL } };
const flp_field *const flp_logits_logp_fields[] = { forward, NULL };

static const flp_field backward[] = {
    { "dtype", FLP_FIELD_DTYPE, BACKWARD_AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
    FLP_FIELD_ROWS(BACKWARD_AT(rows)),
    FLP_FIELD_EXTENT("vocab", BACKWARD_AT(vocab), "v"),
    { "logits_stride", FLP_FIELD_STRIDE, BACKWARD_AT(logits_stride), .prefix = "ls", .value_name = "stride", .columns_at = BACKWARD_AT(vocab) },
    { "grad_stride", FLP_FIELD_STRIDE, BACKWARD_AT(grad_stride), .prefix = "gs", .value_name = "stride", .columns_at = BACKWARD_AT(vocab) },
    FLP_FIELD_POINTERS(BACKWARD_AT(pointer_alignment)),
    FLP_FIELD_TARGETS(BACKWARD_AT(target_dtype)),
    FLP_FIELD_SOFTCAP(BACKWARD_AT(softcap)),
    { "entropy", FLP_FIELD_CHOICE, BACKWARD_AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
    { "fused", FLP_FIELD_CHOICE, BACKWARD_AT(fused), .words = { [1] = "fused" }, FLP_FIELD_FLAG },
    FLP_FIELD_BACKEND(BACKWARD_AT(backend)),
    { .name = NULL }
};
const flp_field *const flp_logits_logp_backward_fields[] = { backward, NULL };
