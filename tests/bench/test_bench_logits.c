/* The benchmark of logits_logp: the kernels that it names are those that the plan launches. */
#include "logits.h"

#include "jit/manifest.h"
#include "runtime/fake_call.h"
#include "runtime/assertions.h"
#include "runtime/fake_driver.h"

static flp_context *context;
static _Alignas(256) char memory[256];

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    fake_driver.clusters = 21; /* of 16 blocks, on an H200 */
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_context_destroy(context);
    return 0;
}

/* The kernel of variant a.b is flp_a_b. */
static void assert_launched(const char *variant, const fake_launch *launch)
{
    char kernel[FLP_VARIANT_BYTES] = "flp_";
    size_t length = strlen(kernel);

    for (; *variant && length + 1 < sizeof(kernel); variant++)
        kernel[length++] = *variant == '.' ? '_' : *variant;
    kernel[length] = 0;
    assert_string_equal(launch->kernel, kernel);
}

/* begins: how the one kernel that counts most is called. */
static void assert_names_what_was_launched(const flp_plan *plan, int is_backward, int64_t rows, const char *begins)
{
    flp_text names = { 0 };
    char *rest, *name;
    int count = 0;

    flp_logits_name_kernels(plan, is_backward, rows, &names);
    assert_non_null(names.data);
    if (strncmp(names.data, begins, strlen(begins)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", names.data, begins);
    for (name = strtok_r(names.data, " +", &rest); name; name = strtok_r(NULL, " +", &rest))
        assert_launched(name, &fake_driver.launch[count++]);
    assert_int_equal(fake_driver.launches, count);
    flp_text_free(&names);
}

static void forward_launches(const char *text, int64_t rows, const char *begins)
{
    const flp_logits_logp_args args = { .rows = rows, .logits = memory, .target = memory, .logp = (float *)(void *)memory };
    flp_logits_logp_problem problem;
    flp_plan *plan;

    assert_succeeds(flp_logits_logp_problem_parse(text, &problem));
    assert_succeeds(flp_logits_logp_plan_create(context, &problem, &plan));
    fake_driver.launches = 0;
    assert_succeeds(flp_logits_logp_execute(plan, &args));
    assert_names_what_was_launched(plan, 0, rows, begins);
    flp_plan_destroy(plan);
}

static void backward_launches(const char *text, int64_t rows, const char *begins)
{
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args = {
        .rows = rows, .logits = memory, .target = memory, .g_logp = (float *)(void *)memory, .lse = (float *)(void *)memory, .grad_logits = memory
    };
    flp_plan *plan;

    assert_succeeds(flp_logits_logp_backward_problem_parse(text, &problem));
    assert_succeeds(flp_logits_logp_backward_plan_create(context, &problem, &plan));
    fake_driver.launches = 0;
    assert_succeeds(flp_logits_logp_backward_execute(plan, &args));
    assert_names_what_was_launched(plan, 1, rows, begins);
    flp_plan_destroy(plan);
}

static void few_rows_are_the_cluster_kernels(void **state)
{
    (void)state;
    forward_launches("logits_logp:bf16:n1:v262144", 1, "logits_logp_cluster.");
    forward_launches("logits_logp:bf16:n16:v131072", 16, "logits_logp_cluster.");
}

static void rows_that_are_cut_are_followed_by_the_combine(void **state)
{
    (void)state;
    forward_launches("logits_logp:bf16:n100:v131072", 100, "logits_logp.");
    assert_int_equal(2, fake_driver.launches);
}

static void many_rows_are_the_rows_kernels(void **state)
{
    (void)state;
    forward_launches("logits_logp:bf16:n4096:v131072", 4096, "logits_logp.");
    assert_int_equal(1, fake_driver.launches);
}

static void a_backward_that_knows_lse_is_the_gradient_kernel(void **state)
{
    (void)state;
    backward_launches("logits_logp_backward:bf16:n4096:v131072", 4096, "logits_logp_gradient.");
}

static void a_fused_backward_is_one_kernel(void **state)
{
    (void)state;
    backward_launches("logits_logp_backward:bf16:n4096:v131072:fused", 4096, "logits_logp_fused_cluster.");
    assert_int_equal(1, fake_driver.launches);
}

static void few_rows_are_not_fused(void **state)
{
    (void)state;
    backward_launches("logits_logp_backward:bf16:n1:v131072:fused", 1, "logits_logp_cluster.");
    assert_int_equal(2, fake_driver.launches);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(few_rows_are_the_cluster_kernels), TEST(rows_that_are_cut_are_followed_by_the_combine),
        TEST(many_rows_are_the_rows_kernels),   TEST(a_backward_that_knows_lse_is_the_gradient_kernel),
        TEST(a_fused_backward_is_one_kernel),   TEST(few_rows_are_not_fused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
