/* The operators over the C library: each reads a frame, makes the outputs, finds a plan and executes it. */
#include "torch_operators.h"
#include "torch_device.h"
#include "torch_plans.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DTYPES(x) (1u << (x))
enum {
    FLOATS = DTYPES(FLP_BF16) | DTYPES(FLP_F16) | DTYPES(FLP_F32),
    INDICES = DTYPES(FLP_I32) | DTYPES(FLP_I64),
    F32 = DTYPES(FLP_F32),
    VECTOR_ALIGNMENT = 16, /* what the fast kernels want of their arrays */
    WORKSPACE_ALIGNMENT = 256
};

static int fail(flp_torch_frame *frame, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(flp_torch_frame *frame, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(frame->error, sizeof(frame->error), format, list);
    va_end(list);
    return 1;
}

static int check_status(flp_torch_frame *frame, flp_status status)
{
    return status == FLP_OK ? 0 : fail(frame, "fusedlogp: %s: %s", flp_status_text(status), flp_error_message());
}

/* ---- inputs */

static bool given(const flp_torch_value *value)
{
    return value->kind == FLP_TORCH_TENSOR;
}

static const void *data_of(const flp_torch_value *value)
{
    return given(value) ? value->data : NULL;
}

static flp_dtype dtype_of(const flp_torch_value *value)
{
    return given(value) ? value->dtype : FLP_NONE;
}

static int check_tensor(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int dim, unsigned dtypes)
{
    if (value->dim != dim)
        return fail(frame, "%s has %d dimensions, wanted %d", name, value->dim, dim);
    if (!(DTYPES(value->dtype) & dtypes))
        return fail(frame, "%s has a dtype that is not taken, wanted %s", name,
                    dtypes == F32 ? "float32" : (dtypes & INDICES ? "int32 or int64" : "bfloat16, float16 or float32"));
    if (value->device != frame->device)
        return fail(frame, "%s is on another device than the first tensor", name);
    return 0;
}

/* rows, columns: -1 for any. Its rows lie in one piece each. */
static int check_matrix(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t rows, int64_t columns, unsigned dtypes)
{
    if (check_tensor(frame, name, value, 2, dtypes))
        return 1;
    if ((rows >= 0 && value->sizes[0] != rows) || (columns >= 0 && value->sizes[1] != columns))
        return fail(frame, "%s has shape [%lld, %lld], wanted [%lld, %lld] (-1: any)", name, (long long)value->sizes[0], (long long)value->sizes[1],
                    (long long)rows, (long long)columns);
    if (value->sizes[1] > 1 && value->strides[1] != 1)
        return fail(frame, "%s has stride %lld along its rows, wanted 1", name, (long long)value->strides[1]);
    if (value->sizes[0] > 1 && value->strides[0] < value->sizes[1])
        return fail(frame, "%s has row stride %lld, wanted %lld or more", name, (long long)value->strides[0], (long long)value->sizes[1]);
    return 0;
}

static int check_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes)
{
    if (check_tensor(frame, name, value, 1, dtypes))
        return 1;
    if (value->sizes[0] != count)
        return fail(frame, "%s has %lld elements, wanted %lld", name, (long long)value->sizes[0], (long long)count);
    if (count > 1 && value->strides[0] != 1)
        return fail(frame, "%s has stride %lld, wanted 1", name, (long long)value->strides[0]);
    return 0;
}

static int check_optional_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes)
{
    return given(value) ? check_vector(frame, name, value, count, dtypes) : 0;
}

static int64_t row_stride(const flp_torch_value *value)
{
    return value->sizes[0] > 1 ? value->strides[0] : value->sizes[1];
}

static int alignment_of(const void *a, const void *b)
{
    uintptr_t both = (uintptr_t)a | (uintptr_t)b | VECTOR_ALIGNMENT;

    return (int)(both & -both);
}

/* ---- outputs */

static int make(flp_torch_frame *frame, int output, flp_dtype dtype, int dim, const int64_t *sizes, const int64_t *strides, void **data)
{
    if (frame->allocate(frame, output, dtype, dim, sizes, strides, data) == 0)
        return 0;
    return frame->error[0] ? 1 : fail(frame, "fusedlogp: torch could not allocate an output");
}

/* One that is not wanted has no elements, and *data is NULL. */
static int make_vector(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t count, bool wanted, void **data)
{
    int64_t size = wanted ? count : 0, stride = 1;

    if (make(frame, output, dtype, 1, &size, &stride, data))
        return 1;
    if (!wanted)
        *data = NULL;
    return 0;
}

static int make_matrix(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t rows, int64_t columns, bool transposed, bool wanted, void **data)
{
    int64_t sizes[2] = { rows, columns }, strides[2] = { transposed ? 1 : columns, transposed ? rows : 1 };

    if (!wanted)
        return make_vector(frame, output, dtype, 0, false, data);
    return make(frame, output, dtype, 2, sizes, strides, data);
}

static int64_t workspace_size(const flp_plan *plan, int64_t rows)
{
    return flp_plan_workspace_bytes(plan, rows) + WORKSPACE_ALIGNMENT;
}

static void *aligned(void *data)
{
    return (void *)(((uintptr_t)data + WORKSPACE_ALIGNMENT - 1) & -(uintptr_t)WORKSPACE_ALIGNMENT);
}

/* Zeros of both where the plan needs nothing. output: one that stays, or -1; one on the CPU says in its last byte, which is behind any workspace, where
 * the workspace begins. */
static int make_workspace(flp_torch_frame *frame, int output, const flp_plan *plan, int64_t rows, void **workspace, size_t *bytes)
{
    int64_t wanted = flp_plan_workspace_bytes(plan, rows), stride = 1, size = workspace_size(plan, rows);
    void *data;

    *workspace = NULL, *bytes = 0;
    if (wanted <= 0 && output < 0)
        return 0;
    if (make(frame, output, FLP_NONE, 1, &size, &stride, &data))
        return 1;
    *workspace = aligned(data);
    *bytes = (size_t)wanted;
    if (output >= 0 && frame->device < 0)
        ((unsigned char *)data)[size - 1] = (unsigned char)((unsigned char *)*workspace - (unsigned char *)data);
    return 0;
}

