/* An operator's problem as a table of its fields: check, defaults, canonical string, dispatch key and the generator's view follow from it. */
#ifndef FLP_CORE_PROBLEM_H
#define FLP_CORE_PROBLEM_H
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum { FLP_DISPATCH_SIZES = 15 };

/* Words without padding, compared and hashed as such. flp_problem_pack fills choices and sizes; dispatch the rest. */
typedef struct {
    uint64_t op;           /* its address */
    uint64_t cuda_context; /* its id; 0: none is asked for */
    uint64_t call;         /* what the call decides: bucket of rows and alignment */
    uint64_t choices;      /* enumerations and flags, up to 3 bits each */
    uint64_t sizes[FLP_DISPATCH_SIZES];
} flp_dispatch_key;

/* The most rows of one call: row blocks x splits stay below 2^31 in the kernels' schedule. */
#define FLP_PROBLEM_ROWS_MAX (INT64_C(1) << 28)

enum { FLP_PROBLEM_ALIGNMENT = 16 }; /* the widest load of any path: more changes nothing */

typedef struct flp_operator flp_operator;

/* The field's type, and how it stands in the canonical string. */
typedef enum {
    FLP_FIELD_CHOICE,    /* int or enumeration: the word of its value */
    FLP_FIELD_BITS,      /* unsigned: the word of each bit */
    FLP_FIELD_DTYPE,     /* flp_dtype: prefix and its name */
    FLP_FIELD_SIZE,      /* int64_t, low .. high: prefix and number, in the string's head, which is always written */
    FLP_FIELD_COUNT,     /* int64_t: prefix and number */
    FLP_FIELD_STRIDE,    /* int64_t, elements from row to row: prefix and number */
    FLP_FIELD_ALIGNMENT, /* int, bytes: prefix and number */
    FLP_FIELD_NUMBER,    /* double, 0 or least .. most: prefix and number */
    FLP_FIELD_NAME       /* FLP_TOKEN_LOSS_NAME_BYTES characters: prefix and name */
} flp_field_kind;

enum { FLP_FIELD_WORDS = 5, FLP_FIELD_AS_DTYPE = -1 };

/* The first field of every problem is its dtype, at offset 0; as another field's offset, 0 therefore stands for none. What a dispatch key takes
 * comes first. */
typedef struct {
    const char *name; /* as messages have it; NULL ends a table */
    flp_field_kind kind;
    int at; /* offset in the problem, as others here */

    unsigned allowed; /* CHOICE, BITS, DTYPE: the bit of each acceptable value, which is below 8 */
    int otherwise;    /* CHOICE, DTYPE: what 0 stands for; FLP_FIELD_AS_DTYPE: the problem's dtype */
    int takes_plan;   /* CHOICE: what is not 0 is for a plan of the caller's, no call without one can have it */
    /* STRIDE: of a matrix of so many rows and columns, the other way round where transposed_at is not 0. Without rows_at it has as many rows as any
     * tensor may have. Its elements are dtype_at's: FLP_NONE, and there is no such matrix. 0 stands for the stride like_at, else for the columns. */
    int rows_at, columns_at, transposed_at, dtype_at, like_at;

    const char *words[FLP_FIELD_WORDS]; /* CHOICE: by value, BITS: by bit; NULL: the value is not written */
    const char *prefix, *value_name;    /* the other kinds: "hs", "stride" for messages; NULL: the field is not written */
    const char *wanted;                 /* CHOICE, DTYPE, NUMBER: what is acceptable, for messages */
    int64_t low, high;                  /* SIZE */
    double least, most;                 /* NUMBER */
} flp_field;

/* CHOICE, BITS, DTYPE: what a dispatch key holds an acceptable value in. */
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
/* The kernels hold it in 32 bits. */
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

/* What lies so many bytes into a problem, or into args. */
static inline int flp_problem_int(const void *base, int at)
{
    return *(const int *)(const void *)((const char *)base + at);
}

static inline int64_t flp_problem_int64(const void *base, int at)
{
    return *(const int64_t *)(const void *)((const char *)base + at);
}

/* A table is made of parts: a problem that has another's as its first field shares rows with it. The first part begins with dtype and sizes. */
#define FLP_EACH_FIELD(field, op)                                       \
    for (const flp_field *const *part_ = (op)->fields; *part_; part_++) \
        for (const flp_field *field = *part_; field->name; field++)

/* Checks every field, fills in the defaults and checks what holds between fields. FLP_BAD_ARGUMENT names the field, what it got and what was wanted. */
flp_status flp_problem_normalize(const flp_operator *op, const void *problem, void *normal);

/* The one choice or dtype at this offset; value: what it stands for, its default filled in. */
flp_status flp_problem_check_field(const flp_operator *op, size_t at, const void *problem, int *value);

/* 1: the field of a normal problem is what 0 there stands for, and is not written. */
int flp_problem_is_default(const flp_field *field, const void *normal);

/* The memory_budget of a normal problem; 0: it has none. */
int64_t flp_problem_memory_budget(const flp_operator *op, const void *normal);

/* Writes what tells problems apart, defaults filled in: choices and sizes of the key, which is zeroed. 0: the problem is not acceptable, or not
 * without a plan; flp_problem_refuse then says why. */
int flp_problem_pack(const flp_operator *op, const void *problem, flp_dispatch_key *key);
flp_status flp_problem_refuse(const flp_operator *op, const void *problem);

/* Rules that arguments share with fields. */
flp_status flp_problem_check_range(const char *field, int64_t got, int64_t low, int64_t high);

/* The canonical string: operator:dtype, then the sizes, all of them written, then of the other fields those that differ from what a zeroed field stands
 * for, in the table's order. gen/problem.lua reads it too, and the programs, tests and records name problems by it. */
enum { FLP_PROBLEM_TEXT_BYTES = 512 }; /* holds every canonical string */

flp_status flp_problem_text_write(const flp_operator *op, const void *problem, char *text, size_t bytes);

/* flp_X_problem_format and flp_X_problem_parse, with the problem as the caller's header has it. */
flp_status flp_problem_text_format(const flp_operator *op, const void *problem, char *text, size_t bytes, const flp_sizes *sizes);
flp_status flp_problem_text_parse(const flp_operator *op, const char *text, void *problem, const flp_sizes *sizes);
#endif
