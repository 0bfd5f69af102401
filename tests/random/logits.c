/* logits_logp and its backward in the random tester: the rows of row.h, whose logits are given exactly. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random/inputs.h"
#include "random/judge.h"
#include "random/row.h"
#include "random/suite.h"
#include "reference.h"
#include "base/dtype.h"

typedef struct {
    const flp_random_problem *problem;
    flp_logits_logp_problem forward;
    flp_logits_logp_backward_problem backward;
    flp_random_memory memory;
    int64_t all_rows, results; /* of logits and target; of what is written */
    double *logit;             /* [all_rows][v] */
    flp_random_row *row;       /* [all_rows] */
    int64_t bad_count, bad_first;
} random_logits;

static int is_backward(const flp_random_problem *p)
{
    return p->op == FLP_RANDOM_LOGITS_BACKWARD;
}

static void *at(const random_logits *logits, flp_random_role role)
{
    return flp_random_memory_at(&logits->memory, role);
}

static void ask(random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    const flp_backend backend = p->portable ? FLP_BACKEND_PORTABLE : FLP_BACKEND_AUTO;
    const flp_dtype target = p->target_i32 ? FLP_I32 : FLP_I64;
    const int alignment = p->misalignment & -p->misalignment;

    logits->forward = (flp_logits_logp_problem){ .dtype = (flp_dtype)p->dtype,
                                                 .rows = p->n + p->spare,
                                                 .vocab = p->v,
                                                 .logits_stride = p->v + p->hidden_gap,
                                                 .pointer_alignment = alignment,
                                                 .target_dtype = target,
                                                 .softcap = p->softcap,
                                                 .argmax = p->argmax,
                                                 .entropy = p->entropy,
                                                 .backend = backend };
    logits->backward = (flp_logits_logp_backward_problem){ .dtype = (flp_dtype)p->dtype,
                                                           .rows = p->n + p->spare,
                                                           .vocab = p->v,
                                                           .logits_stride = p->v + p->hidden_gap,
                                                           .grad_stride = p->v + p->grad_hidden_gap,
                                                           .pointer_alignment = alignment,
                                                           .target_dtype = target,
                                                           .softcap = p->softcap,
                                                           .entropy = p->entropy,
                                                           .fused = p->fused,
                                                           .backend = backend };
    logits->all_rows = flp_random_problem_rows(p);
    logits->results = p->indexed == 2 ? logits->all_rows : p->n;
}

/* ---- inputs ---- */

static double logit_value(const flp_random_problem *p, int64_t v, int64_t target, flp_random_numbers *numbers)
{
    double value = 2 * p->scale * flp_random_numbers_normal(numbers);

    if (p->values == FLP_RANDOM_INTEGERS)
        value = (double)flp_random_numbers_below(numbers, 5) - 2;
    if (p->values == FLP_RANDOM_ZEROS)
        value = 0;
    return flp_random_shaped(p, v, value) + (p->likely && v == target ? p->margin : 0);
}

static void fill_logits(const random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_HIDDEN), rows = flp_random_stream(p, FLP_RANDOM_ROLES);

    for (int64_t i = 0; i < logits->all_rows; i++) {
        const int64_t target = flp_random_target(p, &logits->memory, i), place = flp_random_numbers_below(&rows, p->v);
        const int broken = flp_random_numbers_chance(&rows, p->broken);
        const double bad = flp_random_numbers_chance(&rows, 50) && p->softcap == 0 ? INFINITY : NAN;
        for (int64_t v = 0; v < p->v; v++) {
            double value = logit_value(p, v, target, &numbers);
            if (broken && v == place)
                value = bad;
            if (p->ignored_nan && !flp_random_has_part(p, &logits->memory, i))
                value = NAN;
            flp_random_encode(p->dtype, value, at(logits, FLP_RANDOM_HIDDEN), i * logits->forward.logits_stride + v);
        }
    }
}

