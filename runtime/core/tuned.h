/* What tuning a new plan takes: that of a record of its problem, or of the nearest shape, as the model carries it over, or what is advised for such a GPU. */
#ifndef FLP_CORE_TUNED_H
#define FLP_CORE_TUNED_H
#include "core/choose.h"
#include "core/operator.h"

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

/* ---- what changes a row's bits ----
 * A record of a problem without its rows, "linear_logp:bf16:d2048:v131072", decides on it for any number of them: its tuning is what the kernels of the
 * others begin with, in a context with FLP_CONTEXT_TUNED_BITS. Its identity is that of FLP_TUNED_DECIDING_ROWS rows without a tuning, so that it has one name
 * and a new one replaces it at once. */
enum { FLP_TUNED_DECIDING_ROWS = 4096 };

/* A problem's string without its rows, from one with them; with_rows: the way back. text [FLP_PROBLEM_TEXT_BYTES]. 0: it has none, or has some. */
int flp_tuned_without_rows(const char *problem, char *text);
int flp_tuned_with_rows(const char *problem, char *text);

/* The identity of the record that decides. Of wanted, whose problem's rows may be any, the tuning does not count. Errors as flp_tuned_identify. */
flp_status flp_tuned_identify_decision(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted,
                                       flp_record_identity *identity);

/* The problem as records name it: of its bucket of rows, on the path that is taken of itself. text [FLP_PROBLEM_TEXT_BYTES] */
flp_status flp_tuned_problem_text(const flp_operator *op, const void *normal, char *text);

/* identity, but for the problem: of the kernels that the generator is asked for, with their tuning. Errors as flp_generator_identify. */
flp_status flp_tuned_identify(flp_context *context, const flp_wanted_kernels *wanted, flp_record_identity *identity);

/* ---- tunings as text, "role.field=number,...": gen/tuning.lua ---- */

/* One that changes what all of these change, in the order that is wanted of a tuning. Of an item that several have there is one. text [FLP_TUNING_BYTES].
 * FLP_BAD_ARGUMENT: it is longer. */
flp_status flp_tuning_text_join(const char *const *tunings, int count, char *text);

/* The items of a role; with others 1, those of the other ones. text [FLP_TUNING_BYTES] */
void flp_tuning_text_of_role(const char *tuning, flp_role role, int others, char *text);

/* 1: an item says how a call goes by, "chunks.columns=28", rather than what a kernel is. */
int flp_tuning_text_has_chunks(const char *tuning);

/* FLP_ROLES: it changes none, or several. */
flp_role flp_tuning_text_role(const char *tuning);
#endif
