/* Which records apply to a problem: its own, and those of shapes nearby. */
#ifndef FLP_CORE_TUNED_SEARCH_H
#define FLP_CORE_TUNED_SEARCH_H
#include "jit/generator.h"
#include "tune/records.h"

/* Shapes whose sizes differ by this many powers of two or more, added over all sizes, say nothing about each other. */
enum { FLP_TUNED_FARTHEST = 4 };

/* How far two problems are apart. */
typedef struct {
    double log2_sizes; /* the sum over all sizes of how many powers of two they differ by */
    int same_family;   /* 1: the problems differ in their sizes only */
} flp_tuned_shape_distance;

flp_tuned_shape_distance flp_tuned_search_distance(const char *one, const char *other);

/* A search for the records that apply to one problem's kernels. */
typedef struct {
    flp_context *context;
    const flp_wanted_kernels *wanted;
    const char *problem;                  /* as records name it */
    flp_record_identity base;             /* of the tuning that decides on a row's bits */
    char tuning[FLP_RECORD_TUNING_BYTES]; /* the tuning that was identified last, as many records have the same one, */
    flp_status tuning_status;             /* whether these kernels can have it, */
    flp_record_identity tuned;            /* and its identity */
} flp_tuned_search;

/* base: the tuning that decides on a row's bits; "": the generator's own kernels do. wanted and problem are borrowed for the search. Errors as
 * flp_generator_identify. */
flp_status flp_tuned_search_begin(flp_context *context, const flp_wanted_kernels *wanted, const char *problem, const char *base, flp_tuned_search *made);

/* 1: the record is of the search's problem and architecture. */
int flp_tuned_search_is_own(const flp_tuned_search *found, const flp_record *record);

/* Why a record of the problem, or of a shape nearby, does not apply here; NULL: it does. A shape nearby may have another arithmetic, so its record's numerics
 * are not compared; what counts is whether its tuning changes the arithmetic here. */
const char *flp_tuned_search_fault(flp_tuned_search *found, const flp_record *record);

/* Whether any record may apply, before anything is computed for a search. A visitor for flp_records_visit: has_any becomes 1 for a record of this problem on
 * any machine, with its rows or without, or of a shape nearby on such a device. */
typedef struct {
    const char *problem, *decision, *device; /* decision: the problem without its rows; device: its name, NULL: any */
    int has_any;
} flp_tuned_prospect;

int flp_tuned_search_may_serve(void *prospect, const flp_record *record);
#endif
