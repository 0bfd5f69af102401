/* Describes an operator's problem by a table of its fields. Checks, defaults, the canonical string, the dispatch key and what the generator reads follow from
 * the table. */
#ifndef FLP_CORE_PROBLEM_H
#define FLP_CORE_PROBLEM_H
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum { FLP_DISPATCH_SIZES = 15 };

/* The key by which a call without a plan finds its plan (core/dispatch.h): words without padding, compared and hashed as words. flp_problem_pack fills in
 * choices and sizes, core/dispatch.c the rest. */
typedef struct {
    uint64_t op;           /* the operator's address */
    uint64_t cuda_context; /* id of the current one; 0: none is used */
    uint64_t call;         /* what the call's args decide: bucket of rows, and alignment */
    uint64_t choices;      /* enumerations and flags, up to 3 bits each */
    uint64_t sizes[FLP_DISPATCH_SIZES];
} flp_dispatch_key;

/* The most rows of one call: row blocks x splits stay below 2^31 in the kernels' schedule. */
#define FLP_PROBLEM_ROWS_MAX (INT64_C(1) << 28)

enum { FLP_PROBLEM_ALIGNMENT = 16 }; /* bytes of the widest load of any path: a larger alignment changes nothing */

typedef struct flp_operator flp_operator;

/* A field's C type, and how it is written in the canonical string. */
typedef enum {
    FLP_FIELD_CHOICE,    /* int or enumeration: the word of its value */
    FLP_FIELD_BITS,      /* unsigned: the word of each bit that is set */
    FLP_FIELD_DTYPE,     /* flp_dtype: prefix and its name */
    FLP_FIELD_SIZE,      /* int64_t, low .. high: prefix and number, in the head of the string, which is always written */
    FLP_FIELD_COUNT,     /* int64_t: prefix and number */
    FLP_FIELD_STRIDE,    /* int64_t, elements from row to row: prefix and number */
    FLP_FIELD_ALIGNMENT, /* int, bytes: prefix and number */
    FLP_FIELD_NUMBER,    /* double, 0 or least .. most: prefix and number */
    FLP_FIELD_NAME       /* FLP_TOKEN_LOSS_NAME_BYTES characters: prefix and name */
} flp_field_kind;

enum { FLP_FIELD_WORDS = 5, FLP_FIELD_AS_DTYPE = -1 };

/* One field of a problem. The first field of every problem is its dtype, at offset 0. Where an offset below names another field, 0 therefore means that there
 * is none; only dtype_at 0 is the problem's dtype itself. The members that packing a dispatch key reads come first. */
typedef struct {
    const char *name; /* as messages name it; NULL ends a table */
    flp_field_kind kind;
    int at; /* offset in the problem, like all members `..._at` */

    unsigned allowed; /* CHOICE, BITS, DTYPE: a bit for each acceptable value; values are below 8 */
    int otherwise;    /* CHOICE, DTYPE: what 0 stands for; FLP_FIELD_AS_DTYPE: the problem's dtype */
    int takes_plan;   /* CHOICE: 1: values other than 0 are only for plans that the caller creates, not for calls without a plan */
    /* STRIDE: the matrix that the row stride is of. rows_at, columns_at: its numbers of rows and columns, which are swapped where the value at transposed_at is
     * not 0; rows_at 0: it may have FLP_PROBLEM_ROWS_MAX rows. dtype_at: dtype of its elements; FLP_NONE: the problem has no such matrix. A stride of 0 stands
     * for the stride at like_at, or for the number of columns where there is none or that is 0. */
    int rows_at, columns_at, transposed_at, dtype_at, like_at;

    const char *words[FLP_FIELD_WORDS]; /* CHOICE: by value, BITS: by bit; NULL: the value is not written */
    const char *prefix, *value_name;    /* the other kinds: e.g. "hs", and "stride" for messages; prefix NULL: the field is not written */
    const char *wanted;                 /* CHOICE, DTYPE, NUMBER: what is acceptable, for messages */
    int64_t low, high;                  /* SIZE */
    int empty_at;                       /* SIZE: it may also be 0 where the count there is above 0; 0: there is none */
    double least, most;                 /* NUMBER */
} flp_field;

/* CHOICE, BITS, DTYPE: the number of bits that an acceptable value takes in a dispatch key. */
static inline int flp_field_key_bits(const flp_field *field)
{
    return field->allowed < 2 ? 0 : field->allowed < 4 ? 1 : 3;
}

/* Values for `allowed` and `wanted`. */
#define FLP_FIELD_ALLOWS(value) (1u << (value))
#define FLP_FIELD_FLAG .allowed = FLP_FIELD_ALLOWS(0) | FLP_FIELD_ALLOWS(1), .wanted = "0 or 1"
#define FLP_FIELD_FLOATS (FLP_FIELD_ALLOWS(FLP_BF16) | FLP_FIELD_ALLOWS(FLP_F16) | FLP_FIELD_ALLOWS(FLP_F32))
#define FLP_FIELD_FLOAT .value_name = "dtype", .wanted = FLP_DTYPE_FLOAT_CONSTANTS, .allowed = FLP_FIELD_FLOATS
#define FLP_FIELD_FLOAT_OR_NONE \
    .value_name = "dtype", .wanted = "FLP_NONE, " FLP_DTYPE_FLOAT_CONSTANTS, .allowed = FLP_FIELD_ALLOWS(FLP_NONE) | FLP_FIELD_FLOATS

