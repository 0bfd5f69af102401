/* cpu_call PROBLEM THREADS: makes a call on the CPU path for each line of its input, and prints the seconds that passed and the CPU's seconds on a line.
 * bench/cpu_peers.py runs it in turn with PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "cases.h"
#include "cpu/convert.h"
#include "fusedlogp.h"

typedef struct {
    flp_context *context;
    flp_linear_cross_entropy_problem problem; /* of linear_logp: its backward.forward */
    int is_scoring;
    void *hidden, *weight, *grad_hidden, *grad_weight;
    float *logp, loss;
    int64_t *target;
} call;

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static flp_status parse(const char *text, call *made)
{
    made->is_scoring = strncmp(text, "linear_logp:", strlen("linear_logp:")) == 0;
    if (made->is_scoring)
        return flp_linear_logp_problem_parse(text, &made->problem.backward.forward);
    return flp_linear_cross_entropy_problem_parse(text, &made->problem);
}

static void *random_matrix(flp_dtype dtype, uint64_t stream, int64_t count, double scale)
{
    char *matrix = malloc((size_t)(count * flp_dtype_bytes(dtype)));

    for (int64_t i = 0; matrix && i < count; i++) {
        const float value = (float)(scale * (2 * (double)flp_case_random(stream, (uint64_t)i) * 0x1p-64 - 1));
        flp_convert_from_f32(dtype, &value, matrix + i * flp_dtype_bytes(dtype), 1);
    }
    return matrix;
}

static int prepare(call *made)
{
    const flp_linear_logp_problem *forward = &made->problem.backward.forward;
    const int64_t rows = forward->rows, of_hidden = rows * forward->hidden, of_weight = forward->vocab * forward->hidden;

    made->hidden = random_matrix(forward->dtype, 1, of_hidden, 1);
    made->weight = random_matrix(forward->dtype, 2, of_weight, 0.05);
    made->grad_hidden = calloc((size_t)of_hidden, sizeof(float));
    made->grad_weight = calloc((size_t)of_weight, sizeof(float));
    made->logp = calloc((size_t)rows, sizeof *made->logp);
    made->target = calloc((size_t)rows, sizeof *made->target);
    for (int64_t i = 0; made->target && i < rows; i++)
        made->target[i] = (int64_t)(flp_case_random(3, (uint64_t)i) % (uint64_t)forward->vocab);
    return made->hidden && made->weight && made->grad_hidden && made->grad_weight && made->logp && made->target;
}

static flp_status run(call *made)
{
    const flp_linear_logp_backward_problem *backward = &made->problem.backward;
    const flp_linear_logp_args scoring = {
        .rows = backward->forward.rows, .hidden = made->hidden, .weight = made->weight, .target = made->target, .logp = made->logp
    };
    const flp_linear_cross_entropy_args loss = { .rows = backward->forward.rows,
                                                 .hidden = made->hidden,
                                                 .weight = made->weight,
                                                 .target = made->target,
                                                 .loss = &made->loss,
                                                 .grad_hidden = backward->grad_hidden == FLP_NONE ? NULL : made->grad_hidden,
                                                 .grad_weight = backward->grad_weight == FLP_NONE ? NULL : made->grad_weight };

    return made->is_scoring ? flp_linear_logp(made->context, &backward->forward, &scoring) : flp_linear_cross_entropy(made->context, &made->problem, &loss);
}

static flp_status run_all(call *made)
{
    flp_status status = FLP_OK;
    char line[16];

    while (status == FLP_OK && fgets(line, sizeof line, stdin)) {
        const double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        status = run(made);
        printf("%.6f %.6f\n", seconds(CLOCK_MONOTONIC) - start, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        fflush(stdout);
    }
    return status;
}

int main(int argc, char **argv)
{
    static call made;
    flp_context_options options = { .flags = FLP_CONTEXT_NO_GPU };
    flp_status status;

    if (argc != 3) {
        fprintf(stderr, "usage: cpu_call PROBLEM THREADS\n");
        return 2;
    }
    options.cpu_threads = atoi(argv[2]);
    status = parse(argv[1], &made);
    if (status == FLP_OK)
        status = prepare(&made) ? flp_context_create(&options, &made.context) : FLP_OUT_OF_MEMORY;
    if (status == FLP_OK)
        status = run_all(&made);
    if (status != FLP_OK)
        fprintf(stderr, "%s: %s\n", flp_status_text(status), flp_error_message());
    flp_context_destroy(made.context);
    free(made.hidden), free(made.weight), free(made.grad_hidden), free(made.grad_weight), free(made.logp), free(made.target);
    return status != FLP_OK;
}