static int find_plan(flp_torch_frame *frame, flp_torch_plans_operator kind, const void *problem, flp_plan **plan)
{
    return check_status(frame, flp_torch_plans_find(frame->device, kind, problem, plan));
}

/* The least value of a field that the library takes as a number, for arrays that have no element. */
static const char nothing[VECTOR_ALIGNMENT] __attribute__((aligned(VECTOR_ALIGNMENT)));

static const void *some(const void *data)
{
    return data ? data : nothing;
}

/* ---- the linear operators: each begins with the same inputs */

#define LINEAR \
    "Tensor hidden, Tensor weight, Tensor? bias, Tensor target, Tensor? row_temperature, float temperature, float softcap, int? ignore_index, bool exact, "
enum { HIDDEN, WEIGHT, BIAS, TARGET, ROW_TEMPERATURE, TEMPERATURE, SOFTCAP, IGNORE_INDEX, EXACT, LINEAR_INPUTS };

typedef struct {
    int64_t rows, columns, vocab;
    bool transposed; /* weight [V, D] lies as [D, V] */
    flp_linear_logp_problem problem;
    flp_linear_logp_args args; /* inputs alone */
} linear;

static int lies_transposed(const flp_torch_value *weight)
{
    bool rows_lie = weight->sizes[1] <= 1 || weight->strides[1] == 1, columns_lie = weight->sizes[0] <= 1 || weight->strides[0] == 1;

    if (rows_lie && (weight->sizes[0] <= 1 || weight->strides[0] >= weight->sizes[1]))
        return 0;
    return columns_lie && (weight->sizes[1] <= 1 || weight->strides[1] >= weight->sizes[0]) ? 1 : -1;
}

static int64_t weight_stride(const flp_torch_value *weight, bool transposed)
{
    if (transposed)
        return weight->sizes[1] > 1 ? weight->strides[1] : weight->sizes[0];
    return row_stride(weight);
}

static int read_linear(flp_torch_frame *frame, linear *l)
{
    const flp_torch_value *in = frame->inputs, *hidden = &in[HIDDEN], *weight = &in[WEIGHT];
    int transposed;

    memset(l, 0, sizeof(*l));
    if (check_matrix(frame, "hidden", hidden, -1, -1, FLOATS) || check_tensor(frame, "weight", weight, 2, DTYPES(hidden->dtype) & FLOATS))
        return 1;
    l->rows = hidden->sizes[0], l->columns = hidden->sizes[1], l->vocab = weight->sizes[0];
    if (weight->sizes[1] != l->columns)
        return fail(frame, "weight has %lld columns, wanted hidden's %lld", (long long)weight->sizes[1], (long long)l->columns);
    transposed = lies_transposed(weight);
    if (transposed < 0)
        return fail(frame, "weight has strides (%lld, %lld), wanted 1 for one of them", (long long)weight->strides[0], (long long)weight->strides[1]);
    l->transposed = transposed;
    if (check_optional_vector(frame, "bias", &in[BIAS], l->vocab, FLOATS) || check_vector(frame, "target", &in[TARGET], l->rows, INDICES) ||
        check_optional_vector(frame, "row_temperature", &in[ROW_TEMPERATURE], l->rows, F32))
        return 1;
    memset(&l->problem, 0, sizeof(l->problem)); /* its bytes are the plan's key */
    l->problem.dtype = hidden->dtype;
    l->problem.rows = flp_torch_plans_rows(l->rows);
    l->problem.hidden = l->columns;
    l->problem.vocab = l->vocab;
    l->problem.weight_layout = l->transposed ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN;
    l->problem.hidden_stride = row_stride(hidden);
    l->problem.weight_stride = weight_stride(weight, l->transposed);
    l->problem.pointer_alignment = alignment_of(hidden->data, weight->data);
    l->problem.bias_dtype = dtype_of(&in[BIAS]);
    l->problem.target_dtype = in[TARGET].dtype;
    l->problem.softcap = in[SOFTCAP].number;
    l->problem.precision = in[EXACT].integer ? FLP_PRECISION_EXACT : FLP_PRECISION_TENSOR;
    l->problem.backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
    l->args = (flp_linear_logp_args){
        .rows = l->rows,
        .hidden = some(hidden->data),
        .weight = weight->data,
        .bias = data_of(&in[BIAS]),
        .target = some(in[TARGET].data),
        .ignore_index = in[IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? in[IGNORE_INDEX].integer : 0,
        .flags = (in[IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? FLP_IGNORE_INDEX : 0) | (frame->device < 0 ? FLP_CHECK_TARGETS : 0),
        .temperature = given(&in[ROW_TEMPERATURE]) ? 0 : in[TEMPERATURE].number,
        .row_temperature = data_of(&in[ROW_TEMPERATURE]),
        .stream = frame->stream,
    };
    return 0;
}

enum { ENTROPY = LINEAR_INPUTS, ARGMAX, ROWS_INPUTS };

/* What a forward gives of each row. */
static int make_rows(flp_torch_frame *frame, const linear *l, float **logp, float **lse, float **entropy, int32_t **argmax)
{
    return make_vector(frame, 0, FLP_F32, l->rows, true, (void **)logp) || make_vector(frame, 1, FLP_F32, l->rows, true, (void **)lse) ||
           make_vector(frame, 2, FLP_F32, l->rows, l->problem.entropy, (void **)entropy) ||
           make_vector(frame, 3, FLP_I32, l->rows, l->problem.argmax, (void **)argmax);
}

static int run_forward(flp_torch_frame *frame, linear *l)
{
    flp_plan *plan;

    if (l->rows == 0)
        return 0;
    if (find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP, &l->problem, &plan) ||
        make_workspace(frame, -1, plan, l->rows, &l->args.workspace, &l->args.workspace_bytes))
        return 1;
    return check_status(frame, flp_linear_logp_execute(plan, &l->args));
}

/* Its memory_budget, behind these inputs, is the backward's. */
static int linear_logp(flp_torch_frame *frame)
{
    const flp_torch_value *in = frame->inputs;
    linear l;

    if (read_linear(frame, &l))
        return 1;
    l.problem.entropy = in[ENTROPY].integer != 0, l.problem.argmax = in[ARGMAX].integer != 0;
    if (make_rows(frame, &l, &l.args.logp, &l.args.lse, &l.args.entropy, &l.args.argmax))
        return 1;
    return run_forward(frame, &l);
}

/* ---- the same over shards of the vocabulary */

#define SHARD "int vocab_first, int vocab_total"

/* first: the input with the id of the shard's first entry; the next is the whole vocabulary's size. */
static int read_shard(flp_torch_frame *frame, int first, linear *l)
{
    const int64_t vocab_first = frame->inputs[first].integer, vocab_total = frame->inputs[first + 1].integer;

    if (vocab_total < 1)
        return fail(frame, "vocab_total is %lld, wanted 1 or more", (long long)vocab_total);
    l->problem.vocab_first = vocab_first, l->problem.vocab_total = vocab_total;
    return 0;
}

static int read_rows_of_shard(flp_torch_frame *frame, linear *l)
{
    if (read_linear(frame, l) || read_shard(frame, ROWS_INPUTS, l))
        return 1;
    l->problem.entropy = frame->inputs[ENTROPY].integer != 0, l->problem.argmax = frame->inputs[ARGMAX].integer != 0;
    return 0;
}

static int linear_logp_partials(flp_torch_frame *frame)
{
    linear l;

    if (read_rows_of_shard(frame, &l) || make_matrix(frame, 0, FLP_F32, l.rows, FLP_PARTIAL_FLOATS, false, true, (void **)&l.args.partials))
        return 1;
    return run_forward(frame, &l);
}

/* Of all shards, one behind the other. */
static int read_partials(flp_torch_frame *frame, const flp_torch_value *partials, int64_t rows, int64_t *ranks)
{
    if (check_matrix(frame, "partials", partials, -1, FLP_PARTIAL_FLOATS, F32))
        return 1;
    *ranks = 1;
    if (rows == 0)
        return 0;
    if (partials->sizes[0] == 0 || partials->sizes[0] % rows != 0 || row_stride(partials) != FLP_PARTIAL_FLOATS)
        return fail(frame, "partials has %lld rows, wanted a multiple of hidden's %lld, in one piece", (long long)partials->sizes[0], (long long)rows);
    *ranks = partials->sizes[0] / rows;
    return 0;
}

static int linear_logp_merge(flp_torch_frame *frame)
{
    enum { PARTIALS = ROWS_INPUTS + 2 };
    const flp_torch_value *partials = &frame->inputs[PARTIALS];
    flp_linear_logp_merge_args args = { 0 };
    int64_t ranks;
    flp_plan *plan;
    linear l;

    if (read_rows_of_shard(frame, &l) || read_partials(frame, partials, l.rows, &ranks) ||
        make_rows(frame, &l, &args.logp, &args.lse, &args.entropy, &args.argmax))
        return 1;
    if (l.rows == 0)
        return 0;
    args.rows = l.rows, args.ranks = (int)ranks, args.flags = l.args.flags;
    args.partials = partials->data, args.target = l.args.target, args.ignore_index = l.args.ignore_index, args.stream = frame->stream;
    if (find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP, &l.problem, &plan))
        return 1;
    return check_status(frame, flp_linear_logp_execute_merge(plan, &args));
}

