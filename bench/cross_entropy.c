/* Measures a case of linear_cross_entropy: a sum of losses with random weights, so that every row has its own upstream gradient. */
#include "cross_entropy.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "gradient_setting.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "regimes.h"

const char *const flp_cross_entropy_bench_cases[] = { "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:sum:tokens",
                                                      "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:sum:tokens",
                                                      "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:budget2415919104:sum:tokens",
                                                      "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:budget1207959552:sum:tokens",
                                                      "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight:budget536870912:sum:tokens",
                                                      "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:budget268435456:sum:tokens",
                                                      NULL };

typedef struct {
    flp_gradient_setting setting;
    flp_linear_cross_entropy_problem problem;
    CUdeviceptr loss, token_weights, workspace;
    int64_t workspace_bytes;
    flp_context *context;
    flp_plan *plan;
    flp_linear_cross_entropy_args args;
} bench;

int flp_cross_entropy_is_bench_case(const char *text)
{
    return strncmp(text, "linear_cross_entropy:", 21) == 0;
}

static flp_status parse(const char *text, bench *b)
{
    char *name;
    flp_linear_cross_entropy_problem given;
    flp_status status = flp_temperature_cut(text, &b->setting.temperature, &name);
    const flp_linear_logp_backward_problem *backward = &b->problem.backward;

    if (status == FLP_OK)
        status = flp_linear_cross_entropy_problem_parse(name, &given);
    free(name);
    if (status == FLP_OK)
        status = flp_problem_normalize(&flp_linear_cross_entropy_operator, &given, &b->problem);
    if (status != FLP_OK)
        return status;
    if (!flp_gradient_setting_takes(&backward->forward) || backward->grad_hidden != FLP_BF16 || backward->grad_weight == FLP_F16 ||
        backward->accumulate & ~(unsigned)FLP_ACCUMULATE_WEIGHT || backward->grad_filter_eps != 0 || b->problem.reduction != FLP_REDUCE_SUM ||
        !b->problem.token_weights || b->problem.label_smoothing || b->problem.token_loss[0])
        return flp_status_fail(FLP_BAD_ARGUMENT,
                               "case %s: wanted bf16, rows, weight without gaps, in rows of a multiple of 8, as is D, grad_hidden in bf16, grad_weight "
                               "in bf16 or f32 or none, a sum with token weights",
                               text);
    b->setting.problem = backward->forward;
    b->setting.hidden_dtype = backward->grad_hidden;
    b->setting.weight_dtype = backward->grad_weight;
    return FLP_OK;
}

static flp_status launch(void *data)
{
    bench *b = data;

    return flp_linear_cross_entropy_execute(b->plan, &b->args);
}

/* The loss of a row is -t logp: t = -g. */
static flp_status copy_token_weights(bench *b)
{
    const size_t bytes = (size_t)b->setting.problem.rows * sizeof(float);
    float *weights = malloc(bytes);
    flp_status status;

    if (!weights)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for token weights");
    for (int64_t i = 0; i < b->setting.problem.rows; i++)
        weights[i] = -b->setting.g_host[i];
    status = flp_gpu_copy_in(b->setting.gpu, weights, bytes, &b->token_weights);
    free(weights);
    return status;
}

static flp_status make_plan(bench *b, const flp_forward_options *options)
{
    flp_status status = flp_context_create(NULL, &b->context);

    b->problem.backward.forward.backend = options->backend;
    if (status == FLP_OK)
        status = flp_linear_cross_entropy_plan_create(b->context, &b->problem, &b->plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(b->plan));
    if (status == FLP_OK)
        b->workspace_bytes = flp_plan_workspace_bytes(b->plan, b->setting.problem.rows);
    return status;
}

