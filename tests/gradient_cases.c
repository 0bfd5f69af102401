/* The table of cases of linear_logp's backward: a grid of shapes in every dtype and layout, and one row for each edge. */
#include "gradient_cases.h"
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
static const char *const dtype_names[] = { "bf16", "f16", "f32" };

/* Below, at and above tiles and chunks in each direction; more rows than a group of the CPU path, more entries than a block of it. */
static const struct {
    int rows, hidden, vocab;
} shapes[] = {
    { 1, 8, 1 }, { 65, 1, 7 }, { 64, 64, 256 }, { 33, 100, 257 }, { 17, 512, 301 }, { 129, 20, 505 }, { 1100, 3, 253 }, { 9, 5, 4100 },
};

#define FORWARD .with_forward = 1
#define F32_ALL .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32
#define BF16_ALL .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_BF16
#define ACCUMULATE_ALL .accumulate = FLP_ACCUMULATE_HIDDEN | FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS
#define LIKELY(nats) .values = FLP_CASE_INTEGERS, .rows = FLP_CASE_EQUAL_TARGETS, .margin = nats
#define BIAS .bias = FLP_CASE_PLAIN_BIAS
#define COLUMNS .weight_layout = FLP_HIDDEN_VOCAB

/* Fields that are 0 take what flp_case_complete fills in. Where no gradient is named, hidden's and weight's are wanted in the dtype of the
 * inputs, and bias' in its own, where there is one. */
