/* The reference cross-entropy itself: its derivatives against central differences of its loss, in fp64. */
#include "cross_entropy_reference.h"
#include <math.h>
#include "assertions.h"

enum { ROWS = 5, HIDDEN = 3, VOCAB = 7 };

typedef struct {
    flp_linear_cross_entropy_problem problem;
    flp_linear_cross_entropy_args args;
    float hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], classes[VOCAB], tokens[ROWS], advantages[ROWS], old_logp[ROWS], reference_logp[ROWS], g_loss[ROWS];
    int64_t target[ROWS];
    flp_token_input inputs[3];
} setup;

static void make(setup *s, const char *loss, flp_reduction reduction)
{
    *s = (setup){ .problem = { .backward.forward = { .dtype = FLP_F32,
                                                     .rows = ROWS,
                                                     .hidden = HIDDEN,
                                                     .vocab = VOCAB,
                                                     .hidden_stride = HIDDEN,
                                                     .weight_stride = HIDDEN,
                                                     .target_dtype = FLP_I64 },
                               .class_weights = FLP_F32,
                               .token_weights = 1,
                               .label_smoothing = loss[0] == 0,
                               .reduction = reduction },
                  .target = { 3, -100, 0, 6, 2 } };
    strcpy(s->problem.token_loss, loss);
    for (int i = 0; i < ROWS * HIDDEN; i++)
        s->hidden[i] = (float)sin(i + 1);
    for (int i = 0; i < VOCAB * HIDDEN; i++)
        s->weight[i] = (float)cos(2 * i);
    for (int v = 0; v < VOCAB; v++)
        s->classes[v] = 0.5f + 0.25f * (float)v;
    for (int i = 0; i < ROWS; i++) {
        s->tokens[i] = 1 + 0.25f * (float)i;
        s->advantages[i] = i % 2 ? -1.5f : 0.75f;
        s->old_logp[i] = -2 + 0.1f * (float)i;
        s->reference_logp[i] = -2.5f + 0.3f * (float)i;
        s->g_loss[i] = 2 - 0.5f * (float)i;
    }
    s->inputs[0] = (flp_token_input){ "advantages", s->advantages };
    s->inputs[1] = (flp_token_input){ "old_logp", s->old_logp };
    s->inputs[2] = (flp_token_input){ "reference_logp", s->reference_logp };
    s->args = (flp_linear_cross_entropy_args){ .rows = ROWS,
                                               .hidden = s->hidden,
                                               .weight = s->weight,
                                               .target = s->target,
                                               .ignore_index = -100,
                                               .flags = FLP_IGNORE_INDEX,
                                               .class_weights = s->classes,
                                               .token_weights = s->tokens,
                                               .label_smoothing = loss[0] == 0 ? 0.1 : 0,
                                               .lse_square_scale = loss[0] == 0 ? 0.01 : 0,
                                               .token_inputs = s->inputs,
                                               .token_input_count = 3,
                                               .g_loss = s->g_loss };
}

static void compute(const setup *s, const flp_reference *forward, flp_cross_entropy_reference *r)
{
    assert_true(flp_cross_entropy_reference_compute(&s->problem, &s->args, forward, r));
}

static double reduced(const setup *s, const flp_cross_entropy_reference *r)
{
    double sum = 0;
    if (s->problem.reduction != FLP_REDUCE_NONE)
        return s->g_loss[0] * r->total;
    for (int i = 0; i < ROWS; i++)
        sum += s->g_loss[i] * r->loss[i];
    return sum;
}

