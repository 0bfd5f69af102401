/* Draws problems: a profile that decides the kernels, sizes around the edges of tiles, and a few unusual things at a time. */
#include "random/draw.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/row_buckets.h"
#include "cross_entropy_cases.h"
#include "gradient_cases.h"
#include "logits_cases.h"
#include "random/numbers.h"
#include "shards.h"
#include "weighted_sum_cases.h"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))
#define PICK(numbers, array) ((array)[flp_random_numbers_below(numbers, COUNT(array))])

enum { MOST_DEPTH = 1024 }; /* over which the host machine's tensor cores cut more than the bounds allow */

static int chance(flp_random_numbers *numbers, int percent)
{
    return flp_random_numbers_chance(numbers, percent);
}

static int dtype(flp_random_numbers *numbers)
{
    return (int)(FLP_BF16 + flp_random_numbers_below(numbers, 3));
}

/* ---- profiles: what the kernels are made for ---- */

static void take_forward_case(const flp_case *c, flp_random_problem *p)
{
    const flp_linear_logp_problem *from = &c->problem;

    p->dtype = (int)from->dtype;
    p->n = from->rows;
    p->d = from->hidden;
    p->v = from->vocab;
    p->columns = from->weight_layout == FLP_HIDDEN_VOCAB;
    p->hidden_gap = c->hidden_gap;
    p->weight_gap = c->weight_gap;
    p->vocab_padding = c->vocab_padding;
    p->misalignment = c->misalignment;
    p->bias = (int)from->bias_dtype;
    p->softcap = from->softcap;
    p->argmax = from->argmax;
    p->entropy = from->entropy;
    p->exact = from->precision == FLP_PRECISION_EXACT;
    p->target_i32 = from->target_dtype == FLP_I32;
}

static void take_gradient_case(const flp_gradient_case *c, flp_random_problem *p)
{
    const flp_linear_logp_backward_problem *from = &c->problem;

    take_forward_case(&c->forward, p);
    p->grad_hidden = (int)from->grad_hidden;
    p->grad_weight = (int)from->grad_weight;
    p->grad_bias = (int)from->grad_bias;
    p->grad_hidden_gap = c->grad_hidden_gap > 0 ? c->grad_hidden_gap : 0;
    p->grad_weight_gap = c->grad_weight_gap > 0 ? c->grad_weight_gap : 0;
    p->accumulate = (int)from->accumulate;
    p->g_lse = from->g_lse;
    p->g_entropy = from->g_entropy;
    p->forward = from->with_forward;
    p->filter = from->grad_filter_eps;
}

static void take_loss_case(const flp_cross_entropy_case *c, flp_random_problem *p)
{
    const char *loss = c->problem.token_loss;

    take_gradient_case(&c->gradient, p);
    if (c->forward_only)
        p->grad_hidden = p->grad_weight = p->grad_bias = 0;
    p->entropy = c->problem.entropy;
    p->classes = (int)c->problem.class_weights;
    p->smoothing = c->problem.label_smoothing;
    p->loss = !loss[0] ? 0 : strcmp(loss, "policy_gradient") == 0 ? 1 : strcmp(loss, "policy_gradient_kl") == 0 ? 2 : 3;
}

static void take_logits_case(const flp_logits_case *c, flp_random_problem *p)
{
    p->dtype = (int)c->problem.dtype;
    p->n = c->problem.rows;
    p->v = c->problem.vocab;
    p->hidden_gap = c->gap;
    p->misalignment = c->misalignment;
    p->softcap = c->problem.softcap;
    p->argmax = c->problem.argmax;
    p->entropy = c->problem.entropy;
    p->indexed = c->rows & FLP_LOGITS_SCATTERED ? 2 : c->rows & FLP_LOGITS_INDEXED ? 1 : 0;
}

