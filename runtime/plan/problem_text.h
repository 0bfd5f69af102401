/* A problem's canonical string, written and read by an operator's table of parts: gen/problem.lua reads it too, and the programs, tests
 * and records name problems by it. KEEP IN STEP: problem string. */
#ifndef FLP_PLAN_PROBLEM_TEXT_H
#define FLP_PLAN_PROBLEM_TEXT_H
#include <stddef.h>

#include "fusedlogp.h"

enum { FLP_PROBLEM_TEXT_BYTES = 512 }; /* holds every canonical string */

typedef struct flp_operator flp_operator;

typedef enum {
    FLP_PART_WORD,   /* an int or enum field has the value `value` */
    FLP_PART_BIT,    /* an unsigned field has the bit `value` */
    FLP_PART_SIZE,   /* word and an int64_t */
    FLP_PART_INT,    /* word and an int */
    FLP_PART_NUMBER, /* word and a double */
    FLP_PART_DTYPE,  /* word and a dtype's name */
    FLP_PART_NAME    /* word and an array of FLP_TOKEN_LOSS_NAME_BYTES characters */
} flp_part_kind;

typedef struct {
    const char *word; /* NULL ends a table */
    flp_part_kind kind;
    size_t at;              /* the field's offset in the problem */
    int value;              /* FLP_PART_WORD, FLP_PART_BIT */
    const char *value_name; /* of the others, for messages */
} flp_problem_part;

/* operator:dtype, then the sizes, all of them written, then of the options those that differ from what a zeroed field stands for, in the
 * tables' order. */
typedef struct {
    size_t dtype_at;
    const flp_problem_part *sizes, *options;
} flp_problem_syntax;

flp_status flp_problem_text_write(const flp_operator *operator, const void *problem, char *text, size_t bytes);

/* flp_X_problem_format and flp_X_problem_parse, with the problem as the caller's header has it. */
flp_status flp_problem_text_format(const flp_operator *operator, const void *problem, char *text, size_t bytes, const flp_sizes *sizes);
flp_status flp_problem_text_parse(const flp_operator *operator, const char *text, void *problem, const flp_sizes *sizes);
#endif
