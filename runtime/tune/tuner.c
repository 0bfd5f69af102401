/* Runs a tuning: compiles and checks candidates, times them in rounds, and ends within the budget. */
#include "tune/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tune/tuner_compiler.h"
#include "tune/tuner_field.h"

enum { DEFAULT_ROUNDS = 40, LEAST_ROUNDS = 8, MOST_ROUNDS = 500 };
/* The part of the budget in which candidates may be compiled. Even if most of them are untried by then, timing the others in the rest of the budget gains more
 * than waiting does. */
static const double compiling_share = 0.6;
/* While threads compile, a run may have to wait for a processor core. Rounds during that time only drop candidates that are far behind, and are then
 * discarded if there is time for others. */
static const double disturbed_loss = 0.05, loss = 0.01;

typedef struct {
    flp_tuner_field field;
    const flp_tuner_device *device;
    const flp_tuner_options *options;
    flp_tuner_result *result;
    int most_rounds, compiled;
    int *order;    /* [2 * count]: the order in which candidates are compiled, then that of a round */
    char *trusted; /* [count] 1: it was checked again when it got ahead */
    uint64_t random;
    double begun;         /* the device's clock */
    double check_seconds; /* of the longest check: as much is kept for the winner's last check */
    double round_seconds; /* of the last round; negative: there was none */
    int stopped;          /* result->ended says why */
} tuner;

static double now(const tuner *t)
{
    return t->device->now(t->device->self);
}

/* What is left of the budget; infinite where there is none. */
static double budget_left(const tuner *t)
{
    const double budget = t->options->budget_seconds;

    return budget > 0 ? budget - (now(t) - t->begun) : INFINITY;
}

static double seconds_left(const tuner *t)
{
    const double left = budget_left(t);
    const double rounds = t->round_seconds < 0 ? INFINITY : t->round_seconds * (t->most_rounds - t->field.samples.counting);

    if (isinf(left) && isinf(rounds))
        return -1;
    return fmax(0, fmin(left, rounds));
}

static int is_interrupted(const tuner *t)
{
    const flp_tuner_field *field = &t->field;
    flp_tuner_progress progress;

    if (!t->options->progress)
        return 0;
    progress = (flp_tuner_progress){
        .candidates = field->count,
        .compiled = t->compiled,
        .left = flp_tuner_field_left(field),
        .rounds = field->samples.counting,
        .best = field->best,
        .ratio = exp(flp_tuner_samples_compare(&field->samples, field->best, field->standard).median),
        .seconds_left = seconds_left(t),
    };
    return t->options->progress(t->options->data, &progress) != 0;
}

/* Is called before each piece of work. 1: the tuning ends, as it was interrupted or no more than `reserve` seconds of the budget are left. */
static int stops(tuner *t, double reserve)
{
    if (t->stopped)
        return 1;
    t->stopped = 1;
    if (is_interrupted(t))
        t->result->ended = FLP_TUNING_INTERRUPTED;
    else if (budget_left(t) <= reserve)
        t->result->ended = FLP_TUNING_BUDGET;
    else
        t->stopped = 0;
    return t->stopped;
}

/* The default must run: an error of it ends the tuning. */
static flp_status reject(tuner *t, int candidate, flp_status why, const char *reason)
{
    if (candidate == t->field.standard)
        return flp_status_fail(why, "the default: %s", reason);
    flp_tuner_field_reject(&t->field, candidate, reason);
    return FLP_OK;
}

static flp_status reject_by_message(tuner *t, int candidate, flp_status why)
{
    char reason[FLP_TUNER_REASON_BYTES];

    snprintf(reason, sizeof(reason), "%s", flp_error_message());
    return reject(t, candidate, why, reason);
}

static void say_running(const tuner *t, int candidate)
{
    if (t->options->running)
        t->options->running(t->options->data, candidate);
}

static flp_status check(tuner *t, int candidate)
{
    const double begun = now(t);
    flp_status status;

    say_running(t, candidate);
    status = t->device->check(t->device->self, candidate);
    say_running(t, -1);
    t->check_seconds = fmax(t->check_seconds, now(t) - begun);
    if (status != FLP_OK)
        return reject_by_message(t, candidate, status);
    t->field.figures[candidate].fate = FLP_CANDIDATE_LEFT;
    return FLP_OK;
}

static flp_status time_one(tuner *t, int candidate)
{
    double seconds = 0, clock_mhz = 0;
    flp_status status;

    say_running(t, candidate);
    status = t->device->time(t->device->self, candidate, &seconds, &clock_mhz);
    say_running(t, -1);
    if (status != FLP_OK)
        return reject_by_message(t, candidate, status);
    if (!(seconds > 0))
        return reject(t, candidate, FLP_INTERNAL, "its time was not above 0");
    flp_tuner_samples_add(&t->field.samples, candidate, seconds, clock_mhz);
    return FLP_OK;
}