static void take_sum_case(const flp_weighted_case *c, flp_random_problem *p)
{
    const flp_weighted_sum_problem *f = &c->problem.forward;

    p->dtype = (int)f->dtype;
    p->n = f->rows;
    p->d = f->columns;
    p->hidden_gap = f->x_stride - f->columns;
    p->misalignment = c->misalignment;
    p->w_dtype = (int)f->w_dtype;
    p->y_dtype = (int)f->y_dtype;
    p->grad_hidden = (int)c->problem.grad_x;
    p->grad_weight = (int)c->problem.grad_w;
    p->accumulate = c->problem.accumulate;
    p->in_place = (c->content & FLP_WEIGHTED_IN_PLACE) != 0;
}

static void take_case(flp_random_numbers *numbers, flp_random_problem *p)
{
    flp_case forward;
    flp_gradient_case gradient;
    flp_cross_entropy_case loss;
    flp_logits_case logits;
    flp_weighted_case sum;

    switch (p->op) {
    case FLP_RANDOM_LINEAR:
        do
            flp_case_get((int)flp_random_numbers_below(numbers, flp_case_count()), &forward);
        while (forward.problem.hidden > MOST_DEPTH);
        take_forward_case(&forward, p);
        break;
    case FLP_RANDOM_LINEAR_BACKWARD:
        flp_gradient_case_get((int)flp_random_numbers_below(numbers, flp_gradient_case_count()), &gradient);
        take_gradient_case(&gradient, p);
        break;
    case FLP_RANDOM_CROSS_ENTROPY:
        flp_cross_entropy_case_get((int)flp_random_numbers_below(numbers, flp_cross_entropy_case_count()), &loss);
        take_loss_case(&loss, p);
        break;
    case FLP_RANDOM_LOGITS:
    case FLP_RANDOM_LOGITS_BACKWARD:
        flp_logits_case_get((int)flp_random_numbers_below(numbers, flp_logits_case_count()), &logits);
        take_logits_case(&logits, p);
        break;
    default:
        flp_weighted_case_get((int)flp_random_numbers_below(numbers, flp_weighted_case_count()), &sum);
        take_sum_case(&sum, p);
    }
}

static void make_profile(flp_random_numbers *numbers, flp_random_problem *p)
{
    static const int64_t depths[] = { 1, 2, 3, 5, 8, 16, 20, 24, 31, 32, 40, 63, 64, 65, 72, 80, 96, 100, 104, 127, 128, 130, 192, 200 };
    static const int64_t rows[] = { 40, 100, 150 }, columns[] = { 1, 7, 130, 500, 1024, 2049, 4100, 9000 }, gaps[] = { 1, 2, 3, 4, 8, 24 };
    static const int alignments[] = { 2, 4, 8 };

    p->dtype = dtype(numbers);
    p->n = PICK(numbers, rows);
    p->d = p->op >= FLP_RANDOM_SUM ? PICK(numbers, columns) : PICK(numbers, depths);
    p->v = PICK(numbers, columns);
    p->columns = chance(numbers, 35);
    p->hidden_gap = chance(numbers, 20) ? PICK(numbers, gaps) : 0;
    p->weight_gap = chance(numbers, 15) ? PICK(numbers, gaps) : 0;
    p->vocab_padding = chance(numbers, 15) ? PICK(numbers, gaps) : 0;
    p->grad_hidden_gap = chance(numbers, 15) ? PICK(numbers, gaps) : 0;
    p->grad_weight_gap = chance(numbers, 15) ? PICK(numbers, gaps) : 0;
    p->misalignment = chance(numbers, 15) ? PICK(numbers, alignments) : 0;
    p->bias = chance(numbers, 60) ? dtype(numbers) : 0;
    p->softcap = chance(numbers, 25) ? (chance(numbers, 50) ? 30 : 1.5) : 0;
    p->argmax = chance(numbers, 40);
    p->entropy = chance(numbers, 40);
    p->exact = chance(numbers, 20);
    p->grad_hidden = chance(numbers, 80) ? dtype(numbers) : 0;
    p->grad_weight = chance(numbers, 80) ? dtype(numbers) : 0;
    p->grad_bias = chance(numbers, 60) ? dtype(numbers) : 0;
    p->accumulate = chance(numbers, 40) ? (int)flp_random_numbers_below(numbers, 8) : 0;
    p->g_lse = chance(numbers, 30);
    p->g_entropy = chance(numbers, 30);
    p->forward = chance(numbers, 40);
    p->filter = chance(numbers, 10) ? 1e-4 : 0;
    p->classes = chance(numbers, 25) ? dtype(numbers) : 0;
    p->smoothing = chance(numbers, 25);
    p->loss = chance(numbers, 30) ? (int)flp_random_numbers_below(numbers, 4) : 0;
    p->w_dtype = chance(numbers, 50) ? dtype(numbers) : 0;
    p->y_dtype = chance(numbers, 50) ? dtype(numbers) : 0;
    p->indexed = chance(numbers, 25) ? 1 + chance(numbers, 50) : 0;
    p->in_place = chance(numbers, 20);
}

