/* What tuning a new plan takes: that of a record of its problem, or of the nearest shape, as the model carries it over, or what is advised for such a GPU. */
#ifndef FLP_CORE_TUNED_H
#define FLP_CORE_TUNED_H
#include "core/choose.h"
#include "core/operator.h"
#include "core/tuned_identity.h"
#include "core/tuning_text.h"

typedef struct {
    const flp_operator *op;
    const void *normal;  /* the problem, defaults filled in */
    const char *kernels; /* what the generator is asked for: flp_plan_kernels_text */
    const char *hint;    /* what of that the problem's string does not say; "": nothing */
    const flp_device *device;
    const flp_choice *choice; /* without a tuning; a GPU path */
} flp_tuned_question;

typedef struct {
    flp_tuned_by by;
    char tuning[FLP_TUNING_BYTES]; /* "": the generator's own choice */
    char base[FLP_TUNING_BYTES];   /* that decides on a row's bits; "": the generator's own */
    char source[512];              /* in words, for flp_plan_describe; without a record why one of the problem does not count, "": there is none */
} flp_tuned;

/* Never fails: what goes wrong is logged, and there is no tuning then. A problem without a record of this machine goes on the list of those that are to be
 * tuned. This thread's error message stays. */
void flp_tuned_find(flp_context *context, const flp_tuned_question *question, flp_tuned *tuned);

/* A problem, as records name it, with what the generator is asked for; of that, the tuning does not count. */
typedef struct {
    const char *problem;
    const flp_wanted_kernels *wanted;
    const flp_environment *environment;
    const char *base; /* the tuning whose bits a row has */
} flp_tuned_query;

/* The record of a problem that serves an environment best, as flp_tuned_find finds it. Errors as flp_generator_identify, FLP_OUT_OF_MEMORY. */
flp_status flp_tuned_record(flp_context *context, flp_records *records, const flp_tuned_query *query, flp_record *record, flp_record_match *match);

/* Publishes a record and removes the user's others of its problem, arithmetic and machine that count: those of other kernels, whose templates give them other
 * names. Of wanted, the tuning does not count. Errors as flp_records_publish, flp_records_remove and flp_generator_identify. */
flp_status flp_tuned_publish(flp_context *context, flp_records *records, const flp_wanted_kernels *wanted, const flp_record *record);

/* Appends the tunings, one a line, that a plan of a problem may take: flp_tuned_find takes one of them or none, whatever machine of this compute capability
 * it runs on. Of wanted, the tuning does not count. Errors as flp_generator_identify, FLP_OUT_OF_MEMORY. */
flp_status flp_tuned_list(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted, flp_text *tunings);
#endif
