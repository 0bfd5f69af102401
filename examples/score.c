/* Two tokens scored against a vocabulary of three on the CPU: cc score.c $(pkg-config --cflags --libs fusedlogp) */
#include <fusedlogp.h>
#include <stdio.h>

int main(void)
{
    const float hidden[2][2] = {{1, 0}, {0, 2}}, weight[3][2] = {{0, 0}, {1, 1}, {0, -1}};
    const int32_t target[2] = {1, 2};
    float logp[2];

    flp_context *context = NULL;
    flp_linear_logp_problem problem = {.dtype = FLP_F32, .hidden = 2, .vocab = 3, .target_dtype = FLP_I32, .backend = FLP_BACKEND_CPU};
    flp_linear_logp_args args = {.rows = 2, .hidden = hidden, .weight = weight, .target = target, .logp = logp};
    flp_status status = flp_context_create(NULL, &context);
    if (status == FLP_OK) status = flp_linear_logp(context, &problem, &args);
    if (status != FLP_OK) fprintf(stderr, "%s: %s\n", flp_status_text(status), flp_error_message());
    else printf("%.6f %.6f\n", logp[0], logp[1]);
    flp_context_destroy(context);

    /* The logits are 0 1 0 and 0 2 -2, so logp is 1 - log(2 + e) and -2 - log(1 + e^2 + e^-2). */
    const double wanted[2] = {-0.55144471, -4.14293163};
    for (int i = 0; i < 2 && status == FLP_OK; i++)
        if (!(logp[i] - wanted[i] < 1e-6 && wanted[i] - logp[i] < 1e-6)) status = FLP_INTERNAL;
    return status != FLP_OK;
}
