/* Rules that the arguments of all operators share. Each names the argument, what it got and what was wanted (FLP_BAD_ARGUMENT). */
#ifndef FLP_CORE_ARGUMENTS_H
#define FLP_CORE_ARGUMENTS_H

#include "base/sized.h"
#include "core/operator.h"

/* What an array holds where a tuning makes up a call (core/tune_target.c). */
typedef enum {
    FLP_VALUES_RESULT, /* the call writes it */
    FLP_VALUES_ABSENT, /* NULL */
    FLP_VALUES_NORMAL, /* deviation 1 */
    FLP_VALUES_WEIGHT, /* deviation 2 / sqrt(its columns): what hidden states of deviation 1 make logits of deviation 2 */
    FLP_VALUES_FACTOR, /* 0.5 .. 1.5 */
    FLP_VALUES_TARGET, /* 0 .. V - 1 */
    FLP_VALUES_LSE,    /* ln V + 2, that of logits of deviation 2 */
    FLP_VALUES_ENTROPY /* ln V - 2 */
} flp_argument_values;

/* Problems may be a shard of the vocabulary: which of the two an array is for. */
typedef enum { FLP_ARGUMENT_OF_ALL, FLP_ARGUMENT_OF_WHOLE, FLP_ARGUMENT_OF_SHARD } flp_argument_owner;

/* An array of an operator's args. Offsets are those in the problem, where at 0 its dtype stands. */
typedef struct {
    const char *name; /* as messages have it; NULL ends a table */
    int at;           /* in the args */
    int bytes;        /* of an element, to which it is aligned; 0: one of dtype_at */
    int dtype_at;
    int asked_at;     /* a flag or a dtype: where it is 0, the problem does not ask for the array, which is NULL. 0: every problem does */
    int optional_at;  /* a flag: where it is not 0, the array may be NULL. 0: there is none */
    int is_optional;  /* 1: it may always be */
    int is_unread;    /* 1: where the problem does not ask for it, it is not looked at */
    int decides;      /* 1: aligned to pointer_alignment, too, which a call without a plan takes from these arrays */
    int by_elements;  /* 1: it decides, but elements smaller than the problem's dtype may lie anywhere where pointer_alignment is no more than that */
    int without_rows; /* 1: in a call of no rows its address is checked, too */
    int extent_at;    /* a matrix's row stride, or how many elements there are; 0: one a row */
    int row_elements; /* with one a row: so many are; 0: 1 */
    int entries_at;   /* an int64_t: where it is 0, the array has no elements, and may be NULL. 0: there is none */
    flp_argument_owner owner;
    flp_argument_values values;
} flp_argument;

/* An operator's args as a table. Offsets are those in the args, which begin with the rows: 0 stands for what there is not. */
typedef struct {
    const flp_sized_struct *args_struct;
    const flp_argument *const *arrays; /* in parts, which operators may share; NULL behind the last */
    int stream_at, workspace_at, workspace_bytes_at;
    int target_at, ignore_index_at, flags_at, temperature_at, row_temperature_at; /* of operators with targets */
    int row_index_at, logits_rows_at;
    int target_dtype_at, vocab_at; /* in the problem */
    int vocab_total_at;            /* in the problem: of a shard the whole vocabulary, which its targets are of. 0: there are no shards */
    unsigned more_flags;           /* beside those of every operator with targets */
} flp_arguments;

#define FLP_ARGUMENTS_WORKSPACE(type) \
    .stream_at = offsetof(type, stream), .workspace_at = offsetof(type, workspace), .workspace_bytes_at = offsetof(type, workspace_bytes)
#define FLP_ARGUMENTS_TARGETS(type)                                                                                          \
    .target_at = offsetof(type, target), .ignore_index_at = offsetof(type, ignore_index), .flags_at = offsetof(type, flags), \
    .temperature_at = offsetof(type, temperature), .row_temperature_at = offsetof(type, row_temperature)

/* Rows, flags, temperature and arrays; normal: the problem with its defaults filled in. */
flp_status flp_arguments_check(const flp_operator *op, const flp_arguments *table, const void *normal, const void *args);
/* Before a plan is made, of the arrays that decide its alignment: that they are there, at multiples of an element. */
flp_status flp_arguments_check_elements(const flp_operator *op, const flp_arguments *table, const void *problem, const void *args);
/* 1: the array has a meaning for the problem, which is a shard of a vocabulary or is none. */
int flp_arguments_are_for(const flp_arguments *table, const flp_argument *array, const void *problem);
/* The vocabulary that targets are of: that of all shards, where the problem is one. */
int64_t flp_arguments_vocab(const flp_arguments *table, const void *problem);
/* Their addresses, or'ed; an array by_elements that lies between elements of the problem's dtype counts as one at a multiple of these. */
uintptr_t flp_arguments_addresses(const flp_arguments *table, const void *problem, const void *args);

/* wanted: alignment in bytes. */
flp_status flp_arguments_check_address(const char *argument, const void *address, int wanted);

/* Whether the rows whose target is ignore_index are ignored. */
int flp_arguments_ignore(unsigned flags);

/* 1, or the temperature that all rows share. */
double flp_arguments_temperature(double temperature);
/* log2(e) / temperature; that of rows is divided by a row's own. */
float flp_arguments_scale(double temperature);

/* wanted: bytes for so many rows. */
flp_status flp_arguments_check_workspace(const void *workspace, size_t bytes, int64_t wanted, int64_t rows);

/* So many elements further; NULL stays NULL. */
const void *flp_arguments_advance(const void *address, int64_t elements, flp_dtype dtype);
#endif
