/* The table of cases: a grid of shapes in every dtype and layout, and one row for each edge. */
#include "cases.h"
#include <stdio.h>
#include <stdlib.h>
#include "base/dtype.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
static const char *const dtype_names[] = { "bf16", "f16", "f32" };

/* N around tiles of 64 and 128; D of one element, of rows that are and are not whole 16 bytes, of many stages; V below, at and
 * above tiles, odd, and real ones. */
static const struct {
    int rows, hidden, vocab;
} shapes[] = {
    { 64, 1, 127 },   { 65, 8, 7 },      { 1, 32, 1 },       { 63, 512, 2 },   { 127, 32, 1024 }, { 129, 80, 257 },  { 64, 64, 256 },
    { 65, 100, 255 }, { 300, 64, 1000 }, { 129, 512, 1024 }, { 1, 512, 5003 }, { 66, 8, 5003 },   { 33, 2304, 257 }, { 8, 64, 50257 },
};

/* Fields that are 0 take rows 65, hidden 64, vocab 1000, the dtypes in turn, int64 targets, ignore_index -100. */
static const flp_case edges[] = {
    { .name = "no rows", .problem = { .rows = -1, .argmax = 1 } },
    { .name = "seed case", .problem = { .dtype = FLP_F32, .rows = 64, .hidden = 512, .vocab = 1024, .weight_layout = FLP_HIDDEN_VOCAB, .entropy = 1 } },
    { .name = "logp only", .rows = FLP_CASE_LOGP_ONLY },
    { .name = "logp only, some ignored", .rows = FLP_CASE_LOGP_ONLY | FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN },
    { .name = "logp and entropy", .rows = FLP_CASE_LOGP_ONLY | FLP_CASE_IGNORED_ROWS | FLP_CASE_BAD_TARGETS, .problem = { .entropy = 1 } },
    { .name = "entropy and argmax, neither asked for",
      .rows = FLP_CASE_LOGP_ONLY | FLP_CASE_UNWANTED | FLP_CASE_IGNORED_ROWS | FLP_CASE_BAD_TARGETS,
      .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "targets where tiles end", .rows = FLP_CASE_BOUNDARY_TARGETS, .problem = { .vocab = 5003 } },
    { .name = "exact fp32", .problem = { .dtype = FLP_F32, .precision = FLP_PRECISION_EXACT, .argmax = 1, .entropy = 1 } },

    { .name = "hidden rows apart", .hidden_gap = 24, .problem = { .argmax = 1 } },
    { .name = "hidden rows apart by an odd number", .hidden_gap = 3 },
    { .name = "weight rows apart", .weight_gap = 40 },
    { .name = "rows apart that end within 16 bytes", .hidden_gap = 4, .weight_gap = 4, .problem = { .dtype = FLP_BF16, .hidden = 100 } },
    { .name = "weight rows apart by an odd number", .weight_gap = 5 },
    { .name = "weight columns and a gap", .weight_gap = 7, .problem = { .weight_layout = FLP_HIDDEN_VOCAB } },
    { .name = "2 bytes off, bf16", .misalignment = 2, .problem = { .dtype = FLP_BF16 } },
    { .name = "2 bytes off, f16", .misalignment = 2, .problem = { .dtype = FLP_F16, .weight_layout = FLP_HIDDEN_VOCAB } },
    { .name = "4 bytes off", .misalignment = 4, .problem = { .argmax = 1 } },
    { .name = "4 bytes off, f32", .misalignment = 4, .problem = { .dtype = FLP_F32 } },
    { .name = "8 bytes off", .misalignment = 8 },
    { .name = "8 bytes off, f32", .misalignment = 8, .problem = { .dtype = FLP_F32, .weight_layout = FLP_HIDDEN_VOCAB } },

    { .name = "padded vocabulary", .vocab_padding = 216, .problem = { .argmax = 1 } },
    { .name = "padded vocabulary, one tile", .vocab_padding = 1, .problem = { .vocab = 127 } },
    { .name = "padded vocabulary, columns", .vocab_padding = 216, .problem = { .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1 } },
    { .name = "padded vocabulary, targets behind it", .vocab_padding = 216, .rows = FLP_CASE_BAD_TARGETS },

    { .name = "bias bf16", .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_F32, .bias_dtype = FLP_BF16 } },
    { .name = "bias f16", .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_BF16, .bias_dtype = FLP_F16 } },
    { .name = "bias f32", .bias = FLP_CASE_PLAIN_BIAS, .problem = { .dtype = FLP_F16, .argmax = 1 } },
    { .name = "bias, many tiles", .bias = FLP_CASE_PLAIN_BIAS, .problem = { .vocab = 5003, .argmax = 1 } },
    { .name = "logits up", .bias = FLP_CASE_UP, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "logits down", .bias = FLP_CASE_DOWN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all negative", .bias = FLP_CASE_NEGATIVE, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "later tiles 200 higher", .bias = FLP_CASE_STEP_200, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "later tiles 2000 higher", .bias = FLP_CASE_STEP_2000, .problem = { .argmax = 1 } },
    { .name = "later tiles 2000 higher, many tiles", .bias = FLP_CASE_STEP_2000, .problem = { .vocab = 5003, .entropy = 1 } },
    { .name = "later tiles 2000 higher, hot", .bias = FLP_CASE_STEP_2000, .temperature = 7, .problem = { .entropy = 1 } },
    { .name = "first tiles masked", .bias = FLP_CASE_FIRST_MASKED, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "first tiles masked, many tiles", .bias = FLP_CASE_FIRST_MASKED, .problem = { .vocab = 5003, .argmax = 1 } },
    { .name = "last tiles masked", .bias = FLP_CASE_LAST_MASKED, .problem = { .argmax = 1 } },
    { .name = "last tiles masked, many tiles", .bias = FLP_CASE_LAST_MASKED, .problem = { .vocab = 5003, .argmax = 1, .entropy = 1 } },
    { .name = "one entry left", .bias = FLP_CASE_ONE_LEFT, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all masked", .bias = FLP_CASE_ALL_MASKED, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "one entry +inf", .bias = FLP_CASE_PLUS_INFINITY, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "one entry NaN", .bias = FLP_CASE_BIAS_NAN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "masked and capped", .bias = FLP_CASE_FIRST_MASKED, .problem = { .softcap = 30, .argmax = 1, .entropy = 1 } },

    { .name = "likely targets",
      .values = FLP_CASE_INTEGERS,
      .rows = FLP_CASE_EQUAL_TARGETS,
      .margin = 80,
      .problem = { .hidden = 8, .argmax = 1, .entropy = 1 } },
    { .name = "likely targets, f32, many tiles",
      .values = FLP_CASE_INTEGERS,
      .rows = FLP_CASE_EQUAL_TARGETS,
      .margin = 40,
      .problem = { .dtype = FLP_F32, .hidden = 8, .vocab = 5003, .entropy = 1 } },
    { .name = "all 1e30 down", .bias = FLP_CASE_1E30_DOWN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all lowest", .bias = FLP_CASE_LOWEST, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all 1e30 down, cold", .bias = FLP_CASE_1E30_DOWN, .temperature = 1e-3, .problem = { .entropy = 1 } },

    { .name = "all equal", .values = FLP_CASE_ZEROS, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all equal, many tiles", .values = FLP_CASE_ZEROS, .problem = { .vocab = 5003, .argmax = 1 } },
    { .name = "ties", .values = FLP_CASE_INTEGERS, .problem = { .argmax = 1 } },
    { .name = "ties, many tiles", .values = FLP_CASE_INTEGERS, .problem = { .hidden = 8, .vocab = 5003, .argmax = 1, .entropy = 1 } },
    { .name = "ties, several tiles a split",
      .values = FLP_CASE_INTEGERS,
      .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 8, .vocab = 40000, .argmax = 1 } },
    { .name = "ties, capped", .values = FLP_CASE_INTEGERS, .problem = { .softcap = 1, .argmax = 1 } },

    { .name = "softcap 30", .problem = { .softcap = 30, .argmax = 1, .entropy = 1 } },
    { .name = "softcap 1", .problem = { .softcap = 1, .argmax = 1, .entropy = 1 } },
    { .name = "softcap 30, cold", .temperature = 0.1, .problem = { .softcap = 30 } },
    { .name = "temperature 0.1", .temperature = 0.1 },
    { .name = "temperature 1", .temperature = 1 },
    { .name = "temperature 7", .temperature = 7, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "row temperatures", .rows = FLP_CASE_ROW_TEMPERATURES, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "row temperatures, softcap, bias", .rows = FLP_CASE_ROW_TEMPERATURES, .bias = FLP_CASE_PLAIN_BIAS, .problem = { .softcap = 5, .entropy = 1 } },

    { .name = "int32 targets", .problem = { .target_dtype = FLP_I32 } },
    { .name = "some ignored", .rows = FLP_CASE_IGNORED_ROWS },
    { .name = "some ignored, int32", .rows = FLP_CASE_IGNORED_ROWS, .problem = { .target_dtype = FLP_I32 } },
    { .name = "ignored rows hold NaN", .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_IGNORED_NAN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all ignored", .rows = FLP_CASE_ALL_IGNORED },
    { .name = "ignore index in the vocabulary", .rows = FLP_CASE_IGNORED_ROWS, .ignore_index = 7 },
    { .name = "ignore index beyond int32 matches no int32", .ignore_index = (1ll << 32) + 7, .problem = { .vocab = 8, .target_dtype = FLP_I32 } },
    { .name = "bad targets", .rows = FLP_CASE_BAD_TARGETS, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "bad targets, int32", .rows = FLP_CASE_BAD_TARGETS, .problem = { .target_dtype = FLP_I32 } },
    { .name = "bad targets, none ignored", .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_NONE_IGNORED },
    { .name = "token 0 is a target like others", .rows = FLP_CASE_NONE_IGNORED, .problem = { .vocab = 3, .argmax = 1, .entropy = 1 } },
    { .name = "token 0 is ignored where it is asked for", .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_ZERO_IGNORED },
    { .name = "bad targets, logp only", .rows = FLP_CASE_BAD_TARGETS | FLP_CASE_LOGP_ONLY },
    { .name = "NaN and inf rows", .rows = FLP_CASE_NAN_ROWS, .problem = { .argmax = 1, .entropy = 1 } },
    /* Not fp32: its tf32 parts turn an infinite entry of hidden into NaN, which the cap would show. */
    { .name = "NaN and inf rows, softcap", .rows = FLP_CASE_NAN_ROWS, .problem = { .dtype = FLP_BF16, .softcap = 30 } },
    { .name = "NaN and inf rows, many tiles", .rows = FLP_CASE_NAN_ROWS, .problem = { .vocab = 5003 } },
    { .name = "NaN and inf rows, columns", .rows = FLP_CASE_NAN_ROWS, .problem = { .weight_layout = FLP_HIDDEN_VOCAB } },
    { .name = "NaN in the weight, many tiles", .rows = FLP_CASE_NAN_WEIGHT, .problem = { .vocab = 5003, .argmax = 1, .entropy = 1 } },
    { .name = "NaN in the weight, columns", .rows = FLP_CASE_NAN_WEIGHT, .problem = { .weight_layout = FLP_HIDDEN_VOCAB } },
    { .name = "everything at once",
      .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS | FLP_CASE_NAN_ROWS,
      .bias = FLP_CASE_FIRST_MASKED,
      .hidden_gap = 8,
      .vocab_padding = 16,
      .problem = { .rows = 129, .hidden = 128, .vocab = 1003, .target_dtype = FLP_I32, .softcap = 20, .argmax = 1, .entropy = 1 } },
    { .name = "NaN and inf rows, one entry", .rows = FLP_CASE_NAN_ROWS, .problem = { .dtype = FLP_BF16, .vocab = 1, .argmax = 1, .entropy = 1 } },
};

enum { LAYOUTS = 2, GRID = COUNT(shapes) * COUNT(dtypes) * LAYOUTS };

int flp_case_dtype_runs(flp_dtype dtype)
{
    const char *only = getenv("FUSEDLOGP_CASES_DTYPE");

    if (!only || !only[0])
        return 1;
    if (flp_dtype_parse(only) == FLP_NONE) {
        fprintf(stderr, "FUSEDLOGP_CASES_DTYPE: got '%s', wanted bf16, f16 or f32\n", only);
        exit(2);
    }
    return flp_dtype_parse(only) == dtype;
}

int flp_case_count(void)
{
    return GRID + COUNT(edges);
}

static void get_grid_case(int index, flp_case *out)
{
    int layout = index % LAYOUTS, dtype = index / LAYOUTS % COUNT(dtypes), shape = index / LAYOUTS / COUNT(dtypes);
    *out = (flp_case){ .problem = { .dtype = dtypes[dtype],
                                    .rows = shapes[shape].rows,
                                    .hidden = shapes[shape].hidden,
                                    .vocab = shapes[shape].vocab,
                                    .argmax = shape % 2,
                                    .entropy = shape / 2 % 2,
                                    .weight_layout = layout ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN } };
    snprintf(out->name, sizeof out->name, "%s n%d d%d v%d %s", dtype_names[dtype], shapes[shape].rows, shapes[shape].hidden, shapes[shape].vocab,
             layout ? "[D, V]" : "[V, D]");
}

void flp_case_complete(int index, flp_case *c)
{
    flp_linear_logp_problem *p = &c->problem;
    p->rows = p->rows == 0 ? 65 : p->rows < 0 ? 0 : p->rows;
    if (p->hidden == 0)
        p->hidden = 64;
    if (p->vocab == 0)
        p->vocab = 1000;
    if (p->dtype == FLP_NONE)
        p->dtype = dtypes[index % COUNT(dtypes)];
    if (p->target_dtype == FLP_NONE)
        p->target_dtype = FLP_I64;
    if (c->bias != FLP_CASE_NO_BIAS && p->bias_dtype == FLP_NONE)
        p->bias_dtype = FLP_F32;
    if (c->ignore_index == 0 && !(c->rows & (FLP_CASE_NONE_IGNORED | FLP_CASE_ZERO_IGNORED)))
        c->ignore_index = -100;
    p->hidden_stride = p->hidden + c->hidden_gap;
    p->weight_stride = (p->weight_layout == FLP_VOCAB_HIDDEN ? p->hidden : p->vocab + c->vocab_padding) + c->weight_gap;
    if (c->misalignment != 0)
        p->pointer_alignment = c->misalignment & -c->misalignment;
}

void flp_case_get(int index, flp_case *out)
{
    if (index < GRID)
        get_grid_case(index, out);
    else
        *out = edges[index - GRID];
    flp_case_complete(index, out);
}
