/* The table of logits_logp's cases: shapes in every dtype, and one row for each edge. */
#include "logits_cases.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
static const char *const dtype_names[] = { "bf16", "f16", "f32" };

/* Rows of one element; below, at and above a vector, 512 bytes, a segment (4 KiB), a team's segments; odd and real vocabularies. */
static const struct {
    int rows, vocab;
} shapes[] = {
    { 1, 1 },    { 3, 2 },     { 9, 7 },      { 5, 8 },     { 33, 255 },   { 17, 256 },  { 65, 257 },   { 7, 1000 },
    { 3, 1024 }, { 4, 1025 },  { 2, 2047 },   { 3, 2048 },  { 130, 2049 }, { 5, 4096 },  { 6, 4099 },   { 9, 8192 },
    { 2, 8200 }, { 3, 16384 }, { 40, 16401 }, { 2, 32768 }, { 1, 50257 },  { 3, 65536 }, { 1, 131072 },
};

#define IGNORED_SOUND (FLP_LOGITS_IGNORED | FLP_LOGITS_IGNORED_SOUND)

/* Fields that are 0 take 21 rows, vocab 5003 (three segments of 16 bits), the dtypes in turn, int64 targets, ignore_index -100. */
static const flp_logits_case edges[] = {
    { .name = "no rows", .problem = { .rows = -1, .argmax = 1, .entropy = 1 } },
    { .name = "logp only", .rows = FLP_LOGITS_LOGP_ONLY },
    { .name = "logp only, ignored rows hold NaN", .rows = FLP_LOGITS_LOGP_ONLY | FLP_LOGITS_IGNORED },
    { .name = "all but logp", .rows = FLP_LOGITS_LOGP_UNWANTED | FLP_LOGITS_UNEVEN | FLP_LOGITS_IGNORED, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "lse alone", .rows = FLP_LOGITS_LOGP_UNWANTED },
    { .name = "lse alone, some ignored", .rows = FLP_LOGITS_LOGP_UNWANTED | IGNORED_SOUND },
    { .name = "entropy alone, some ignored", .rows = FLP_LOGITS_LOGP_UNWANTED | FLP_LOGITS_LSE_UNWANTED | IGNORED_SOUND, .problem = { .entropy = 1 } },
    { .name = "argmax alone, some ignored", .rows = FLP_LOGITS_LOGP_UNWANTED | FLP_LOGITS_LSE_UNWANTED | IGNORED_SOUND, .problem = { .argmax = 1 } },
    { .name = "logp alone, of entropy and argmax", .rows = FLP_LOGITS_LOGP_ONLY | FLP_LOGITS_BAD_TARGETS, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "argmax", .problem = { .argmax = 1 } },
    { .name = "entropy", .problem = { .entropy = 1 } },
    { .name = "argmax and entropy", .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "uneven upstream gradients", .rows = FLP_LOGITS_UNEVEN },
    { .name = "uneven upstream gradients, entropy", .rows = FLP_LOGITS_UNEVEN, .problem = { .entropy = 1, .vocab = 131 } },

    { .name = "several rows a warp", .rows = FLP_LOGITS_UNEVEN | FLP_LOGITS_IGNORED, .problem = { .rows = 400, .vocab = 40, .argmax = 1, .entropy = 1 } },
    { .name = "several rows a warp, bf16, logp only",
      .rows = FLP_LOGITS_LOGP_ONLY | FLP_LOGITS_IGNORED,
      .problem = { .dtype = FLP_BF16, .rows = 333, .vocab = 16 } },
    { .name = "more rows a warp than lanes", .rows = FLP_LOGITS_BAD_TARGETS, .problem = { .rows = 2000, .vocab = 9, .softcap = 30, .argmax = 1 } },

    { .name = "rows apart", .gap = 24, .problem = { .vocab = 5000, .argmax = 1 } },
    { .name = "rows apart by an odd number", .gap = 2, .rows = FLP_LOGITS_UNEVEN, .problem = { .entropy = 1 } },
    { .name = "padded vocabulary", .gap = 45, .problem = { .vocab = 5003, .argmax = 1, .entropy = 1 } },
    { .name = "2 bytes off, bf16", .misalignment = 2, .problem = { .dtype = FLP_BF16, .vocab = 5000 } },
    { .name = "2 bytes off, f16",
      .misalignment = 2,
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_F16, .vocab = 5000, .softcap = 30, .entropy = 1, .argmax = 1 } },
    { .name = "4 bytes off", .misalignment = 4, .problem = { .dtype = FLP_F32, .vocab = 5000 } },
    { .name = "4 bytes off, bf16", .misalignment = 4, .problem = { .dtype = FLP_BF16, .vocab = 5000 } },
    { .name = "8 bytes off", .misalignment = 8, .problem = { .vocab = 5000 } },

    { .name = "all equal", .values = FLP_LOGITS_EQUAL, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "ties", .values = FLP_LOGITS_TIES, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "ties, capped", .values = FLP_LOGITS_TIES, .problem = { .argmax = 1, .softcap = 1 } },
    { .name = "logits up", .values = FLP_LOGITS_UP, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "later logits 40 higher", .values = FLP_LOGITS_STEP_40, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "later logits 40 higher, one segment", .values = FLP_LOGITS_STEP_40, .problem = { .vocab = 900, .entropy = 1 } },
    { .name = "later logits 2000 higher", .values = FLP_LOGITS_STEP_2000, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "later logits 2000 higher, one segment", .values = FLP_LOGITS_STEP_2000, .problem = { .vocab = 900 } },
    { .name = "later logits 2000 higher, hot", .values = FLP_LOGITS_STEP_2000, .temperature = 7, .problem = { .entropy = 1 } },
    { .name = "first half masked", .values = FLP_LOGITS_FIRST_MASKED, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "first half masked, many segments", .values = FLP_LOGITS_FIRST_MASKED, .problem = { .vocab = 50257, .argmax = 1 } },
    { .name = "masked and capped", .values = FLP_LOGITS_FIRST_MASKED, .problem = { .softcap = 30, .argmax = 1, .entropy = 1 } },
    { .name = "one left", .values = FLP_LOGITS_ONE_LEFT, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "all masked", .values = FLP_LOGITS_ALL_MASKED, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "one entry +inf", .values = FLP_LOGITS_PLUS_INFINITY, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "one entry NaN", .values = FLP_LOGITS_NAN, .problem = { .argmax = 1, .entropy = 1 } },

    { .name = "likely targets, bf16", .values = FLP_LOGITS_LIKELY, .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_BF16, .argmax = 1, .entropy = 1 } },
    { .name = "likely targets, f16, indexed",
      .values = FLP_LOGITS_LIKELY,
      .rows = FLP_LOGITS_INDEXED,
      .problem = { .dtype = FLP_F16, .argmax = 1, .entropy = 1 } },
    { .name = "likely targets, f32", .values = FLP_LOGITS_LIKELY, .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "likely targets, lse alone",
      .values = FLP_LOGITS_LIKELY,
      .rows = FLP_LOGITS_UNEVEN | FLP_LOGITS_NO_LOGP,
      .problem = { .dtype = FLP_F32, .entropy = 1 } },
    { .name = "likely targets, one vector", .values = FLP_LOGITS_LIKELY, .problem = { .dtype = FLP_F32, .vocab = 4, .entropy = 1 } },
    { .name = "likely targets, one segment", .values = FLP_LOGITS_LIKELY, .misalignment = 2, .problem = { .dtype = FLP_BF16, .vocab = 900, .argmax = 1 } },
    { .name = "likely targets, long rows", .values = FLP_LOGITS_LIKELY, .problem = { .dtype = FLP_BF16, .rows = 5, .vocab = 50257 } },
    { .name = "likely targets, capped",
      .values = FLP_LOGITS_LIKELY,
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_F32, .softcap = 50, .argmax = 1, .entropy = 1 } },
    { .name = "likely targets, capped, bf16", .values = FLP_LOGITS_LIKELY, .problem = { .dtype = FLP_BF16, .vocab = 900, .softcap = 100 } },
    { .name = "likely targets, cold", .values = FLP_LOGITS_LIKELY, .temperature = 0.7, .problem = { .dtype = FLP_F32 } },
    { .name = "target masked", .values = FLP_LOGITS_TARGET_MASKED, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "target alone", .values = FLP_LOGITS_TARGET_ALONE, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "target alone, capped", .values = FLP_LOGITS_TARGET_ALONE, .problem = { .softcap = 5, .argmax = 1, .entropy = 1 } },

    { .name = "lowest numbers, f32", .values = FLP_LOGITS_LOWEST, .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "lowest numbers, bf16", .values = FLP_LOGITS_LOWEST, .problem = { .dtype = FLP_BF16, .argmax = 1, .entropy = 1 } },
    { .name = "lowest numbers, f16, cold", .values = FLP_LOGITS_LOWEST, .temperature = 1e-9, .problem = { .dtype = FLP_F16, .entropy = 1 } },
    { .name = "first half lowest numbers",
      .values = FLP_LOGITS_LOWEST_FIRST,
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "first half lowest numbers, many segments",
      .values = FLP_LOGITS_LOWEST_FIRST,
      .problem = { .dtype = FLP_BF16, .rows = 5, .vocab = 50257, .argmax = 1 } },
    { .name = "huge logits, f32", .values = FLP_LOGITS_HUGE, .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "huge logits, bf16", .values = FLP_LOGITS_HUGE, .problem = { .dtype = FLP_BF16, .argmax = 1, .entropy = 1 } },
    { .name = "huge logits, f16, cold",
      .values = FLP_LOGITS_HUGE,
      .temperature = 1e-9,
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_F16, .argmax = 1, .entropy = 1 } },
    { .name = "huge logits, capped, cold", .values = FLP_LOGITS_HUGE, .temperature = 1e-9, .problem = { .dtype = FLP_F32, .softcap = 30, .entropy = 1 } },
    { .name = "plain logits, cold", .temperature = 1e-9, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "logits far up, f32", .values = FLP_LOGITS_FAR_UP, .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "logits far up, long rows, f32", .values = FLP_LOGITS_FAR_UP, .problem = { .dtype = FLP_F32, .rows = 5, .vocab = 40004, .entropy = 1 } },
    { .name = "logits far up, f16", .values = FLP_LOGITS_FAR_UP, .temperature = 1e-3, .problem = { .dtype = FLP_F16, .entropy = 1 } },
    { .name = "infinite row temperatures",
      .rows = FLP_LOGITS_ROW_TEMPERATURES | FLP_LOGITS_INFINITE_TEMPERATURES | FLP_LOGITS_UNEVEN,
      .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "infinite row temperatures, lowest first",
      .values = FLP_LOGITS_LOWEST_FIRST,
      .rows = FLP_LOGITS_ROW_TEMPERATURES | FLP_LOGITS_INFINITE_TEMPERATURES,
      .problem = { .dtype = FLP_F32, .entropy = 1 } },
    { .name = "infinite row temperatures, masked",
      .values = FLP_LOGITS_FIRST_MASKED,
      .rows = FLP_LOGITS_ROW_TEMPERATURES | FLP_LOGITS_INFINITE_TEMPERATURES,
      .problem = { .entropy = 1 } },

    { .name = "softcap 30", .rows = FLP_LOGITS_UNEVEN, .problem = { .softcap = 30, .argmax = 1, .entropy = 1 } },
    { .name = "softcap 1", .problem = { .softcap = 1 } },
    { .name = "softcap 30, cold", .temperature = 0.1, .problem = { .softcap = 30 } },
    { .name = "softcap 30, long rows, bf16", .problem = { .dtype = FLP_BF16, .rows = 5, .vocab = 26000, .softcap = 30 } },
    { .name = "softcap 30, long rows, f16",
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_F16, .rows = 5, .vocab = 36008, .softcap = 30, .entropy = 1 } },
    { .name = "softcap 30, long rows, f32", .problem = { .dtype = FLP_F32, .rows = 5, .vocab = 20000, .softcap = 30 } },
    { .name = "temperature 0.1", .temperature = 0.1, .problem = { .entropy = 1 } },
    { .name = "temperature 7", .temperature = 7, .rows = FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "row temperatures", .rows = FLP_LOGITS_ROW_TEMPERATURES | FLP_LOGITS_UNEVEN, .problem = { .softcap = 20, .entropy = 1 } },

    { .name = "int32 targets", .problem = { .target_dtype = FLP_I32 } },
    { .name = "ignored rows hold NaN", .rows = FLP_LOGITS_IGNORED | FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "ignored rows, int32", .rows = FLP_LOGITS_IGNORED, .problem = { .target_dtype = FLP_I32 } },
    { .name = "ignore index in the vocabulary", .rows = FLP_LOGITS_IGNORED, .ignore_index = 7 },
    { .name = "ignore index beyond int32 matches no int32", .ignore_index = (1ll << 32) + 7, .problem = { .vocab = 8, .target_dtype = FLP_I32 } },
    { .name = "bad targets", .rows = FLP_LOGITS_BAD_TARGETS, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "bad targets, int32", .rows = FLP_LOGITS_BAD_TARGETS, .problem = { .target_dtype = FLP_I32 } },
    { .name = "bad targets, none ignored", .rows = FLP_LOGITS_BAD_TARGETS | FLP_LOGITS_NONE_IGNORED, .problem = { .entropy = 1 } },
    { .name = "token 0 is a target like others", .rows = FLP_LOGITS_NONE_IGNORED | FLP_LOGITS_UNEVEN, .problem = { .vocab = 3, .argmax = 1, .entropy = 1 } },
    { .name = "bad targets, one segment", .rows = FLP_LOGITS_BAD_TARGETS, .problem = { .vocab = 8 } },

    { .name = "indexed", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "indexed, row temperatures", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_ROW_TEMPERATURES | FLP_LOGITS_IGNORED },
    { .name = "scattered", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED | FLP_LOGITS_UNEVEN, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "scattered, ignored, bad", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED | FLP_LOGITS_IGNORED | FLP_LOGITS_BAD_TARGETS },
    { .name = "indices that name no row", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_INDICES, .problem = { .argmax = 1, .entropy = 1 } },
    { .name = "scattered indices that name no row", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED | FLP_LOGITS_BAD_INDICES },

    { .name = "more segments than a block holds", .problem = { .dtype = FLP_BF16, .rows = 2, .vocab = 1100003, .argmax = 1, .entropy = 1 } },
    { .name = "more segments than a block holds, f32", .problem = { .dtype = FLP_F32, .rows = 2, .vocab = 530000 } },

    { .name = "later logits beyond the softcap",
      .values = FLP_LOGITS_STEP_40,
      .rows = FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_BF16, .softcap = 30, .argmax = 1, .entropy = 1 } },
    { .name = "later logits beyond the softcap, long rows",
      .values = FLP_LOGITS_STEP_40,
      .problem = { .dtype = FLP_F16, .rows = 5, .vocab = 26000, .softcap = 30 } },
    { .name = "far beyond the softcap, f32", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .softcap = 0.25, .entropy = 1 } },
    { .name = "far beyond the softcap, bf16", .problem = { .dtype = FLP_BF16, .softcap = 0.25 } },
};