/* splitmix64 */
static uint64_t draw(tuner *t)
{
    uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Writes the candidates that are left to order, in random order, and returns how many they are. */
static int shuffle(tuner *t, int *order)
{
    int count = 0;

    for (int i = 0; i < t->field.count; i++) {
        int place;

        if (t->field.figures[i].fate != FLP_CANDIDATE_LEFT)
            continue;
        place = (int)(draw(t) % (uint64_t)++count);
        order[count - 1] = order[place];
        order[place] = i;
    }
    return count;
}

/* Finds the best candidate. Others are dropped by comparison with it, so it is checked again first: a kernel that is wrong only now and then may have passed
 * its first check. */
static flp_status find_best(tuner *t)
{
    flp_status status = FLP_OK;

    for (;;) {
        const int best = flp_tuner_field_find_best(&t->field);

        if (status != FLP_OK || best == t->field.standard || t->trusted[best] || stops(t, 0))
            return status;
        t->trusted[best] = 1;
        status = check(t, best);
    }
}

/* Times each candidate that is left once. A round that the end of the budget cuts short keeps the times that it has. */
static flp_status time_round(tuner *t, double drop_loss)
{
    int *order = t->order + t->field.count, count = shuffle(t, order);
    const double begun = now(t);
    flp_status status = flp_tuner_samples_begin_round(&t->field.samples);

    for (int i = 0; i < count && status == FLP_OK && !stops(t, t->check_seconds); i++)
        status = time_one(t, order[i]);
    t->round_seconds = now(t) - begun;
    if (status == FLP_OK)
        status = find_best(t);
    if (status == FLP_OK)
        flp_tuner_field_drop(&t->field, drop_loss);
    return status;
}

/* One step while candidates are compiled: checks one that is done, or else times a round, or waits if there are not two candidates to time. */
static flp_status compile_step(tuner *t, flp_tuner_compiler *compiler)
{
    const int idle = flp_tuner_field_left(&t->field) < 2;
    flp_tuner_compiled compiled;

    if (!flp_tuner_compiler_take(compiler, idle, &compiled))
        return idle ? FLP_OK : time_round(t, disturbed_loss);
    t->compiled++;
    if (compiled.status != FLP_OK)
        return reject(t, compiled.candidate, compiled.status, compiled.reason);
    return stops(t, 0) ? FLP_OK : check(t, compiled.candidate);
}

static flp_status compile_all(tuner *t)
{
    flp_tuner_compiler *compiler;
    flp_status status = flp_tuner_compiler_create(t->device, t->order, t->field.count, t->options->jobs, &compiler);

    while (status == FLP_OK && flp_tuner_compiler_busy(compiler) && !stops(t, 0)) {
        if (t->options->budget_seconds > 0 && now(t) - t->begun > compiling_share * t->options->budget_seconds)
            flp_tuner_compiler_cease(compiler);
        status = compile_step(t, compiler);
    }
    flp_tuner_compiler_destroy(compiler);
    return status;
}

static flp_status time_rounds(tuner *t)
{
    const flp_tuner_samples *samples = &t->field.samples;
    flp_status status = FLP_OK;

    while (status == FLP_OK && !stops(t, t->check_seconds)) {
        if (samples->counting >= t->most_rounds || samples->rounds >= 2 * t->most_rounds) {
            t->result->ended = flp_tuner_field_settled(&t->field) ? FLP_TUNING_SETTLED : FLP_TUNING_ROUNDS;
            return FLP_OK;
        }
        status = time_round(t, loss);
        if (samples->counting >= LEAST_ROUNDS && flp_tuner_field_settled(&t->field)) {
            t->result->ended = FLP_TUNING_SETTLED;
            return status;
        }
    }
    return status;
}

/* Chooses the winner and checks it once more. If that fails, chooses again. */
static flp_status choose(tuner *t)
{
    flp_status status = FLP_OK;

    do {
        t->result->winner = flp_tuner_field_choose(&t->field);
        if (t->result->winner == t->field.standard)
            return FLP_OK;
        status = check(t, t->result->winner);
    } while (status == FLP_OK && t->field.figures[t->result->winner].fate != FLP_CANDIDATE_LEFT);
    return status;
}

/* 1: the rounds that were timed during the compilation can be discarded, because there is time for enough others. Otherwise they count, and what is left of the
 * time adds to them. */
static int has_time_anew(const tuner *t)
{
    const int rounds = t->most_rounds < LEAST_ROUNDS ? t->most_rounds : LEAST_ROUNDS;

    return budget_left(t) > t->check_seconds + rounds * fmax(0, t->round_seconds);
}

static flp_status run(tuner *t)
{
    flp_status status = compile_all(t);

    if (status == FLP_OK && !t->stopped && has_time_anew(t))
        flp_tuner_field_begin_anew(&t->field);
    if (status == FLP_OK)
        status = time_rounds(t);
    return status == FLP_OK ? choose(t) : status;
}

flp_status flp_tuner_run(const flp_tuner_candidate *candidates, int count, const flp_tuner_device *device, const flp_tuner_options *options,
                         flp_tuner_result *result)
{
    tuner t = { .device = device, .options = options, .result = result, .random = options->seed, .round_seconds = -1 };
    flp_status status;

    *result = (flp_tuner_result){ 0 };
    t.most_rounds = options->rounds <= 0 ? DEFAULT_ROUNDS : options->rounds < MOST_ROUNDS ? options->rounds : MOST_ROUNDS;
    status = flp_tuner_field_create(candidates, count, &t.field);
    result->figures = t.field.figures;
    t.order = malloc(2 * (size_t)count * sizeof(*t.order));
    t.trusted = calloc((size_t)count, 1);
    if (status == FLP_OK && (!t.order || !t.trusted))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for %d candidates", count);
    if (status == FLP_OK) {
        t.begun = now(&t);
        flp_tuner_field_order(&t.field, t.order);
        status = run(&t);
        result->compiled = t.compiled;
        result->rounds = t.field.samples.counting;
        result->repeated = t.field.samples.rounds - t.field.samples.counting;
        result->spent_seconds = now(&t) - t.begun;
    }
    free(t.order);
    free(t.trusted);
    flp_tuner_field_free(&t.field);
    return status;
}

void flp_tuner_result_free(flp_tuner_result *result)
{
    free(result->figures);
    *result = (flp_tuner_result){ 0 };
}