/* In no order, without repetition, for n + 2 has no factor in common with 2 n + 3 rows; some outside. */
static void fill_index(const random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    const int64_t outside[] = { -1, logits->all_rows, INT64_MIN, (1ll << 32) + 1, INT64_MAX }, step = p->n + 2;
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_ROW_INDEX);
    int64_t *index = at(logits, FLP_RANDOM_ROW_INDEX);

    for (int64_t i = 0; index && i < p->n; i++) {
        index[i] = (i * step + 2) % logits->all_rows;
        if (p->bad_indices && flp_random_numbers_chance(&numbers, 25))
            index[i] = outside[flp_random_numbers_below(&numbers, 5)];
    }
}

static int64_t source_of(const random_logits *logits, int64_t i)
{
    const int64_t *index = at(logits, FLP_RANDOM_ROW_INDEX), source = index ? index[i] : i;

    return source >= 0 && source < logits->all_rows ? source : -1;
}

static int64_t place_of(const random_logits *logits, int64_t i)
{
    return logits->problem->indexed == 2 ? source_of(logits, i) : i;
}

static void fill_upstream(const random_logits *logits, flp_random_role role)
{
    flp_random_numbers numbers = flp_random_stream(logits->problem, role);
    float *to = at(logits, role);

    for (int64_t i = 0; to && i < logits->results; i++)
        to[i] = flp_random_upstream_value(logits->problem, role, i, logits->results, &numbers);
}

static void add_results(random_logits *logits, flp_random_role role, int wanted, int is_input)
{
    if (!wanted)
        return;
    if (is_input)
        flp_random_memory_add(&logits->memory, role, logits->results * 4, 0, FLP_RANDOM_INPUT_FILL);
    else
        flp_random_memory_add_output(&logits->memory, role, 1, logits->results, logits->results, 4, 0, flp_random_poison(logits->problem));
}

static void add_buffers(random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    const int backward = is_backward(p), writes = !backward || p->fused, element = flp_dtype_bytes(p->dtype);
    flp_random_buffer *given = &logits->memory.buffer[FLP_RANDOM_HIDDEN];

    flp_random_memory_add_output(&logits->memory, FLP_RANDOM_HIDDEN, logits->all_rows, p->v, logits->forward.logits_stride, element, p->misalignment,
                                 FLP_RANDOM_INPUT_FILL);
    if (!p->in_place)
        given->rows = given->columns = 0;
    flp_random_memory_add(&logits->memory, FLP_RANDOM_TARGET, logits->all_rows * (p->target_i32 ? 4 : 8), 0, FLP_RANDOM_INPUT_FILL);
    if (p->row_temperature)
        flp_random_memory_add(&logits->memory, FLP_RANDOM_ROW_TEMPERATURE, logits->all_rows * 4, 0, FLP_RANDOM_INPUT_FILL);
    if (p->indexed)
        flp_random_memory_add(&logits->memory, FLP_RANDOM_ROW_INDEX, p->n * 8, 0, FLP_RANDOM_INPUT_FILL);
    add_results(logits, FLP_RANDOM_G_LOGP, backward, 1);
    add_results(logits, FLP_RANDOM_G_LSE, p->g_lse, 1);
    add_results(logits, FLP_RANDOM_G_ENTROPY, p->g_entropy, 1);
    add_results(logits, FLP_RANDOM_GIVEN_LSE, backward && !p->fused, 1);
    add_results(logits, FLP_RANDOM_GIVEN_LOGP, p->give_logp, 1);
    add_results(logits, FLP_RANDOM_GIVEN_ENTROPY, backward && !p->fused && p->entropy, 1);
    add_results(logits, FLP_RANDOM_LOGP, writes && !(p->outputs & 1 && p->fused), 0);
    add_results(logits, FLP_RANDOM_LSE, writes && !(p->outputs & 2), 0);
    add_results(logits, FLP_RANDOM_ENTROPY, writes && p->entropy && !(p->outputs & 4), 0);
    add_results(logits, FLP_RANDOM_ARGMAX, p->argmax && !(p->outputs & 8), 0);
    if (backward && !p->in_place)
        flp_random_memory_add_output(&logits->memory, FLP_RANDOM_GRAD_HIDDEN, logits->results, p->v, logits->backward.grad_stride, element, p->misalignment,
                                     flp_random_poison(p));
}

/* ---- truth ---- */

