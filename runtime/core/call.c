/* One call of any operator. */
#include "core/call.h"

#include <stddef.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/sized.h"
#include "base/status.h"
#include "core/arguments.h"
#include "core/dispatch.h"
#include "core/scratch.h"
#include "core/tally.h"

typedef union {
    max_align_t aligned;
    char bytes[FLP_CALL_ARGS_BYTES];
} own_args;

typedef union {
    max_align_t aligned;
    char bytes[FLP_CALL_WORK_BYTES];
} own_work;

/* ---- memory ---- */

/* The workspace of a plan's calls of `rows` rows. Laying one out costs more than all the rest of a call, so each thread keeps its latest layouts. */
enum { LAYOUTS = 4 };
typedef struct {
    uint64_t plan_serial;
    int64_t rows, wanted_bytes; /* wanted_bytes: of memory, enough for these rows and for fewer */
    flp_workspace workspace;
} layout;

static layout *find_layout(const flp_plan *plan, int64_t rows)
{
    static _Thread_local layout recents[LAYOUTS];
    layout *at = &recents[plan->serial % LAYOUTS];

    if (at->plan_serial == plan->serial && at->rows == rows)
        return at;
    at->plan_serial = plan->serial;
    at->rows = rows;
    flp_plan_lay_out(plan, rows, &at->workspace);
    at->wanted_bytes = flp_plan_most_rows(plan, rows) == rows ? at->workspace.bytes : flp_plan_workspace_bytes(plan, rows);
    return at;
}

static flp_status launch_in_scratch(const flp_operator_calls *calls, const flp_plan *plan, const flp_call *call, const void *work, layout *found)
{
    flp_scratch_loan loan;
    flp_status status = flp_scratch_lend(plan->context->scratch, &plan->device, call->stream, found->wanted_bytes, plan->workspace_bytes, &loan);

    if (status != FLP_OK)
        return status;
    found->workspace.memory = loan.address;
    status = calls->launch(plan, work, &found->workspace);
    flp_scratch_return(&loan);
    return status;
}

static flp_status run_on_gpu(const flp_operator_calls *calls, const flp_plan *plan, const flp_call *call, const void *work)
{
    layout *found = find_layout(plan, call->rows);
    const int64_t bytes = calls->takes_no_workspace ? 0 : found->wanted_bytes;
    flp_status status = FLP_OK;

    if (bytes > 0 && !call->workspace)
        return launch_in_scratch(calls, plan, call, work, found);
    if (bytes > 0)
        status = flp_arguments_check_workspace(call->workspace, call->workspace_bytes, bytes, call->rows);
    found->workspace.memory = call->workspace;
    return status == FLP_OK ? calls->launch(plan, work, &found->workspace) : status;
}

static flp_status run_on_cpu(const flp_operator_calls *calls, flp_plan *plan, const void *work)
{
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status = calls->run_on_cpu(plan, work, &bad_count, &bad_first);

    flp_tally_add_bad_targets(plan, bad_count, bad_first);
    return status;
}

/* ---- a call with a plan ---- */

static const void *pointer_at(const void *args, int at)
{
    return at ? *(const void *const *)(const void *)((const char *)args + at) : NULL;
}

static int64_t int64_at(const void *args, int at)
{
    return at ? *(const int64_t *)(const void *)((const char *)args + at) : 0;
}

static flp_call read_call(const flp_arguments *table, const void *args)
{
    return (flp_call){
        .rows = *(const int64_t *)args,
        .stream = (CUstream)pointer_at(args, table->stream_at),
        .workspace = (void *)pointer_at(args, table->workspace_at),
        .workspace_bytes = (size_t)int64_at(args, table->workspace_bytes_at),
        .flags = table->flags_at ? *(const unsigned *)(const void *)((const char *)args + table->flags_at) : 0,
        .target = pointer_at(args, table->target_at),
        .ignore_index = int64_at(args, table->ignore_index_at),
        .row_index = pointer_at(args, table->row_index_at),
        .target_rows = int64_at(args, table->logits_rows_at),
    };
}

