/* The items of a tuning that change the chunks of linear_logp's backward, e.g. "chunks.columns=28". The kernels stay the same; they are launched for other
 * chunks.
 *
 * chunks.columns, chunks.saved, chunks.borrowed: the widths of flp_backward_chunks in tiles of FLP_BACKWARD_COLUMNS vocabulary entries. They decide a row's
 * bits, and are part of flp_plan_numerics. chunks.rows: where grad_hidden is the only gradient, the rows of a chunk in blocks of FLP_BACKWARD_ROW_BLOCK, which
 * do not decide them. */
#ifndef FLP_OPERATORS_CHUNK_TUNING_H
#define FLP_OPERATORS_CHUNK_TUNING_H
#include "base/status.h"
#include "base/text.h"
#include "operators/linear/linear_workspace.h"

/* Fills in the chunks that a tuning names, and the budget's where it names none. work: as flp_linear_budget_spend takes it.
 * FLP_BAD_ARGUMENT: the problem has no such chunks, or they need other kernels than the budget's, or more memory than the problem's memory_budget. */
flp_status flp_chunk_tuning_apply(const flp_linear_work *work, const char *tuning, flp_backward_chunks *chunks);

/* Appends the tunings that are worth a try, a line each: those that decide a row's bits, or those that do not. most_bytes: the largest workspace. */
void flp_chunk_tuning_offer(const flp_linear_work *work, int decides_bits, int64_t most_bytes, flp_text *tunings);
#endif
