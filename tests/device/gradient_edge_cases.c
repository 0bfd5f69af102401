/* The tables of the backward's edge cases, around its tiles, clusters and chunks. Rows are multiples of 16 bytes, so that the sm_90a path takes them. */
#include "device/gradient_edge_cases.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define ALL(dtype) .grad_hidden = (dtype), .grad_weight = (dtype), .grad_bias = (dtype)
#define ACCUMULATE_ALL .accumulate = FLP_ACCUMULATE_HIDDEN | FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS
#define COLUMNS .weight_layout = FLP_HIDDEN_VOCAB

/* Below, at and above the rows of tiles (64 and 128) and of a cluster (256), and the 64 of a stage. */
static const struct {
    int rows, hidden, vocab;
} shapes[] = {
    { 1, 64, 256 }, { 33, 72, 264 }, { 64, 128, 512 }, { 65, 136, 520 }, { 128, 256, 248 }, { 200, 264, 776 }, { 257, 64, 1032 }, { 600, 320, 2056 },
};

/* Fields that are 0 are filled in (gradient_cases.h). */
static const flp_gradient_case edges[] = {
    { .name = "two chunks", .forward.problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 64, .vocab = 8200 } },
    { .name = "two chunks, [D, V]", .forward.problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 64, .vocab = 8200, COLUMNS } },
    { .name = "three chunks of a small budget",
      .forward.problem = { .dtype = FLP_F16, .rows = 130, .hidden = 64, .vocab = 3000 },
      .problem.memory_budget = 360000 },
    { .name = "two chunks of fp32", .forward.problem = { .dtype = FLP_F32, .rows = 70, .hidden = 64, .vocab = 4100 } },
    { .name = "every third row ignored, two row tiles",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 128, .vocab = 1000 } } },
    { .name = "ignored and accumulating",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN,
                   .bias = FLP_CASE_PLAIN_BIAS,
                   .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 128, .vocab = 1000 } },
      .problem = { ALL(FLP_F32), ACCUMULATE_ALL } },
    { .name = "accumulating in bf16, [D, V]",
      .forward = { .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 128, .vocab = 1000, COLUMNS } },
      .problem = { ALL(FLP_BF16), ACCUMULATE_ALL } },
    { .name = "everything in tiles",
      .forward = { .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN,
                   .bias = FLP_CASE_FIRST_MASKED,
                   .hidden_gap = 8,
                   .vocab_padding = 16,
                   .problem = { .dtype = FLP_F16, .rows = 129, .hidden = 48, .vocab = 1000, .target_dtype = FLP_I32, .softcap = 20 } },
      .problem = { ALL(FLP_F32), ACCUMULATE_ALL, .g_lse = 1, .g_entropy = 1 },
      .grad_hidden_gap = 4,
      .grad_weight_gap = 8 },
    { .name = "rows of 2 bytes", .forward.problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 65, .vocab = 301 } },
    { .name = "rows of 4 bytes", .forward.problem = { .dtype = FLP_F16, .rows = 70, .hidden = 66, .vocab = 302, COLUMNS } },
    { .name = "rows of 8 bytes", .forward.problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 68, .vocab = 300 } },
};

static const flp_gradient_case quick[] = {
    { .name = "quick",
      .forward = { .rows = FLP_CASE_IGNORED_ROWS, .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 304 } },
      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_F32 } },
    { .name = "quick, all options, [D, V]",
      .forward = { .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_F16, .rows = 70, .hidden = 64, .vocab = 264, .softcap = 20, COLUMNS } },
      .problem = { ALL(FLP_F32), ACCUMULATE_ALL, .g_entropy = 1 } },
    { .name = "quick, a cap far from any logit", .forward.problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 64, .vocab = 290, .softcap = 1e5 } },
    { .name = "quick, clusters", .forward.problem = { .dtype = FLP_BF16, .rows = 260, .hidden = 64, .vocab = 520 } },
    { .name = "quick, fp32", .forward.problem = { .dtype = FLP_F32, .rows = 33, .hidden = 36, .vocab = 140 } },
    { .name = "quick, rows of 2 bytes", .forward.problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 35, .vocab = 141 } },
    { .name = "quick, exact fp32", .forward.problem = { .dtype = FLP_F32, .rows = 33, .hidden = 36, .vocab = 140, .precision = FLP_PRECISION_EXACT } },
};

static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
static const char *const dtype_names[] = { "bf16", "f16", "f32" };

enum { GRID = COUNT(shapes) * COUNT(dtypes) * 2 };

static void get_shape(int index, flp_gradient_case *out)
{
    const int columns = index % 2, dtype = index / 2 % COUNT(dtypes), shape = index / 2 / COUNT(dtypes);

    *out = (flp_gradient_case){
        .forward = { .bias = index % 3 ? FLP_CASE_PLAIN_BIAS : FLP_CASE_NO_BIAS,
                     .problem = { .dtype = dtypes[dtype],
                                  .rows = shapes[shape].rows,
                                  .hidden = shapes[shape].hidden,
                                  .vocab = shapes[shape].vocab,
                                  .weight_layout = columns ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN } },
    };
    snprintf(out->name, sizeof(out->name), "tiles: %s n%d d%d v%d %s", dtype_names[dtype], shapes[shape].rows, shapes[shape].hidden, shapes[shape].vocab,
             columns ? "[D, V]" : "[V, D]");
}

int flp_gradient_edge_case_count(void)
{
    return GRID + COUNT(edges);
}

void flp_gradient_edge_case_get(int index, flp_gradient_case *out)
{
    if (index < GRID)
        get_shape(index, out);
    else
        *out = edges[index - GRID];
    flp_gradient_case_complete(index, out);
}

int flp_gradient_edge_case_quick_count(void)
{
    return COUNT(quick);
}

void flp_gradient_edge_case_quick_get(int index, flp_gradient_case *out)
{
    *out = quick[index];
    flp_gradient_case_complete(index, out);
}