/* Rows that operators have in common; offset: the field's. */
#define FLP_FIELD_ROWS(offset)                                                                                      \
    {                                                                                                               \
        "rows", FLP_FIELD_SIZE, offset, .prefix = "n", .value_name = "rows", .low = 0, .high = FLP_PROBLEM_ROWS_MAX \
    }
/* A number of columns or of vocabulary entries, which kernels hold in 32 bits. */
#define FLP_FIELD_EXTENT(label, offset, letter)                                                           \
    {                                                                                                     \
        label, FLP_FIELD_SIZE, offset, .prefix = letter, .value_name = label, .low = 1, .high = INT32_MAX \
    }
#define FLP_FIELD_POINTERS(offset)                                                                 \
    {                                                                                              \
        "pointer_alignment", FLP_FIELD_ALIGNMENT, offset, .prefix = "align", .value_name = "bytes" \
    }
#define FLP_FIELD_TARGETS(offset)                                                                                                                  \
    {                                                                                                                                              \
        "target_dtype", FLP_FIELD_CHOICE, offset, .words = { [FLP_I32] = "target_i32" }, .otherwise = FLP_I64,                                     \
                                                  .allowed = FLP_FIELD_ALLOWS(FLP_I32) | FLP_FIELD_ALLOWS(FLP_I64), .wanted = "FLP_I32 or FLP_I64" \
    }
/* c and 1 / c both stay normal floats in the kernels. */
#define FLP_LEAST_SOFTCAP 0x1p-126
#define FLP_MOST_SOFTCAP 0x1p126
#define FLP_FIELD_SOFTCAP(offset)                                                                                                               \
    {                                                                                                                                           \
        "softcap", FLP_FIELD_NUMBER, offset, .prefix = "softcap", .value_name = "number", .least = FLP_LEAST_SOFTCAP, .most = FLP_MOST_SOFTCAP, \
                                             .wanted = "0 or 2^-126 .. 2^126"                                                                   \
    }
#define FLP_FIELD_BACKEND(offset)                                                                                                                         \
    {                                                                                                                                                     \
        "backend", FLP_FIELD_CHOICE, offset, .allowed = 15,                                                                                               \
                                             .words = { [FLP_BACKEND_SM90A] = "sm_90a", [FLP_BACKEND_PORTABLE] = "portable", [FLP_BACKEND_CPU] = "cpu" }, \
                                             .wanted = "FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU"                     \
    }

/* The value at offset `at` of a problem or of args. */
static inline int flp_problem_int(const void *base, int at)
{
    return *(const int *)(const void *)((const char *)base + at);
}

static inline int64_t flp_problem_int64(const void *base, int at)
{
    return *(const int64_t *)(const void *)((const char *)base + at);
}

/* Loops over all fields of an operator. They are in several tables, because a problem whose first field is another operator's problem shares tables with that
 * operator. The first table begins with the dtype and the sizes. */
#define FLP_EACH_FIELD(field, op)                                       \
    for (const flp_field *const *part_ = (op)->fields; *part_; part_++) \
        for (const flp_field *field = *part_; field->name; field++)

/* Copies problem to normal [op->problem_bytes], checks every field, fills in the defaults and checks the conditions between fields. FLP_BAD_ARGUMENT names the
 * field, what it got and what was wanted. */
flp_status flp_problem_normalize(const flp_operator *op, const void *problem, void *normal);

/* Checks only the choice or dtype at this offset. *value: its value, or what 0 stands for. Errors as flp_problem_normalize. */
flp_status flp_problem_check_field(const flp_operator *op, size_t at, const void *problem, int *value);

/* 1: the field of a normal problem has the value that 0 stands for, and the canonical string leaves it out. 0 for CHOICE, BITS and SIZE, to which this does not
 * apply. */
int flp_problem_is_default(const flp_field *field, const void *normal);

/* The memory_budget of a normal problem, in bytes; 0: it has none. */
int64_t flp_problem_memory_budget(const flp_operator *op, const void *normal);

/* Writes the fields that distinguish problems, with their defaults filled in, to choices and sizes of a key that is zeroed. Rows and pointer_alignment are left
 * out, because the call decides on them. Returns 0 where a choice or name is not acceptable, or takes a plan of the caller's; flp_problem_refuse then says why.
 * Other values are checked when the plan is made. */
int flp_problem_pack(const flp_operator *op, const void *problem, flp_dispatch_key *key);
flp_status flp_problem_refuse(const flp_operator *op, const void *problem);

/* Checks that got is in low .. high, for arguments too. FLP_BAD_ARGUMENT names `field`. */
flp_status flp_problem_check_range(const char *field, int64_t got, int64_t low, int64_t high);

/* The canonical string: operator and dtype, then all sizes, then the other fields that differ from what 0 stands for, in the table's order. gen/problem.lua
 * reads it too, and the programs, tests and records name problems by it. */
enum { FLP_PROBLEM_TEXT_BYTES = 512 }; /* holds every canonical string */

flp_status flp_problem_text_write(const flp_operator *op, const void *problem, char *text, size_t bytes);

/* flp_X_problem_format and flp_X_problem_parse. problem: as the caller's header has it, with these sizes. */
flp_status flp_problem_text_format(const flp_operator *op, const void *problem, char *text, size_t bytes, const flp_sizes *sizes);
flp_status flp_problem_text_parse(const flp_operator *op, const char *text, void *problem, const flp_sizes *sizes);
#endif
