/* The table of cases of linear_cross_entropy: every option, alone and together. */
#include "cross_entropy_cases.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

const char flp_cross_entropy_case_loss_name[] = "everything";
const char flp_cross_entropy_case_loss[] = "return {\n"
                                           "  inputs = { 'advantages' },\n"
                                           "  parameters = { { 'entropy_scale', 0.01 } },\n"
                                           "  loss = function(t)\n"
                                           "    return -t.advantages * t.logp - t.entropy_scale * t.entropy + 0.1 * t.uniform + 0.01 * t.lse * t.class_weight\n"
                                           "  end,\n"
                                           "}\n";

#define SEED                                                                                          \
    {                                                                                                 \
        .dtype = FLP_F32, .rows = 64, .hidden = 512, .vocab = 1024, .weight_layout = FLP_HIDDEN_VOCAB \
    }
#define BIAS .bias = FLP_CASE_PLAIN_BIAS
#define IGNORED .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN
#define SUM .problem.reduction = FLP_REDUCE_SUM
#define NONE .problem.reduction = FLP_REDUCE_NONE
#define BF16 .problem = { .dtype = FLP_BF16 }
#define SAVES_EXP .memory_budget = 1 << 26
#define BOTH .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16
#define CHUNKS .grad_weight = FLP_F32, .memory_budget = 2000000, .accumulate = FLP_ACCUMULATE_WEIGHT /* of 512 rows of V 1500 */
#define SMOOTHING .problem.label_smoothing = 1, .label_smoothing = 0.1
#define CLASSES .problem.class_weights = FLP_F32
#define TOKENS .problem.token_weights = 1

