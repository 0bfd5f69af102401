/* Rules that the problems of all operators share. Each names the field, what it got and what was wanted (FLP_BAD_ARGUMENT). */
#ifndef FLP_PLAN_PROBLEM_H
#define FLP_PLAN_PROBLEM_H
#include "fusedlogp.h"

/* The most rows of one call: row blocks x splits stay below 2^31 in the kernels' schedule. */
#define FLP_PROBLEM_ROWS_MAX (INT64_C(1) << 28)

flp_status flp_problem_check_range(const char *field, int64_t got, int64_t low, int64_t high);
flp_status flp_problem_check_rows(int64_t rows);                      /* 0 .. FLP_PROBLEM_ROWS_MAX */
flp_status flp_problem_check_extent(const char *field, int64_t got);  /* 1 .. 2^31 - 1: the kernels hold it in 32 bits */
flp_status flp_problem_check_flag(const char *field, int got);        /* 0 or 1 */
flp_status flp_problem_check_float(const char *field, flp_dtype got); /* bf16, f16 or f32 */
flp_status flp_problem_check_softcap(double softcap);
flp_status flp_problem_check_backend(flp_backend backend);

/* Checks, and fills in a default for 0. */
flp_status flp_problem_fill_target_dtype(flp_dtype *target_dtype); /* i64 */
flp_status flp_problem_fill_alignment(int element_bytes, int *alignment); /* 16, and no more: more changes nothing */
/* columns; rows of that stride stay an int64 count of bytes. */
flp_status flp_problem_fill_stride(const char *field, int64_t rows, int64_t columns, int element_bytes, int64_t *stride);
#endif