static const flp_gradient_case edges[] = {
    { .name = "no rows", .forward = { BIAS, .problem = { .rows = -1 } } },
    { .name = "no rows, accumulating", .forward = { BIAS, .problem = { .rows = -1 } }, .problem = { F32_ALL, ACCUMULATE_ALL } },
    { .name = "seed case",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_F32, .rows = 64, .hidden = 512, .vocab = 1024, COLUMNS } },
      .upstream = FLP_UPSTREAM_MEAN },

    { .name = "hidden alone", .problem = { .grad_hidden = FLP_F32 } },
    { .name = "weight alone", .problem = { .grad_weight = FLP_F32 } },
    { .name = "bias alone", .forward = { BIAS }, .problem = { .grad_bias = FLP_F32 } },
    { .name = "all but bias", .forward = { BIAS }, .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32 } },
    { .name = "all but weight", .forward = { BIAS }, .problem = { .grad_hidden = FLP_F32, .grad_bias = FLP_F16 } },
    { .name = "all but hidden", .forward = { BIAS }, .problem = { .grad_weight = FLP_F16, .grad_bias = FLP_BF16 } },

    { .name = "accumulate all in f32", .forward = { BIAS }, .problem = { F32_ALL, ACCUMULATE_ALL } },
    { .name = "accumulate all in bf16", .forward = { BIAS, .problem = { COLUMNS } }, .problem = { BF16_ALL, ACCUMULATE_ALL } },
    { .name = "accumulate hidden, some ignored",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS },
      .problem = { .grad_hidden = FLP_F16, .grad_weight = FLP_F16, .accumulate = FLP_ACCUMULATE_HIDDEN } },
    { .name = "accumulate weight", .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, .accumulate = FLP_ACCUMULATE_WEIGHT } },
    { .name = "accumulate bias", .forward = { BIAS }, .problem = { BF16_ALL, .accumulate = FLP_ACCUMULATE_BIAS } },

    { .name = "rows apart", .forward = { .hidden_gap = 24, .weight_gap = 40 }, .grad_hidden_gap = 8, .grad_weight_gap = 3 },
    { .name = "columns apart", .forward = { .weight_gap = 7, .problem = { COLUMNS } }, .grad_hidden_gap = 1, .grad_weight_gap = 16 },
    { .name = "rows apart that end within 16 bytes",
      .forward = { .hidden_gap = 4, .weight_gap = 4, .problem = { .dtype = FLP_BF16, .hidden = 100, .vocab = 520 } },
      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, .accumulate = FLP_ACCUMULATE_WEIGHT },
      .grad_hidden_gap = 4,
      .grad_weight_gap = 8 },
    { .name = "rows apart that end within 16 bytes, bf16",
      .forward = { .hidden_gap = 4, .weight_gap = 4, .problem = { .dtype = FLP_BF16, .hidden = 100, .vocab = 520 } },
      .problem = { BF16_ALL, FORWARD, .accumulate = FLP_ACCUMULATE_WEIGHT },
      .grad_hidden_gap = 4,
      .grad_weight_gap = 4 },
    { .name = "columns apart that end within 16 bytes",
      .forward = { .weight_gap = 5, .problem = { .dtype = FLP_BF16, .vocab = 1003, COLUMNS } },
      .problem = { BF16_ALL, ACCUMULATE_ALL },
      .grad_weight_gap = 5 },
    { .name = "columns apart, the last of them within 16 bytes",
      .forward = { .weight_gap = 5, .problem = { .dtype = FLP_F16, .vocab = 515, COLUMNS } },
      .problem = { .grad_weight = FLP_F16, .accumulate = FLP_ACCUMULATE_WEIGHT, .memory_budget = 60000 },
      .grad_weight_gap = 5 },
    { .name = "columns apart that end within 16 bytes, f32",
      .forward = { .weight_gap = 5, .problem = { .dtype = FLP_F16, .vocab = 515, COLUMNS } },
      .problem = { .grad_weight = FLP_F32, .accumulate = FLP_ACCUMULATE_WEIGHT },
      .grad_weight_gap = 5 },
    { .name = "rows apart, as the inputs", .forward = { .hidden_gap = 3, .weight_gap = 5 }, .grad_hidden_gap = -1, .grad_weight_gap = -1 },
    { .name = "2 bytes off", .forward = { .misalignment = 2, .problem = { .dtype = FLP_BF16 } } },
    { .name = "4 bytes off", .forward = { .misalignment = 4, .problem = { .dtype = FLP_F32, COLUMNS } } },
    { .name = "4 bytes off, 16 bits", .forward = { .misalignment = 4, .problem = { .dtype = FLP_BF16 } } },
    { .name = "padded vocabulary", .forward = { .vocab_padding = 24 } },
    { .name = "padded vocabulary, columns", .forward = { .vocab_padding = 24, .problem = { COLUMNS } }, .grad_weight_gap = -1 },
    { .name = "padded vocabulary, targets behind it", .forward = { .vocab_padding = 24, .rows = FLP_CASE_BAD_TARGETS } },

    { .name = "logits up", .forward = { .bias = FLP_CASE_UP } },
    { .name = "logits down", .forward = { .bias = FLP_CASE_DOWN }, .problem = { F32_ALL } },
    { .name = "all negative", .forward = { .bias = FLP_CASE_NEGATIVE } },
    { .name = "later entries 200 higher", .forward = { .bias = FLP_CASE_STEP_200 } },
    { .name = "first entries masked", .forward = { .bias = FLP_CASE_FIRST_MASKED } },
    { .name = "last entries masked", .forward = { .bias = FLP_CASE_LAST_MASKED }, .problem = { F32_ALL, .g_entropy = 1 } },
    { .name = "one entry left", .forward = { .bias = FLP_CASE_ONE_LEFT }, .problem = { F32_ALL, .g_lse = 1 } },
    { .name = "all masked", .forward = { .bias = FLP_CASE_ALL_MASKED } },
    { .name = "one entry +inf", .forward = { .bias = FLP_CASE_PLUS_INFINITY } },
    { .name = "masked and capped", .forward = { .bias = FLP_CASE_FIRST_MASKED, .problem = { .softcap = 30 } } },
    { .name = "all equal", .forward = { .values = FLP_CASE_ZEROS }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .g_entropy = 1 } },
    { .name = "bias bf16", .forward = { BIAS, .problem = { .dtype = FLP_F32, .bias_dtype = FLP_BF16 } } },
    { .name = "bias f16", .forward = { BIAS, .problem = { .dtype = FLP_BF16, .bias_dtype = FLP_F16 } } },

    { .name = "softcap 30", .forward = { .problem = { .softcap = 30 } } },
    { .name = "softcap 1", .forward = { .problem = { .softcap = 1 } }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32 } },
    /* Slopes of 1e-5: too small for derivatives in fp16, whose scale follows the upstream gradients. */
    { .name = "softcap 8, all far above it", .forward = { .bias = FLP_CASE_NEGATIVE, .problem = { .dtype = FLP_BF16, .softcap = 8 } }, .problem = { F32_ALL } },
    { .name = "temperature 0.1", .forward = { .temperature = 0.1 } },
    { .name = "temperature 7", .forward = { .temperature = 7 }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32 } },
    { .name = "row temperatures", .forward = { .rows = FLP_CASE_ROW_TEMPERATURES } },
    { .name = "row temperatures, softcap, bias",
      .forward = { BIAS, .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .softcap = 5 } },
      .problem = { F32_ALL, .g_lse = 1, .g_entropy = 1 } },

    { .name = "int32 targets", .forward = { .problem = { .target_dtype = FLP_I32 } } },
    { .name = "ignored rows hold NaN",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN },
      .problem = { F32_ALL, .g_lse = 1, .g_entropy = 1 } },
    { .name = "all ignored", .forward = { BIAS, .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN } },
    { .name = "bad targets",
      .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_IGNORED_NAN },
      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .g_lse = 1 } },
    { .name = "likely targets, of lse and entropy",
      .gives_logp = 1,
      .problem = { F32_ALL, .g_lse = 1, .g_entropy = 1 },
      .forward = { LIKELY(16), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "bad targets, none ignored", .forward = { .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_NONE_IGNORED } },
    { .name = "token 0 is a target like others",
      .forward = { BIAS, .rows = FLP_CASE_NONE_IGNORED, .problem = { .vocab = 3 } },
      .problem = { F32_ALL, .g_lse = 1 } },
    { .name = "bad targets, int32", .forward = { .rows = FLP_CASE_BAD_TARGETS, .problem = { .target_dtype = FLP_I32 } } },
    { .name = "NaN and inf rows", .forward = { .rows = FLP_CASE_NAN_ROWS } },
    { .name = "targets all equal", .forward = { BIAS, .rows = FLP_CASE_EQUAL_TARGETS } },
    { .name = "targets all equal, more than are looked up at once",
      .forward = { .rows = FLP_CASE_EQUAL_TARGETS | FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 64, .vocab = 520 } },
      .problem = { BF16_ALL } },
    { .name = "targets all equal, columns, more than are looked up at once",
      .forward = { .rows = FLP_CASE_EQUAL_TARGETS | FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_F16, .rows = 150, .hidden = 64, .vocab = 520, COLUMNS } },
      .problem = { F32_ALL } },
    { .name = "more targets in a tile than are looked up at once",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 16, .vocab = 264 } },
      .problem = { F32_ALL } },
    { .name = "more targets in a tile than are looked up at once, columns, of few rows",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 120, .hidden = 16, .vocab = 264, COLUMNS } },
      .problem = { F32_ALL } },
    { .name = "a scratch in grad_weight",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 20, .hidden = 64, .vocab = 3800 } },
      .problem = { BF16_ALL, .memory_budget = 60000 } },
    /* Launches without a row, of which the next ones take for certain what they did not wait for. */
    { .name = "a scratch in grad_weight, all ignored",
      .forward = { .rows = FLP_CASE_ALL_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 20, .hidden = 64, .vocab = 3800 } },
      .problem = { BF16_ALL, .memory_budget = 60000 } },
    { .name = "derivatives that begin beside the product before",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 16, .vocab = 2300 } },
      .problem = { BF16_ALL, .memory_budget = 380000 } },
    { .name = "a scratch in fp32 grad_weight, f16",
      .forward = { BIAS, .problem = { .dtype = FLP_F16, .rows = 20, .hidden = 64, .vocab = 3799 } },
      .problem = { F32_ALL, .memory_budget = 60000 } },
    { .name = "a scratch in grad_weight, fp32",
      .forward = { BIAS, .problem = { .dtype = FLP_F32, .rows = 20, .hidden = 64, .vocab = 3799 } },
      .problem = { F32_ALL, .memory_budget = 80000 } },
    { .name = "a scratch in grad_weight behind saved exponentials",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 20, .hidden = 64, .vocab = 3800 } },
      .problem = { BF16_ALL, FORWARD, .memory_budget = 60000 } },

    { .name = "rows of an odd length at even places",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .hidden = 41 } },
      .problem = { BF16_ALL },
      .grad_hidden_gap = 1,
      .grad_weight_gap = 1 },
    { .name = "rows of an odd length at even places, f16, fp32 gradients",
      .forward = { .problem = { .dtype = FLP_F16, .hidden = 41 } },
      .problem = { F32_ALL },
      .grad_hidden_gap = 1,
      .grad_weight_gap = 1 },
    { .name = "rows of an odd length at even places, columns",
      .forward = { .problem = { .dtype = FLP_BF16, .vocab = 333, COLUMNS } },
      .problem = { BF16_ALL, ACCUMULATE_ALL },
      .grad_weight_gap = 1 },
    { .name = "rows of an odd length at even places, fp32",
      .forward = { .problem = { .dtype = FLP_F32, .hidden = 41, .precision = FLP_PRECISION_EXACT } },
      .problem = { F32_ALL, ACCUMULATE_ALL },
      .grad_hidden_gap = 1,
      .grad_weight_gap = 1 },
    /* One entry of 0.6 among many equal ones: p (H + log p) is more than twice the upstream gradient. */
    { .name = "of entropy, f16, far beyond the upstream gradient",
      .upstream = FLP_UPSTREAM_ENTROPY,
      .forward = { .values = FLP_CASE_ZEROS, .bias = FLP_CASE_ONE_LIKELY, .problem = { .dtype = FLP_F16, .rows = 3, .hidden = 16, .vocab = 8009 } },
      .problem = { F32_ALL, .g_entropy = 1 } },
    { .name = "upstream zeros", .upstream = FLP_UPSTREAM_ZEROS, .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, .g_entropy = 1 } },
    { .name = "upstream mean", .upstream = FLP_UPSTREAM_MEAN },
    { .name = "upstream sparse", .upstream = FLP_UPSTREAM_SPARSE },
    { .name = "of lse", .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .g_lse = 1 } },
    { .name = "of entropy", .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .g_entropy = 1 } },
    { .name = "of lse and entropy", .forward = { BIAS }, .problem = { BF16_ALL, .g_lse = 1, .g_entropy = 1 } },
    { .name = "of entropy, logits up", .forward = { .bias = FLP_CASE_UP }, .problem = { F32_ALL, .g_entropy = 1 } },
    { .name = "exact fp32", .forward = { .problem = { .dtype = FLP_F32, .precision = FLP_PRECISION_EXACT } } },
    { .name = "exact fp32, columns", .forward = { .problem = { .dtype = FLP_F32, .precision = FLP_PRECISION_EXACT, COLUMNS } } },
    { .name = "many rows and entries", .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .rows = 1700, .hidden = 3, .vocab = 4200, .softcap = 30 } } },
    /* From 129 rows on logit gradients come from other tiles on sm_90a: ping-pong ones of 192 columns, with at most one of these options. */
    { .name = "more rows than a block",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_F16, .rows = 150, .hidden = 8, .vocab = 700 } },
      .problem = { BF16_ALL } },
    { .name = "more rows than a block, bias",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 8, .vocab = 700 } },
      .problem = { BF16_ALL } },
    { .name = "more rows than a block, softcap",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 8, .vocab = 700, .softcap = 5 } },
      .problem = { F32_ALL } },
    { .name = "more rows than a block, of entropy, columns",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 8, .vocab = 704, COLUMNS } },
      .problem = { BF16_ALL, .g_lse = 1, .g_entropy = 1 } },
    { .name = "filter, nothing below",
      .forward = { BIAS, .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 24, .vocab = 700 } },
      .problem = { BF16_ALL, .grad_filter_eps = 1e-50 } },
    { .name = "filter, most below",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 24, .vocab = 5000 } },
      .problem = { BF16_ALL, .grad_filter_eps = 0.02 } },
    { .name = "filter, columns, f16, in chunks",
      .forward = { BIAS, .problem = { .dtype = FLP_F16, .rows = 150, .hidden = 8, .vocab = 3000, COLUMNS } },
      .problem = { F32_ALL, .grad_filter_eps = 0.5, .memory_budget = 400000 } },
    { .name = "filter, hidden alone, more rows than a block",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 8, .vocab = 2000 } },
      .problem = { .grad_hidden = FLP_F32, .grad_filter_eps = 1 } },
    /* 32 blocks have their bits in one word; tiles of 192 columns have three, which lie across words from entry 1920 on. */
    { .name = "filter, nothing below, blocks of several words",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 8, .vocab = 4300 } },
      .problem = { F32_ALL, .grad_filter_eps = 1e-50 } },
    { .name = "filter, nothing below, blocks of several words, columns",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 8, .vocab = 2112, COLUMNS } },
      .problem = { BF16_ALL, .grad_filter_eps = 1e-50 } },
    { .name = "filter, all below, added",
      .forward = { BIAS, .problem = { .dtype = FLP_BF16 } },
      .problem = { F32_ALL, ACCUMULATE_ALL, .grad_filter_eps = 1e6 } },
    { .name = "filter, NaN and inf rows",
      .forward = { .rows = FLP_CASE_NAN_ROWS, .problem = { .dtype = FLP_BF16 } },
      .problem = { BF16_ALL, .grad_filter_eps = 1e-3 } },
    { .name = "filter, forward too, no rows",
      .forward = { .problem = { .dtype = FLP_BF16, .rows = -1 } },
      .problem = { BF16_ALL, FORWARD, .grad_filter_eps = 1e-3 } },
    { .name = "forward too",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN, .problem = { .dtype = FLP_BF16 } },
      .problem = { FORWARD } },
    { .name = "forward too, no rows", .forward = { .problem = { .dtype = FLP_BF16, .rows = -1 } }, .problem = { FORWARD } },
    { .name = "forward too, bad targets", .forward = { .rows = FLP_CASE_BAD_TARGETS, .problem = { .dtype = FLP_BF16 } }, .problem = { FORWARD } },
    { .name = "forward too, token 0 is a target like others",
      .forward = { BIAS, .rows = FLP_CASE_NONE_IGNORED, .problem = { .dtype = FLP_BF16, .vocab = 3 } },
      .problem = { FORWARD } },
    { .name = "forward too, f16", .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_F16 } }, .problem = { FORWARD } },
    { .name = "forward too, f32", .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_F32 } }, .problem = { FORWARD } },
    { .name = "forward too, of lse and entropy",
      .forward = { .rows = FLP_CASE_BAD_TARGETS, .problem = { .dtype = FLP_BF16 } },
      .problem = { F32_ALL, FORWARD, .g_lse = 1, .g_entropy = 1 } },
    { .name = "forward too, softcap", .forward = { BIAS, .problem = { .dtype = FLP_BF16, .softcap = 5 } }, .problem = { FORWARD } },
    { .name = "forward too, of lse, columns, fp32 gradients",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES, .bias = FLP_CASE_STEP_200, .problem = { .dtype = FLP_BF16, COLUMNS } },
      .problem = { F32_ALL, FORWARD, .g_lse = 1 } },
    { .name = "forward too, more rows than a block, some far above",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS,
                   .bias = FLP_CASE_STEP_200,
                   .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 16, .vocab = 700 } },
      .problem = { BF16_ALL, FORWARD } },
    { .name = "forward too, 2 bytes off", .forward = { BIAS, .misalignment = 2, .problem = { .dtype = FLP_BF16 } }, .problem = { BF16_ALL, FORWARD } },
    { .name = "forward too, in chunks, hidden alone",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 24, .vocab = 5000 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD, .memory_budget = 200000 } },
    { .name = "forward too, rows in chunks, hidden alone",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 10, .vocab = 400 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD, .memory_budget = 800000 } },
    { .name = "forward too, rows in chunks, hidden alone, of lse, fp32, columns, some far above",
      .forward = { .bias = FLP_CASE_STEP_200,
                   .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS,
                   .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 500, COLUMNS } },
      .problem = { .grad_hidden = FLP_F32, FORWARD, .g_lse = 1, .memory_budget = 800000 } },
    { .name = "forward too, rows in chunks, accumulate hidden, bad targets",
      .forward = { .rows = FLP_CASE_BAD_TARGETS, .problem = { .dtype = FLP_BF16, .rows = 1100, .hidden = 8, .vocab = 500 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD, .accumulate = FLP_ACCUMULATE_HIDDEN, .memory_budget = 800000 },
      .grad_hidden_gap = 8 },
    { .name = "forward too, hidden alone, by default",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 8, .vocab = 13000 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD } },
    { .name = "forward too, hidden alone, narrow tiles",
      .forward = { BIAS, .problem = { .dtype = FLP_BF16, .rows = 2, .hidden = 160, .vocab = 12300 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD } },
    { .name = "forward too, hidden alone, in parts",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 520, .hidden = 8, .vocab = 49200 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD, .memory_budget = 52200000 } }, /* chunks of 512 rows */
    { .name = "forward too, hidden alone, in parts, all rows at a time",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .dtype = FLP_BF16, .rows = 20, .hidden = 16, .vocab = 49160, COLUMNS } },
      .problem = { .grad_hidden = FLP_F32, FORWARD, .memory_budget = 38000000 } },
    { .name = "forward too, hidden alone, in parts, all rows at a time, in place of the rows",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 20, .hidden = 16, .vocab = 49200 } },
      .problem = { .grad_hidden = FLP_BF16, FORWARD, .memory_budget = 38000000 } },
    { .name = "forward too, in chunks, weight alone",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 24, .vocab = 5000 } },
      .problem = { .grad_weight = FLP_BF16, FORWARD, .memory_budget = 200000 } },
    { .name = "forward too, in chunks, bias alone",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 24, .vocab = 5000 } },
      .problem = { .grad_bias = FLP_F32, FORWARD, .memory_budget = 200000 } },
    { .name = "forward too, in chunks, wide rows",
      .forward = { BIAS, .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 40, .vocab = 1100 } },
      .problem = { BF16_ALL, FORWARD, .memory_budget = 700000 },
      .grad_hidden_gap = 8 },
    { .name = "everything at once",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN,
                   .bias = FLP_CASE_FIRST_MASKED,
                   .hidden_gap = 8,
                   .vocab_padding = 16,
                   .problem = { .rows = 129, .hidden = 32, .vocab = 1003, .target_dtype = FLP_I32, .softcap = 20, COLUMNS } },
      .problem = { F32_ALL, ACCUMULATE_ALL, .g_lse = 1, .g_entropy = 1 },
      .grad_hidden_gap = 2,
      .grad_weight_gap = 5 },
    { .name = "bf16 gradients of odd fp32 rows",
      .forward = { BIAS, .problem = { .dtype = FLP_F32, .hidden = 41, .vocab = 335 } },
      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_BF16 } },
    { .name = "bf16 gradients of fp32 columns",
      .forward = { .problem = { .dtype = FLP_F32, .vocab = 335, COLUMNS } },
      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .accumulate = FLP_ACCUMULATE_WEIGHT } },
};