/* Fields that are 0 take what flp_gradient_case_complete fills in. */
static const flp_cross_entropy_case cases[] = {
    { .gradient = { .name = "seed case", .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = SEED } } },
    { .gradient = { .name = "seed case, sum", .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = SEED } }, SUM },
    { .gradient = { .name = "mean", .forward = { BIAS } }, .outputs = 1 },
    { .gradient = { .name = "sum", .forward = { BIAS } }, SUM, .with_g_loss = 1 },
    { .gradient = { .name = "none", .forward = { BIAS } }, NONE },
    { .gradient = { .name = "none, g_loss" }, NONE, .with_g_loss = 1 },
    { .gradient = { .name = "mean, g_loss", .forward = { IGNORED } }, .with_g_loss = 1, .outputs = 1 },
    { .gradient = { .name = "no rows", .forward = { BIAS, .problem = { .rows = -1 } } } },
    { .gradient = { .name = "no rows, none", .forward = { .problem = { .rows = -1 } } }, NONE },
    { .gradient = { .name = "one row", .forward = { .problem = { .rows = 1 } } } },
    { .gradient = { .name = "more rows than a block", .forward = { IGNORED, .problem = { .rows = 1100, .hidden = 3, .vocab = 253 } } }, TOKENS },

    { .gradient = { .name = "forward only", .forward = { BIAS } }, .forward_only = 1 },
    { .gradient = { .name = "forward only, none, smoothing", .forward = { BIAS, IGNORED } }, .forward_only = 1, NONE, SMOOTHING, .outputs = 1 },
    { .gradient = { .name = "forward only, ignored", .forward = { BIAS, IGNORED } }, .forward_only = 1, .outputs = 1, TOKENS },
    { .gradient = { .name = "forward only, token 0 is a target like others", .forward = { .rows = FLP_CASE_NONE_IGNORED, .problem = { .vocab = 3 } } },
      .forward_only = 1,
      .outputs = 1 },
    { .gradient = { .name = "forward only, all ignored", .forward = { .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN } },
      .forward_only = 1,
      .outputs = 1 },
    { .gradient = { .name = "forward only, bad targets, none", .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_IGNORED_NAN } },
      .forward_only = 1,
      NONE,
      .outputs = 1 },
    { .gradient = { .name = "forward only, NaN and inf rows", .forward = { .rows = FLP_CASE_NAN_ROWS } }, .forward_only = 1, NONE },
    { .gradient = { .name = "forward only, more rows than a block",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 40, .vocab = 700 } } },
      .forward_only = 1,
      .outputs = 1,
      .problem.entropy = 1 },
    { .gradient = { .name = "forward only, fp32, more rows than a block",
                    .forward = { IGNORED, .problem = { .dtype = FLP_F32, .rows = 300, .hidden = 36, .vocab = 300 } } },
      .forward_only = 1,
      .outputs = 1 },
    { .gradient = { .name = "forward only, rows of hidden at odd addresses", .forward = { IGNORED, .hidden_gap = 3, .problem = { .dtype = FLP_BF16 } } },
      .forward_only = 1,
      .outputs = 1 },
    { .gradient = { .name = "forward only, one row", .forward = { .problem = { .rows = 1 } } }, .forward_only = 1, .outputs = 1 },
    { .gradient = { .name = "forward only, no rows", .forward = { .problem = { .rows = -1 } } }, .forward_only = 1 },
    { .gradient = { .name = "hidden alone", .problem = { .grad_hidden = FLP_F32 } } },
    { .gradient = { .name = "weight alone", .problem = { .grad_weight = FLP_F32 } }, SUM },
    { .gradient = { .name = "accumulate",
                    .forward = { BIAS },
                    .problem = { .grad_hidden = FLP_BF16,
                                 .grad_weight = FLP_F32,
                                 .grad_bias = FLP_F32,
                                 .accumulate = FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS } } },
    { .gradient = { .name = "entropy beside it" }, .problem.entropy = 1, .outputs = 1 },
    { .gradient = { .name = "entropy that nobody asks for", .forward = { IGNORED } }, .problem.entropy = 1 },
    { .gradient = { .name = "logp alone", .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_IGNORED_NAN } }, NONE, .problem.entropy = 1, .outputs = 2 },
    { .gradient = { .name = "lse alone", .forward = { IGNORED } }, .problem.entropy = 1, .outputs = 4 },
    { .gradient = { .name = "entropy alone", .forward = { IGNORED } }, .problem.entropy = 1, .outputs = 8 },

    { .gradient = { .name = "ignored", .forward = { BIAS, IGNORED } } },
    { .gradient = { .name = "all ignored", .forward = { BIAS, .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN } } },
    { .gradient = { .name = "bad targets", .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_IGNORED_NAN } } },
    { .gradient = { .name = "token 0 is a target like others", .forward = { BIAS, .rows = FLP_CASE_NONE_IGNORED, .problem = { .vocab = 3 } } } },
    { .gradient = { .name = "bad targets, none ignored, none", .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_NONE_IGNORED } }, NONE, .outputs = 1 },
    { .gradient = { .name = "bad targets, none", .forward = { .rows = FLP_CASE_BAD_TARGETS } }, NONE, TOKENS },
    { .gradient = { .name = "NaN and inf rows", .forward = { .rows = FLP_CASE_NAN_ROWS } }, NONE },
    { .gradient = { .name = "logits up", .forward = { .bias = FLP_CASE_UP } } },
    { .gradient = { .name = "all negative", .forward = { .bias = FLP_CASE_NEGATIVE } }, SMOOTHING },
    { .gradient = { .name = "all equal", .forward = { .values = FLP_CASE_ZEROS } }, SMOOTHING },
    /* Weights, for with equal ones all derivatives of the target are nearly one number, whose roundings do not average out. */
    { .gradient = { .name = "targets all equal", .forward = { BIAS, .rows = FLP_CASE_EQUAL_TARGETS } }, TOKENS },
    { .gradient = { .name = "first entries masked", .forward = { .bias = FLP_CASE_FIRST_MASKED } }, NONE },
    { .gradient = { .name = "padded vocabulary", .forward = { .vocab_padding = 24 } }, SMOOTHING, CLASSES },
    { .gradient = { .name = "columns, odd vocabulary", .forward = { BIAS, .problem = { .vocab = 1003, .weight_layout = FLP_HIDDEN_VOCAB } } }, SMOOTHING },
    { .gradient = { .name = "int32 targets", .forward = { .rows = FLP_CASE_BAD_TARGETS, .problem = { .target_dtype = FLP_I32 } } }, NONE, CLASSES },

    { .gradient = { .name = "smoothing", .forward = { BIAS, IGNORED }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } },
      SMOOTHING },
    { .gradient = { .name = "smoothing 1, sum" }, .problem.label_smoothing = 1, .label_smoothing = 1, SUM },
    { .gradient = { .name = "smoothing 0" }, .problem.label_smoothing = 1 },
    { .gradient = { .name = "smoothing 0, first entries masked", .forward = { .bias = FLP_CASE_FIRST_MASKED } }, .problem.label_smoothing = 1, NONE },
    { .gradient = { .name = "smoothing, many entries", .forward = { .problem = { .rows = 20, .hidden = 16, .vocab = 4100 } } }, SMOOTHING, CLASSES },
    { .gradient = { .name = "smoothing, more rows than a block",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 16, .vocab = 700 } },
                    .problem = { BOTH } },
      SMOOTHING },
    { .gradient = { .name = "smoothing, logits up", .forward = { .bias = FLP_CASE_UP } }, SMOOTHING },
    { .gradient = { .name = "smoothing, softcap, row temperatures", .forward = { BIAS, .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .softcap = 5 } } },
      SMOOTHING,
      CLASSES },
    { .gradient = { .name = "z-loss", .forward = { BIAS } }, .lse_square_scale = 1e-2 },
    { .gradient = { .name = "z-loss, temperature", .forward = { BIAS, .temperature = 0.5 } }, .lse_square_scale = 1e-4, SUM },
    { .gradient = { .name = "class weights", .forward = { BIAS, IGNORED } }, CLASSES },
    { .gradient = { .name = "class weights bf16, none" }, .problem.class_weights = FLP_BF16, NONE },
    { .gradient = { .name = "class weights f16, sum" }, .problem.class_weights = FLP_F16, SUM, SMOOTHING },
    { .gradient = { .name = "class weights far beyond their mean, fp16",
                    .forward = { BIAS, .problem = { .dtype = FLP_F16 } },
                    .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32 } },
      CLASSES,
      SUM,
      SMOOTHING,
      .extremes = FLP_CROSS_ENTROPY_LARGE_CLASSES },
    { .gradient = { .name = "token weights", .forward = { IGNORED } }, TOKENS },
    { .gradient = { .name = "token weights that add up to 0, first entries masked", .forward = { .bias = FLP_CASE_FIRST_MASKED } },
      TOKENS,
      .extremes = FLP_CROSS_ENTROPY_NO_WEIGHT },
    { .gradient = { .name = "token weights, class weights, smoothing, z-loss", .forward = { BIAS, IGNORED } },
      TOKENS,
      CLASSES,
      SMOOTHING,
      .lse_square_scale = 1e-3,
      .with_g_loss = 1 },

    /* With room for saved exponentials on the paths that have one. */
    { .gradient = { .name = "saved exponentials", .forward = { BIAS, IGNORED, BF16 }, .problem = { SAVES_EXP } }, .outputs = 1 },
    { .gradient = { .name = "saved exponentials, columns, fp32 gradients",
                    .forward = { .problem = { .dtype = FLP_BF16, .vocab = 1003, .weight_layout = FLP_HIDDEN_VOCAB } },
                    .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, SAVES_EXP } },
      SUM,
      TOKENS },
    { .gradient = { .name = "saved exponentials, more rows than a block",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 40, .vocab = 700 } },
                    .problem = { SAVES_EXP } },
      TOKENS,
      .lse_square_scale = 1e-2 },
    { .gradient = { .name = "saved exponentials, later entries far above", .forward = { .bias = FLP_CASE_STEP_200, BF16 }, .problem = { SAVES_EXP } }, NONE },
    { .gradient = { .name = "saved exponentials, one row of a block far above",
                    .forward = { .rows = FLP_CASE_ROW_TEMPERATURES, .bias = FLP_CASE_STEP_200, BF16 },
                    .problem = { SAVES_EXP } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, first entries masked", .forward = { .bias = FLP_CASE_FIRST_MASKED, BF16 }, .problem = { SAVES_EXP } } },
    { .gradient = { .name = "saved exponentials, NaN and inf rows", .forward = { .rows = FLP_CASE_NAN_ROWS, BF16 }, .problem = { SAVES_EXP } }, NONE },
    { .gradient = { .name = "saved exponentials, entropy beside it", .forward = { .rows = FLP_CASE_BAD_TARGETS, BF16 }, .problem = { SAVES_EXP } },
      NONE,
      .problem.entropy = 1,
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, no rows", .forward = { BIAS, .problem = { .dtype = FLP_BF16, .rows = -1 } }, .problem = { SAVES_EXP } } },
    { .gradient = { .name = "saved exponentials of a part",
                    .forward = { BIAS, IGNORED, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 24, .vocab = 16000 } },
                    .problem = { .memory_budget = 700000 } },
      TOKENS },
    { .gradient = { .name = "saved exponentials of a part, targets at its end",
                    .forward = { .rows = FLP_CASE_BOUNDARY_TARGETS, .problem = { .dtype = FLP_BF16, .rows = 64, .hidden = 16, .vocab = 8000 } },
                    .problem = { .memory_budget = 700000 } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, rows in chunks",
                    .forward = { BIAS, IGNORED, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_BF16,
                                 .grad_weight = FLP_F32,
                                 .grad_bias = FLP_F32,
                                 .accumulate = FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS,
                                 .memory_budget = 2000000 } },
      TOKENS,
      .outputs = 1 },
    /* The last chunk has no valid row. */
    { .gradient = { .name = "saved exponentials, rows in chunks, bad targets, none",
                    .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_IGNORED_NAN,
                                 .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500, .weight_layout = FLP_HIDDEN_VOCAB } },
                    .problem = { .grad_hidden = FLP_BF16, CHUNKS } },
      NONE,
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, rows in chunks, all ignored",
                    .forward = { BIAS, .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN,
                                 .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_BF16, .grad_bias = FLP_F32, CHUNKS | FLP_ACCUMULATE_BIAS } },
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, rows in chunks, fp32 gradients",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_F32, CHUNKS } },
      TOKENS,
      .problem.entropy = 1,
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, rows in chunks, accumulate",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_BF16, CHUNKS | FLP_ACCUMULATE_HIDDEN } },
      SUM },
    { .gradient = { .name = "saved exponentials, rows in chunks, weight alone",
                    .forward = { .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { CHUNKS } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, hidden alone, rows in chunks",
                    .forward = { BIAS, IGNORED, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_BF16, .memory_budget = 2000000 } },
      TOKENS,
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, hidden alone, rows in chunks, fp32, row temperatures",
                    .forward = { .bias = FLP_CASE_STEP_200,
                                 .rows = FLP_CASE_ROW_TEMPERATURES,
                                 .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500, .weight_layout = FLP_HIDDEN_VOCAB } },
                    .problem = { .grad_hidden = FLP_F32, .memory_budget = 2000000 } },
      NONE,
      .lse_square_scale = 1e-2 },
    { .gradient = { .name = "saved exponentials, hidden alone, by default",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 16, .vocab = 16000 } },
                    .problem = { .grad_hidden = FLP_BF16 } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, rows in chunks, later entries far above",
                    .forward = { .bias = FLP_CASE_STEP_200,
                                 .rows = FLP_CASE_ROW_TEMPERATURES,
                                 .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 1500 } },
                    .problem = { .grad_hidden = FLP_BF16, CHUNKS } },
      NONE },
    { .gradient = { .name = "saved exponentials, 2 bytes off", .forward = { BIAS, IGNORED, .misalignment = 2, BF16 }, .problem = { SAVES_EXP } },
      NONE,
      TOKENS },
    { .gradient = { .name = "saved exponentials, the weight's rows apart",
                    .forward = { .bias = FLP_CASE_STEP_200, .weight_gap = 2, BF16 },
                    .problem = { SAVES_EXP } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, columns, the weight's rows apart",
                    .forward = { IGNORED, .weight_gap = 3, .problem = { .dtype = FLP_BF16, .weight_layout = FLP_HIDDEN_VOCAB } },
                    .problem = { SAVES_EXP } },
      TOKENS },
    { .gradient = { .name = "saved exponentials, policy gradient", .forward = { IGNORED, BF16 }, .problem = { SAVES_EXP } },
      .problem.token_loss = "policy_gradient_kl",
      NONE },

    { .gradient = { .name = "saved exponentials, grad_hidden first",
                    .forward = { IGNORED, .problem = { .dtype = FLP_BF16, .rows = 520, .hidden = 16, .vocab = 1500 } },
                    .problem = { BOTH, SAVES_EXP } } },
    { .gradient = { .name = "saved exponentials, grad_hidden first, columns, fp32 weight gradients",
                    .forward = { .rows = FLP_CASE_BAD_TARGETS,
                                 .problem = { .dtype = FLP_BF16, .rows = 520, .hidden = 16, .vocab = 1502, .weight_layout = FLP_HIDDEN_VOCAB } },
                    .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, SAVES_EXP } },
      SUM },
    { .gradient = { .name = "saved exponentials, grad_hidden first, all ignored",
                    .forward = { .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN, .problem = { .dtype = FLP_BF16, .rows = 300, .vocab = 600 } },
                    .problem = { BOTH, SAVES_EXP } } },
    { .gradient = { .name = "saved exponentials, grad_hidden first, several meetings a tile",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 8, .vocab = 8300 } },
                    .problem = { BOTH, SAVES_EXP } },
      TOKENS },

    { .gradient = { .name = "policy gradient", .forward = { IGNORED }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32 } },
      .problem.token_loss = "policy_gradient" },
    { .gradient = { .name = "policy gradient, none, token weights" }, .problem.token_loss = "policy_gradient", NONE, TOKENS },
    { .gradient = { .name = "policy gradient, inputs of no meaning in rows of weight 0", .forward = { BIAS, IGNORED } },
      .problem.token_loss = "policy_gradient",
      TOKENS,
      .extremes = FLP_CROSS_ENTROPY_VOID_INPUTS },
    { .gradient = { .name = "a loss of everything, inputs of no meaning in rows of weight 0, none" },
      .problem.token_loss = "everything",
      NONE,
      TOKENS,
      .extremes = FLP_CROSS_ENTROPY_VOID_INPUTS },
    { .gradient = { .name = "policy gradient with KL", .forward = { BIAS, IGNORED } }, .problem.token_loss = "policy_gradient_kl", SUM, .with_g_loss = 1 },
    { .gradient = { .name = "a loss of everything",
                    .forward = { BIAS, IGNORED },
                    .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } },
      .problem.token_loss = "everything",
      CLASSES,
      TOKENS },
    { .gradient = { .name = "a loss of everything, forward only, none" }, .problem.token_loss = "everything", NONE, .forward_only = 1 },
};

int flp_cross_entropy_case_count(void)
{
    return COUNT(cases);
}

void flp_cross_entropy_case_get(int index, flp_cross_entropy_case *out)
{
    *out = cases[index];
    flp_cross_entropy_case_complete(index, out);
}

void flp_cross_entropy_case_complete(int index, flp_cross_entropy_case *out)
{
    flp_gradient_case_complete(index, &out->gradient);
    if (out->forward_only)
        out->gradient.problem = (flp_linear_logp_backward_problem){ .forward = out->gradient.problem.forward };
    out->problem.backward = out->gradient.problem;
}
