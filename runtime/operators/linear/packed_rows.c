/* The valid rows of a call, packed. */
#include "operators/linear/packed_rows.h"

#include <string.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/arguments.h"
#include "core/call.h"
#include "params/linear_logp_shard.h"

enum {
    BLOCKS_A_MULTIPROCESSOR = 8 /* of the kernels that only move rows */
};

static void *at(const flp_packed_call *call, flp_linear_part part)
{
    return flp_workspace_at(call->workspace, part);
}

static flp_backward_counts *counts_of(const flp_packed_call *call)
{
    return at(call, FLP_PART_COUNTS);
}

/* ---- where they lie ---- */

flp_packed_rows flp_packed_rows_all(const flp_packed_call *call)
{
    const flp_linear_logp_backward_args *args = call->args;
    flp_packed_rows all = {
        .hidden = at(call, FLP_PART_PACKED_ROWS),
        .stride = flp_linear_work_packed_stride(&call->plan->work),
        .row = at(call, FLP_PART_ROW),
        .packed_index = at(call, FLP_PART_PACKED_INDEX),
        .count = &counts_of(call)->count,
        .gradient = at(call, FLP_PART_GRADIENT),
        .rows = args->rows,
    };

    if (!all.hidden)
        all.hidden = args->rows > 0 ? args->grad_hidden : call->workspace->memory;
    return all;
}

flp_packed_rows flp_packed_rows_chunk(const flp_packed_call *call, int64_t first)
{
    const int64_t most = call->plan->work.chunks.row_chunk, left = call->args->rows - first;
    flp_packed_rows rows = flp_packed_rows_all(call);

    if (most == 0 || call->args->rows <= most)
        return rows;
    rows.hidden = (char *)rows.hidden + first * rows.stride * flp_dtype_bytes(call->plan->problem.forward.dtype);
    rows.row += first;
    if (call->plan->work.chunks.in_forward)
        rows.gradient += first;
    rows.count = (const int32_t *)at(call, FLP_PART_CHUNK_COUNTS) + first / most;
    rows.first = first;
    rows.rows = left < most ? left : most;
    return rows;
}

/* ---- which rows are valid ---- */

