/* The tables of edge cases: combinations of a few row counts, vocabularies and hidden sizes. */
#include "device/edge_cases.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Below, at and above the rows of tiles (64 and 128) and of a cluster (256). */
static const int tile_rows[] = { 1, 64, 65, 128, 129, 256, 257, 300 };
/* Below, at and above the vocabulary entries of tiles (128 and 256). */
static const int tile_vocabs[] = { 1, 255, 256, 257, 511, 513 };
/* Hidden sizes: one stage of 64, a part of one, and more stages than any pipeline has. */
static const int stage_sizes[] = { 8, 64, 72, 136, 320, 392, 512 };
/* Around the vocabularies at which a split first has two tiles, and larger ones: two waves of 108 tiles of 128 on the portable path, of 132 tiles of 128 (fp32)
 * or 256 on sm_90a. */
static const struct {
    flp_dtype dtype;
    int vocab;
} splits[] = {
    { FLP_BF16, 27519 }, { FLP_BF16, 27520 }, { FLP_BF16, 27648 }, { FLP_BF16, 27649 }, { FLP_F32, 33664 },  { FLP_F32, 33665 },
    { FLP_F32, 33793 },  { FLP_BF16, 67327 }, { FLP_F16, 67328 },  { FLP_BF16, 67329 }, { FLP_BF16, 67585 }, { FLP_BF16, 101121 },
};

static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_BF16, FLP_F32 };

enum {
    TILES = COUNT(tile_rows) * COUNT(tile_vocabs),
    STAGES = COUNT(stage_sizes) * 2,
    SPLITS = COUNT(splits) * 2,
};

static const char *dtype_name(flp_dtype dtype)
{
    return dtype == FLP_BF16 ? "bf16" : dtype == FLP_F16 ? "f16" : "f32";
}

static void complete(flp_case *c, const char *family)
{
    flp_linear_logp_problem *p = &c->problem;

    p->target_dtype = FLP_I64;
    p->hidden_stride = p->hidden + c->hidden_gap;
    p->weight_stride = p->weight_layout == FLP_VOCAB_HIDDEN ? p->hidden : p->vocab + c->vocab_padding;
    if (c->misalignment)
        p->pointer_alignment = c->misalignment & -c->misalignment;
    c->ignore_index = -100;
    snprintf(c->name, sizeof(c->name), "%s: %s n%" PRId64 " d%" PRId64 " v%" PRId64 "%s%s%s%s", family, dtype_name(p->dtype), p->rows, p->hidden, p->vocab,
             p->weight_layout == FLP_HIDDEN_VOCAB ? " [D, V]" : "", p->precision ? " exact" : "", c->misalignment ? " misaligned" : "",
             c->margin > 0 ? " likely" : "");
}

int flp_edge_case_count(void)
{
    return TILES + STAGES + SPLITS;
}

void flp_edge_case_get(int index, flp_case *out)
{
    *out = (flp_case){ 0 };
    if (index < TILES) {
        int rows = index % COUNT(tile_rows), vocab = index / COUNT(tile_rows);
        out->problem = (flp_linear_logp_problem){
            .dtype = dtypes[(rows + vocab) % COUNT(dtypes)], .rows = tile_rows[rows], .hidden = 64, .vocab = tile_vocabs[vocab], .argmax = 1
        };
        complete(out, "tiles");
    } else if (index < TILES + STAGES) {
        index -= TILES;
        out->problem = (flp_linear_logp_problem){
            .dtype = FLP_BF16, .rows = 130, .hidden = stage_sizes[index / 2], .vocab = 600, .weight_layout = index % 2 ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN
        };
        complete(out, "stages");
    } else {
        index -= TILES + STAGES;
        out->problem = (flp_linear_logp_problem){
            .dtype = splits[index / 2].dtype, .rows = index % 2 ? 129 : 33, .hidden = 64, .vocab = splits[index / 2].vocab, .argmax = index % 2
        };
        complete(out, "splits");
    }
}

