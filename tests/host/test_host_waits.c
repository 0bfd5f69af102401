/* Each wait for the previous kernel (programmatic dependent launch) is needed: without it, the host machine finds that two launches access the same memory. */
#include <stdio.h>
#include <stdlib.h>

#include "host/host_suite.h"
#include "host/machine/machine_api.h"
#include "runtime/assertions.h"

/* Cases of each operator whose launches overlap, for all data that kernels hand over to each other, and all that they overwrite. */
static const char *const cases[] = {
    "all equal",
    "gradients: of lse and entropy",
    "gradients: a scratch in grad_weight",
    "gradients: a scratch in grad_weight, all ignored",
    "gradients: forward too",
    "gradients: forward too, of lse and entropy",
    "gradients: a scratch in grad_weight behind saved exponentials",
    "gradients: filter, most below",
    "gradients: forward too, in chunks, hidden alone",
    "cross-entropy: token weights, class weights, smoothing, z-loss",
    "cross-entropy: saved exponentials of a part",
    "cross-entropy: saved exponentials, grad_hidden first",
    "cross-entropy: policy gradient",
    "logits, forward: one row, ignored",
    "logits, fused: one row, bad target",
    "logits, backward: one row, more segments than warps",
    "weighted sum, forward: bf16 n600 *",
    "weighted sum, gradients: bf16 n600 *",
};
enum { CASES = sizeof(cases) / sizeof(*cases), MOST_PLACES = 256 };

static int is_needed[MOST_PLACES];

/* The place of a wait, as "KERNEL at FILE:LINE". The machine starts a program to find it, so it is called once for each place. */
static const char *describe(int place)
{
    static char texts[MOST_PLACES][512];

    if (!texts[place][0])
        flp_host_machine_wait_describe(place, texts[place], sizeof(texts[place]));
    assert_non_null(strchr(texts[place], ' '));
    return texts[place];
}

/* Whether a wait is needed in this kernel, or in another one with the same line of a template. */
static int is_needed_somewhere(int place)
{
    const char *line = strrchr(describe(place), ' ');

    for (int i = 0; i < flp_host_machine_wait_count(); i++)
        if (is_needed[i] && strcmp(line, strrchr(describe(i), ' ')) == 0)
            return 1;
    return 0;
}

/* Leaves out each wait that the case executes, one at a time. A line of the templates is in many kernels, and must be needed in one of them. */
static void ignore_each(flp_context *context, const char *name, const uint64_t *calls_before)
{
    char message[8192];

    for (int place = 0; place < flp_host_machine_wait_count(); place++) {
        if (flp_host_machine_wait_calls(place) == calls_before[place] || is_needed_somewhere(place))
            continue;
        flp_host_machine_wait_ignore(place);
        message[0] = 0;
        is_needed[place] = !flp_host_suite_run_case(context, name, message, sizeof(message));
        flp_host_machine_wait_ignore(-1);
        if (is_needed[place])
            assert_contains(message, "dependent launch: ");
    }
}

static void each_wait_for_the_kernel_before_is_needed(void **state)
{
    flp_context *context = flp_host_suite_start(90);
    char message[8192] = "";
    int unneeded = 0;

    (void)state;
    assert_non_null(context);
    for (int i = 0; i < CASES; i++) {
        uint64_t before[MOST_PLACES] = { 0 };
        for (int place = 0; place < flp_host_machine_wait_count(); place++)
            before[place] = flp_host_machine_wait_calls(place);
        if (!flp_host_suite_run_case(context, cases[i], message, sizeof(message)))
            fail_msg("%s: %s", cases[i], message);
        assert_in_range(flp_host_machine_wait_count(), 0, MOST_PLACES);
        ignore_each(context, cases[i], before);
    }
    for (int place = 0; place < flp_host_machine_wait_count(); place++) {
        if (is_needed_somewhere(place))
            continue;
        print_error("nothing goes wrong without the wait in %s\n", describe(place));
        unneeded++;
    }
    flp_context_destroy(context);
    assert_int_equal(0, unneeded);
    assert_in_range(flp_host_machine_wait_count(), 20, MOST_PLACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_for_the_kernel_before_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
