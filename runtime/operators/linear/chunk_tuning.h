/* What a tuning says of the chunks in which linear_logp's backward goes by: "chunks.columns=28", say. They are launches of the same kernels.
 *
 * chunks.columns, chunks.saved, chunks.borrowed: the widths of flp_backward_chunks in tiles of FLP_BACKWARD_COLUMNS vocabulary entries. They decide a row's
 * bits, and flp_plan_numerics has them. chunks.rows: with grad_hidden alone, the rows of a chunk in blocks of FLP_BACKWARD_ROW_BLOCK, which do not. */
#ifndef FLP_OPERATORS_CHUNK_TUNING_H
#define FLP_OPERATORS_CHUNK_TUNING_H
#include "base/status.h"
#include "base/text.h"
#include "operators/linear/linear_workspace.h"

/* The chunks of a tuning, those of the budget where it says nothing of them. work: as flp_linear_budget_spend takes it. FLP_BAD_ARGUMENT: these chunks can't be
 * had; they need other kernels than the budget's, or more than the problem's memory_budget. */
flp_status flp_chunk_tuning_apply(const flp_linear_work *work, const char *tuning, flp_backward_chunks *chunks);

/* Appends the tunings that are worth a try, a line each: those that decide a row's bits, or those that do not. most_bytes: of the workspace. */
void flp_chunk_tuning_offer(const flp_linear_work *work, int decides_bits, int64_t most_bytes, flp_text *tunings);
#endif
