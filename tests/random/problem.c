/* The text of a random problem, its consistency, and what makes it simpler. */
#include "random/problem.h"
#include "shards.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const operators[] = { "linear_logp",          "linear_logp_backward", "linear_cross_entropy",  "logits_logp",
                                         "logits_logp_backward", "weighted_sum",         "weighted_sum_backward", "scale" };
static const char *const dtypes[] = { "none", "bf16", "f16", "f32" };

typedef enum { KEEP, DROP, SIZE, DTYPE } field_kind;

static const struct {
    const char *name;
    field_kind kind;
} fields[] = {
#define FIELD(type, name, otherwise, kind) { #name, kind },
    FLP_RANDOM_FIELDS(FIELD)
#undef FIELD
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static double get(const flp_random_problem *problem, int field)
{
    int i = 0;
#define GET(type, name, otherwise, kind) \
    if (i++ == field)                    \
        return (double)problem->name;
    FLP_RANDOM_FIELDS(GET)
#undef GET
    return 0;
}

static void set(flp_random_problem *problem, int field, double value)
{
    int i = 0;
#define SET(type, name, otherwise, kind) \
    if (i++ == field)                    \
        problem->name = sizeof(type) == 8 && value >= 0x1p63 && (type)0.5 == 0 ? (type)INT64_MAX : (type)value; /* a double has no INT64_MAX */
    FLP_RANDOM_FIELDS(SET)
#undef SET
}

flp_random_problem flp_random_problem_default(void)
{
    const flp_random_problem problem = {
#define DEFAULT(type, name, otherwise, kind) .name = otherwise,
        FLP_RANDOM_FIELDS(DEFAULT)
#undef DEFAULT
    };

    return problem;
}

/* ---- text ---- */

void flp_random_problem_format(const flp_random_problem *problem, char *text, size_t bytes)
{
    const flp_random_problem otherwise = flp_random_problem_default();
    size_t length = (size_t)snprintf(text, bytes, "%s", operators[problem->op]);

    for (int i = 1; i < FIELDS && length < bytes; i++) {
        const double value = get(problem, i);
        if (value == get(&otherwise, i))
            continue;
        if (fields[i].kind == DTYPE)
            length += (size_t)snprintf(text + length, bytes - length, " %s=%s", fields[i].name, dtypes[(int)value]);
        else
            length += (size_t)snprintf(text + length, bytes - length, " %s=%.17g", fields[i].name, value);
    }
}

static int find(const char *const *words, int count, const char *word, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return i;
    return -1;
}

static int parse_field(const char *word, size_t length, flp_random_problem *problem)
{
    for (int i = 1; i < FIELDS; i++) {
        const size_t name = strlen(fields[i].name);
        if (length <= name || memcmp(word, fields[i].name, name) != 0 || word[name] != '=')
            continue;
        const int dtype = find(dtypes, 4, word + name + 1, length - name - 1);
        char *end;
        const double value = strtod(word + name + 1, &end);
        if (fields[i].kind == DTYPE ? dtype < 0 : end != word + length)
            return 0;
        set(problem, i, fields[i].kind == DTYPE ? dtype : value);
        return 1;
    }
    return 0;
}

int flp_random_problem_parse(const char *text, flp_random_problem *problem)
{
    size_t length = strcspn(text, " ");

    *problem = flp_random_problem_default();
    problem->op = find(operators, FLP_RANDOM_OPERATORS, text, length);
    if (problem->op < 0)
        return 0;
    for (text += length; *text; text += length) {
        text += strspn(text, " ");
        length = strcspn(text, " ");
        if (length > 0 && !parse_field(text, length, problem))
            return 0;
    }
    return 1;
}

/* ---- consistency ---- */

int64_t flp_random_problem_rows(const flp_random_problem *problem)
{
    return problem->indexed ? 2 * problem->n + 3 : problem->n;
}

static int is_linear(const flp_random_problem *p)
{
    return p->op <= FLP_RANDOM_CROSS_ENTROPY;
}

static int is_sum(const flp_random_problem *p)
{
    return p->op == FLP_RANDOM_SUM || p->op == FLP_RANDOM_SUM_BACKWARD;
}

static double lowest(int dtype)
{
    return dtype == FLP_F16 ? -65504 : dtype == FLP_BF16 ? -0x1.fep127 : -FLT_MAX;
}

/* Values that the dtype of what holds them has. */
static void settle_values(flp_random_problem *p)
{
    const int holder = is_linear(p) ? p->bias : p->dtype;

    if (is_linear(p) && p->bias == FLP_NONE) {
        p->shape = FLP_RANDOM_PLAIN;
        if (p->likely == FLP_RANDOM_TARGET_BIASED)
            p->likely = FLP_RANDOM_TARGET_ALIGNED;
    }
    if (p->shape == FLP_RANDOM_PLAIN || (p->shape >= FLP_RANDOM_FIRST_MASKED && p->shape <= FLP_RANDOM_ALL_MASKED) || p->shape == FLP_RANDOM_INFINITE ||
        p->shape == FLP_RANDOM_NAN)
        p->shift = 0;
    if (p->shift < lowest(holder))
        p->shift = lowest(holder);
    if (holder == FLP_F16 && p->shift > 60000)
        p->shift = 60000;
    if (p->dtype == FLP_F16 && p->scale > 1e4)
        p->scale = 1e4;
    if (p->likely == FLP_RANDOM_TARGET_ANY)
        p->margin = 0;
    if (p->margin == 0)
        p->likely = FLP_RANDOM_TARGET_ANY;
}

static void settle_rows(flp_random_problem *p)
{
    if (p->n == 0)
        p->again = 0;                                        /* there is nothing to take */
    if (p->shape == FLP_RANDOM_TWO_LEVELS && is_linear(p)) { /* whose kernels keep z log2(e) / temperature in fp32 */
        p->shift = fmax(-1e30, fmin(p->shift, 1e30));
        p->temperature = p->temperature > 0 ? fmax(p->temperature, 1e-6) : 0;
        p->row_temperature = p->row_temperature == 3 ? 2 : p->row_temperature;
    }
    if (!p->ignores)
        p->ignored = 0, p->ignore_index = 0;
    if (p->target_i32 && p->ignore_index != (int32_t)p->ignore_index)
        p->ignored = 0;
    if (p->ignored + p->bad == 0)
        p->ignored_nan = 0;
    if (p->bad)
        p->check_targets = 0;
    if (p->loss != FLP_RANDOM_LOSS_PLAIN && p->row_temperature == 3)
        p->row_temperature = 1; /* exp(logp - old_logp) has no digits where logp has none before the point */
    if (p->row_temperature)
        p->temperature = 0;
}

static void settle_gradients(flp_random_problem *p)
{
    const int backward = p->op == FLP_RANDOM_LINEAR_BACKWARD, any = backward || p->op == FLP_RANDOM_CROSS_ENTROPY;

    if (!any)
        p->grad_hidden = p->grad_weight = p->grad_bias = 0;
    if (p->bias == FLP_NONE)
        p->grad_bias = 0;
    if (backward && !p->grad_hidden && !p->grad_weight && !p->grad_bias)
        p->grad_hidden = FLP_F32;
    if (!p->grad_hidden)
        p->accumulate &= ~FLP_ACCUMULATE_HIDDEN, p->grad_hidden_gap = 0;
    if (!p->grad_weight)
        p->accumulate &= ~FLP_ACCUMULATE_WEIGHT, p->grad_weight_gap = 0;
    if (!p->grad_bias)
        p->accumulate &= ~FLP_ACCUMULATE_BIAS;
    if (!p->grad_hidden && !p->grad_weight && !p->grad_bias)
        p->budget = -1, p->filter = 0;
    if (!backward)
        p->g_lse = p->g_entropy = p->forward = p->give_logp = 0;
    if (!p->forward)
        p->again = 0;
    if (p->forward)
        p->give_logp = p->shared_scratch = p->dispatched = 0;
    if (p->op != FLP_RANDOM_LINEAR)
        p->argmax = 0;
    if (backward)
        p->entropy = 0;
    if (backward && p->upstream == FLP_RANDOM_G_INFINITE)
        p->scale = p->scale > 100 ? 100 : p->scale;
}

static void settle_loss(flp_random_problem *p)
{
    if (p->op != FLP_RANDOM_CROSS_ENTROPY) {
        p->loss = p->reduction = p->smoothing = p->classes = p->tokens = p->g_loss = 0;
        p->lse_square_scale = 0;
    } else {
        p->upstream = 0;
    }
    if (p->loss)
        p->smoothing = 0, p->lse_square_scale = 0;
    if (!p->smoothing)
        p->label_smoothing = 0;
    if (p->loss != FLP_RANDOM_LOSS_POLICY)
        p->far_ratio = 0;
}

/* Each part is a call without a plan, and grad_hidden's parts are added up by the calls themselves. */
static void settle_shards(flp_random_problem *p)
{
    if (!is_linear(p) || p->shards < 0 || p->shards > FLP_CUTTINGS)
        p->shards = 0;
    if (p->shards == 0)
        return;
    p->dispatched = 1;
    p->forward = 0;
    p->budget = -1;
    p->accumulate &= ~FLP_ACCUMULATE_HIDDEN; /* by shards but the first */
    if (p->grad_hidden)
        p->grad_hidden = FLP_F32;
}

static void settle_linear(flp_random_problem *p)
{
    p->indexed = p->bad_indices = p->in_place = p->fused = p->w_dtype = p->y_dtype = 0;
    if (p->dtype != FLP_F32)
        p->exact = 0;
    settle_gradients(p);
    settle_loss(p);
}

static void settle_logits(flp_random_problem *p)
{
    const int backward = p->op == FLP_RANDOM_LOGITS_BACKWARD;

    p->d = 1;
    p->again = 0;
    p->bias = p->columns = p->exact = p->grad_hidden = p->grad_weight = p->grad_bias = p->accumulate = p->forward = p->w_dtype = p->y_dtype = 0;
    p->budget = -1;
    p->filter = 0;
    p->vocab_padding = p->weight_gap = p->grad_weight_gap = 0;
    settle_loss(p);
    if (!backward)
        p->in_place = p->fused = p->g_lse = p->g_entropy = p->upstream = p->grad_hidden_gap = p->give_logp = 0;
    else
        p->argmax = 0;
    if (!p->entropy)
        p->g_entropy = 0;
    if (p->fused)
        p->give_logp = 0;
    if (p->in_place)
        p->grad_hidden_gap = p->hidden_gap, p->repeat = 0;
    if (p->in_place && p->indexed)
        p->indexed = 2;
    if (!p->indexed)
        p->bad_indices = 0;
    if (p->bad_indices)
        p->check_targets = 0;
    if (p->likely)
        p->likely = FLP_RANDOM_TARGET_BIASED;
}

static void settle_sum(flp_random_problem *p)
{
    const flp_random_problem given = *p;
    const int backward = p->op == FLP_RANDOM_SUM_BACKWARD;

    *p = flp_random_problem_default();
    p->op = given.op;
    p->n = given.n, p->d = given.d, p->data = given.data, p->spare = given.spare, p->dtype = given.dtype;
    p->w_dtype = given.w_dtype, p->y_dtype = given.y_dtype, p->hidden_gap = given.hidden_gap, p->misalignment = given.misalignment;
    p->broken = given.broken, p->values = given.values, p->dispatched = given.dispatched, p->portable = given.portable, p->repeat = given.repeat;
    p->poison = given.poison;
    if (!backward)
        return;
    p->grad_hidden = given.grad_hidden, p->grad_weight = given.grad_weight, p->grad_hidden_gap = given.grad_hidden_gap;
    p->in_place = given.in_place, p->accumulate = given.accumulate != 0, p->upstream = given.upstream, p->shared_scratch = given.shared_scratch;
    if (!p->grad_hidden && !p->grad_weight)
        p->grad_weight = p->dtype;
    if (!p->grad_weight)
        p->accumulate = 0;
    if (p->grad_hidden != p->dtype)
        p->in_place = 0;
    if (p->in_place)
        p->grad_hidden_gap = p->hidden_gap, p->repeat = 0;
    if (!p->grad_hidden)
        p->grad_hidden_gap = 0;
}

static void settle_scale(flp_random_problem *p)
{
    const flp_random_problem given = *p;

    *p = flp_random_problem_default();
    p->op = given.op;
    p->n = given.n, p->d = given.d, p->data = given.data, p->spare = given.spare, p->dtype = given.dtype;
    p->hidden_gap = given.hidden_gap, p->misalignment = given.misalignment, p->values = given.values, p->factor = (float)given.factor;
    p->dispatched = given.dispatched, p->portable = given.portable, p->repeat = given.repeat;
}

/* Through the exponential of a policy's ratio logits of 1e6 and more leave nothing to hold a path to. */
static void settle_large(flp_random_problem *p)
{
    if (p->loss != FLP_RANDOM_LOSS_POLICY && p->loss != FLP_RANDOM_LOSS_POLICY_KL)
        return;
    p->scale = fmin(p->scale, 1e3);
    if (p->shape != FLP_RANDOM_SOME_LEVEL)
        p->shift = fmax(-1e5, fmin(p->shift, 1e5));
    p->temperature = p->temperature > 0 ? fmax(p->temperature, 0.1) : 0;
    p->row_temperature = p->row_temperature == 2 ? 1 : p->row_temperature;
}

/* Multiples of an element, of the gradients that there are in the end. */
static void settle_addresses(flp_random_problem *p)
{
    if (p->misalignment % (p->dtype == FLP_F32 || p->grad_hidden == FLP_F32 || p->grad_weight == FLP_F32 ? 4 : 2) != 0)
        p->misalignment = 4;
}

void flp_random_problem_settle(flp_random_problem *p)
{
    if (p->dtype == FLP_NONE)
        p->dtype = FLP_F32;
    settle_shards(p);
    if (is_sum(p) || p->op == FLP_RANDOM_SCALE) {
        if (is_sum(p))
            settle_sum(p);
        else
            settle_scale(p);
        settle_addresses(p);
        return;
    }
    p->factor = 1;
    if (is_linear(p))
        settle_linear(p);
    else
        settle_logits(p);
    settle_values(p);
    settle_rows(p);
    settle_large(p);
    settle_addresses(p);
    if (p->dispatched)
        p->spare = 0;
}

/* ---- simpler ones ---- */

enum { CANDIDATES = 4 };

static double smaller(double value, double least, int candidate)
{
    const double values[CANDIDATES] = { least, floor(value / 2), floor(value - value / 8), value - 1 };

    return fmax(least, values[candidate]);
}

int flp_random_problem_simplify(const flp_random_problem *problem, int candidate, flp_random_problem *simpler)
{
    const flp_random_problem otherwise = flp_random_problem_default();
    const int field = candidate / CANDIDATES + 1, which = candidate % CANDIDATES;

    *simpler = *problem;
    if (field >= FIELDS)
        return 0;
    if (fields[field].kind == SIZE)
        set(simpler, field, smaller(get(problem, field), get(&otherwise, field), which));
    else if (fields[field].kind != KEEP && which == 0)
        set(simpler, field, get(&otherwise, field));
    else if (fields[field].kind == DTYPE && which == 1 && get(problem, field) != 0)
        set(simpler, field, FLP_F32);
    flp_random_problem_settle(simpler);
    return 1;
}