static flp_status check(const flp_operator_calls *calls, const flp_plan *plan, const void *normal, const void *args, own_work *work)
{
    flp_status status = flp_arguments_check(calls->op, calls->arguments, normal, args);

    return status == FLP_OK && calls->check ? calls->check(plan, normal, args, work) : status;
}

static flp_status check_targets(const flp_operator_calls *calls, const flp_plan *plan, const flp_call *call)
{
    const char *problem = flp_plan_problem(plan);
    const flp_targets targets = {
        .target = call->target,
        .dtype = *(const flp_dtype *)(const void *)(problem + calls->arguments->target_dtype_at),
        .rows = call->rows,
        .vocab = flp_arguments_vocab(calls->arguments, problem),
        .ignore_index = call->ignore_index,
        .ignores = flp_arguments_ignore(call->flags),
        .stream = call->stream,
        .row_index = call->row_index,
        .target_rows = call->target_rows,
    };

    return flp_targets_check(plan, &targets);
}

static flp_status execute_by_default(const flp_operator_calls *calls, flp_plan *plan, const void *args, const flp_call *call, unsigned long long cuda_context)
{
    own_work own;
    const void *work = calls->makes_work ? &own : args;
    flp_status status = check(calls, plan, flp_plan_problem(plan), args, &own);

    if (status != FLP_OK || (call->rows == 0 && !calls->writes_without_rows))
        return status;
    if (flp_plan_on_gpu(plan))
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK && call->rows > 0 && call->flags & FLP_CHECK_TARGETS)
        status = check_targets(calls, plan, call);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(plan) ? run_on_gpu(calls, plan, call, work) : run_on_cpu(calls, plan, work);
}

/* cuda_context: the id of the current CUDA context; ignored on the CPU path. What the caller's thread computes, also for kernels, it computes in the default
 * floating-point environment. */
static flp_status execute(const flp_operator_calls *calls, flp_plan *plan, const void *args, const flp_call *call, unsigned long long cuda_context)
{
    flp_arithmetic arithmetic;
    flp_status status;

    flp_arithmetic_enter(&arithmetic);
    status = execute_by_default(calls, plan, args, call, cuda_context);
    flp_arithmetic_leave(&arithmetic);
    return status;
}

static const void *take_args(const flp_operator_calls *calls, const void *args, own_args *own, const flp_sizes *sizes, flp_status *status)
{
    return calls->take ? calls->take(args, own, sizes, status) : flp_sized_take(calls->arguments->args_struct, sizes, args, own, status);
}

static flp_status check_plan(const flp_plan *plan, const flp_operator *op)
{
    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted one of %s", op->name);
    if (plan->op == op)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got one of %s, wanted one of %s", plan->op->name, op->name);
}

flp_status flp_call_execute(const flp_operator_calls *calls, flp_plan *plan, const void *args, const flp_sizes *sizes)
{
    own_args own;
    flp_call call;
    unsigned long long cuda_context = 0;
    flp_status status = FLP_OK;

    args = take_args(calls, args, &own, sizes, &status);
    if (status == FLP_OK)
        status = check_plan(plan, calls->op);
    if (status == FLP_OK && !args)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "args: got NULL");
    if (status != FLP_OK)
        return status;
    call = read_call(calls->arguments, args);
    if (flp_plan_on_gpu(plan) && (call.rows != 0 || calls->writes_without_rows))
        status = flp_device_current_id(&cuda_context);
    return status == FLP_OK ? execute(calls, plan, args, &call, cuda_context) : status;
}

/* ---- a call without a plan ---- */

/* A call with 0 rows: checks what can be checked without addresses, and therefore without a plan. */
static flp_status check_empty(const flp_operator_calls *calls, const void *problem, const void *args)
{
    const flp_operator *op = calls->op;
    flp_problem_storage empty, normal;
    own_work own;
    flp_status status;

    memcpy(&empty, problem, op->problem_bytes);
    *flp_operator_rows(op, &empty) = 0;
    *flp_operator_pointer_alignment(op, &empty) = 0;
    status = flp_problem_normalize(op, &empty, &normal);
    return status == FLP_OK ? check(calls, NULL, &normal, args, &own) : status;
}