/* All shapes share scale's kernels: each problem has a profile of its own. */
static void take_scale_profile(flp_random_numbers *numbers, flp_random_problem *p)
{
    make_profile(numbers, p);
    if (chance(numbers, 5))
        p->n = 0;
    if (chance(numbers, 5))
        p->d = 66000; /* a row is more than what a thread of the CPU path takes at a time */
}

/* ---- sizes ---- */

/* Where a tile is taken for few rows, and for some: the rows that it is taken up to. */
static int64_t few_rows(void)
{
    return flp_row_buckets_rows(1);
}

static int64_t some_rows(void)
{
    return flp_row_buckets_rows(few_rows() + 1);
}

/* A bucket of its own: a plan for more rows may have other tiles. */
static int64_t more_rows(void)
{
    return flp_row_buckets_rows(some_rows() + 1);
}

static int64_t draw_rows(flp_random_numbers *numbers, int64_t like)
{
    static const int64_t few[] = { 1, 1, 2, 3, 17, 31, 33, 63, 64 }, some[] = { 65, 66, 97, 127, 128 }, many[] = { 129, 130, 191, 193, 255, 257, 300 };

    if (like == 0)
        return chance(numbers, 20) ? 0 : PICK(numbers, few);
    if (like <= few_rows())
        return chance(numbers, 60) ? PICK(numbers, few) : 1 + flp_random_numbers_below(numbers, few_rows());
    if (like <= some_rows())
        return chance(numbers, 60) ? PICK(numbers, some) : few_rows() + 1 + flp_random_numbers_below(numbers, some_rows() - few_rows());
    if (like > 1000 && chance(numbers, 30))
        return like;
    return chance(numbers, 60) ? PICK(numbers, many) : some_rows() + 1 + flp_random_numbers_below(numbers, 200);
}

static int64_t draw_vocab(flp_random_numbers *numbers)
{
    static const int64_t edges[] = { 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 258, 300, 511, 512, 513, 515, 700, 1000, 1003, 1025 };

    if (chance(numbers, 60))
        return PICK(numbers, edges);
    return chance(numbers, 10) ? 1000 + flp_random_numbers_below(numbers, 9000) : 1 + flp_random_numbers_below(numbers, 600);
}

/* Tails around a size that decides the kernel. */
static int64_t draw_around(flp_random_numbers *numbers, int64_t like)
{
    const int64_t tail = flp_random_numbers_below(numbers, 9) - 4;

    return chance(numbers, 40) || like + tail < 1 ? like : like + tail;
}

static int64_t least_rows_of_bucket(int64_t n)
{
    if (n <= few_rows())
        return n < 1 ? n : 1;
    return 1 + (n <= some_rows() ? few_rows() : n <= more_rows() ? some_rows() : more_rows());
}

static void bound_work(double work, flp_random_problem *p)
{
    const int64_t least = least_rows_of_bucket(p->n);

    while ((double)p->n * (double)p->v * (double)p->d > work && p->n > least)
        p->n = p->n / 2 > least ? p->n / 2 : least;
    while ((double)p->n * (double)p->v * (double)p->d > work && p->v > 40)
        p->v = p->v / 2 + 1;
}

