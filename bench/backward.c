/* Measures a case of the backward, alone and after its forward. */
#include "backward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "filter_outcome.h"
#include "gradient_setting.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "regimes.h"

const char *const flp_backward_cases[] = {
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16",
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:forward",
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:forward",
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:budget2415919104:forward",
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:budget1207959552:forward",
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:budget268435456:forward",
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:filter3e-08", /* 2^-12 of a row's weight in the mean, 1 / N */
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:filter6e-08",
    NULL
};

typedef struct {
    flp_gradient_setting setting;
    flp_linear_logp_backward_problem problem;
    flp_linear_logp_problem forward;
    CUdeviceptr workspace;
    flp_context *context;
    flp_plan *forward_plan, *backward_plan;
    flp_linear_logp_args forward_args;
    flp_linear_logp_backward_args backward_args;
    flp_filter_outcome filtered; /* of the first execution */
} bench;

int flp_backward_is_case(const char *text)
{
    return strncmp(text, "linear_logp_backward:", 21) == 0;
}

flp_status flp_backward_parse(const char *text, flp_linear_logp_backward_problem *problem, flp_temperature *temperature)
{
    char *name;
    flp_linear_logp_backward_problem given;
    flp_status status = flp_temperature_cut(text, temperature, &name);

    if (status == FLP_OK)
        status = flp_linear_logp_backward_problem_parse(name, &given);
    free(name);
    if (status == FLP_OK)
        status = flp_problem_normalize(&flp_linear_logp_backward_operator, &given, problem);
    if (status != FLP_OK)
        return status;
    if (!flp_gradient_setting_takes(&problem->forward) || (problem->grad_hidden != FLP_BF16 && problem->grad_hidden != FLP_F32) ||
        (problem->grad_weight != FLP_BF16 && problem->grad_weight != FLP_NONE) || problem->grad_bias != FLP_NONE || problem->accumulate || problem->g_lse ||
        problem->g_entropy ||
        (problem->grad_filter_eps > 0 && (problem->forward.softcap > 0 || problem->forward.weight_layout == FLP_HIDDEN_VOCAB || temperature->ending[0])))
        return flp_status_fail(FLP_BAD_ARGUMENT,
                               "case %s: wanted bf16, rows, weight without gaps, in rows of a multiple of 8, as is D, grad_hidden in bf16 or f32, grad_weight "
                               "in bf16 or none, no options but budget, forward and either a filter, with weight [V, D], or a softcap and a temperature",
                               text);
    return FLP_OK;
}

static flp_status parse(const char *text, bench *b)
{
    const flp_linear_logp_problem *forward = &b->problem.forward;
    flp_status status = flp_backward_parse(text, &b->problem, &b->setting.temperature);

    if (status != FLP_OK)
        return status;
    b->forward = *forward;
    b->setting.problem = *forward;
    b->setting.hidden_dtype = b->problem.grad_hidden;
    b->setting.weight_dtype = b->problem.grad_weight;
    b->setting.filter_eps = b->problem.grad_filter_eps;
    return FLP_OK;
}

/* ---- what is measured */

static flp_status launch_backward(void *data)
{
    bench *b = data;

    return flp_linear_logp_backward_execute(b->backward_plan, &b->backward_args);
}

static flp_status launch_both(void *data)
{
    bench *b = data;
    flp_status status = b->problem.with_forward ? flp_linear_logp_backward_execute_forward(b->backward_plan, &b->forward_args)
                                                : flp_linear_logp_execute(b->forward_plan, &b->forward_args);

    return status == FLP_OK ? launch_backward(data) : status;
}

/* ---- setting up */

static flp_status make_plans(bench *b, const flp_forward_options *options)
{
    flp_status status = flp_context_create(NULL, &b->context);

    b->problem.forward.backend = b->forward.backend = options->backend;
    if (status == FLP_OK)
        status = flp_linear_logp_plan_create(b->context, &b->forward, &b->forward_plan);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_plan_create(b->context, &b->problem, &b->backward_plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->forward_plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(b->forward_plan));
    return status;
}

static int64_t workspace_bytes(const bench *b)
{
    const int64_t forward = b->problem.with_forward ? 0 : flp_plan_workspace_bytes(b->forward_plan, b->forward.rows);
    const int64_t backward = flp_plan_workspace_bytes(b->backward_plan, b->forward.rows);

    return forward > backward ? forward : backward;
}

static flp_status make_ours(bench *b, const flp_forward_options *options)
{
    flp_gradient_setting *setting = &b->setting;
    flp_status status = make_plans(b, options);
    size_t bytes;

    if (status != FLP_OK)
        return status;
    bytes = (size_t)workspace_bytes(b);
    status = flp_gpu_allocate(setting->gpu, bytes, &b->workspace);
    b->forward_args = (flp_linear_logp_args){
        .rows = b->forward.rows,
        FLP_GRADIENT_SETTING_INPUTS(setting),
        .logp = flp_gpu_pointer(setting->logp),
        .lse = flp_gpu_pointer(setting->lse),
        .workspace = flp_gpu_pointer(b->workspace),
        .workspace_bytes = bytes,
        .stream = setting->stream,
    };
    b->backward_args = (flp_linear_logp_backward_args){
        .rows = b->forward.rows,
        FLP_GRADIENT_SETTING_INPUTS(setting),
        .lse = flp_gpu_pointer(setting->lse),
        .g_logp = flp_gpu_pointer(setting->g),
        .grad_hidden = flp_gpu_pointer(setting->grad_hidden),
        .grad_weight = flp_gpu_pointer(setting->grad_weight),
        .workspace = flp_gpu_pointer(b->workspace),
        .workspace_bytes = bytes,
        .stream = setting->stream,
    };
    if (status == FLP_OK)
        status = launch_both(b);
    return status == FLP_OK ? flp_gpu_synchronize(setting->gpu) : status;
}

