/* What the tests of tunings share: a context that reads records from a directory of its own, and the plan that it makes of a problem over the fakes. */
#ifndef FLP_TESTS_TUNED_PLAN_H
#define FLP_TESTS_TUNED_PLAN_H
#include "assertions.h"
#include "core/plan.h"
#include "core/tuned.h"
#include "fake_record.h"
#include "fusedlogp.h"

typedef struct {
    flp_context *context;
    flp_linear_logp_problem problem; /* linear_logp:bf16:n3000:d2048:v131072, until a test changes it */
    flp_plan *plan;
    const char *records; /* the directory; a test may keep kernels below it, too */
} tuned_plan_fixture;

/* The running test's. */
extern tuned_plan_fixture tuned;

/* The problem of the records that hold for `tuned.problem`: the number of rows stands for its bucket. */
extern const char tuned_text[];

/* A linear_cross_entropy into an fp32 main gradient, which a GPU with slow memory is advised about. */
extern const flp_linear_cross_entropy_problem tuned_step;
extern const char tuned_step_text[];

/* Set-up and tear-down of every test. */
int tuned_start(void **state);
int tuned_stop(void **state);

/* Another context in place of the one before, whose plan goes with it: with these options, or with no kernels on disk and these flags. */
void tuned_open(const flp_context_options *options);
void tuned_open_flags(unsigned flags);

/* A record of the fake machine that says `tuning` of a problem. A tuning that no kernel can have gets the default's identity. */
flp_record tuned_record_of(const char *text, const char *tuning, double ratio);

/* The record that decides on the bits of `tuned.problem`, whatever its number of rows. */
flp_record tuned_decision_of(const char *tuning);

/* Changes the first digit of a hexadecimal digest, so that a record says something else than what is there. */
void tuned_change_digest(char *digest);

void tuned_publish(const flp_record *record);
void tuned_forget_records(void);

/* Plans `tuned.problem`, or `tuned_step`, in the context that is open. The latter returns the variant of grad_weight's product. */
void tuned_make_plan(void);
const char *tuned_make_step_plan(void);

/* Publishes the record, and plans `tuned.problem` in a context that reads it. */
void tuned_plan_with(const flp_record *record);

/* The variant of the plan's tile kernel. */
const char *tuned_tile_variant(void);

/* The fake GPU gets the memory of an H100, for which there is advice. */
void tuned_make_memory_slow(void);
#endif