static flp_random_row_inputs row_inputs(const random_logits *logits, int64_t source)
{
    const flp_random_problem *p = logits->problem;
    const int64_t target = flp_random_is_ignored(p, &logits->memory, source) ? -1 : flp_random_target(p, &logits->memory, source);

    return (flp_random_row_inputs){ .logit = logits->logit + source * p->v,
                                    .vocab = p->v,
                                    .target = target >= 0 && target < p->v ? target : -1,
                                    .softcap = p->softcap,
                                    .temperature = flp_random_temperature(p, &logits->memory, source) };
}

static double *allocate(int64_t count)
{
    double *numbers = calloc((size_t)(count > 0 ? count : 1), sizeof(double));

    if (!numbers)
        abort();
    return numbers;
}

static void compute_rows(random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    double *z = allocate(p->v), *e = allocate(p->v);

    logits->logit = allocate(logits->all_rows * p->v);
    logits->row = calloc((size_t)logits->all_rows + 1, sizeof(*logits->row));
    if (!logits->row)
        abort();
    for (int64_t i = 0; i < logits->all_rows; i++) {
        const flp_random_row_inputs inputs = row_inputs(logits, i);
        for (int64_t v = 0; v < p->v; v++)
            logits->logit[i * p->v + v] = flp_reference_decode((flp_dtype)p->dtype, at(logits, FLP_RANDOM_HIDDEN), i * logits->forward.logits_stride + v);
        flp_random_row_compute(&inputs, z, e, &logits->row[i]);
    }
    free(z);
    free(e);
}

/* Bad targets, and what the backward is given. */
static void finish_rows(random_logits *logits)
{
    const flp_random_problem *p = logits->problem;
    float *lse = at(logits, FLP_RANDOM_GIVEN_LSE), *logp = at(logits, FLP_RANDOM_GIVEN_LOGP), *entropy = at(logits, FLP_RANDOM_GIVEN_ENTROPY);

    logits->bad_first = -1;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t source = source_of(logits, i), place = place_of(logits, i);
        const int ignored = source >= 0 && flp_random_is_ignored(p, &logits->memory, source);
        if (!ignored && (source < 0 || !flp_random_has_part(p, &logits->memory, source)) && logits->bad_count++ == 0)
            logits->bad_first = i;
        if (place >= 0 && source >= 0 && lse)
            lse[place] = (float)logits->row[source].lse;
        if (place >= 0 && source >= 0 && logp)
            logp[place] = (float)logits->row[source].logp;
        if (place >= 0 && source >= 0 && entropy)
            entropy[place] = (float)logits->row[source].entropy;
    }
}

static void *make(const flp_random_problem *problem)
{
    random_logits *logits = calloc(1, sizeof(*logits));

    if (!logits)
        abort();
    logits->problem = problem;
    ask(logits);
    add_buffers(logits);
    flp_random_fill_targets(problem, &logits->memory, logits->all_rows);
    flp_random_fill_temperatures(problem, &logits->memory, logits->all_rows);
    fill_logits(logits);
    fill_index(logits);
    compute_rows(logits);
    finish_rows(logits);
    fill_upstream(logits, FLP_RANDOM_G_LOGP);
    fill_upstream(logits, FLP_RANDOM_G_LSE);
    fill_upstream(logits, FLP_RANDOM_G_ENTROPY);
    flp_random_memory_seal(&logits->memory);
    return logits;
}

static void free_logits(void *state)
{
    random_logits *logits = state;

    flp_random_memory_free(&logits->memory);
    free(logits->logit);
    free(logits->row);
    free(logits);
}

/* ---- what is right ---- */

typedef struct {
    const random_logits *logits;
    char *message;
    size_t bytes;
} judge;

static int reject(const judge *j, const char *name, int64_t i, double got, double want, double bound)
{
    snprintf(j->message, j->bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, i, got, want, bound);
    return 0;
}