static void draw_sizes(flp_random_numbers *numbers, double work, flp_random_problem *p)
{
    if (p->op >= FLP_RANDOM_SUM) {
        p->n = chance(numbers, 50) ? draw_rows(numbers, p->n) : draw_around(numbers, p->n > 0 ? p->n : 1);
        p->d = draw_around(numbers, p->d);
        while ((double)p->n * (double)p->d > work / 4 && p->n > 1)
            p->n = p->n / 2;
        return;
    }
    if (p->op >= FLP_RANDOM_LOGITS) {
        p->v = chance(numbers, 60) ? draw_around(numbers, p->v) : draw_vocab(numbers);
        p->n = draw_rows(numbers, chance(numbers, 70) ? 1 : p->n);
        while ((double)p->n * (double)p->v > work / 8 && p->n > 1)
            p->n = p->n / 2;
        return;
    }
    p->n = draw_rows(numbers, p->n);
    p->v = draw_vocab(numbers);
    bound_work(work, p);
}

/* ---- values ---- */

static double lowest_of(int of)
{
    return of == FLP_F16 ? -65504 : of == FLP_BF16 ? -0x1.fep127 : -FLT_MAX;
}

static void draw_shape(flp_random_numbers *numbers, flp_random_problem *p)
{
    static const double shifts[] = { 50, -50, 200, 2000, -2000, 1e4, -1e4, 1e5, 1e6, -1e6, 1.6e7 };
    const int holder = p->op <= FLP_RANDOM_CROSS_ENTROPY ? p->bias : p->dtype;
    const double lows[] = { -1e30, lowest_of(holder), lowest_of(holder), -1e9, -1e4 };

    p->shape = (int)flp_random_numbers_below(numbers, FLP_RANDOM_SHAPES);
    if (chance(numbers, 30))
        p->shape = chance(numbers, 60) ? FLP_RANDOM_LEVEL : FLP_RANDOM_SOME_LEVEL;
    p->shift =
        p->shape == FLP_RANDOM_LEVEL || p->shape == FLP_RANDOM_SOME_LEVEL || p->shape == FLP_RANDOM_TWO_LEVELS ? PICK(numbers, lows) : PICK(numbers, shifts);
    if (p->shape == FLP_RANDOM_TWO_LEVELS && holder != FLP_F16 && chance(numbers, 50)) /* positive ones too */
        p->shift = -p->shift;
}

static void draw_values(flp_random_numbers *numbers, flp_random_problem *p)
{
    static const double scales[] = { 1e-3, 0.1, 5, 20, 100, 1e3, 1e4, 1e5, 1e7 };

    if (chance(numbers, 10))
        p->values = chance(numbers, 50) ? FLP_RANDOM_ZEROS : FLP_RANDOM_INTEGERS;
    if (chance(numbers, 25))
        p->scale = PICK(numbers, scales);
    if (chance(numbers, 30)) {
        p->likely = chance(numbers, 60) ? FLP_RANDOM_TARGET_BIASED : FLP_RANDOM_TARGET_ALIGNED;
        p->margin = 80 * flp_random_numbers_uniform(numbers);
        p->scale = 1;
    }
    if (chance(numbers, p->bias ? 60 : 30)) /* many profiles have no bias to shape */
        draw_shape(numbers, p);
    if (chance(numbers, 30))
        p->temperature = chance(numbers, 60) ? 0.1 + 3 * flp_random_numbers_uniform(numbers) : exp2(60 * flp_random_numbers_uniform(numbers) - 40);
    if (chance(numbers, 15))
        p->row_temperature = chance(numbers, 60) ? 1 : chance(numbers, 50) ? 2 : 3;
    p->equal_targets = chance(numbers, 5);
}

static void draw_targets(flp_random_numbers *numbers, flp_random_problem *p)
{
    const int64_t indices[] = { -100, -1, 0, p->v - 1, p->v / 2, 1ll << 40, INT32_MIN, INT64_MIN, INT64_MAX };

    p->target_i32 = chance(numbers, 40);
    if (chance(numbers, 30)) {
        p->ignores = 1;
        p->ignore_index = PICK(numbers, indices);
        p->ignored = chance(numbers, 15) ? 100 : (int)flp_random_numbers_below(numbers, 80);
    }
    if (chance(numbers, 15))
        p->bad = chance(numbers, 10) ? 100 : (int)flp_random_numbers_below(numbers, 60);
    p->ignored_nan = chance(numbers, 50);
    p->broken = chance(numbers, 8) ? 1 + (int)flp_random_numbers_below(numbers, 30) : 0;
    p->check_targets = chance(numbers, 5);
}