/* The finaliser of splitmix64: each bit of value changes half of the result's bits. */
static uint64_t mix(uint64_t mark, uint64_t value)
{
    mark += value + UINT64_C(0x9e3779b97f4a7c15);
    mark = (mark ^ (mark >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mark = (mark ^ (mark >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mark ^ (mark >> 31);
}

unsigned long long flp_packed_rows_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    const int ignores = flp_arguments_ignore(args->flags);
    const double temperature = flp_arguments_temperature(args->temperature);
    uint64_t mark = mix(plan->serial, (uint64_t)args->rows), bits;

    memcpy(&bits, &temperature, sizeof(bits));
    mark = mix(mark, (uint64_t)ignores);
    mark = mix(mark, ignores ? (uint64_t)args->ignore_index : 0);
    mark = mix(mark, args->row_temperature ? 1 : 0);
    mark = mix(mark, bits);
    return mark ? mark : 1;
}

/* A call without rows leaves no mark. */
static void use_mark(const flp_packed_call *call, flp_backward_rows_params *params)
{
    flp_backward_counts *counts = counts_of(call);

    if (!call->plan->problem.with_forward || call->args->rows == 0)
        return;
    params->mark = &counts->mark;
    params->mark_value = flp_packed_rows_mark(&call->plan->common, call->args);
    params->count = &counts->count;
    params->taken = &counts->taken;
    params->unmatched = (flp_tally *)(uintptr_t)flp_tally_at(&call->plan->common, FLP_TALLY_UNMATCHED);
}

/* In a shard, the kernel reads entries as targets. */
static void use_entries(const flp_packed_call *call, flp_backward_rows_params *params)
{
    params->target = at(call, FLP_PART_ENTRY);
    params->target_bytes = sizeof(int32_t);
    params->vocab = FLP_ENTRY_END;
    params->ignores = 1;
    params->ignore_index = FLP_ENTRY_IGNORED;
}

flp_backward_rows_params flp_packed_rows_params(const flp_packed_call *call, const flp_packed_rows *rows)
{
    const flp_linear_logp_problem *forward = &call->plan->problem.forward;
    const flp_linear_logp_backward_args *args = call->args;
    flp_backward_rows_params params = {
        .target = args->target,
        .row = rows->row,
        .packed_index = rows->packed_index,
        .count = (int32_t *)(uintptr_t)rows->count,
        .ignore_index = args->ignore_index,
        .ignores = flp_arguments_ignore(args->flags),
        .rows = (int32_t)rows->rows,
        .vocab = (int32_t)forward->vocab,
        .target_bytes = flp_dtype_bytes(forward->target_dtype),
    };

    if (forward->vocab_total > 0)
        use_entries(call, &params);
    use_mark(call, &params);
    return params;
}

/* With a forward, the combine counts the bad targets. */
flp_status flp_packed_rows_index(const flp_packed_call *call)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    const flp_linear_logp_backward_plan *plan = call->plan;
    flp_backward_rows_params params = flp_packed_rows_params(call, &all);
    void *parameters[] = { &params };

    params.indexes = 1;
    params.target_errors = plan->problem.with_forward ? NULL : (flp_tally *)(uintptr_t)plan->common.target_errors;
    params.chunk_counts = at(call, FLP_PART_CHUNK_COUNTS);
    params.chunk_rows = (int32_t)flp_linear_work_chunk_rows(&plan->work, call->args->rows);
    params.chunks = params.chunk_rows ? (int32_t)flp_int64_divide_up(all.rows, params.chunk_rows) : 0;
    flp_workspace_begin_step(call->workspace, FLP_STEP_INDEX_ROWS);
    return flp_call_launch(plan->rows, 1, call->args->stream, parameters);
}

/* ---- gathering ---- */

unsigned flp_packed_rows_blocks(const flp_packed_call *call, int64_t rows)
{
    const int64_t most = (int64_t)call->plan->common.device.facts.multiprocessors * BLOCKS_A_MULTIPROCESSOR;

    return (unsigned)(rows < 1 ? 1 : rows < most ? rows : most);
}

static flp_status launch_gather(const flp_packed_call *call, const flp_packed_rows *rows, flp_backward_gather_params *params)
{
    void *parameters[] = { params };

    params->count = rows->count;
    params->rows = (int32_t)rows->rows;
    return flp_call_launch(call->plan->gather, flp_packed_rows_blocks(call, rows->rows), call->args->stream, parameters);
}

flp_status flp_packed_rows_gather(const flp_packed_call *call, const flp_packed_rows *rows, const flp_packed_gather *gather)
{
    const flp_linear_logp_problem *forward = &call->plan->problem.forward;
    const int moves = gather->to != NULL;
    flp_backward_gather_params params = {
        .hidden = moves ? rows->hidden : call->args->hidden,
        .hidden_stride = moves ? rows->stride : forward->hidden_stride,
        .row = moves ? NULL : rows->row,
        .packed = moves ? gather->to : rows->hidden,
        .packed_stride = moves ? forward->hidden : rows->stride,
        .skips_whole = moves,
        .hidden_size = (int32_t)forward->hidden,
        .sums = gather->sums,
        .row_factor = gather->row_factor,
        .mark = gather->mark,
        .pdl_wait_last = gather->is_beside,
    };

    flp_workspace_begin_step(call->workspace, gather->step);
    return launch_gather(call, rows, &params);
}

flp_status flp_packed_rows_copy(const flp_packed_call *call, const flp_packed_rows *rows, const flp_packed_copy *copy)
{
    flp_backward_gather_params params = {
        .hidden = copy->from,
        .hidden_stride = copy->from_stride,
        .packed = copy->to,
        .packed_stride = copy->to_stride,
        .hidden_size = (int32_t)copy->columns,
        .pdl_wait_last = copy->is_beside,
    };

    return launch_gather(call, rows, &params);
}
