/* The portable path's bare product: the kernel that a forward's tile names, and what it is launched with. */
#include "mma_product.h"

#include "operators/linear/linear_logp_plan.h"
#include "params/matrix_product.h"
#include "runtime/fake_call.h"
#include "runtime/assertions.h"
#include "runtime/fake_driver.h"

static flp_matrix_product_params launched;

static void keep_parameters(const fake_launch *launch)
{
    memcpy(&launched, launch->parameters[0], sizeof(launched));
}

static void a_tile_names_its_product(void **state)
{
    char variant[FLP_VARIANT_BYTES];

    (void)state;
    assert_succeeds(flp_mma_product_name("linear_logp.f32.d2048.bm64.bv128.s108.c1.p4.sm_90", variant));
    assert_string_equal("matrix_product.f32.bm64.bv128.c1.p4.out_f32.sm_90", variant);
    assert_fails(FLP_BAD_ARGUMENT, flp_mma_product_name("linear_logp.bf16.d64.bm128.wg128.bv168.s132.c1.p4.sm_90a", variant), "wanted a portable tile");
    assert_fails(FLP_BAD_ARGUMENT, flp_mma_product_name("linear_logp.bf16.d64.bm128.bv128.s108.c1.p4.argmax.sm_90", variant), "without options");
}

static void the_product_is_that_of_the_logits(void **state)
{
    flp_context *context = fake_call_start(0);
    flp_linear_logp_problem problem = fake_call_problem();
    flp_linear_logp_args args = fake_call_args(FAKE_CALL_ROWS);
    flp_plan *forward, product;

    (void)state;
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &forward));
    assert_succeeds(flp_mma_product_load(forward, flp_linear_logp_plan_of(forward)->tile->manifest.variant, &product));
    fake_driver.on_launch = keep_parameters;
    assert_succeeds(flp_mma_product_launch(&product, FLP_BF16, args.hidden, args.weight, args.logp, FAKE_CALL_ROWS, FAKE_CALL_HIDDEN, FAKE_CALL_VOCAB, NULL));
    assert_string_equal("flp_matrix_product_bf16_bm128_bv128_c1_p4_out_bf16_sm_90", fake_driver.launch[0].kernel);
    assert_ptr_equal(args.hidden, launched.a);
    assert_ptr_equal(args.weight, launched.b);
    assert_ptr_equal(args.logp, launched.out);
    assert_int_equal(FAKE_CALL_ROWS, launched.rows);
    assert_int_equal(FAKE_CALL_VOCAB, launched.columns);
    assert_int_equal(FAKE_CALL_HIDDEN, launched.inner);
    assert_int_equal(FAKE_CALL_HIDDEN, launched.b_stride);
    assert_int_equal(FAKE_CALL_VOCAB, launched.out_stride);
    assert_in_range(launched.group, 1, 3);
    flp_plan_destroy(forward);
    flp_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_tile_names_its_product), cmocka_unit_test(the_product_is_that_of_the_logits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
