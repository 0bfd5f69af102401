/* Describes an operator's arguments by a table, and checks them. A failed check is FLP_BAD_ARGUMENT, with the argument, what it got and what was wanted. */
#ifndef FLP_CORE_ARGUMENTS_H
#define FLP_CORE_ARGUMENTS_H

#include "base/sized.h"
#include "core/operator.h"

/* What a tuning fills an array with for the calls that it makes itself (core/tune_arrays.c). */
typedef enum {
    FLP_VALUES_RESULT, /* the call writes it */
    FLP_VALUES_ABSENT, /* NULL */
    FLP_VALUES_NORMAL, /* standard deviation 1 */
    FLP_VALUES_WEIGHT, /* standard deviation 2 / sqrt(its columns), which with hidden states of 1 gives logits of 2 */
    FLP_VALUES_FACTOR, /* 0.5 .. 1.5 */
    FLP_VALUES_TARGET, /* 0 .. V - 1 */
    FLP_VALUES_LSE,    /* ln V + 2, as logits of standard deviation 2 have it */
    FLP_VALUES_ENTROPY /* ln V - 2, likewise */
} flp_argument_values;

/* Which problems have an array: all, those of a whole vocabulary, or those of a shard of one. */
typedef enum { FLP_ARGUMENT_OF_ALL, FLP_ARGUMENT_OF_WHOLE, FLP_ARGUMENT_OF_SHARD } flp_argument_owner;

/* An array of an operator's args. All offsets except `at` are in the problem, which has its dtype at offset 0. */
typedef struct {
    const char *name; /* as messages name it; NULL ends a table */
    int at;           /* in the args */
    int bytes;        /* of an element, to which the array is aligned; 0: those of the dtype at dtype_at */
    int dtype_at;
    int asked_at;    /* a flag or dtype: where its value is 0, the problem does not have the array, which must be NULL. Offset 0: every problem has it */
    int optional_at; /* a flag: where its value is not 0, the array may be NULL. Offset 0: there is no such flag */
    int is_optional; /* 1: the array may always be NULL */
    int is_unread;   /* 1: where the problem does not have the array, the argument is ignored and need not be NULL */
    int decides;     /* 1: the array is aligned to pointer_alignment too, which a call without a plan derives from these arrays */
    /* 1: `decides` is 1, but if pointer_alignment is no more than an element of the problem's dtype, an array of smaller elements is aligned to these only. */
    int by_elements;
    int without_rows; /* 1: its address is checked in calls with 0 rows, too */
    int extent_at;    /* the row stride of a matrix, or the number of elements; 0: row_elements for each row */
    int row_elements; /* where extent_at is 0; 0: 1 */
    int entries_at;   /* an int64_t: where its value is 0, the array has no elements and may be NULL. Offset 0: there is none */
    flp_argument_owner owner;
    flp_argument_values values;
} flp_argument;

/* The table of an operator's args. Offsets are in the args, except where a comment says "in the problem". Args begin with the rows: an offset of 0 means that
 * the operator has no such argument. */
typedef struct {
    const flp_sized_struct *args_struct;
    const flp_argument *const *arrays; /* tables, which operators may share; NULL after the last */
    int stream_at, workspace_at, workspace_bytes_at;
    int target_at, ignore_index_at, flags_at, temperature_at, row_temperature_at; /* of operators with targets */
    int row_index_at, logits_rows_at;
    int target_dtype_at, vocab_at; /* in the problem */
    int vocab_total_at;            /* in the problem: of a shard, the size of the whole vocabulary, which targets index. 0: there are no shards */
    unsigned more_flags;           /* flp_execute_flags allowed beyond those of every operator with targets */
} flp_arguments;

#define FLP_ARGUMENTS_WORKSPACE(type) \
    .stream_at = offsetof(type, stream), .workspace_at = offsetof(type, workspace), .workspace_bytes_at = offsetof(type, workspace_bytes)
#define FLP_ARGUMENTS_TARGETS(type)                                                                                          \
    .target_at = offsetof(type, target), .ignore_index_at = offsetof(type, ignore_index), .flags_at = offsetof(type, flags), \
    .temperature_at = offsetof(type, temperature), .row_temperature_at = offsetof(type, row_temperature)

/* Checks rows, flags, temperature and arrays. normal: the problem with its defaults filled in. */
flp_status flp_arguments_check(const flp_operator *op, const flp_arguments *table, const void *normal, const void *args);
/* Called before a plan is made: checks that the arrays that decide on its pointer_alignment are there and aligned to their elements. */
flp_status flp_arguments_check_elements(const flp_operator *op, const flp_arguments *table, const void *problem, const void *args);
/* 1: the array's owner fits the problem, which is of a whole vocabulary or of a shard. */
int flp_arguments_are_for(const flp_arguments *table, const flp_argument *array, const void *problem);
/* The size of the vocabulary that targets index: of the whole vocabulary where the problem is a shard. */
int64_t flp_arguments_vocab(const flp_arguments *table, const void *problem);
/* The addresses of the arrays that decide on pointer_alignment, or'ed. An array with by_elements whose address is no multiple of an element of the problem's
 * dtype counts as aligned to just such an element. */
uintptr_t flp_arguments_addresses(const flp_arguments *table, const void *problem, const void *args);

/* Checks that an address is not NULL and is a multiple of `wanted` bytes. */
flp_status flp_arguments_check_address(const char *argument, const void *address, int wanted);

/* 1: rows whose target is ignore_index are ignored. */
int flp_arguments_ignore(unsigned flags);

/* The temperature that all rows share: the argument, or 1 where that is 0. */
double flp_arguments_temperature(double temperature);
/* log2(e) / temperature. With row_temperature, this is divided by each row's own temperature. */
float flp_arguments_scale(double temperature);

/* Checks the size and the address of a workspace. wanted: the bytes that a call of `rows` rows needs. */
flp_status flp_arguments_check_workspace(const void *workspace, size_t bytes, int64_t wanted, int64_t rows);

/* The address plus so many elements of a dtype; NULL stays NULL. */
const void *flp_arguments_advance(const void *address, int64_t elements, flp_dtype dtype);
#endif