/* source -1: an index that names no row. */
static int check_row(const judge *j, int64_t place, int64_t source)
{
    const random_logits *logits = j->logits;
    const flp_random_row none = { .lse = NAN, .logp = NAN, .entropy = NAN, .argmax = -1 }, *row = source >= 0 ? &logits->row[source] : &none;
    const float *logp = at(logits, FLP_RANDOM_LOGP), *lse = at(logits, FLP_RANDOM_LSE), *entropy = at(logits, FLP_RANDOM_ENTROPY);
    const int32_t *argmax = at(logits, FLP_RANDOM_ARGMAX);
    const int ignored = source >= 0 && flp_random_is_ignored(logits->problem, &logits->memory, source);
    const double want = ignored ? 0 : source >= 0 && flp_random_has_part(logits->problem, &logits->memory, source) ? row->logp : NAN;

    if (logp && !flp_random_is_right("logits: logp", FLP_F32, logp[place], want, ignored ? 0 : row->logp_error))
        return reject(j, "logp", place, logp[place], want, row->logp_error);
    if (logp && logp[place] > 0)
        return reject(j, "logp above 0", place, logp[place], want, row->logp_error);
    if (lse && !flp_random_is_right("logits: lse", FLP_F32, lse[place], row->lse, row->lse_error))
        return reject(j, "lse", place, lse[place], row->lse, row->lse_error);
    if (entropy && !flp_random_is_right("logits: entropy", FLP_F32, entropy[place], row->entropy, row->entropy_error))
        return reject(j, "entropy", place, entropy[place], row->entropy, row->entropy_error);
    if (entropy && entropy[place] < 0)
        return reject(j, "entropy below 0", place, entropy[place], row->entropy, row->entropy_error);
    if (argmax && (argmax[place] < 0 || (source >= 0 && argmax[place] >= logits->problem->v) || (row->argmax >= 0 && argmax[place] != row->argmax)))
        return reject(j, "argmax", place, argmax[place], (double)row->argmax, 0);
    return 1;
}

static flp_random_row_upstream upstream_of(const random_logits *logits, int64_t place)
{
    const float *g = at(logits, FLP_RANDOM_G_LOGP), *g_lse = at(logits, FLP_RANDOM_G_LSE), *g_entropy = at(logits, FLP_RANDOM_G_ENTROPY);
    const flp_random_problem *p = logits->problem;

    return (flp_random_row_upstream){ .logp = g[place],
                                      .lse = g_lse ? g_lse[place] : 0,
                                      .entropy = g_entropy ? g_entropy[place] : 0,
                                      .bare_lse = !p->fused,
                                      .bare_target = !p->fused && !p->give_logp };
}

/* z, e, derivative, error: room for a row. */
static int check_gradient_row(const judge *j, int64_t place, int64_t source, double *room)
{
    const random_logits *logits = j->logits;
    const flp_random_problem *p = logits->problem;
    double *z = room, *e = room + p->v, *derivative = room + 2 * p->v, *error = room + 3 * p->v;
    const void *gradients = at(logits, p->in_place ? FLP_RANDOM_HIDDEN : FLP_RANDOM_GRAD_HIDDEN);
    const int has_part = source >= 0 && flp_random_has_part(p, &logits->memory, source);
    flp_random_row row;

    memset(room, 0, (size_t)p->v * 4 * sizeof(*room));
    if (has_part) {
        const flp_random_row_inputs inputs = row_inputs(logits, source);
        const flp_random_row_upstream g = upstream_of(logits, place);
        flp_random_row_compute(&inputs, z, e, &row);
        flp_random_row_differentiate(&inputs, &row, z, e, &g, derivative, error);
    }
    for (int64_t v = 0; v < p->v; v++) {
        const double got = flp_reference_decode((flp_dtype)p->dtype, gradients, place * logits->backward.grad_stride + v);
        const int right = isfinite(derivative[v]) ? !(error[v] < INFINITY) || flp_random_is_right(p->dtype == FLP_F32 ? "grad_logits" : "grad_logits, 16 bits",
                                                                                                  p->dtype, got, derivative[v], error[v])
                                                  : !isfinite(got);
        if (!right)
            return reject(j, "grad_logits", place * p->v + v, got, derivative[v], error[v]);
    }
    return 1;
}

static int check_rows(const judge *j)
{
    const random_logits *logits = j->logits;
    double *room = allocate(4 * logits->problem->v);
    int done = 1;

    for (int64_t i = 0; done && i < logits->problem->n; i++) {
        const int64_t place = place_of(logits, i), source = source_of(logits, i);
        if (place < 0)
            continue;
        done = check_row(j, place, source) && (!is_backward(logits->problem) || check_gradient_row(j, place, source, room));
    }
    free(room);
    return done;
}

