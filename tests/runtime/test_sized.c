/* Structs of another header: sizes, copies in both directions; and that no struct of the header hides padding at its end. */
#include "base/sized.h"

#include <stdio.h>
#include <stddef.h>

#include "assertions.h"

static flp_linear_cross_entropy_problem full(void)
{
    flp_linear_cross_entropy_problem problem;

    memset(&problem, 0x11, sizeof(problem));
    return problem;
}

/* A field that is appended later begins where the struct ends today: there is no padding that a program may have left garbage in. When a
 * field is appended, it takes its struct's line here. */
static void no_struct_ends_in_padding(void **state)
{
#define ENDS_WITH(type, last) assert_int_equal(sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last))
    (void)state;
    ENDS_WITH(flp_context_options, tune_seconds);
    ENDS_WITH(flp_counters, plans);
    ENDS_WITH(flp_device_facts, memory_bytes);
    ENDS_WITH(flp_linear_logp_problem, vocab_total);
    ENDS_WITH(flp_linear_logp_args, partials);
    ENDS_WITH(flp_linear_logp_merge_args, stream);
    ENDS_WITH(flp_linear_logp_backward_problem, grad_filter_eps);
    ENDS_WITH(flp_linear_logp_backward_args, multiprocessors_left);
    ENDS_WITH(flp_linear_cross_entropy_problem, token_loss);
    ENDS_WITH(flp_linear_cross_entropy_args, multiprocessors_left);
    ENDS_WITH(flp_token_input, values);
    ENDS_WITH(flp_token_parameter, value);
    ENDS_WITH(flp_weighted_sum_problem, backend);
    ENDS_WITH(flp_weighted_sum_args, stream);
    ENDS_WITH(flp_weighted_sum_backward_problem, grad_x_stride);
    ENDS_WITH(flp_weighted_sum_backward_args, stream);
    ENDS_WITH(flp_scale_problem, backend);
    ENDS_WITH(flp_scale_args, stream);
    ENDS_WITH(flp_logits_logp_problem, softcap);
    ENDS_WITH(flp_logits_logp_args, stream);
    ENDS_WITH(flp_logits_logp_backward_problem, softcap);
    ENDS_WITH(flp_logits_logp_backward_args, stream);
    ENDS_WITH(flp_sizes, scale_args);
#undef ENDS_WITH
}

/* What stands at another struct's beginning is followed by the other's own fields at once. */
static void nested_structs_are_followed_without_a_gap(void **state)
{
    (void)state;
    assert_int_equal(sizeof(flp_linear_logp_problem), offsetof(flp_linear_logp_backward_problem, grad_hidden));
    assert_int_equal(sizeof(flp_linear_logp_backward_problem), offsetof(flp_linear_cross_entropy_problem, reduction));
    assert_int_equal(sizeof(flp_weighted_sum_problem), offsetof(flp_weighted_sum_backward_problem, grad_x));
}

static void the_same_sizes_cost_no_copy(void **state)
{
    const flp_linear_cross_entropy_problem problem = full();
    flp_linear_cross_entropy_problem own;
    flp_status status = FLP_OK;

    (void)state;
    assert_ptr_equal(&problem, flp_sized_take(&flp_sized_linear_cross_entropy_problem, flp_header_sizes(), &problem, &own, &status));
    assert_null(flp_sized_take(&flp_sized_linear_cross_entropy_problem, flp_header_sizes(), NULL, &own, &status));
    assert_int_equal(FLP_OK, status);
}

/* The header before: the innermost struct ended 16 bytes earlier, the middle one's own part 8, the outer one's own part 8. */
static flp_sizes older_sizes(void)
{
    flp_sizes sizes = *flp_header_sizes();

    sizes.linear_logp_problem -= 16;
    sizes.linear_logp_backward_problem -= 16 + 8;
    sizes.linear_cross_entropy_problem -= 16 + 8 + 8;
    return sizes;
}

static void an_older_programs_struct_is_filled_up_with_zeros(void **state)
{
    const flp_sizes sizes = older_sizes();
    const size_t inner = sizeof(flp_linear_logp_problem), middle = sizeof(flp_linear_logp_backward_problem);
    unsigned char given[sizeof(flp_linear_cross_entropy_problem)], wanted[sizeof(flp_linear_cross_entropy_problem)];
    flp_linear_cross_entropy_problem own;
    flp_status status = FLP_OK;

    (void)state;
    for (size_t i = 0; i < sizeof(given); i++)
        given[i] = wanted[i] = (unsigned char)(i % 251 + 1);
    memcpy(given + inner - 16, wanted + inner, middle - inner - 8);
    memcpy(given + middle - 24, wanted + middle, sizeof(wanted) - middle - 8);
    memset(wanted + inner - 16, 0, 16);
    memset(wanted + middle - 8, 0, 8);
    memset(wanted + sizeof(wanted) - 8, 0, 8);
    memset(&own, 0x77, sizeof(own));
    assert_ptr_equal(&own, flp_sized_take(&flp_sized_linear_cross_entropy_problem, &sizes, given, &own, &status));
    assert_int_equal(FLP_OK, status);
    assert_memory_equal(wanted, &own, sizeof(own));
}

