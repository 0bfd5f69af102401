/* A forward and its backward as two calls of one plan, on the host device. */
#include "host/host_forward_pair.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_suite.h"
#include "host/machine/machine_api.h"
#include "core/workspace.h"

static const double deviations = 8; /* as in case_check.c */

/* One case, with a second workspace that no forward has used. */
typedef struct {
    const flp_gradient_case *c;
    flp_gradient_case_data *data;
    flp_plan *plan;
    flp_linear_logp_backward_args args;
    float *outputs; /* [3][rows] */
    void *workspace[2];
    unsigned char *right[FLP_GRADIENT_BUFFERS]; /* the gradients of one pair */
    flp_host_memory memory;
    char *message;
    size_t bytes;
} pair;

static int reject(const pair *p, const char *what)
{
    snprintf(p->message, p->bytes, "%s", what);
    return 0;
}

/* ---- what the forward writes ---- */

static int64_t target_of(const pair *p, int64_t row)
{
    return p->c->problem.forward.target_dtype == FLP_I32 ? ((const int32_t *)p->args.target)[row] : ((const int64_t *)p->args.target)[row];
}

static int is_near(const pair *p, const char *name, int64_t row, float got, double want, double rounding)
{
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= deviations * (rounding + ldexp(fabs(want), -24)))
        return 1;
    snprintf(p->message, p->bytes, "the forward's %s[%" PRId64 "]: got %.9g, wanted %.9g", name, row, got, want);
    return 0;
}

static int check_row(const pair *p, const flp_reference *reference, int64_t row)
{
    const int64_t target = target_of(p, row), rows = p->args.rows;
    const int has_part = !flp_reference_ignores(p->args.flags, p->args.ignore_index, target) && target >= 0 && target < p->c->problem.forward.vocab;
    const double rounding = reference->rounding[row];

    return is_near(p, "logp", row, p->outputs[row], reference->logp[row], rounding) &&
           is_near(p, "lse", row, p->outputs[rows + row], has_part ? reference->lse[row] : 0, rounding) &&
           (!p->c->problem.g_entropy ||
            is_near(p, "entropy", row, p->outputs[2 * rows + row], has_part ? reference->entropy[row] : 0, reference->entropy_rounding[row]));
}

static int check_outputs(const pair *p)
{
    const flp_linear_logp_args inputs = flp_gradient_case_forward_args(p->c, &p->args, p->outputs);
    flp_reference reference;
    int done = 1;

    if (!flp_reference_compute(&p->c->problem.forward, &inputs, &reference))
        abort();
    for (int64_t i = 0; done && i < p->args.rows; i++)
        done = check_row(p, &reference, i);
    flp_reference_free(&reference);
    return done;
}

/* ---- what the backward finds ---- */

static flp_dtype dtype_of(const flp_linear_logp_backward_problem *problem, int role)
{
    return role == FLP_GRADIENT_HIDDEN ? problem->grad_hidden : role == FLP_GRADIENT_WEIGHT ? problem->grad_weight : problem->grad_bias;
}

/* A gradient's number of rows, their length and their stride. */
static void shape_of(const pair *p, int role, int64_t *rows, int64_t *columns, int64_t *stride)
{
    const flp_linear_logp_problem *forward = &p->c->problem.forward;
    const int transposed = forward->weight_layout == FLP_HIDDEN_VOCAB;

    *rows = role == FLP_GRADIENT_HIDDEN ? forward->rows : role == FLP_GRADIENT_BIAS ? 1 : transposed ? forward->hidden : forward->vocab;
    *columns = role == FLP_GRADIENT_HIDDEN ? forward->hidden : role == FLP_GRADIENT_BIAS || transposed ? forward->vocab : forward->hidden;
    *stride = role == FLP_GRADIENT_HIDDEN ? p->c->problem.grad_hidden_stride : role == FLP_GRADIENT_BIAS ? 0 : p->c->problem.grad_weight_stride;
}

static int is_all_nan(const pair *p, int role)
{
    const flp_case_buffer *buffer = &p->data->own[role];
    const flp_dtype dtype = dtype_of(&p->c->problem, role);
    int64_t rows, columns, stride;

    shape_of(p, role, &rows, &columns, &stride);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (!isnan(flp_reference_decode(dtype, buffer->base + buffer->offset, i * stride + j))) {
                snprintf(p->message, p->bytes, "a backward without its forward: gradient %d of 3, row %" PRId64 ", column %" PRId64 " is a number",
                         role - FLP_GRADIENT_HIDDEN + 1, i, j);
                return 0;
            }
    return 1;
}

static int run_forward(pair *p)
{
    const flp_linear_logp_args forward = flp_gradient_case_forward_args(p->c, &p->args, p->outputs);

    return flp_host_suite_succeeded(flp_linear_logp_backward_execute_forward(p->plan, &forward), p->message, p->bytes);
}

static int run_backward(pair *p, int64_t wanted_unmatched)
{
    int64_t count = -1;

    flp_gradient_case_restore_outputs(p->data);
    if (!flp_host_suite_succeeded(flp_linear_logp_backward_execute(p->plan, &p->args), p->message, p->bytes) ||
        !flp_host_suite_succeeded(flp_plan_unmatched_backwards(p->plan, &count), p->message, p->bytes))
        return 0;
    return count == wanted_unmatched ? 1 : reject(p, "flp_plan_unmatched_backwards: another count");
}