static int is_unchanged(const flp_random_buffer *buffer, int64_t row)
{
    const size_t at = buffer->offset + (size_t)(row * (buffer->rows > 1 ? buffer->stride : 1) * buffer->element);

    return !buffer->rows || memcmp(buffer->base + at, buffer->before + at, (size_t)((buffer->rows > 1 ? buffer->columns : 1) * buffer->element)) == 0;
}

/* Scattered results leave the rows alone that the call does not name. */
static int check_untouched(const judge *j)
{
    static const flp_random_role roles[] = {
        FLP_RANDOM_LOGP, FLP_RANDOM_LSE, FLP_RANDOM_ENTROPY, FLP_RANDOM_ARGMAX, FLP_RANDOM_GRAD_HIDDEN, FLP_RANDOM_HIDDEN
    };
    const random_logits *logits = j->logits;
    char *written = calloc((size_t)logits->results + 1, 1);
    int done = 1;

    if (!written)
        abort();
    for (int64_t i = 0; i < logits->problem->n; i++)
        if (place_of(logits, i) >= 0)
            written[place_of(logits, i)] = 1;
    for (int64_t i = 0; i < logits->results && logits->results > 1; i++)
        for (size_t r = 0; done && !written[i] && r < sizeof(roles) / sizeof(*roles); r++)
            if (!is_unchanged(&logits->memory.buffer[roles[r]], i))
                done = reject(j, "untouched row", i, 0, 0, 0);
    free(written);
    return done;
}

static int check_target_errors(const judge *j, flp_plan *plan)
{
    int64_t count = -1, first = -1;

    if (!plan)
        return 1;
    if (flp_plan_target_errors(plan, &count, &first) == FLP_OK && count == j->logits->bad_count && first == j->logits->bad_first)
        return 1;
    snprintf(j->message, j->bytes, "bad targets: got %" PRId64 ", the first in row %" PRId64 ", wanted %" PRId64 ", %" PRId64, count, first,
             j->logits->bad_count, j->logits->bad_first);
    return 0;
}

/* ---- execution ---- */

static unsigned flags_of(const flp_random_problem *p)
{
    return (p->check_targets ? FLP_CHECK_TARGETS : 0u) | (p->ignores ? FLP_IGNORE_INDEX : 0u) | (p->indexed == 2 ? FLP_SCATTER : 0u);
}

static flp_status execute_forward(const random_logits *logits, const flp_random_machine *machine, flp_plan *plan)
{
#define AT(role) flp_random_machine_at(machine, &logits->memory, role)
    const flp_random_problem *p = logits->problem;
    const flp_logits_logp_args args = { .rows = p->n,
                                        .logits = AT(FLP_RANDOM_HIDDEN),
                                        .target = AT(FLP_RANDOM_TARGET),
                                        .row_index = AT(FLP_RANDOM_ROW_INDEX),
                                        .logits_rows = p->indexed ? logits->all_rows : 0,
                                        .ignore_index = p->ignore_index,
                                        .temperature = p->temperature,
                                        .row_temperature = AT(FLP_RANDOM_ROW_TEMPERATURE),
                                        .logp = AT(FLP_RANDOM_LOGP),
                                        .lse = AT(FLP_RANDOM_LSE),
                                        .entropy = AT(FLP_RANDOM_ENTROPY),
                                        .argmax = AT(FLP_RANDOM_ARGMAX),
                                        .workspace = AT(FLP_RANDOM_WORKSPACE),
                                        .workspace_bytes = logits->memory.buffer[FLP_RANDOM_WORKSPACE].data_bytes,
                                        .flags = flags_of(p) };

    return plan ? flp_logits_logp_execute(plan, &args) : flp_logits_logp(machine->context, &logits->forward, &args);
}

