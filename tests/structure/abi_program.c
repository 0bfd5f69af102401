/* A program for tests/structure/abi.sh: every operator on the CPU, and every struct of the header. It prints what it got, the same with any header
 * and library; compiled with a header of tomorrow (-DAPPENDED), it then sets the fields that the library does not know and says what is refused. */
#include <fusedlogp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3, D = 3, V = 5 };

static const float hidden[N][D] = { { 1, 0, -1 }, { 0.5f, 2, 0.25f }, { -1, 1, 3 } },
                   logits[N][V] = { { 0, 1, 2, 3, 4 }, { 1, -1, 0.5f, 2, 0 }, { 3, 0, 1, 0, 0.25f } };
static const float weight[V][D] = { { 0, 1, 0 }, { 1, 1, 1 }, { -1, 0, 0.5f }, { 2, -1, 0 }, { 0.25f, 0, 1 } };
static const float ones[N] = { 1, 1, 1 }, advantages[N] = { 1, -2, 0.5f }, old_logp[N] = { -1, -1.5f, -2 };
static const int64_t target[N] = { 0, 3, 4 };
static flp_context *context;

static void check(flp_status status)
{
    if (status == FLP_OK)
        return;
    printf("%s: %s\n", flp_status_text(status), flp_error_message());
    exit(1);
}

static void print(const char *name, const float *values, int count)
{
    printf("%s", name);
    for (int i = 0; i < count; i++)
        printf(" %a", (double)values[i]);
    printf("\n");
}

/* A struct with a guard behind it: a library that takes it for a larger one writes over that. */
#define GUARDED(type, name) \
    struct {                \
        type value;         \
        int64_t guard;      \
    } name;                 \
    memset(&name, 0x5a, sizeof(name))