/* ---- gradients */

/* A shard's part of grad_hidden is rounded behind the sum over the ranks. */
static flp_dtype grad_hidden_dtype(const linear *l)
{
    return l->problem.vocab_total > 0 ? FLP_F32 : l->problem.dtype;
}

static void set_gradients(const flp_torch_frame *frame, const linear *l, const bool wanted[3], flp_linear_logp_backward_problem *problem)
{
    if (wanted[0])
        problem->grad_hidden = grad_hidden_dtype(l), problem->grad_hidden_stride = l->columns;
    if (wanted[1])
        problem->grad_weight = l->problem.dtype, problem->grad_weight_stride = l->transposed ? l->vocab : l->columns;
    if (wanted[2])
        problem->grad_bias = dtype_of(&frame->inputs[BIAS]);
}

/* The gradients that are wanted, into outputs `first` and the two behind; what the problem says of them. */
static int make_gradients(flp_torch_frame *frame, const linear *l, int first, const bool wanted[3], flp_linear_logp_backward_problem *problem, void *data[3])
{
    const flp_torch_value *bias = &frame->inputs[BIAS];

    if (wanted[2] && !given(bias))
        return fail(frame, "the gradient of bias is wanted, and there is no bias");
    if (make_matrix(frame, first, grad_hidden_dtype(l), l->rows, l->columns, false, wanted[0], &data[0]) ||
        make_matrix(frame, first + 1, l->problem.dtype, l->vocab, l->columns, l->transposed, wanted[1], &data[1]) ||
        make_vector(frame, first + 2, given(bias) ? bias->dtype : FLP_F32, l->vocab, wanted[2], &data[2]))
        return 1;
    set_gradients(frame, l, wanted, problem);
    if (wanted[0] && l->rows == 0)
        data[0] = (void *)nothing;
    for (int i = 1; i < 3; i++)
        if (wanted[i] && l->vocab == 0)
            data[i] = (void *)nothing;
    return 0;
}

/* What linear_logp was given, its results and the gradients by them; ones that are not there are NULL. */
static flp_linear_logp_backward_args backward_args(const linear *l, const flp_torch_value *logp, const flp_torch_value *lse, const flp_torch_value *g_logp,
                                                   const flp_torch_value *g_lse, void *const grads[3])
{
    return (flp_linear_logp_backward_args){
        .rows = l->rows,
        .hidden = l->args.hidden,
        .weight = l->args.weight,
        .bias = l->args.bias,
        .target = l->args.target,
        .ignore_index = l->args.ignore_index,
        .flags = l->args.flags,
        .temperature = l->args.temperature,
        .row_temperature = l->args.row_temperature,
        .lse = some(lse->data),
        .g_logp = some(g_logp->data),
        .g_lse = given(g_lse) ? some(g_lse->data) : NULL,
        .grad_hidden = grads[0],
        .grad_weight = grads[1],
        .grad_bias = grads[2],
        .stream = l->args.stream,
        .logp = some(logp->data),
    };
}

#define BACKWARD                                                                                                                             \
    LINEAR "Tensor logp, Tensor lse, Tensor? entropy, Tensor g_logp, Tensor? g_lse, Tensor? g_entropy, bool want_hidden, bool want_weight, " \
           "bool want_bias, int memory_budget, float filter_eps"