static flp_status execute_backward(const random_logits *logits, const flp_random_machine *machine, flp_plan *plan)
{
    const flp_random_problem *p = logits->problem;
    const flp_logits_logp_backward_args args = { .rows = p->n,
                                                 .logits = AT(FLP_RANDOM_HIDDEN),
                                                 .target = AT(FLP_RANDOM_TARGET),
                                                 .row_index = AT(FLP_RANDOM_ROW_INDEX),
                                                 .logits_rows = p->indexed ? logits->all_rows : 0,
                                                 .ignore_index = p->ignore_index,
                                                 .temperature = p->temperature,
                                                 .row_temperature = AT(FLP_RANDOM_ROW_TEMPERATURE),
                                                 .g_logp = AT(FLP_RANDOM_G_LOGP),
                                                 .g_lse = AT(FLP_RANDOM_G_LSE),
                                                 .g_entropy = AT(FLP_RANDOM_G_ENTROPY),
                                                 .lse = AT(p->fused ? FLP_RANDOM_LSE : FLP_RANDOM_GIVEN_LSE),
                                                 .entropy = AT(p->fused ? FLP_RANDOM_ENTROPY : FLP_RANDOM_GIVEN_ENTROPY),
                                                 .logp = AT(p->fused ? FLP_RANDOM_LOGP : FLP_RANDOM_GIVEN_LOGP),
                                                 .grad_logits = AT(p->in_place ? FLP_RANDOM_HIDDEN : FLP_RANDOM_GRAD_HIDDEN),
                                                 .workspace = AT(FLP_RANDOM_WORKSPACE),
                                                 .workspace_bytes = logits->memory.buffer[FLP_RANDOM_WORKSPACE].data_bytes,
                                                 .flags = flags_of(p) };
#undef AT

    return plan ? flp_logits_logp_backward_execute(plan, &args) : flp_logits_logp_backward(machine->context, &logits->backward, &args);
}

static int run_once(random_logits *logits, const flp_random_machine *machine, flp_plan *plan, char *message, size_t bytes)
{
    const judge j = { logits, message, bytes };
    flp_status status;
    int done;

    if (!machine->place(machine, &logits->memory, message, bytes))
        return 0;
    status = is_backward(logits->problem) ? execute_backward(logits, machine, plan) : execute_forward(logits, machine, plan);
    snprintf(message, bytes, "%s", flp_error_message());
    done = machine->fetch(machine, &logits->memory, message, bytes) && status == FLP_OK && flp_random_memory_check(&logits->memory, message, bytes) &&
           check_rows(&j) && check_untouched(&j) && check_target_errors(&j, plan);
    machine->release(machine, &logits->memory);
    return done;
}

static flp_status create_plan(const random_logits *logits, const flp_random_machine *machine, flp_plan **plan)
{
    return is_backward(logits->problem) ? flp_logits_logp_backward_plan_create(machine->context, &logits->backward, plan)
                                        : flp_logits_logp_plan_create(machine->context, &logits->forward, plan);
}

static int run_logits(void *state, const flp_random_machine *machine, char *message, size_t bytes)
{
    random_logits *logits = state;
    const flp_random_problem *p = logits->problem;
    flp_plan *plan = NULL;
    flp_status status = FLP_OK;
    int done = 1;

    if (!p->dispatched)
        status = create_plan(logits, machine, &plan);
    if (status != FLP_OK) {
        snprintf(message, bytes, "plan: %s", flp_error_message());
        return 0;
    }
    flp_random_memory_restore(&logits->memory);
    if (plan && !p->shared_scratch)
        flp_random_memory_add_workspace(&logits->memory, flp_plan_workspace_bytes(plan, p->n), flp_random_poison(p));
    for (int i = 0; done && i <= p->repeat; i++) {
        machine->begin(machine, (uint64_t)(p->data + i));
        done = run_once(logits, machine, plan, message, bytes);
        if (done && i < p->repeat)
            flp_random_memory_restore(&logits->memory);
    }
    if (done && plan && flp_random_answered)
        flp_random_answered(plan, &logits->memory);
    flp_random_memory_remove(&logits->memory, FLP_RANDOM_WORKSPACE);
    flp_plan_destroy(plan);
    return done;
}

static void warm(void *state, const flp_random_machine *machine)
{
    random_logits *logits = state;
    flp_plan *plan = NULL;

    if (create_plan(logits, machine, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

const flp_random_family flp_random_logits_family = { make, warm, run_logits, free_logits };