/* Runs the backward without its forward. It reads memory that nobody has written, so the lifetimes of the workspace's parts are not watched. */
static int run_misused(pair *p)
{
    flp_workspace_watch *const watcher = flp_workspace_watcher;
    int done;

    flp_workspace_watcher = NULL;
    flp_host_machine_set_parts(p->args.workspace, 0, NULL, 0, "");
    done = run_backward(p, 1);
    flp_workspace_watcher = watcher;
    return done;
}

static int finds_none(pair *p, const char *when)
{
    int done = run_misused(p);

    for (int role = FLP_GRADIENT_HIDDEN; done && role <= FLP_GRADIENT_BIAS; role++)
        done = dtype_of(&p->c->problem, role) == FLP_NONE || is_all_nan(p, role);
    if (!done) {
        const size_t used = strlen(p->message);
        snprintf(p->message + used, p->bytes - used, " (%s)", when);
    }
    return done;
}

static int finds_one(pair *p)
{
    int done = run_backward(p, 0);

    for (int role = FLP_GRADIENT_HIDDEN; done && role <= FLP_GRADIENT_BIAS; role++)
        if (p->right[role] && memcmp(p->right[role], p->data->own[role].base, p->data->own[role].bytes) != 0)
            done = reject(p, "a pair that was run again has other bits");
    return done;
}

static int run_in_another_workspace(pair *p)
{
    void *const own = p->args.workspace;
    int done;

    p->args.workspace = p->workspace[1];
    done = finds_none(p, "in another workspace");
    p->args.workspace = own;
    return done;
}

/* Runs the backward in a workspace that no forward has used, with various contents. */
static int run_without_forward(pair *p)
{
    static const unsigned char fills[] = { 0xff, 0x00, 0x7f, 0x01 };
    int done = 1;

    for (size_t i = strlen(p->c->name) / (size_t)flp_host_every() % (size_t)flp_host_every(); done && i < sizeof(fills); i += (size_t)flp_host_every()) {
        memset(p->args.workspace, fills[i], p->args.workspace_bytes);
        done = finds_none(p, "without a forward");
    }
    return done;
}

static int run_with_another_temperature(pair *p)
{
    const double temperature = p->args.temperature;
    int done;

    if (p->args.row_temperature)
        return 1;
    p->args.temperature = temperature == 0 ? 2 : 2 * temperature;
    done = run_forward(p);
    p->args.temperature = temperature;
    return done && finds_none(p, "behind a forward with another temperature");
}

/* Whether this case tries this misuse: each comes to every n-th case. All paths share the marks by which a misuse is noticed, and dtypes, options and chunks
 * differ among these cases. */
static int is_in_turn(const pair *p, size_t misuse)
{
    return (strlen(p->c->name) + misuse) % (size_t)flp_host_every() == 0;
}

static int run_all(pair *p)
{
    return (!is_in_turn(p, 0) || run_without_forward(p)) && run_forward(p) && check_outputs(p) && (!is_in_turn(p, 1) || run_in_another_workspace(p)) &&
           finds_one(p) && finds_none(p, "twice") &&
           (!is_in_turn(p, 2) || (run_with_another_temperature(p) && run_forward(p) && finds_one(p) && finds_none(p, "twice")));
}

/* ---- memory ---- */

static void *allocate(pair *p, size_t bytes)
{
    const size_t alignment = 256;
    void *memory = aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);

    if (!memory)
        abort();
    memset(memory, 0xff, bytes);
    flp_host_memory_add(&p->memory, memory, 0, bytes);
    return memory;
}

static void begin(pair *p)
{
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++) {
        const flp_case_buffer *buffer = &p->data->own[role];
        if (!buffer->base)
            continue;
        p->right[role] = malloc(buffer->bytes);
        if (!p->right[role])
            abort();
        memcpy(p->right[role], buffer->base, buffer->bytes);
    }
    flp_gradient_case_args(p->c, p->data, NULL, NULL, &p->args);
    p->args.workspace_bytes = (size_t)flp_plan_workspace_bytes(p->plan, p->args.rows);
    p->outputs = allocate(p, (size_t)(3 * p->args.rows) * sizeof(float));
    for (int i = 0; i < 2; i++)
        p->workspace[i] = allocate(p, p->args.workspace_bytes);
    p->args.workspace = p->workspace[0];
}

static void end(pair *p)
{
    flp_host_memory_remove(&p->memory);
    for (int i = 0; i < 2; i++)
        free(p->workspace[i]);
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++) {
        if (p->right[role])
            memcpy(p->data->own[role].base, p->right[role], p->data->own[role].bytes);
        free(p->right[role]);
    }
    free(p->outputs);
}

int flp_host_forward_pair_check(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data, char *message, size_t bytes)
{
    pair p = { .c = c, .data = data, .message = message, .bytes = bytes };
    int done;

    if (c->problem.forward.rows == 0) /* the forward leaves nothing */
        return 1;
    if (!flp_host_suite_succeeded(flp_linear_logp_backward_plan_create(context, &c->problem, &p.plan), message, bytes))
        return 0;
    begin(&p);
    done = run_all(&p);
    end(&p);
    flp_plan_destroy(p.plan);
    return done;
}