enum { BACKWARD_INPUTS = LINEAR_INPUTS + 11 };

static int run_backward(flp_torch_frame *frame, bool of_shard)
{
    enum { LOGP = LINEAR_INPUTS, LSE, OF_ENTROPY, G_LOGP, G_LSE, G_ENTROPY, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET, FILTER_EPS };
    const flp_torch_value *in = frame->inputs;
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_linear_logp_backward_problem problem;
    flp_linear_logp_backward_args args;
    void *grads[3];
    flp_plan *plan;
    linear l;

    if (read_linear(frame, &l) || (of_shard && read_shard(frame, BACKWARD_INPUTS, &l)))
        return 1;
    if (check_vector(frame, "logp", &in[LOGP], l.rows, F32) || check_vector(frame, "lse", &in[LSE], l.rows, F32) ||
        check_vector(frame, "g_logp", &in[G_LOGP], l.rows, F32) || check_optional_vector(frame, "g_lse", &in[G_LSE], l.rows, F32) ||
        check_optional_vector(frame, "g_entropy", &in[G_ENTROPY], l.rows, F32))
        return 1;
    if (given(&in[G_ENTROPY]) && check_vector(frame, "entropy", &in[OF_ENTROPY], l.rows, F32))
        return 1;
    memset(&problem, 0, sizeof(problem));
    if (make_gradients(frame, &l, 0, wanted, &problem, grads))
        return 1;
    if (!wanted[0] && !wanted[1] && !wanted[2])
        return 0;
    problem.forward = l.problem;
    problem.g_lse = given(&in[G_LSE]), problem.g_entropy = given(&in[G_ENTROPY]);
    problem.memory_budget = in[MEMORY_BUDGET].integer, problem.grad_filter_eps = in[FILTER_EPS].number;
    args = backward_args(&l, &in[LOGP], &in[LSE], &in[G_LOGP], &in[G_LSE], grads);
    if (problem.g_entropy)
        args.entropy = some(in[OF_ENTROPY].data), args.g_entropy = some(in[G_ENTROPY].data);
    if (find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD, &problem, &plan) ||
        make_workspace(frame, -1, plan, l.rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return check_status(frame, flp_linear_logp_backward_execute(plan, &args));
}

static int linear_logp_backward(flp_torch_frame *frame)
{
    return run_backward(frame, false);
}

static int linear_logp_backward_partial(flp_torch_frame *frame)
{
    return run_backward(frame, true);
}

/* ---- linear_logp and its backward by one plan: what the forward leaves in the workspace, an output, the backward uses up */

static int find_pair_plan(flp_torch_frame *frame, const linear *l, bool g_lse, const bool wanted[3], int64_t memory_budget, flp_plan **plan)
{
    flp_linear_logp_backward_problem problem;

    if (l->rows == 0 || (!wanted[0] && !wanted[1] && !wanted[2]))
        return fail(frame, "no row, or no gradient that is wanted: nothing to save; linear_logp computes it");
    if (wanted[2] && !given(&frame->inputs[BIAS]))
        return fail(frame, "the gradient of bias is wanted, and there is no bias");
    memset(&problem, 0, sizeof(problem));
    problem.forward = l->problem, problem.with_forward = 1, problem.g_lse = g_lse, problem.memory_budget = memory_budget;
    set_gradients(frame, l, wanted, &problem);
    return find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD, &problem, plan);
}

/* A copy of a workspace on the CPU may lie otherwise to the alignment (on a GPU tensors begin at a multiple of it). */
static void move_to_beginning(const flp_torch_frame *frame, const flp_torch_value *workspace)
{
    int64_t size = workspace->sizes[0];
    unsigned char *data = workspace->data, *to = aligned(data);

    if (frame->device >= 0)
        return;
    memmove(to, data + data[size - 1], (size_t)(size - WORKSPACE_ALIGNMENT));
    data[size - 1] = (unsigned char)(to - data);
}

static int linear_logp_saving(flp_torch_frame *frame)
{
    enum { WITH_LSE = LINEAR_INPUTS, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET };
    const flp_torch_value *in = frame->inputs;
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_plan *plan;
    linear l;

    if (read_linear(frame, &l) || find_pair_plan(frame, &l, in[WITH_LSE].integer, wanted, in[MEMORY_BUDGET].integer, &plan) ||
        make_vector(frame, 0, FLP_F32, l.rows, true, (void **)&l.args.logp) || make_vector(frame, 1, FLP_F32, l.rows, true, (void **)&l.args.lse) ||
        make_workspace(frame, 2, plan, l.rows, &l.args.workspace, &l.args.workspace_bytes))
        return 1;
    return check_status(frame, flp_linear_logp_backward_execute_forward(plan, &l.args));
}

static int linear_logp_backward_saved(flp_torch_frame *frame)
{
    enum { LOGP = LINEAR_INPUTS, LSE, G_LOGP, G_LSE, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET, WORKSPACE };
    const flp_torch_value *in = frame->inputs, *workspace = &in[WORKSPACE];
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_linear_logp_backward_problem unused = { 0 };
    flp_linear_logp_backward_args args;
    void *grads[3];
    flp_plan *plan;
    linear l;

    if (read_linear(frame, &l) || check_vector(frame, "logp", &in[LOGP], l.rows, F32) || check_vector(frame, "lse", &in[LSE], l.rows, F32) ||
        check_vector(frame, "g_logp", &in[G_LOGP], l.rows, F32) || check_optional_vector(frame, "g_lse", &in[G_LSE], l.rows, F32) ||
        find_pair_plan(frame, &l, given(&in[G_LSE]), wanted, in[MEMORY_BUDGET].integer, &plan))
        return 1;
    if (workspace->device != frame->device || workspace->dim != 1 || workspace->sizes[0] != workspace_size(plan, l.rows))
        return fail(frame, "workspace is not what linear_logp_saving gave for these arguments");
    move_to_beginning(frame, workspace);
    if (make_gradients(frame, &l, 0, wanted, &unused, grads))
        return 1;
    args = backward_args(&l, &in[LOGP], &in[LSE], &in[G_LOGP], &in[G_LSE], grads);
    args.workspace = aligned(workspace->data), args.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, l.rows);
    return check_status(frame, flp_linear_logp_backward_execute(plan, &args));
}