/* ---- what goes into the results */

/* products: how many matrix products of N, D and V ours and the baseline compute. With a filter ours computes less, but its rate is by this count too. */
static json_t *pack_case(const bench *b, const char *text, int products, const flp_backward_errors *errors, json_t *regimes)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(b->backward_plan);
    /* Without derivatives that are computed again, those of the exponentials that the forward saves are all. */
    const flp_kernel *derivatives = plan->grad_logits ? plan->grad_logits : plan->forward.tile;
    const flp_kernel *product = plan->weight_product ? plan->weight_product : plan->hidden_product;
    const int gradients = flp_gradient_setting_count(&b->setting) - 1, again = products > gradients + 1;
    const double work = 2.0 * products * (double)b->forward.rows * (double)b->forward.hidden * (double)b->forward.vocab * 1e-12;
    char name[FLP_PROBLEM_TEXT_BYTES + 64];
    json_t *result;

    snprintf(name, sizeof(name), "%s%s", again && !b->problem.with_forward ? "linear_logp+" : "", text);
    result = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:i, s:s, s:f, s:O}", "problem", name, "path",
                       flp_backend_name(flp_plan_backend(b->backward_plan)), "kernel", derivatives->manifest.variant, "product", product->manifest.variant,
                       "numerics", flp_plan_numerics(b->backward_plan), "workspace_bytes", (json_int_t)workspace_bytes(b), "rows_checked",
                       gradients * FLP_BACKWARD_CHECKED, "relative_error", errors->hidden.relative, "grad_weight_error", errors->weight.relative,
                       "grad_hidden_error_of_all", errors->hidden.of_all, "grad_weight_error_of_all", errors->weight.of_all, "grad_hidden_rounding",
                       errors->hidden.rounding, "grad_weight_rounding", errors->weight.rounding, "baseline",
                       again ? "cuBLAS logits twice, gradients" : flp_gradient_setting_name(&b->setting), "cublas_version", b->setting.cublas.version, "unit",
                       "TFLOP/s", "work", work, "regimes", regimes);
    if (result && !flp_filter_outcome_add(&b->filtered, errors, result)) {
        json_decref(result);
        return NULL;
    }
    return result;
}

static flp_status measure(bench *b, const char *text, int products, const flp_forward_options *options, const flp_backward_errors *errors, json_t *results)
{
    const int again = products > flp_gradient_setting_count(&b->setting);
    const flp_measured ours = { again || b->problem.with_forward ? launch_both : launch_backward, b };
    const flp_measured baseline = { again ? flp_gradient_setting_products_and_logits : flp_gradient_setting_products, &b->setting };
    json_t *regimes = json_object();
    flp_status status = regimes ? flp_regimes_measure(b->setting.gpu, b->setting.stream, options->regimes, &options->measure, &ours, &baseline, regimes)
                                : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    if (status == FLP_OK && json_array_append_new(results, pack_case(b, text, products, errors, regimes)) != 0)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    return status;
}

static int saved_exp_holds_all(const bench *b)
{
    return flp_linear_logp_backward_plan_of(b->backward_plan)->work.chunks.saved_columns >= b->forward.vocab;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t *results)
{
    const int least = flp_gradient_setting_count(&b->setting);
    flp_backward_errors errors;
    flp_status status = flp_gradient_setting_open(&b->setting);

    if (status == FLP_OK)
        status = make_ours(b, options);
    if (status == FLP_OK)
        status = flp_filter_outcome_take(b->backward_plan, b->problem.grad_filter_eps, &b->filtered);
    if (status == FLP_OK)
        status = flp_gradient_setting_check(&b->setting, &errors);
    if (status == FLP_OK && b->problem.with_forward)
        return measure(b, text, saved_exp_holds_all(b) ? least : least + 1, options, &errors, results);
    for (int products = least; products <= least + 1 && status == FLP_OK; products++)
        status = measure(b, text, products, options, &errors, results);
    return status;
}

flp_status flp_backward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results)
{
    bench b = { .setting.gpu = gpu };
    flp_status status = parse(text, &b);

    *results = json_array();
    if (status == FLP_OK)
        status = *results ? run(&b, text, options, *results) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the results");
    if (status != FLP_OK) {
        json_decref(*results);
        *results = NULL;
    }
    flp_plan_destroy(b.forward_plan);
    flp_plan_destroy(b.backward_plan);
    flp_context_destroy(b.context);
    flp_gradient_setting_close(&b.setting);
    return status;
}