static flp_status make_ours(bench *b, const flp_forward_options *options)
{
    flp_gradient_setting *setting = &b->setting;
    flp_status status = make_plan(b, options);

    if (status == FLP_OK)
        status = copy_token_weights(b);
    if (status == FLP_OK)
        status = flp_gpu_allocate(setting->gpu, (size_t)b->workspace_bytes, &b->workspace);
    if (status == FLP_OK)
        status = flp_gpu_allocate(setting->gpu, sizeof(float), &b->loss);
    b->args = (flp_linear_cross_entropy_args){
        .rows = setting->problem.rows,
        FLP_GRADIENT_SETTING_INPUTS(setting),
        .token_weights = flp_gpu_pointer(b->token_weights),
        .loss = flp_gpu_pointer(b->loss),
        .logp = flp_gpu_pointer(setting->logp),
        .lse = flp_gpu_pointer(setting->lse),
        .grad_hidden = flp_gpu_pointer(setting->grad_hidden),
        .grad_weight = flp_gpu_pointer(setting->grad_weight),
        .workspace = flp_gpu_pointer(b->workspace),
        .workspace_bytes = (size_t)b->workspace_bytes,
        .stream = setting->stream,
    };
    if (status == FLP_OK)
        status = launch(b);
    return status == FLP_OK ? flp_gpu_synchronize(setting->gpu) : status;
}

static json_t *pack_case(const bench *b, const char *text, const flp_backward_errors *errors, json_t *regimes)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(b->plan);
    const flp_kernel *product = plan->backward.weight_product ? plan->backward.weight_product : plan->backward.hidden_product;
    const int gradients = flp_gradient_setting_count(&b->setting) - 1;
    const double work = 2.0 * (1 + gradients) * (double)b->setting.problem.rows * (double)b->setting.problem.hidden * (double)b->setting.problem.vocab * 1e-12;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:i, s:s, s:f, s:O}", "problem", text, "path",
                     flp_backend_name(flp_plan_backend(b->plan)), "kernel", plan->forward.tile->manifest.variant, "product", product->manifest.variant,
                     "numerics", flp_plan_numerics(b->plan), "workspace_bytes", (json_int_t)b->workspace_bytes, "rows_checked",
                     gradients * FLP_BACKWARD_CHECKED, "relative_error", errors->hidden.relative, "grad_weight_error", errors->weight.relative,
                     "grad_hidden_error_of_all", errors->hidden.of_all, "grad_weight_error_of_all", errors->weight.of_all, "grad_hidden_rounding",
                     errors->hidden.rounding, "grad_weight_rounding", errors->weight.rounding, "baseline", flp_gradient_setting_name(&b->setting),
                     "cublas_version", b->setting.cublas.version, "unit", "TFLOP/s", "work", work, "regimes", regimes);
}

static flp_status measure(bench *b, const char *text, const flp_forward_options *options, const flp_backward_errors *errors, json_t **result)
{
    const flp_measured ours = { launch, b }, baseline = { flp_gradient_setting_products, &b->setting };
    json_t *regimes = json_object();
    flp_status status = regimes ? flp_regimes_measure(b->setting.gpu, b->setting.stream, options->regimes, &options->measure, &ours, &baseline, regimes)
                                : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    if (status == FLP_OK && !(*result = pack_case(b, text, errors, regimes)))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    return status;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t **result)
{
    flp_backward_errors errors;
    flp_status status = flp_gradient_setting_open(&b->setting);

    if (status == FLP_OK)
        status = make_ours(b, options);
    if (status == FLP_OK)
        status = flp_gradient_setting_check(&b->setting, &errors);
    return status == FLP_OK ? measure(b, text, options, &errors, result) : status;
}

flp_status flp_cross_entropy_bench_check_case(const char *text)
{
    bench b = { 0 };

    return parse(text, &b);
}

flp_status flp_cross_entropy_bench_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result)
{
    bench b = { .setting.gpu = gpu };
    flp_status status = parse(text, &b);

    *result = NULL;
    if (status == FLP_OK)
        status = run(&b, text, options, result);
    flp_plan_destroy(b.plan);
    flp_context_destroy(b.context);
    flp_gradient_setting_close(&b.setting);
    return status;
}