enum { LAYOUTS = 2, GRID = COUNT(shapes) * COUNT(dtypes) * LAYOUTS };

int flp_gradient_case_count(void)
{
    return GRID + COUNT(edges);
}

/* The gradients' dtypes take turns too. */
static void get_grid_case(int index, flp_gradient_case *out)
{
    int layout = index % LAYOUTS, dtype = index / LAYOUTS % COUNT(dtypes), shape = index / LAYOUTS / COUNT(dtypes);
    *out = (flp_gradient_case){
        .forward = { .bias = index % 3 ? FLP_CASE_PLAIN_BIAS : FLP_CASE_NO_BIAS,
                     .problem = { .dtype = dtypes[dtype],
                                  .rows = shapes[shape].rows,
                                  .hidden = shapes[shape].hidden,
                                  .vocab = shapes[shape].vocab,
                                  .weight_layout = layout ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN } },
        .problem = { .grad_hidden = dtypes[(dtype + shape) % 3], .grad_weight = dtypes[(dtype + layout) % 3], .g_lse = shape % 2, .g_entropy = shape / 2 % 2 }
    };
    if (index % 3)
        out->problem.grad_bias = dtypes[(index + shape) % 3];
    snprintf(out->name, sizeof out->name, "%s n%d d%d v%d %s", dtype_names[dtype], shapes[shape].rows, shapes[shape].hidden, shapes[shape].vocab,
             layout ? "[D, V]" : "[V, D]");
}