static void draw_loss(flp_random_numbers *numbers, flp_random_problem *p)
{
    p->upstream = chance(numbers, 40) ? (int)flp_random_numbers_below(numbers, FLP_RANDOM_UPSTREAMS) : 0;
    p->reduction = (int)flp_random_numbers_below(numbers, 3);
    p->label_smoothing = chance(numbers, 20) ? 0 : chance(numbers, 10) ? 1 : 0.3 * flp_random_numbers_uniform(numbers);
    p->lse_square_scale = chance(numbers, 20) ? 1e-3 : 0;
    p->tokens = chance(numbers, 25);
    p->g_loss = chance(numbers, 30);
    p->give_logp = chance(numbers, 70);
    p->far_ratio = chance(numbers, 25);
}

/* Products beyond the dtype's range, and below its smallest. */
static void draw_factor(flp_random_numbers *numbers, flp_random_problem *p)
{
    static const double special[] = { 1, 1, 0, -0.0, -1, 0.5, INFINITY, -INFINITY, NAN, FLT_MAX, 0x1p-149 };

    if (chance(numbers, 50))
        p->values = FLP_RANDOM_BITS;
    if (chance(numbers, 40))
        p->factor = PICK(numbers, special);
    else
        p->factor = flp_random_numbers_normal(numbers) * (chance(numbers, 50) ? 1 : exp2(200 * flp_random_numbers_uniform(numbers) - 100));
}

static void draw_call(flp_random_numbers *numbers, flp_random_problem *p)
{
    p->spare = chance(numbers, 20) ? 1 + flp_random_numbers_below(numbers, chance(numbers, 20) ? 2000 : 60) : 0;
    p->outputs = chance(numbers, 30) ? (int)flp_random_numbers_below(numbers, 16) : 0;
    p->shared_scratch = chance(numbers, 15);
    p->dispatched = chance(numbers, 8);
    p->poison = (int)flp_random_numbers_below(numbers, 4);
    p->repeat = chance(numbers, 10);
    p->again = chance(numbers, 10);
    p->budget = chance(numbers, 50) ? (chance(numbers, 40) ? 0 : flp_random_numbers_uniform(numbers)) : -1;
    p->bad_indices = chance(numbers, 15);
    p->fused = chance(numbers, 40);
}

static void draw(const flp_random_drawing *drawing, flp_random_operator op, uint64_t index, flp_random_problem *problem)
{
    flp_random_numbers numbers = flp_random_numbers_from(drawing->seed * 16 + (uint64_t)op, index);

    *problem = flp_random_problem_default();
    problem->op = (int)op;
    if (drawing->profiles > 0 && chance(&numbers, 50)) {
        const uint64_t profile = (uint64_t)flp_random_numbers_below(&numbers, drawing->profiles);
        flp_random_numbers own = flp_random_numbers_from(~(drawing->seed * 16 + (uint64_t)op), profile);
        make_profile(&own, problem);
    } else if (op == FLP_RANDOM_SCALE) {
        take_scale_profile(&numbers, problem);
    } else {
        take_case(&numbers, problem);
    }
    draw_sizes(&numbers, chance(&numbers, 10) ? 4 * drawing->work : drawing->work, problem);
    draw_values(&numbers, problem);
    draw_targets(&numbers, problem);
    draw_loss(&numbers, problem);
    draw_call(&numbers, problem);
    if (op == FLP_RANDOM_SCALE)
        draw_factor(&numbers, problem);
    problem->data = flp_random_numbers_below(&numbers, 1000000000);
    problem->shards = chance(&numbers, 12) ? 1 + (int)flp_random_numbers_below(&numbers, FLP_CUTTINGS) : 0;
    flp_random_problem_settle(problem);
}

void flp_random_draw(const flp_random_drawing *drawing, flp_random_operator op, int64_t index, flp_random_problem *problem)
{
    draw(drawing, op, (uint64_t)index, problem);
}
