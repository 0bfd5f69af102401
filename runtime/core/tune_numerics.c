/* Chooses the arithmetic of a problem's rows. */
#include "core/tune_numerics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/calibration.h"
#include "core/row_buckets.h"
#include "core/plan.h"
#include "core/tuned.h"

enum { DEFAULT_LIMIT = 12, MOST_ROWS = FLP_TUNE_NUMERICS_MOST, MOST_TRIES = 2 };
/* The ratio of times that a change of a row's bits must stay below. */
static const double worthwhile_ratio = 0.99;

typedef struct {
    flp_role role;                                       /* whose arithmetic it is; FLP_ROLES: not a kernel's, but a width of chunks */
    char tuning[FLP_TUNING_BYTES];                       /* the items that decide on it; "": the generator's own, the first of its role */
    char tries[MOST_ROWS][MOST_TRIES][FLP_TUNING_BYTES]; /* the tunings to be timed, for each number of rows */
    int timed;                                           /* for how many numbers of rows it was timed */
    double log_ratios;                                   /* the sum over these of log(its time / the default's) */
} arithmetic;

struct flp_tune_numerics {
    flp_context *context;
    const flp_operator_calls *calls;
    char text[FLP_PROBLEM_TEXT_BYTES];   /* without rows */
    char wanted[FLP_PLAN_KERNELS_BYTES]; /* what the generator is asked for the last number of rows */
    flp_wanted_kernels kernels;
    flp_problem_storage problems[MOST_ROWS]; /* normal */
    int rows, count;
    arithmetic *all; /* [count] */
};

const char *flp_tune_numerics_text(const flp_tune_numerics *numerics)
{
    return numerics->text;
}

int flp_tune_numerics_count(const flp_tune_numerics *numerics)
{
    return numerics->rows;
}

const void *flp_tune_numerics_problem(const flp_tune_numerics *numerics, int number)
{
    return &numerics->problems[number];
}

int flp_tune_numerics_choices(const flp_tune_numerics *numerics)
{
    return numerics->count;
}

/* ---- what is offered ---- */

static flp_status append_arithmetic(flp_tune_numerics *numerics, const char *role, const char *tuning)
{
    arithmetic *more = realloc(numerics->all, (size_t)(numerics->count + 1) * sizeof(*more));

    if (!more)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what may decide on a row's bits");
    numerics->all = more;
    more += numerics->count++;
    memset(more, 0, sizeof(*more));
    more->role = flp_role_find(role);
    snprintf(more->tuning, sizeof(more->tuning), "%s", strcmp(tuning, "-") == 0 ? "" : tuning);
    return FLP_OK;
}

static void append_try(flp_tune_numerics *numerics, const char *number, const char *tuning)
{
    const int rows = atoi(number);

    for (int i = 0; numerics->count && rows < numerics->rows && i < MOST_TRIES; i++) {
        char *text = numerics->all[numerics->count - 1].tries[rows][i];

        if (*text)
            continue;
        snprintf(text, FLP_TUNING_BYTES, "%s", tuning);
        return;
    }
}

/* Lines as flp_generator_arithmetics gives them. */
static flp_status read_lines(flp_tune_numerics *numerics, char *lines)
{
    char *rest = NULL;
    flp_status status = FLP_OK;

    for (char *line = strtok_r(lines, "\n", &rest); status == FLP_OK && line; line = strtok_r(NULL, "\n", &rest)) {
        char *words = NULL;
        const char *kind = strtok_r(line, " ", &words), *first = strtok_r(NULL, " ", &words), *tuning = strtok_r(NULL, " ", &words);

        if (!tuning)
            status = flp_status_fail(FLP_INTERNAL, "arithmetics: the generator gave no whole answer");
        else if (strcmp(kind, "arithmetic") == 0)
            status = append_arithmetic(numerics, first, tuning);
        else
            append_try(numerics, first, tuning);
    }
    return status;
}