enum { SHAPES = COUNT(shapes) * COUNT(dtypes) };

int flp_logits_case_count(void)
{
    return SHAPES + COUNT(edges);
}

void flp_logits_case_complete(int number, flp_logits_case *c)
{
    flp_logits_logp_problem *p = &c->problem;

    if (p->dtype == FLP_NONE)
        p->dtype = dtypes[number % COUNT(dtypes)];
    p->rows = p->rows < 0 ? 0 : p->rows == 0 ? 21 : p->rows;
    if (p->vocab == 0)
        p->vocab = 5003;
    if (p->target_dtype == FLP_NONE)
        p->target_dtype = FLP_I64;
    if (c->ignore_index == 0 && !(c->rows & FLP_LOGITS_NONE_IGNORED))
        c->ignore_index = -100;
    c->all_rows = c->rows & FLP_LOGITS_INDEXED ? 2 * p->rows + 3 : p->rows;
    p->logits_stride = p->vocab + c->gap;
    p->pointer_alignment = c->misalignment ? c->misalignment & -c->misalignment : 16;
}

void flp_logits_case_get(int index, flp_logits_case *out)
{
    *out = (flp_logits_case){ .values = FLP_LOGITS_NORMAL };
    if (index < SHAPES) {
        const int shape = index / COUNT(dtypes), dtype = index % COUNT(dtypes);
        out->problem = (flp_logits_logp_problem){
            .dtype = dtypes[dtype], .rows = shapes[shape].rows, .vocab = shapes[shape].vocab, .argmax = index % 2, .entropy = index / 2 % 2
        };
        snprintf(out->name, sizeof(out->name), "%s %dx%d", dtype_names[dtype], shapes[shape].rows, shapes[shape].vocab);
    } else {
        *out = edges[index - SHAPES];
    }
    flp_logits_case_complete(index, out);
}