static void a_newer_programs_struct_is_taken_while_the_rest_is_zero(void **state)
{
    flp_sizes sizes = *flp_header_sizes();
    struct {
        flp_weighted_sum_args args;
        int64_t more[2];
    } newer;
    flp_weighted_sum_args own;
    flp_status status = FLP_OK;

    (void)state;
    memset(&newer, 0x22, sizeof(newer));
    newer.more[0] = newer.more[1] = 0;
    sizes.weighted_sum_args = sizeof(newer);
    assert_ptr_equal(&own, flp_sized_take(&flp_sized_weighted_sum_args, &sizes, &newer, &own, &status));
    assert_memory_equal(&newer, &own, sizeof(own));
    ((char *)newer.more)[11] = 1;
    assert_null(flp_sized_take(&flp_sized_weighted_sum_args, &sizes, &newer, &own, &status));
    assert_fails(FLP_BAD_ARGUMENT, status, "args: got a field that version 0.1.0 does not know and that is not 0: byte 52 of 56");
    /* The first failure stays. */
    assert_null(flp_sized_take(&flp_sized_weighted_sum_args, flp_header_sizes(), &newer, &own, &status));
}

static void results_are_written_as_far_as_the_caller_has_room(void **state)
{
    flp_sizes sizes = *flp_header_sizes();
    const flp_counters own = { 1, 2, 3, 4, 5 };
    int64_t given[7] = { -1, -1, -1, -1, -1, -1, -1 };

    (void)state;
    sizes.counters = 24;
    assert_succeeds(flp_sized_give(&flp_sized_counters, &sizes, &own, 0, given));
    assert_true(given[2] == 3 && given[3] == -1);
    assert_fails(FLP_BAD_ARGUMENT, flp_sized_give(&flp_sized_counters, &sizes, &own, 1, given),
                 "counters: it has a field that the caller's header does not know");
    sizes.counters = 48;
    assert_succeeds(flp_sized_give(&flp_sized_counters, &sizes, &own, 1, given));
    assert_true(given[4] == 5 && given[5] == 0 && given[6] == -1);
}

static void sizes_that_say_nothing_are_refused(void **state)
{
    flp_sizes sizes = *flp_header_sizes();
    flp_linear_cross_entropy_problem problem = full(), own;
    char inner[100];

    (void)state;
#define REFUSED(given, message)                                                                               \
    do {                                                                                                      \
        flp_status status = FLP_OK;                                                                           \
        assert_null(flp_sized_take(&flp_sized_linear_cross_entropy_problem, given, &problem, &own, &status)); \
        assert_fails(FLP_BAD_ARGUMENT, status, message);                                                      \
    } while (0)
    REFUSED(NULL, "sizes: got NULL, wanted those of the structs of the caller's header");
    sizes.linear_logp_backward_problem = sizes.linear_logp_problem;
    snprintf(inner, sizeof(inner), "sizes: got %zu bytes for problem, wanted more than %zu", sizeof(flp_linear_logp_problem), sizeof(flp_linear_logp_problem));
    REFUSED(&sizes, inner);
    sizes.bytes = offsetof(flp_sizes, linear_cross_entropy_problem); /* the caller's header has no cross-entropy */
    sizes.linear_logp_backward_problem = flp_header_sizes()->linear_logp_backward_problem;
    REFUSED(&sizes, "sizes: got 0 bytes for problem");
    sizes.bytes = 0;
    REFUSED(&sizes, "sizes: got none");
#undef REFUSED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_struct_ends_in_padding),
        cmocka_unit_test(nested_structs_are_followed_without_a_gap),
        cmocka_unit_test(the_same_sizes_cost_no_copy),
        cmocka_unit_test(an_older_programs_struct_is_filled_up_with_zeros),
        cmocka_unit_test(a_newer_programs_struct_is_taken_while_the_rest_is_zero),
        cmocka_unit_test(results_are_written_as_far_as_the_caller_has_room),
        cmocka_unit_test(sizes_that_say_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