/* Fills in the problem of each number of rows, and appends what the generator is asked for it, one a line. */
static flp_status list_problems(flp_tune_numerics *numerics, const void *problem, flp_text *lines)
{
    const flp_operator *op = numerics->calls->op;
    flp_problem_storage normal;
    flp_status status = flp_problem_normalize(op, problem, &normal);
    const int64_t most = status == FLP_OK ? flp_row_buckets_rows(*flp_operator_rows(op, &normal)) : 0;

    for (int64_t rows = 1; status == FLP_OK && rows <= most && numerics->rows < MOST_ROWS; rows++) {
        rows = flp_row_buckets_rows(rows);
        *flp_operator_rows(op, &normal) = rows;
        numerics->problems[numerics->rows++] = normal;
        status = flp_plan_write_wanted(numerics->context, op, &normal, numerics->wanted);
        flp_text_append(lines, "%s\n", numerics->wanted);
    }
    if (status == FLP_OK)
        status = flp_tuned_problem_text(op, &normal, numerics->text);
    if (status == FLP_OK && lines->failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what may decide on a row's bits");
    return status;
}

static flp_status set_up(flp_tune_numerics *numerics, const void *problem, int limit, flp_text *problems)
{
    char calibration[FLP_RECORD_TUNING_BYTES], with_rows[FLP_PROBLEM_TEXT_BYTES], *lines = NULL;
    flp_wanted_kernels wanted;
    flp_selection selection;
    flp_model_facts model;
    flp_device device;
    flp_status status = list_problems(numerics, problem, problems);

    if (status == FLP_OK)
        status = flp_device_current(&device);
    if (status == FLP_OK)
        status = flp_plan_foresee(numerics->context, numerics->calls->op, &numerics->problems[numerics->rows - 1], &selection);
    if (status == FLP_OK && !selection.count)
        status = flp_status_fail(FLP_NO_VARIANT, "the CPU path answers %s, which has nothing to tune", numerics->text);
    if (status != FLP_OK)
        return status;
    strcpy(with_rows, numerics->text);
    flp_tuned_without_rows(with_rows, numerics->text);
    numerics->kernels = (flp_wanted_kernels){ numerics->wanted, device.facts.compute_capability, selection.path[0] == 's' ? "sm_90a" : "portable", "" };
    wanted = numerics->kernels;
    wanted.problem = problems->data;
    flp_calibration_facts(numerics->context, &device, &model, calibration);
    status = flp_generator_arithmetics(flp_kernel_store_generator(numerics->context->store), &wanted, &model, limit ? limit : DEFAULT_LIMIT, &lines);
    if (status == FLP_OK)
        status = read_lines(numerics, lines);
    free(lines);
    return status;
}

/* Appends the chunk widths that one number of rows can have: an empty line, then one a line. */
static flp_status list_widths(const flp_tune_numerics *numerics, int number, int64_t memory_bytes, flp_text *lines)
{
    const flp_operator *op = numerics->calls->op;
    const int64_t budget = flp_problem_memory_budget(op, &numerics->problems[number]);
    const int64_t most = budget > 0 ? budget : memory_bytes > 0 ? memory_bytes : FLP_PLAN_OWN_BYTES;

    flp_text_append(lines, "\n");
    return flp_plan_offer(numerics->context, op, &numerics->problems[number], 1, most, lines);
}

/* Keeps only those lines of `all` that are in `others`, too. */
static void keep_common(flp_text *all, const char *others)
{
    flp_text kept = { .data = NULL };
    char *rest = NULL, line[FLP_TUNING_BYTES + 2];

    flp_text_append(&kept, "\n");
    for (char *at = strtok_r(all->data, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        snprintf(line, sizeof(line), "\n%s\n", at);
        if (strstr(others, line))
            flp_text_append(&kept, "%s\n", at);
    }
    flp_text_free(all);
    *all = kept;
}

/* Appends an arithmetic that is a chunk width. The kernels keep their own arithmetic, so each number of rows tries the width alone. */
static flp_status append_width(flp_tune_numerics *numerics, const char *tuning)
{
    char number[16];
    flp_status status = append_arithmetic(numerics, "chunks", tuning);

    for (int i = 0; status == FLP_OK && strcmp(tuning, "-") != 0 && i < numerics->rows; i++) {
        snprintf(number, sizeof(number), "%d", i);
        append_try(numerics, number, tuning);
    }
    return status;
}

/* Adds, after the kernels' arithmetics, the chunk widths that all numbers of rows can have. They are few, and nothing is compiled for them. */
static flp_status add_widths(flp_tune_numerics *numerics, int64_t memory_bytes)
{
    flp_text all = { .data = NULL };
    char *rest = NULL;
    flp_status status = list_widths(numerics, 0, memory_bytes, &all);
    int added = 0;

    for (int i = 1; status == FLP_OK && i < numerics->rows; i++) {
        flp_text others = { .data = NULL };

        status = list_widths(numerics, i, memory_bytes, &others);
        if (status == FLP_OK)
            keep_common(&all, others.data);
        if (status == FLP_OK && all.failed)
            status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what may decide on a row's bits");
        flp_text_free(&others);
    }
    for (char *line = status == FLP_OK ? strtok_r(all.data, "\n", &rest) : NULL; status == FLP_OK && line; line = strtok_r(NULL, "\n", &rest)) {
        status = added == 0 ? append_width(numerics, "-") : FLP_OK;
        if (status == FLP_OK)
            status = append_width(numerics, line);
        added++;
    }
    flp_text_free(&all);
    return status;
}

flp_status flp_tune_numerics_create(flp_context *context, const flp_operator_calls *calls, const void *problem, int limit, int64_t memory_bytes,
                                    flp_tune_numerics **numerics)
{
    flp_tune_numerics *made = calloc(1, sizeof(*made));
    flp_text problems = { 0 };
    flp_status status;

    *numerics = NULL;
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what may decide on a row's bits");
    made->context = context;
    made->calls = calls;
    status = set_up(made, problem, limit, &problems);
    if (status == FLP_OK)
        status = add_widths(made, memory_bytes);
    flp_text_free(&problems);
    if (status == FLP_OK)
        *numerics = made;
    else
        flp_tune_numerics_destroy(made);
    return status;
}

void flp_tune_numerics_destroy(flp_tune_numerics *numerics)
{
    if (!numerics)
        return;
    free(numerics->all);
    free(numerics);
}

/* ---- what is timed ---- */

flp_status flp_tune_numerics_offer(const flp_tune_numerics *numerics, int number, flp_tune_target *target)
{
    flp_status status = FLP_OK;
    int candidate;

    for (int i = 0; i < numerics->count; i++)
        for (int j = 0; status == FLP_OK && j < MOST_TRIES && numerics->all[i].tries[number][j][0]; j++)
            status = flp_tune_target_add(target, numerics->all[i].tries[number][j], &candidate);
    return status;
}

/* The ratio of a tuning's time to the default's; infinity: it was not timed. */
static double find_ratio(const flp_tune_target *target, const flp_tuner_result *result, const char *tuning)
{
    for (int i = 0; i < flp_tune_target_count(target); i++)
        if (strcmp(flp_tune_target_candidate(target, i)->tuning, tuning) == 0)
            return result->figures[i].rounds ? result->figures[i].ratio : INFINITY;
    return INFINITY;
}

void flp_tune_numerics_take(flp_tune_numerics *numerics, int number, const flp_tune_target *target, const flp_tuner_result *result)
{
    for (int i = 0; i < numerics->count; i++) {
        arithmetic *one = &numerics->all[i];
        double best = one->tuning[0] ? INFINITY : 1; /* the default itself */

        for (int j = 0; j < MOST_TRIES && one->tries[number][j][0]; j++)
            best = fmin(best, find_ratio(target, result, one->tries[number][j]));
        if (isinf(best))
            continue;
        one->timed++;
        one->log_ratios += log(best);
    }
}

/* ---- what decides ---- */

/* Chooses the arithmetic of one role. Those of the role begin at *next, with the generator's own; *next moves to the next role's. */
static const arithmetic *decide_role(const flp_tune_numerics *numerics, int *next)
{
    const arithmetic *own = &numerics->all[*next], *best = own;
    const double needed = numerics->rows * log(worthwhile_ratio);

    for (; *next < numerics->count && numerics->all[*next].role == own->role; ++*next) {
        const arithmetic *one = &numerics->all[*next];

        if (one->timed == numerics->rows && one->log_ratios < own->log_ratios + needed && (best == own || one->log_ratios < best->log_ratios))
            best = one;
    }
    return best;
}

flp_status flp_tune_numerics_decide(const flp_tune_numerics *numerics, char *tuning)
{
    const char *chosen[FLP_ROLES];
    int count = 0;

    for (int next = 0; next < numerics->count && count < FLP_ROLES; count++)
        chosen[count] = decide_role(numerics, &next)->tuning;
    return flp_tuning_text_join(chosen, count, tuning);
}

static flp_status identify(const flp_tune_numerics *numerics, flp_record_identity *identity)
{
    return flp_tuned_identify_decision(numerics->context, numerics->calls->op, &numerics->problems[numerics->rows - 1], &numerics->kernels, identity);
}

flp_status flp_tune_numerics_find(const flp_tune_numerics *numerics, flp_records *records, const flp_environment *environment, flp_record *decision,
                                  flp_record_match *match)
{
    flp_record_identity identity;
    flp_status status = identify(numerics, &identity);

    *match = FLP_RECORD_NONE;
    return status == FLP_OK ? flp_records_find(records, &identity, environment, decision, match) : status;
}

static flp_status make_decision(const flp_tune_numerics *numerics, const char *tuning, const flp_record *of_rows, const double *ratios, flp_record *decision)
{
    double seconds = 0, default_seconds = 0, ratio = 0;

    *decision = of_rows[numerics->rows - 1];
    for (int i = 0; i < numerics->rows; i++) {
        seconds += log(of_rows[i].seconds);
        default_seconds += log(of_rows[i].seconds / ratios[i]);
        ratio += log(ratios[i]);
        decision->rounds = of_rows[i].rounds < decision->rounds ? of_rows[i].rounds : decision->rounds;
    }
    decision->seconds = exp(seconds / numerics->rows);
    decision->default_seconds = exp(default_seconds / numerics->rows);
    decision->ratio = decision->ratio_low = decision->ratio_high = exp(ratio / numerics->rows);
    decision->predicted_seconds = 0;
    snprintf(decision->tuning, sizeof(decision->tuning), "%s", tuning);
    return identify(numerics, &decision->identity);
}

flp_status flp_tune_numerics_publish(const flp_tune_numerics *numerics, flp_records *records, const char *tuning, const flp_record *of_rows,
                                     const double *ratios, flp_record *decision)
{
    char text[FLP_PLAN_KERNELS_BYTES];
    flp_wanted_kernels wanted = numerics->kernels;
    flp_status status = make_decision(numerics, tuning, of_rows, ratios, decision);

    wanted.problem = text;
    for (int i = 0; status == FLP_OK && i < numerics->rows; i++) {
        status = flp_plan_write_wanted(numerics->context, numerics->calls->op, &numerics->problems[i], text);
        if (status == FLP_OK)
            status = flp_tuned_publish(numerics->context, records, &wanted, &of_rows[i]);
    }
    return status == FLP_OK ? flp_records_publish(records, decision) : status;
}
