/* Chooses the tuning of a new plan: from a record of its problem, from the nearest shape's record scaled by the performance model, or from the device's default
 * tuning (advice). */
#ifndef FLP_CORE_TUNED_H
#define FLP_CORE_TUNED_H
#include "core/choose.h"
#include "core/operator.h"
#include "core/tuned_identity.h"
#include "core/tuning_text.h"

typedef struct {
    const flp_operator *op;
    const void *normal;  /* the problem, with its defaults filled in */
    const char *kernels; /* what the generator is asked for: flp_plan_kernels_text */
    const char *hint;    /* the part of `kernels` after the problem's string; "": none */
    const flp_device *device;
    const flp_choice *choice; /* the plan's choice without a tuning, on a GPU path */
} flp_tuned_question;

typedef struct {
    flp_tuned_by by;
    char tuning[FLP_TUNING_BYTES]; /* "": the generator's own choice */
    char base[FLP_TUNING_BYTES];   /* the tuning that decides on a row's bits (core/tuned_identity.h); "": the generator's own choice */
    char source[512]; /* where the tuning is from, for flp_plan_describe; without a record, why one of the problem does not apply; "": there is none */
} flp_tuned;

/* Finds the tuning for a plan. Never fails: an error is logged, and there is no tuning then. A problem that has neither an exact nor a nearby record is added
 * to the list of problems to be tuned (tune/untuned.h). Does not change this thread's error message. */
void flp_tuned_find(flp_context *context, const flp_tuned_question *question, flp_tuned *tuned);

/* A request for a problem's record. problem: as records name it. wanted: what the generator is asked for, of which the tuning is ignored. */
typedef struct {
    const char *problem;
    const flp_wanted_kernels *wanted;
    const flp_environment *environment;
    const char *base; /* the tuning that decides on a row's bits */
} flp_tuned_query;

/* Finds the record of a problem that fits an environment best, as flp_tuned_find does. Errors as flp_generator_identify, FLP_OUT_OF_MEMORY. */
flp_status flp_tuned_record(flp_context *context, flp_records *records, const flp_tuned_query *query, flp_record *record, flp_record_match *match);

/* Publishes a record, and removes the user's other records of the same problem, arithmetic and machine that apply. These are of other kernels, whose templates
 * give their files other names. wanted->tuning is ignored. Errors as flp_records_publish, flp_records_remove and flp_generator_identify. */
flp_status flp_tuned_publish(flp_context *context, flp_records *records, const flp_wanted_kernels *wanted, const flp_record *record);

/* Appends the tunings, one a line, that a plan of a problem may have: on any machine of this compute capability, flp_tuned_find takes one of them or none.
 * wanted->tuning is ignored. Errors as flp_generator_identify, FLP_OUT_OF_MEMORY. */
flp_status flp_tuned_list(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted, flp_text *tunings);
#endif
