/* What the benchmarks of gradients share: inputs and outputs on the device, cuBLAS's products, the check against fp64. */
#ifndef FLP_BENCH_GRADIENT_SETTING_H
#define FLP_BENCH_GRADIENT_SETTING_H
#include "backward_check.h"
#include "baselines.h"
#include "fusedlogp.h"
#include "temperature.h"

/* For a problem in bf16 that cuBLAS takes, with N >= 2 and without options except a softcap, a temperature or a filter. */
typedef struct {
    flp_gpu *gpu;
    flp_linear_logp_problem problem; /* normal */
    flp_dtype hidden_dtype;          /* of grad_hidden */
    flp_dtype weight_dtype;          /* of grad_weight; FLP_NONE: there is none */
    double filter_eps;               /* > 0: inputs of peaked_inputs.h, weight [V, D], and the check allows for what the filter passes over */
    flp_temperature temperature;     /* as the case names it; open makes its rows */
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_cublas cublas;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr target, logp, lse, g, grad_hidden, grad_weight; /* g ~ N(0, 1 / N^2); grad_weight is 0 */
    CUdeviceptr logits, base_hidden, base_weight;               /* what the baseline writes */
    int64_t *targets;
    float *g_host, *lse_host;
} flp_gradient_setting;

/* The fields of the args of a call on the setting's inputs, which all operators have. */
#define FLP_GRADIENT_SETTING_INPUTS(setting)                                                                                                            \
    .hidden = flp_gpu_pointer((setting)->hidden.data), .weight = flp_gpu_pointer((setting)->weight.data), .target = flp_gpu_pointer((setting)->target), \
    .ignore_index = -100, .flags = FLP_IGNORE_INDEX, .temperature = (setting)->temperature.of_all,                                                      \
    .row_temperature = flp_gpu_pointer((setting)->temperature.row_temperature)

/* The caller has filled in problem, hidden_dtype, weight_dtype, filter_eps, temperature and gpu, and ends with flp_gradient_setting_close, also after a
 * failure. */
flp_status flp_gradient_setting_open(flp_gradient_setting *setting);
void flp_gradient_setting_close(flp_gradient_setting *setting);

/* 1 where a normalized problem is one that flp_gradient_setting can be of. */
int flp_gradient_setting_takes(const flp_linear_logp_problem *normal);

/* The baseline's launches; data: a setting. The first: cuBLAS's logits, grad_hidden and, where there is one, grad_weight. The second: the same, with the
 * logits twice. */
flp_status flp_gradient_setting_products(void *data);
flp_status flp_gradient_setting_products_and_logits(void *data);

/* How many products flp_gradient_setting_products computes, and its name in the results. */
int flp_gradient_setting_count(const flp_gradient_setting *setting);
const char *flp_gradient_setting_name(const flp_gradient_setting *setting);

/* Checks rows of grad_hidden and grad_weight, by the lse on the device. Errors as flp_backward_check. */
flp_status flp_gradient_setting_check(flp_gradient_setting *setting, flp_backward_errors *errors);
#endif