#define CHECK_GUARD(name)                                \
    do {                                                 \
        if (name.guard != INT64_C(0x5a5a5a5a5a5a5a5a)) { \
            printf("%s was written behind\n", #name);    \
            exit(1);                                     \
        }                                                \
    } while (0)

/* The string of a problem, and of what it is parsed to. */
#define PRINT_PROBLEM(op, problem)                                                  \
    do {                                                                            \
        GUARDED(flp_##op##_problem, parsed);                                        \
        char text[512], again[512];                                                 \
        check(flp_##op##_problem_format(problem, text, sizeof(text)));              \
        check(flp_##op##_problem_parse(text, &parsed.value));                       \
        CHECK_GUARD(parsed);                                                        \
        check(flp_##op##_problem_format(&parsed.value, again, sizeof(again)));      \
        printf("%s%s\n", text, strcmp(text, again) ? " came back as another" : ""); \
    } while (0)

/* Without a plan, and with one. */
#define RUN(op, problem, args)                                  \
    do {                                                        \
        flp_plan *plan;                                         \
        PRINT_PROBLEM(op, problem);                             \
        check(flp_##op(context, problem, args));                \
        check(flp_##op##_prepare(context, problem, NULL));      \
        check(flp_##op##_plan_create(context, problem, &plan)); \
        check(flp_##op##_execute(plan, args));                  \
        flp_plan_destroy(plan);                                 \
    } while (0)

static flp_linear_logp_problem linear_problem(void)
{
    const flp_linear_logp_problem problem = {
        .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .softcap = 4, .precision = FLP_PRECISION_EXACT, .backend = FLP_BACKEND_CPU
    };

    return problem;
}

static void run_linear_logp(void)
{
    flp_linear_logp_problem problem = linear_problem();
    float logp[N], entropy[N];
    int64_t with_bad[N] = { 0, V, 4 }, count, first;
    flp_linear_logp_args args = {
        .rows = N, .hidden = hidden, .weight = weight, .target = target, .ignore_index = 4, .flags = FLP_IGNORE_INDEX, .logp = logp, .entropy = entropy
    };
    flp_plan *plan;

    problem.entropy = 1;
    RUN(linear_logp, &problem, &args);
    print("logp", logp, N);
    print("entropy", entropy, N);
    args.target = with_bad;
    check(flp_linear_logp_plan_create(context, &problem, &plan));
    check(flp_linear_logp_execute(plan, &args));
    check(flp_plan_target_errors(plan, &count, &first));
    printf("bad targets %d, the first in row %d\n", (int)count, (int)first);
    flp_plan_destroy(plan);
}

/* Two shards and their merge. */
static void run_shards(void)
{
    flp_linear_logp_problem problem = linear_problem();
    float partials[2][N][FLP_PARTIAL_FLOATS], logp[N];
    flp_linear_logp_args args = { .rows = N, .hidden = hidden, .target = target };
    const flp_linear_logp_merge_args merge = { .rows = N, .ranks = 2, .partials = partials[0][0], .target = target, .logp = logp };
    flp_plan *plan;

    problem.vocab_total = V;
    problem.pointer_alignment = sizeof(float);
    for (int rank = 0; rank < 2; rank++) {
        problem.vocab_first = rank * 2;
        problem.vocab = rank == 0 ? 2 : V - 2;
        args.weight = weight[problem.vocab_first];
        args.partials = partials[rank][0];
        RUN(linear_logp, &problem, &args);
    }
    check(flp_linear_logp_merge(context, &problem, &merge));
    check(flp_linear_logp_plan_create(context, &problem, &plan));
    check(flp_linear_logp_execute_merge(plan, &merge));
    flp_plan_destroy(plan);
    print("logp of shards", logp, N);
}

/* The loss of two shards, and the gradient by the second one's weight. */
static void run_loss_of_shards(void)
{
    float partials[2][N][FLP_PARTIAL_FLOATS], loss, grad_weight[V][D] = { { 0 } };
    flp_linear_cross_entropy_problem problem = { .backward = { .forward = linear_problem(), .grad_weight = FLP_F32 }, .reduction = FLP_REDUCE_SUM };
    flp_linear_logp_problem *forward = &problem.backward.forward;
    flp_linear_cross_entropy_args args = { .rows = N, .hidden = hidden, .target = target, .ranks = 2, .loss = &loss };
    flp_plan *plan;

    forward->vocab_total = V;
    forward->pointer_alignment = sizeof(float);
    for (int rank = 0; rank < 2; rank++) {
        forward->vocab_first = rank * 2;
        forward->vocab = rank == 0 ? 2 : V - 2;
        args.weight = weight[forward->vocab_first];
        args.partials = partials[rank][0];
        check(flp_linear_cross_entropy_partials(context, &problem, &args));
    }
    check(flp_linear_cross_entropy_plan_create(context, &problem, &plan));
    check(flp_linear_cross_entropy_execute_partials(plan, &args));
    args.partials = partials[0][0];
    args.grad_weight = grad_weight[2];
    check(flp_linear_cross_entropy_merge(context, &problem, &args));
    check(flp_linear_cross_entropy_execute_merge(plan, &args));
    flp_plan_destroy(plan);
    print("loss of shards", &loss, 1);
    print("gradient of a shard", grad_weight[2], D);
}

static flp_linear_logp_backward_problem backward_problem(void)
{
    const flp_linear_logp_backward_problem problem = { .forward = linear_problem(), .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .with_forward = 0 };

    return problem;
}

static void run_linear_logp_backward(void)
{
    flp_linear_logp_backward_problem problem = backward_problem();
    float logp[N], lse[N], grad_hidden[N][D], grad_weight[V][D];
    static _Alignas(256) char workspace[4096]; /* a path on the CPU keeps no more in it than which forward it has seen */
    const flp_linear_logp_args forward = {
        .rows = N, .hidden = hidden, .weight = weight, .target = target, .logp = logp, .lse = lse, .workspace = workspace, .workspace_bytes = sizeof(workspace)
    };
    flp_linear_logp_backward_args args = {
        .rows = N, .hidden = hidden, .weight = weight, .target = target, .lse = lse, .g_logp = ones, .grad_hidden = grad_hidden, .grad_weight = grad_weight
    };
    flp_plan *plan;

    args.workspace = workspace;
    args.workspace_bytes = sizeof(workspace);
    problem.with_forward = 1;
    check(flp_linear_logp_backward_plan_create(context, &problem, &plan));
    check(flp_linear_logp_backward_execute_forward(plan, &forward));
    check(flp_linear_logp_backward_execute(plan, &args));
    flp_plan_destroy(plan);
    print("logp", logp, N);
    problem.with_forward = 0;
    RUN(linear_logp_backward, &problem, &args);
    print("grad_hidden", grad_hidden[0], N * D);
    print("grad_weight", grad_weight[0], V * D);
}

static void run_linear_cross_entropy(void)
{
    flp_linear_cross_entropy_problem problem = { .backward = backward_problem(), .reduction = FLP_REDUCE_SUM, .token_weights = 1 };
    float loss, grad_hidden[N][D], grad_weight[V][D];
    flp_token_input inputs[2];
    flp_token_parameter parameters[2];
    flp_linear_cross_entropy_args args = { .rows = N,
                                           .hidden = hidden,
                                           .weight = weight,
                                           .target = target,
                                           .token_weights = advantages,
                                           .loss = &loss,
                                           .grad_hidden = grad_hidden,
                                           .grad_weight = grad_weight };

    RUN(linear_cross_entropy, &problem, &args);
    print("loss", &loss, 1);
    print("grad_hidden", grad_hidden[0], N * D);
    strcpy(problem.token_loss, "policy_gradient");
    memset(inputs, 0, sizeof(inputs));
    memset(parameters, 0, sizeof(parameters));
    inputs[0].name = "old_logp";
    inputs[0].values = old_logp;
    inputs[1].name = "advantages";
    inputs[1].values = advantages;
    parameters[0].name = "clip_low";
    parameters[0].value = 0.125;
    parameters[1].name = "clip_high";
    parameters[1].value = 0.25;
    args.token_inputs = inputs;
    args.token_input_count = args.token_parameter_count = 2;
    args.token_parameters = parameters;
    RUN(linear_cross_entropy, &problem, &args);
    print("loss", &loss, 1);
    print("grad_hidden", grad_hidden[0], N * D);
}

static void run_weighted_sum(void)
{
    const flp_weighted_sum_problem problem = { .dtype = FLP_F32, .rows = N, .columns = D, .backend = FLP_BACKEND_CPU };
    const flp_weighted_sum_backward_problem backward = { .forward = problem, .grad_x = FLP_F32, .grad_w = FLP_F32, .grad_x_stride = 4 };
    float y[N], grad_x[N][4] = { { 0 } }, grad_w[D];
    const flp_weighted_sum_args args = { .rows = N, .x = hidden, .w = weight, .y = y };
    const flp_weighted_sum_backward_args backward_args = { .rows = N, .g = advantages, .x = hidden, .w = weight[1], .grad_x = grad_x, .grad_w = grad_w };

    RUN(weighted_sum, &problem, &args);
    print("y", y, N);
    RUN(weighted_sum_backward, &backward, &backward_args);
    print("grad_x", grad_x[0], N * 4);
    print("grad_w", grad_w, D);
}

/* The two executions scale x one after the other. */
static void run_scale(void)
{
    const flp_scale_problem problem = { .dtype = FLP_F32, .rows = N, .columns = D, .backend = FLP_BACKEND_CPU };
    const float factor = 0.5f;
    float x[N][D];
    const flp_scale_args args = { .rows = N, .x = x, .factor = &factor };

    memcpy(x, hidden, sizeof(x));
    RUN(scale, &problem, &args);
    print("x", x[0], N * D);
}

static void run_logits_logp(void)
{
    const flp_logits_logp_problem problem = { .dtype = FLP_F32, .rows = N, .vocab = V, .argmax = 1, .backend = FLP_BACKEND_CPU, .softcap = 3 };
    const flp_logits_logp_backward_problem backward = { .dtype = FLP_F32, .rows = N, .vocab = V, .fused = 1, .backend = FLP_BACKEND_CPU, .softcap = 3 };
    const int64_t row_index[2] = { 2, 0 };
    float logp[2], grad_logits[2][V];
    int32_t argmax[2];
    const flp_logits_logp_args args = {
        .rows = 2, .logits = logits, .target = target, .row_index = row_index, .logits_rows = N, .logp = logp, .argmax = argmax
    };
    const flp_logits_logp_backward_args backward_args = {
        .rows = 2, .logits = logits, .target = target, .row_index = row_index, .logits_rows = N, .g_logp = advantages, .logp = logp, .grad_logits = grad_logits
    };

    RUN(logits_logp, &problem, &args);
    printf("argmax %d %d\n", argmax[0], argmax[1]);
    RUN(logits_logp_backward, &backward, &backward_args);
    print("logp", logp, 2);
    print("grad_logits", grad_logits[0], 2 * V);
}

static void run_others(void)
{
    GUARDED(flp_counters, counters);
    GUARDED(flp_device_facts, facts);

    check(flp_context_counters(context, &counters.value));
    printf("compiled %d, plans %d\n", (int)counters.value.compiled, (int)counters.value.plans);
    flp_device_describe(-1, &facts.value); /* refused, or no driver: nothing is left of the facts */
    printf("multiprocessors %d, memory %d\n", facts.value.multiprocessors, (int)facts.value.memory_bytes);
    CHECK_GUARD(counters);
    CHECK_GUARD(facts);
}

#ifdef APPENDED
/* Each of these sets a field that the library does not know: FLP_BAD_ARGUMENT. */
#define REFUSED(set, clear, call)                                                                                   \
    do {                                                                                                            \
        const flp_status status = (set, call);                                                                      \
        printf("%s: %s: %s\n", #set, flp_status_text(status), status == FLP_OK ? "accepted" : flp_error_message()); \
        clear;                                                                                                      \
        check(call);                                                                                                \
    } while (0)

static void set_what_is_not_known(void)
{
    flp_context *other;
    flp_context_options options = { .cpu_threads = 1 };
    flp_linear_cross_entropy_problem problem = { .backward = backward_problem() };
    float loss, grad_hidden[N][D], grad_weight[V][D];
    flp_linear_cross_entropy_args args = {
        .rows = N, .hidden = hidden, .weight = weight, .target = target, .loss = &loss, .grad_hidden = grad_hidden, .grad_weight = grad_weight
    };
    flp_token_input inputs[2] = { { .name = "advantages", .values = advantages }, { .name = "old_logp", .values = old_logp } };
    char text[512];

    options.appended = 1;
    printf("options: %s\n", flp_status_text(flp_context_create(&options, &other)));
    REFUSED(problem.appended = 1, problem.appended = 0, flp_linear_cross_entropy(context, &problem, &args));
    REFUSED(problem.backward.appended = 1, problem.backward.appended = 0, flp_linear_cross_entropy(context, &problem, &args));
    REFUSED(problem.backward.forward.appended = 1, problem.backward.forward.appended = 0, flp_linear_cross_entropy(context, &problem, &args));
    REFUSED(problem.backward.forward.appended = 1, problem.backward.forward.appended = 0,
            flp_linear_cross_entropy_problem_format(&problem, text, sizeof(text)));
    REFUSED(args.appended = 1, args.appended = 0, flp_linear_cross_entropy(context, &problem, &args));
    strcpy(problem.token_loss, "policy_gradient");
    args.token_inputs = inputs;
    args.token_input_count = 2;
    REFUSED(inputs[1].appended = 1, inputs[1].appended = 0, flp_linear_cross_entropy(context, &problem, &args));
}
#endif

int main(void)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 1, .flags = FLP_CONTEXT_NO_GPU };

    check(flp_context_create(&options, &context));
    run_linear_logp();
    run_shards();
    run_loss_of_shards();
    run_linear_logp_backward();
    run_linear_cross_entropy();
    run_weighted_sum();
    run_scale();
    run_logits_logp();
    run_others();
#ifdef APPENDED
    set_what_is_not_known();
#endif
    flp_context_destroy(context);
    return 0;
}