/* ---- linear_cross_entropy */

#define CROSS_ENTROPY                                                                                                                                  \
    LINEAR "Tensor? class_weight, Tensor? token_weight, Tensor? g_loss, Tensor? token_inputs, float[] token_parameters, int token_loss, "              \
           "int reduction, float label_smoothing, float z_loss, bool entropy, bool want_hidden, bool want_weight, bool want_bias, int memory_budget, " \
           "float filter_eps"
enum {
    CLASS_WEIGHT = LINEAR_INPUTS,
    TOKEN_WEIGHT,
    G_LOSS,
    TOKEN_INPUTS,
    TOKEN_PARAMETERS,
    TOKEN_LOSS,
    REDUCTION,
    LABEL_SMOOTHING,
    Z_LOSS,
    CE_ENTROPY,
    CE_WANT_HIDDEN,
    CE_WANT_WEIGHT,
    CE_WANT_BIAS,
    CE_MEMORY_BUDGET,
    CE_FILTER_EPS,
    CROSS_ENTROPY_INPUTS
};

/* The arrays and numbers of a token loss, which point into loss and in. */
static int read_token_loss(flp_torch_frame *frame, const linear *l, flp_linear_cross_entropy_problem *problem, flp_token_input inputs[8],
                           flp_token_parameter parameters[8], flp_linear_cross_entropy_args *args)
{
    const flp_torch_value *in = frame->inputs, *arrays = &in[TOKEN_INPUTS], *numbers = &in[TOKEN_PARAMETERS];
    flp_status status;
    const flp_torch_plans_token_loss *loss;

    if (in[TOKEN_LOSS].integer == 0)
        return 0;
    loss = flp_torch_plans_token_loss_find(frame->device, in[TOKEN_LOSS].integer, &status);
    if (!loss && status == FLP_BAD_ARGUMENT && !*flp_error_message())
        return fail(frame, "token_loss: no such number; fusedlogp.TokenLoss makes one");
    if (!loss)
        return check_status(frame, status);
    if (loss->input_count > 0 && (!given(arrays) || check_matrix(frame, "token_inputs", arrays, loss->input_count, l->rows, F32)))
        return frame->error[0] ? 1 : fail(frame, "token_inputs: nothing, wanted [%d, %lld]", loss->input_count, (long long)l->rows);
    if (numbers->count != loss->parameter_count)
        return fail(frame, "token_parameters has %lld numbers, wanted %d", (long long)numbers->count, loss->parameter_count);
    snprintf(problem->token_loss, sizeof(problem->token_loss), "%s", loss->name);
    for (int i = 0; i < loss->input_count; i++)
        inputs[i] = (flp_token_input){ loss->inputs[i], l->rows > 0 ? (const float *)arrays->data + i * row_stride(arrays) : (const float *)nothing };
    for (int i = 0; i < loss->parameter_count; i++)
        parameters[i] = (flp_token_parameter){ loss->parameters[i], numbers->numbers[i] };
    args->token_inputs = inputs, args->token_input_count = loss->input_count;
    args->token_parameters = parameters, args->token_parameter_count = loss->parameter_count;
    return 0;
}

/* main_grad, whose gradients are added to, lies as weight does. */
static int read_main_grad(flp_torch_frame *frame, const linear *l, const flp_torch_value *main_grad, flp_linear_logp_backward_problem *problem, void **data)
{
    if (check_tensor(frame, "main_grad", main_grad, 2, FLOATS))
        return 1;
    if (main_grad->sizes[0] != l->vocab || main_grad->sizes[1] != l->columns)
        return fail(frame, "main_grad has shape [%lld, %lld], wanted weight's [%lld, %lld]", (long long)main_grad->sizes[0], (long long)main_grad->sizes[1],
                    (long long)l->vocab, (long long)l->columns);
    if (l->vocab > 0 && lies_transposed(main_grad) != l->transposed)
        return fail(frame, "main_grad's strides are in another order than weight's");
    problem->grad_weight = main_grad->dtype, problem->grad_weight_stride = weight_stride(main_grad, l->transposed);
    problem->accumulate |= FLP_ACCUMULATE_WEIGHT;
    problem->forward.pointer_alignment = alignment_of((void *)(uintptr_t)problem->forward.pointer_alignment, main_grad->data);
    *data = main_grad->data;
    return 0;
}

static int check_cross_entropy(flp_torch_frame *frame, const linear *l)
{
    const flp_torch_value *in = frame->inputs;
    const int64_t classes = l->problem.vocab_total > 0 ? l->problem.vocab_total : l->vocab;

    if (in[REDUCTION].integer < FLP_REDUCE_MEAN || in[REDUCTION].integer > FLP_REDUCE_NONE)
        return fail(frame, "reduction is %lld, wanted 0 (mean), 1 (sum) or 2 (none)", (long long)in[REDUCTION].integer);
    return check_optional_vector(frame, "class_weight", &in[CLASS_WEIGHT], classes, FLOATS) ||
           check_optional_vector(frame, "token_weight", &in[TOKEN_WEIGHT], l->rows, F32) ||
           check_optional_vector(frame, "g_loss", &in[G_LOSS], in[REDUCTION].integer == FLP_REDUCE_NONE ? l->rows : 1, F32);
}

/* A call of linear_cross_entropy, of a shard too, with what its args point to. */
typedef struct {
    linear l;
    flp_linear_cross_entropy_problem problem;
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[8];
    flp_token_parameter parameters[8];
} cross_entropy;