/* gap -1: the stride is 0, that of the input. */
static int64_t stride_of(flp_dtype dtype, int gap, int64_t columns, int64_t like)
{
    return dtype == FLP_NONE ? 0 : gap < 0 ? like : columns + gap;
}

void flp_gradient_case_complete(int index, flp_gradient_case *c)
{
    flp_linear_logp_backward_problem *p = &c->problem;
    flp_case_complete(index, &c->forward);
    c->forward.problem.entropy = 0;
    p->forward = c->forward.problem;
    if (!p->grad_hidden && !p->grad_weight && !p->grad_bias) {
        p->grad_hidden = p->grad_weight = p->forward.dtype;
        p->grad_bias = p->forward.bias_dtype;
    }
    if (p->forward.bias_dtype == FLP_NONE)
        p->grad_bias = FLP_NONE;
    if (p->grad_bias == FLP_NONE)
        p->accumulate &= ~(unsigned)FLP_ACCUMULATE_BIAS;
    int64_t columns = p->forward.weight_layout == FLP_VOCAB_HIDDEN ? p->forward.hidden : p->forward.vocab;
    p->grad_hidden_stride = stride_of(p->grad_hidden, c->grad_hidden_gap, p->forward.hidden, p->forward.hidden_stride);
    p->grad_weight_stride = stride_of(p->grad_weight, c->grad_weight_gap, columns, p->forward.weight_stride);
}

void flp_gradient_case_get(int index, flp_gradient_case *out)
{
    if (index < GRID)
        get_grid_case(index, out);
    else
        *out = edges[index - GRID];
    flp_gradient_case_complete(index, out);
}
