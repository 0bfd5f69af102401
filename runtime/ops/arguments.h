/* Rules that the arguments of all operators share. Each names the argument, what it got and what was wanted (FLP_BAD_ARGUMENT). */
#ifndef FLP_OPS_ARGUMENTS_H
#define FLP_OPS_ARGUMENTS_H
#include "fusedlogp.h"

/* wanted: alignment in bytes. NULL is refused, or taken as optional. */
flp_status flp_arguments_check_address(const char *argument, const void *address, int wanted);
flp_status flp_arguments_check_optional(const char *argument, const void *address, int wanted);

/* most: the plan's rows. */
flp_status flp_arguments_check_rows(int64_t rows, int64_t most);
/* more: flags that the operator has beside those of every operator with targets. */
flp_status flp_arguments_check_flags(unsigned flags, unsigned more, int64_t ignore_index);
/* Whether the rows whose target is ignore_index are ignored. */
int flp_arguments_ignore(unsigned flags);

flp_status flp_arguments_check_temperature(double temperature, const float *row_temperature);
/* 1, or the temperature that all rows share. */
double flp_arguments_temperature(double temperature);
/* log2(e) / temperature; that of rows is divided by a row's own. KEEP IN STEP: temperatures (templates/common/logit_bounds.cuh). */
float flp_arguments_scale(double temperature);

/* wanted: bytes for so many rows. */
flp_status flp_arguments_check_workspace(const void *workspace, size_t bytes, int64_t wanted, int64_t rows);

/* So many elements further; NULL stays NULL. */
const void *flp_arguments_advance(const void *address, int64_t elements, flp_dtype dtype);

/* For an argument that the problem has not asked for: field is the problem's, with the value that it has. */
flp_status flp_arguments_check_absent(const char *argument, const void *address, const char *field);
#endif
