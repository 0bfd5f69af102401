/* All that later calls of a problem would have to make, before a capture or the first request. */
#ifndef FLP_CORE_PREPARE_H
#define FLP_CORE_PREPARE_H
#include "core/context.h"
#include "core/operator.h"

/* flp_X_prepare: the plans that dispatch makes for any N up to the problem's rows, and the shared scratch of stream for them. sizes: of the
 * caller's structs. */
flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, CUstream stream, const flp_sizes *sizes);
#endif