typedef struct {
    const flp_operator_calls *calls;
    const void *args;
} unplanned;

static flp_status check_new(const void *problem, const void *given)
{
    const unplanned *call = given;

    return flp_arguments_check_elements(call->calls->op, call->calls->arguments, problem, call->args);
}

static void complete_new(flp_context *context, const void *problem, const void *given, flp_plan **plan)
{
    const unplanned *call = given;

    if (call->calls->tune)
        call->calls->tune(call->calls, context, problem, plan);
}

flp_status flp_call_create_plan(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan, const flp_sizes *sizes)
{
    flp_problem_storage own;
    flp_status status = FLP_OK;

    if (plan)
        *plan = NULL;
    problem = flp_sized_take(calls->op->problem_struct, sizes, problem, &own, &status);
    if (status == FLP_OK)
        status = flp_create_plan(context, calls->op, problem, plan);
    if (status == FLP_OK)
        complete_new(context, problem, &(unplanned){ calls, NULL }, plan);
    return status;
}

flp_status flp_call_prepare(const flp_operator_calls *calls, flp_context *context, const void *problem, CUstream stream, const flp_sizes *sizes)
{
    const unplanned call = { calls, NULL };

    return flp_prepare_problem(context, calls->op, problem, &(flp_dispatch_call){ .stream = stream, .complete_new = complete_new, .args = &call }, sizes);
}

flp_status flp_call_run(const flp_operator_calls *calls, flp_context *context, const void *problem, const void *args, const flp_sizes *sizes)
{
    flp_problem_storage own_problem;
    own_args own;
    flp_call call;
    unplanned new_call;
    flp_dispatch_call wanted;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(calls->op->problem_struct, sizes, problem, &own_problem, &status);
    args = take_args(calls, args, &own, sizes, &status);
    if (status == FLP_OK && !(context && problem && args))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !context ? "context" : !problem ? "problem" : "args");
    if (status != FLP_OK)
        return status;
    call = read_call(calls->arguments, args);
    if (call.rows == 0 && !calls->writes_without_rows)
        return check_empty(calls, problem, args);
    new_call = (unplanned){ calls, args };
    wanted = (flp_dispatch_call){
        call.rows == 0 ? 1 : call.rows, flp_arguments_addresses(calls->arguments, problem, args), call.stream, check_new, complete_new, &new_call
    };
    status = flp_dispatch_find(context, calls->op, problem, &wanted, &cuda_context, &plan);
    return status == FLP_OK ? execute(calls, plan, args, &call, cuda_context) : status;
}

/* ---- launches ---- */

_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "the driver reads other structures");

/* Programmatic dependent launch: a kernel that waits by itself for the kernel before it may start before that one has ended. */
static CUresult launch_dependent(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters)
{
    CUlaunchAttribute overlap = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1 };
    const CUlaunchConfig config = { .gridDimX = blocks,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = (unsigned)kernel->manifest.threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)kernel->manifest.shared_bytes,
                                    .hStream = stream,
                                    .attrs = &overlap,
                                    .numAttrs = 1 };

    return driver->launch_extended(&config, kernel->function, parameters, NULL);
}

static flp_status launch_kernel(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters)
{
    const flp_manifest *manifest = &kernel->manifest;
    const int is_dependent = manifest->dependent_launch && driver->launch_extended;
    CUresult result = is_dependent ? launch_dependent(driver, kernel, blocks, stream, parameters)
                                   : driver->launch(kernel->function, blocks, 1, 1, (unsigned)manifest->threads, 1, 1, (unsigned)manifest->shared_bytes, stream,
                                                    parameters, NULL);

    if (result == CUDA_SUCCESS)
        return FLP_OK;
    return flp_status_prefix(flp_driver_check(driver, result, is_dependent ? "cuLaunchKernelEx" : "cuLaunchKernel"), "%s, %u blocks", manifest->variant,
                             blocks);
}

flp_status flp_call_launch(const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    return status == FLP_OK ? launch_kernel(driver, kernel, blocks, stream, parameters) : status;
}