/* The inputs; shard: that of read_shard, or -1. */
static int read_cross_entropy(flp_torch_frame *frame, int shard, cross_entropy *c)
{
    const flp_torch_value *in = frame->inputs;
    flp_linear_cross_entropy_problem *problem = &c->problem;
    const linear *l = &c->l;

    if (read_linear(frame, &c->l) || (shard >= 0 && read_shard(frame, shard, &c->l)) || check_cross_entropy(frame, l))
        return 1;
    memset(problem, 0, sizeof(*problem)); /* its bytes are the plan's key */
    problem->backward.forward = l->problem;
    problem->reduction = (flp_reduction)in[REDUCTION].integer;
    problem->label_smoothing = in[LABEL_SMOOTHING].number != 0;
    problem->class_weights = dtype_of(&in[CLASS_WEIGHT]);
    problem->token_weights = given(&in[TOKEN_WEIGHT]);
    problem->entropy = in[CE_ENTROPY].integer != 0;
    c->args = (flp_linear_cross_entropy_args){
        .rows = l->rows,
        .hidden = l->args.hidden,
        .weight = l->args.weight,
        .bias = l->args.bias,
        .target = l->args.target,
        .ignore_index = l->args.ignore_index,
        .flags = l->args.flags,
        .temperature = l->args.temperature,
        .row_temperature = l->args.row_temperature,
        .class_weights = data_of(&in[CLASS_WEIGHT]),
        .token_weights = problem->token_weights ? some(in[TOKEN_WEIGHT].data) : NULL,
        .label_smoothing = in[LABEL_SMOOTHING].number,
        .lse_square_scale = in[Z_LOSS].number,
        .g_loss = given(&in[G_LOSS]) ? some(in[G_LOSS].data) : NULL,
        .stream = frame->stream,
    };
    return read_token_loss(frame, l, problem, c->inputs, c->parameters, &c->args);
}

/* The outputs. */
static int make_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad, cross_entropy *c)
{
    const flp_torch_value *in = frame->inputs;
    const bool wanted[3] = { in[CE_WANT_HIDDEN].integer, !main_grad && in[CE_WANT_WEIGHT].integer, in[CE_WANT_BIAS].integer };
    const bool of_rows = c->problem.reduction == FLP_REDUCE_NONE;
    const linear *l = &c->l;
    flp_linear_cross_entropy_args *args = &c->args;
    int64_t one = 1;
    void *grads[3];

    if (make(frame, 0, FLP_F32, of_rows, of_rows ? &l->rows : NULL, of_rows ? &one : NULL, (void **)&args->loss) ||
        make_vector(frame, 1, FLP_F32, l->rows, true, (void **)&args->logp) || make_vector(frame, 2, FLP_F32, l->rows, true, (void **)&args->lse) ||
        make_vector(frame, 3, FLP_F32, l->rows, c->problem.entropy, (void **)&args->entropy) ||
        make_gradients(frame, l, 4, wanted, &c->problem.backward, grads))
        return 1;
    if (main_grad && read_main_grad(frame, l, main_grad, &c->problem.backward, &grads[1]))
        return 1;
    c->problem.backward.memory_budget = in[CE_MEMORY_BUDGET].integer;
    c->problem.backward.grad_filter_eps = in[CE_FILTER_EPS].number;
    args->grad_hidden = grads[0], args->grad_weight = grads[1], args->grad_bias = grads[2];
    args->loss = (float *)some(args->loss);
    return 0;
}

static int plan_cross_entropy(flp_torch_frame *frame, cross_entropy *c, flp_plan **plan)
{
    return find_plan(frame, FLP_TORCH_PLANS_LINEAR_CROSS_ENTROPY, &c->problem, plan) ||
           make_workspace(frame, -1, *plan, c->l.rows, &c->args.workspace, &c->args.workspace_bytes);
}

static int run_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, -1, &c) || make_cross_entropy(frame, main_grad, &c) || plan_cross_entropy(frame, &c, &plan))
        return 1;
    return check_status(frame, flp_linear_cross_entropy_execute(plan, &c.args));
}

static int linear_cross_entropy(flp_torch_frame *frame)
{
    return run_cross_entropy(frame, NULL);
}

static int linear_cross_entropy_accumulate(flp_torch_frame *frame)
{
    return run_cross_entropy(frame, &frame->inputs[CROSS_ENTROPY_INPUTS]);
}

/* ---- the same over shards of the vocabulary */

static int linear_cross_entropy_partials(flp_torch_frame *frame)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, CROSS_ENTROPY_INPUTS, &c) ||
        make_matrix(frame, 0, FLP_F32, c.l.rows, FLP_PARTIAL_FLOATS, false, true, (void **)&c.args.partials))
        return 1;
    if (c.l.rows == 0)
        return 0;
    return plan_cross_entropy(frame, &c, &plan) || check_status(frame, flp_linear_cross_entropy_execute_partials(plan, &c.args));
}

enum { CE_PARTIALS = CROSS_ENTROPY_INPUTS + 2, CE_MERGE_INPUTS };

static int merge_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, CROSS_ENTROPY_INPUTS, &c) || read_partials(frame, &frame->inputs[CE_PARTIALS], c.l.rows, &c.args.ranks) ||
        make_cross_entropy(frame, main_grad, &c) || plan_cross_entropy(frame, &c, &plan))
        return 1;
    c.args.partials = (float *)frame->inputs[CE_PARTIALS].data;
    return check_status(frame, flp_linear_cross_entropy_execute_merge(plan, &c.args));
}

static int linear_cross_entropy_merge(flp_torch_frame *frame)
{
    return merge_cross_entropy(frame, NULL);
}

static int linear_cross_entropy_merge_accumulate(flp_torch_frame *frame)
{
    return merge_cross_entropy(frame, &frame->inputs[CE_MERGE_INPUTS]);
}

/* ---- logits_logp */

#define LOGITS "Tensor logits, Tensor target, Tensor? row_temperature, float temperature, float softcap, int? ignore_index, "
enum { L_LOGITS, L_TARGET, L_ROW_TEMPERATURE, L_TEMPERATURE, L_SOFTCAP, L_IGNORE_INDEX, LOGITS_INPUTS };

static int check_logits(flp_torch_frame *frame)
{
    const flp_torch_value *in = frame->inputs;

    return check_matrix(frame, "logits", &in[L_LOGITS], -1, -1, FLOATS) || check_vector(frame, "target", &in[L_TARGET], in[L_LOGITS].sizes[0], INDICES) ||
           check_optional_vector(frame, "row_temperature", &in[L_ROW_TEMPERATURE], in[L_LOGITS].sizes[0], F32);
}