#define LIKELY(nats) .values = FLP_CASE_INTEGERS, .rows = FLP_CASE_EQUAL_TARGETS, .margin = nats

static const flp_case quick[] = {
    { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 300, .argmax = 1 } },
    { .problem = { .dtype = FLP_F16, .rows = 100, .hidden = 72, .vocab = 300 } },
    { .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 136, .vocab = 1300, .softcap = 30, .argmax = 1 } },
    /* Softcaps far below and far above all logits. */
    { .problem = { .dtype = FLP_BF16, .rows = 140, .hidden = 72, .vocab = 540, .softcap = 0x1p-20 } },
    { .problem = { .dtype = FLP_F16, .rows = 140, .hidden = 72, .vocab = 530, .softcap = 1e5 } },
    { .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 72, .vocab = 520, .weight_layout = FLP_HIDDEN_VOCAB } },
    { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 64, .vocab = 45000 } },
    { .bias = FLP_CASE_PLAIN_BIAS,
      .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_BAD_TARGETS | FLP_CASE_ROW_TEMPERATURES,
      .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 80, .vocab = 600, .bias_dtype = FLP_F32, .argmax = 1 } },
    /* Logits of a later tile that are too large for the offset, so that the row is computed again. */
    { .bias = FLP_CASE_STEP_2000, .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 64, .vocab = 1000, .bias_dtype = FLP_F32 } },
    { .misalignment = 2, .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 77, .vocab = 300, .argmax = 1 } },
    { .problem = { .dtype = FLP_F32, .rows = 65, .hidden = 68, .vocab = 300 } },
    { .problem = { .dtype = FLP_F32, .rows = 65, .hidden = 68, .vocab = 300, .weight_layout = FLP_HIDDEN_VOCAB } },
    { .problem = { .dtype = FLP_F32, .rows = 65, .hidden = 67, .vocab = 200, .precision = FLP_PRECISION_EXACT } },
    /* Likely targets: in the first columns, in a later tile, in one of many splits; beside masked entries; alone. */
    { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 8, .vocab = 100, .entropy = 1 } },
    { LIKELY(80), .problem = { .dtype = FLP_F16, .rows = 150, .hidden = 16, .vocab = 1300, .argmax = 1, .entropy = 1 } },
    { LIKELY(40), .problem = { .dtype = FLP_F32, .rows = 65, .hidden = 8, .vocab = 700, .entropy = 1 } },
    { LIKELY(20), .problem = { .dtype = FLP_F32, .rows = 33, .hidden = 8, .vocab = 700, .precision = FLP_PRECISION_EXACT, .entropy = 1 } },
    { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 8, .vocab = 45000, .entropy = 1 } },
    { LIKELY(64), .bias = FLP_CASE_FIRST_MASKED, .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 8, .vocab = 700, .bias_dtype = FLP_F32, .entropy = 1 } },
    { LIKELY(64), .temperature = 2, .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 8, .vocab = 600, .weight_layout = FLP_HIDDEN_VOCAB, .entropy = 1 } },
    { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 8, .vocab = 1, .entropy = 1 } },
    /* Logits far from 0: by very low temperatures, and by finite numbers that mask all of them. */
    { .temperature = 1e-9, .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 64, .vocab = 700, .argmax = 1 } },
    { .temperature = 1e-4, .problem = { .dtype = FLP_F32, .rows = 65, .hidden = 64, .vocab = 700, .entropy = 1 } },
    { .bias = FLP_CASE_1E30_DOWN, .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 64, .vocab = 701, .bias_dtype = FLP_F32, .entropy = 1 } },
    { .bias = FLP_CASE_LOWEST, .problem = { .dtype = FLP_F16, .rows = 65, .hidden = 64, .vocab = 700, .bias_dtype = FLP_F32, .entropy = 1 } },
};

int flp_edge_case_quick_count(void)
{
    return COUNT(quick);
}

void flp_edge_case_quick_get(int index, flp_case *out)
{
    *out = quick[index];
    complete(out, "quick");
}