/* The reduced loss as logits move: statistics from the logits, nothing of the reference's but the loss itself. */
static double loss_of(const setup *s, double *logits)
{
    double logp[ROWS], lse[ROWS], entropy[ROWS], rounding[ROWS] = { 0 };
    const flp_reference forward = {
        .rows = ROWS, .vocab = VOCAB, .logits = logits, .logp = logp, .lse = lse, .entropy = entropy, .rounding = rounding, .entropy_rounding = rounding
    };
    flp_cross_entropy_reference r;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int v = 0; v < VOCAB; v++)
            sum += exp(logits[i * VOCAB + v]);
        lse[i] = log(sum);
        entropy[i] = lse[i];
        for (int v = 0; v < VOCAB; v++)
            entropy[i] -= exp(logits[i * VOCAB + v] - lse[i]) * logits[i * VOCAB + v];
        logp[i] = s->target[i] < 0 ? 0 : logits[i * VOCAB + s->target[i]] - lse[i];
    }
    compute(s, &forward, &r);
    double loss = reduced(s, &r);
    flp_cross_entropy_reference_free(&r);
    return loss;
}

static void check_derivatives(const char *loss, flp_reduction reduction)
{
    const double step = 1e-5;
    setup s;
    flp_reference forward;
    flp_cross_entropy_reference r;
    make(&s, loss, reduction);
    flp_linear_logp_args args = { .rows = ROWS, .hidden = s.hidden, .weight = s.weight, .target = s.target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX };
    assert_true(flp_reference_compute(&s.problem.backward.forward, &args, &forward));
    compute(&s, &forward, &r);
    for (int at = 0; at < ROWS * VOCAB; at++) {
        int i = at / VOCAB, v = at % VOCAB;
        double logit = forward.logits[at], p = exp(logit - forward.lse[i]), up, down;
        double derivative =
            r.g_logp[i] * ((v == s.target[i]) - p) + r.g_lse[i] * p - r.g_entropy[i] * p * (log(p) + forward.entropy[i]) + r.g_sum[i] * r.class_weights[v];
        forward.logits[at] = logit + step;
        up = loss_of(&s, forward.logits);
        forward.logits[at] = logit - step;
        down = loss_of(&s, forward.logits);
        forward.logits[at] = logit;
        /* Central differences: step^2 times a third derivative of a few units, and 1e-16 / step. */
        assert_true(fabs((up - down) / (2 * step) - derivative) < 1e-8);
    }
    flp_cross_entropy_reference_free(&r);
    flp_reference_free(&forward);
}

static void derivatives_are_those_of_the_loss(void **state)
{
    static const char *const losses[] = { "", "policy_gradient", "policy_gradient_kl", "everything" };
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int reduction = FLP_REDUCE_MEAN; reduction <= FLP_REDUCE_NONE; reduction++)
            check_derivatives(losses[i], (flp_reduction)reduction);
}

/* Two rows of three equal logits: log 3 times the weight of the class, 0.5 and 1, over their sum. */
static void a_loss_computed_by_hand(void **state)
{
    setup s;
    flp_reference forward;
    flp_cross_entropy_reference r;
    (void)state;
    make(&s, "", FLP_REDUCE_MEAN);
    s.problem.backward.forward.vocab = 3;
    s.args.rows = 2;
    s.args.lse_square_scale = 0;
    s.args.label_smoothing = 0;
    s.args.token_weights = NULL;
    s.target[0] = 0;
    s.target[1] = 2;
    memset(s.weight, 0, sizeof s.weight);
    flp_linear_logp_args args = { .rows = 2, .hidden = s.hidden, .weight = s.weight, .target = s.target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX };
    assert_true(flp_reference_compute(&s.problem.backward.forward, &args, &forward));
    compute(&s, &forward, &r);
    assert_true(fabs(r.total - log(3)) < 1e-15);
    assert_true(fabs(r.loss[0] - 0.5 * log(3)) < 1e-15 && fabs(r.loss[1] - log(3)) < 1e-15);
    assert_true(fabs(r.g_logp[0] + 2 * 0.5 / 1.5) < 1e-15);
    flp_cross_entropy_reference_free(&r);
    flp_reference_free(&forward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_are_those_of_the_loss),
        cmocka_unit_test(a_loss_computed_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