static unsigned logits_flags(const flp_torch_frame *frame)
{
    return (frame->inputs[L_IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? FLP_IGNORE_INDEX : 0) | (frame->device < 0 ? FLP_CHECK_TARGETS : 0);
}

static int64_t logits_ignore_index(const flp_torch_frame *frame)
{
    return frame->inputs[L_IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? frame->inputs[L_IGNORE_INDEX].integer : 0;
}

static double logits_temperature(const flp_torch_frame *frame)
{
    return given(&frame->inputs[L_ROW_TEMPERATURE]) ? 0 : frame->inputs[L_TEMPERATURE].number;
}

static int logits_logp(flp_torch_frame *frame)
{
    enum { ENTROPY = LOGITS_INPUTS, ARGMAX };
    const flp_torch_value *in = frame->inputs, *logits = &in[L_LOGITS];
    flp_logits_logp_problem problem;
    flp_logits_logp_args args;
    flp_plan *plan;
    int64_t rows;

    if (check_logits(frame))
        return 1;
    rows = logits->sizes[0];
    memset(&problem, 0, sizeof(problem)); /* its bytes are the plan's key */
    problem.dtype = logits->dtype;
    problem.rows = flp_torch_plans_rows(rows);
    problem.vocab = logits->sizes[1];
    problem.logits_stride = row_stride(logits);
    problem.pointer_alignment = alignment_of(logits->data, NULL);
    problem.target_dtype = in[L_TARGET].dtype;
    problem.argmax = in[ARGMAX].integer != 0;
    problem.entropy = in[ENTROPY].integer != 0;
    problem.backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
    problem.softcap = in[L_SOFTCAP].number;
    args = (flp_logits_logp_args){
        .rows = rows,
        .logits = logits->data,
        .target = in[L_TARGET].data,
        .ignore_index = logits_ignore_index(frame),
        .flags = logits_flags(frame),
        .temperature = logits_temperature(frame),
        .row_temperature = data_of(&in[L_ROW_TEMPERATURE]),
        .stream = frame->stream,
    };
    if (make_vector(frame, 0, FLP_F32, rows, true, (void **)&args.logp) || make_vector(frame, 1, FLP_F32, rows, true, (void **)&args.lse) ||
        make_vector(frame, 2, FLP_F32, rows, problem.entropy, (void **)&args.entropy) ||
        make_vector(frame, 3, FLP_I32, rows, problem.argmax, (void **)&args.argmax))
        return 1;
    if (rows == 0)
        return 0;
    if (find_plan(frame, FLP_TORCH_PLANS_LOGITS_LOGP, &problem, &plan) || make_workspace(frame, -1, plan, rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return check_status(frame, flp_logits_logp_execute(plan, &args));
}

static int logits_logp_backward(flp_torch_frame *frame)
{
    enum { LOGP = LOGITS_INPUTS, LSE, ENTROPY, G_LOGP, G_LSE, G_ENTROPY };
    const flp_torch_value *in = frame->inputs, *logits = &in[L_LOGITS];
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args;
    flp_plan *plan;
    int64_t rows;

    if (check_logits(frame))
        return 1;
    rows = logits->sizes[0];
    if (check_vector(frame, "logp", &in[LOGP], rows, F32) || check_vector(frame, "lse", &in[LSE], rows, F32) ||
        check_vector(frame, "g_logp", &in[G_LOGP], rows, F32) || check_optional_vector(frame, "g_lse", &in[G_LSE], rows, F32) ||
        check_optional_vector(frame, "g_entropy", &in[G_ENTROPY], rows, F32))
        return 1;
    if (given(&in[G_ENTROPY]) && check_vector(frame, "entropy", &in[ENTROPY], rows, F32))
        return 1;
    args = (flp_logits_logp_backward_args){
        .rows = rows,
        .logits = logits->data,
        .target = in[L_TARGET].data,
        .ignore_index = logits_ignore_index(frame),
        .flags = logits_flags(frame),
        .temperature = logits_temperature(frame),
        .row_temperature = data_of(&in[L_ROW_TEMPERATURE]),
        .g_logp = in[G_LOGP].data,
        .g_lse = data_of(&in[G_LSE]),
        .g_entropy = data_of(&in[G_ENTROPY]),
        .lse = in[LSE].data,
        .entropy = given(&in[G_ENTROPY]) ? in[ENTROPY].data : NULL,
        .logp = in[LOGP].data,
        .stream = frame->stream,
    };
    if (make_matrix(frame, 0, logits->dtype, rows, logits->sizes[1], false, true, &args.grad_logits))
        return 1;
    memset(&problem, 0, sizeof(problem)); /* its bytes are the plan's key */
    problem.dtype = logits->dtype;
    problem.rows = flp_torch_plans_rows(rows);
    problem.vocab = logits->sizes[1];
    problem.logits_stride = row_stride(logits);
    problem.grad_stride = logits->sizes[1];
    problem.pointer_alignment = alignment_of(logits->data, args.grad_logits);
    problem.target_dtype = in[L_TARGET].dtype;
    problem.entropy = given(&in[G_ENTROPY]);
    problem.backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
    problem.softcap = in[L_SOFTCAP].number;
    if (rows == 0)
        return 0;
    if (find_plan(frame, FLP_TORCH_PLANS_LOGITS_LOGP_BACKWARD, &problem, &plan) ||
        make_workspace(frame, -1, plan, rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return check_status(frame, flp_logits_logp_backward_execute(plan, &args));
}

/* ---- weighted_sum */

static void set_weighted_sum(flp_weighted_sum_problem *problem, const flp_torch_frame *frame, const flp_torch_value *x, const flp_torch_value *w,
                             const void *other)
{
    problem->dtype = x->dtype;
    problem->rows = flp_torch_plans_rows(x->sizes[0]);
    problem->columns = x->sizes[1];
    problem->x_stride = row_stride(x);
    problem->pointer_alignment = alignment_of(x->data, other);
    problem->w_dtype = w->dtype;
    problem->y_dtype = x->dtype;
    problem->backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
}

static int weighted_sum(flp_torch_frame *frame)
{
    const flp_torch_value *x = &frame->inputs[0], *w = &frame->inputs[1];
    flp_weighted_sum_problem problem;
    flp_weighted_sum_args args = { 0 };
    flp_plan *plan;

    if (check_matrix(frame, "x", x, -1, -1, FLOATS) || check_vector(frame, "w", w, x->sizes[1], FLOATS))
        return 1;
    memset(&problem, 0, sizeof(problem));
    set_weighted_sum(&problem, frame, x, w, NULL);
    args.rows = x->sizes[0], args.x = x->data, args.w = w->data, args.stream = frame->stream;
    if (make_vector(frame, 0, x->dtype, args.rows, true, &args.y))
        return 1;
    if (args.rows == 0)
        return 0;
    if (find_plan(frame, FLP_TORCH_PLANS_WEIGHTED_SUM, &problem, &plan))
        return 1;
    return check_status(frame, flp_weighted_sum_execute(plan, &args));
}

static int weighted_sum_backward(flp_torch_frame *frame)
{
    const flp_torch_value *g = &frame->inputs[0], *x = &frame->inputs[1], *w = &frame->inputs[2];
    bool want_x = frame->inputs[3].integer, want_w = frame->inputs[4].integer;
    flp_weighted_sum_backward_problem problem;
    flp_weighted_sum_backward_args args = { 0 };
    flp_plan *plan;

    if (check_matrix(frame, "x", x, -1, -1, FLOATS) || check_vector(frame, "w", w, x->sizes[1], FLOATS) ||
        check_vector(frame, "g", g, x->sizes[0], DTYPES(x->dtype)))
        return 1;
    memset(&problem, 0, sizeof(problem));
    args.rows = x->sizes[0], args.g = some(g->data), args.x = some(x->data), args.w = w->data, args.stream = frame->stream;
    if (make_matrix(frame, 0, x->dtype, args.rows, x->sizes[1], false, want_x, &args.grad_x) ||
        make_vector(frame, 1, w->dtype, x->sizes[1], want_w, &args.grad_w))
        return 1;
    if (!want_w && (!want_x || args.rows == 0))
        return 0;
    if (want_x && args.rows == 0)
        args.grad_x = (void *)nothing;
    set_weighted_sum(&problem.forward, frame, x, w, args.grad_x);
    if (want_x)
        problem.grad_x = x->dtype, problem.grad_x_stride = x->sizes[1];
    if (want_w)
        problem.grad_w = w->dtype;
    if (find_plan(frame, FLP_TORCH_PLANS_WEIGHTED_SUM_BACKWARD, &problem, &plan) ||
        make_workspace(frame, -1, plan, args.rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return check_status(frame, flp_weighted_sum_backward_execute(plan, &args));
}

/* ---- the table */

const flp_torch_operator flp_torch_operators[FLP_TORCH_OPERATORS] = {
    { "linear_logp(" LINEAR "bool entropy, bool argmax, int memory_budget) -> (Tensor, Tensor, Tensor, Tensor)", ROWS_INPUTS + 1, 4, linear_logp },
    { "linear_logp_partials(" LINEAR "bool entropy, bool argmax, " SHARD ") -> Tensor", ROWS_INPUTS + 2, 1, linear_logp_partials },
    { "linear_logp_merge(" LINEAR "bool entropy, bool argmax, " SHARD ", Tensor partials) -> (Tensor, Tensor, Tensor, Tensor)", ROWS_INPUTS + 3, 4,
      linear_logp_merge },
    { "linear_logp_backward(" BACKWARD ") -> (Tensor, Tensor, Tensor)", BACKWARD_INPUTS, 3, linear_logp_backward },
    { "linear_logp_backward_partial(" BACKWARD ", " SHARD ") -> (Tensor, Tensor, Tensor)", BACKWARD_INPUTS + 2, 3, linear_logp_backward_partial },
    { "linear_logp_saving(" LINEAR "bool with_lse, bool want_hidden, bool want_weight, bool want_bias, int memory_budget) -> (Tensor, Tensor, Tensor)",
      LINEAR_INPUTS + 5, 3, linear_logp_saving },
    { "linear_logp_backward_saved(" LINEAR "Tensor logp, Tensor lse, Tensor g_logp, Tensor? g_lse, bool want_hidden, bool want_weight, bool want_bias, "
      "int memory_budget, Tensor(a!) workspace) -> (Tensor, Tensor, Tensor)",
      LINEAR_INPUTS + 9, 3, linear_logp_backward_saved },
    { "linear_cross_entropy(" CROSS_ENTROPY ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", CROSS_ENTROPY_INPUTS, 7, linear_cross_entropy },
    { "linear_cross_entropy_accumulate(" CROSS_ENTROPY ", Tensor(a!) main_grad) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      CROSS_ENTROPY_INPUTS + 1, 7, linear_cross_entropy_accumulate },
    { "linear_cross_entropy_partials(" CROSS_ENTROPY ", " SHARD ") -> Tensor", CROSS_ENTROPY_INPUTS + 2, 1, linear_cross_entropy_partials },
    { "linear_cross_entropy_merge(" CROSS_ENTROPY ", " SHARD ", Tensor partials) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", CE_MERGE_INPUTS,
      7, linear_cross_entropy_merge },
    { "linear_cross_entropy_merge_accumulate(" CROSS_ENTROPY ", " SHARD
      ", Tensor partials, Tensor(a!) main_grad) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      CE_MERGE_INPUTS + 1, 7, linear_cross_entropy_merge_accumulate },
    { "logits_logp(" LOGITS "bool entropy, bool argmax) -> (Tensor, Tensor, Tensor, Tensor)", LOGITS_INPUTS + 2, 4, logits_logp },
    { "logits_logp_backward(" LOGITS "Tensor logp, Tensor lse, Tensor? entropy, Tensor g_logp, Tensor? g_lse, Tensor? g_entropy) -> Tensor", LOGITS_INPUTS + 6,
      1, logits_logp_backward },
    { "weighted_sum(Tensor x, Tensor w) -> Tensor", 2, 1, weighted_sum },
    { "weighted_sum_backward(Tensor g, Tensor x, Tensor w, bool want_x, bool want_w) -> (Tensor, Tensor)", 5, 2, weighted_sum_backward },
};

int flp_torch_operator_count(void)
{
    return FLP_TORCH_OPERATORS;
}

const char *flp_torch_schema(int op)
{
    return flp_torch_operators[op].schema;
}

int flp_torch_run(int op, flp_torch_frame *frame)
{
    bool changed = false;
    int failed;

    frame->error[0] = 0;
    if (frame->device >= 0 && !flp_torch_device_enter(frame->device, &changed))
        return fail(frame, "fusedlogp: the CUDA context of device %d cannot be made current", frame->device);
    failed = flp_torch_operators[op].run(frame);
    flp_torch_device_leave(changed);
    return failed;
}
