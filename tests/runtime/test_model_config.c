/* The reader of a model's config.json. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/model_config.h"

static flp_status parse(const char *text, flp_model_config *config)
{
    return flp_model_config_parse(text, strlen(text), config);
}

static flp_model_config parsed(const char *text)
{
    flp_model_config config;
    if (parse(text, &config) != FLP_OK)
        fail_msg("%s: %s", text, flp_error_message());
    return config;
}

static void assert_refused(const char *text, const char *message_part)
{
    flp_model_config config;
    assert_int_equal(parse(text, &config), FLP_BAD_ARGUMENT);
    if (strstr(flp_error_message(), message_part) == NULL)
        fail_msg("'%s' does not hold '%s'", flp_error_message(), message_part);
}

static void a_plain_model_is_read(void **state)
{
    const flp_model_config config =
        parsed("{\"architectures\": [\"Gemma2ForCausalLM\"], \"model_type\": \"gemma2\", \"hidden_size\": 2304, \"vocab_size\": 256000,"
               "\"torch_dtype\": \"bfloat16\", \"final_logit_softcapping\": 30.0, \"tie_word_embeddings\": true}");
    (void)state;
    assert_string_equal(config.model_type, "gemma2");
    assert_string_equal(config.architecture, "Gemma2ForCausalLM");
    assert_int_equal(config.hidden, 2304);
    assert_int_equal(config.vocab, 256000);
    assert_int_equal(config.weight_rows, 256000);
    assert_int_equal(config.dtype, FLP_BF16);
    assert_true(config.softcap == 30);
    assert_true(config.temperature == 1);
    assert_int_equal(config.tied, 1);
}

static void what_a_file_leaves_out_is_said_to_be_unknown(void **state)
{
    const flp_model_config config = parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"final_logit_softcapping\": null}");
    (void)state;
    assert_string_equal(config.model_type, "");
    assert_string_equal(config.architecture, "");
    assert_int_equal(config.dtype, FLP_NONE);
    assert_int_equal(config.tied, -1);
    assert_true(config.softcap == 0);
}

static void every_name_of_a_dtype_is_read(void **state)
{
    static const struct {
        const char *value;
        flp_dtype dtype;
    } cases[] = { { "\"bfloat16\"", FLP_BF16 }, { "\"torch.float16\"", FLP_F16 }, { "\"half\"", FLP_F16 }, { "\"float32\"", FLP_F32 },
                  { "\"float\"", FLP_F32 },     { "\"auto\"", FLP_NONE },         { "null", FLP_NONE } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int newer = 0; newer < 2; newer++) {
            char text[128];
            snprintf(text, sizeof text, "{\"hidden_size\": 8, \"vocab_size\": 9, \"%s\": %s}", newer ? "dtype" : "torch_dtype", cases[i].value);
            assert_int_equal(parsed(text).dtype, cases[i].dtype);
        }
}

static void other_families_names_are_known(void **state)
{
    (void)state;
    assert_int_equal(parsed("{\"n_embd\": 768, \"vocab_size\": 50257}").hidden, 768);
    assert_int_equal(parsed("{\"d_model\": 512, \"vocab_size\": 50257}").hidden, 512);
    assert_int_equal(parsed("{\"hidden_size\": 1024, \"word_embed_proj_dim\": 512, \"vocab_size\": 50272}").hidden, 512);
    assert_true(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"logits_soft_cap\": 20}").softcap == 20);
}

static void scaled_logits_are_a_temperature(void **state)
{
    (void)state;
    assert_true(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"logits_scaling\": 16.0}").temperature == 16);
    assert_true(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"logit_scale\": 0.0625}").temperature == 16);
    assert_true(parsed("{\"model_type\": \"falcon_h1\", \"hidden_size\": 8, \"vocab_size\": 9, \"lm_head_multiplier\": 0.0625}").temperature == 16);
    assert_true(parsed("{\"hidden_size\": 64, \"vocab_size\": 9, \"dim_model_base\": 16}").temperature == 4);
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"logit_scale\": \"inv_sqrt_d_model\"}", "logit_scale: got \"inv_sqrt_d_model\", wanted a number");
}

static void whether_a_scaling_divides_depends_on_the_family(void **state)
{
    static const struct {
        const char *model_type;
        double temperature;
    } cases[] = { { "granite", 8 }, { "granitemoehybrid", 8 }, { "hyperclovax", 0.125 } };
    flp_model_config config;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\", \"hidden_size\": 8, \"vocab_size\": 9, \"logits_scaling\": 8}", cases[i].model_type);
        assert_true(parsed(text).temperature == cases[i].temperature);
    }
    /* What another type does with it is not known. */
    config = parsed("{\"model_type\": \"new\", \"hidden_size\": 8, \"vocab_size\": 9, \"logits_scaling\": 8}");
    assert_true(config.temperature == 1 && config.unknown_scaling == 8);
    config = parsed("{\"model_type\": \"new\", \"hidden_size\": 8, \"vocab_size\": 9, \"logits_scaling\": 1}");
    assert_true(config.temperature == 1 && config.unknown_scaling == 0);
    /* The inner object's type counts. */
    assert_true(parsed("{\"model_type\": \"x_vl\", \"text_config\": {\"model_type\": \"hyperclovax\", \"hidden_size\": 8, \"vocab_size\": 9,"
                       "\"logits_scaling\": 8}}")
                    .temperature == 0.125);
}

static void a_padded_weight_has_more_rows_than_the_vocabulary(void **state)
{
    flp_model_config config = parsed("{\"hidden_size\": 768, \"vocab_size\": 50277, \"pad_vocab_size_multiple\": 8}");
    (void)state;
    assert_int_equal(config.vocab, 50277);
    assert_int_equal(config.weight_rows, 50280);
    config = parsed("{\"hidden_size\": 4096, \"padded_vocab_size\": 65024}");
    assert_int_equal(config.vocab, 65024);
    config = parsed("{\"hidden_size\": 4096, \"padded_vocab_size\": 65024, \"vocab_size\": 64794}");
    assert_int_equal(config.vocab, 64794);
    assert_int_equal(config.weight_rows, 65024);
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"padded_vocab_size\": 8}", "padded_vocab_size: got 8, wanted at least vocab_size, 9");
}

static void a_multimodal_models_language_model_goes_first(void **state)
{
    flp_model_config config =
        parsed("{\"model_type\": \"x_vl\", \"hidden_size\": 7, \"torch_dtype\": \"float16\", \"tie_word_embeddings\": false, \"text_config\":"
               "{\"model_type\": \"x\", \"hidden_size\": 5120, \"vocab_size\": 152064}, \"vision_config\": {\"hidden_size\": 1280}}");
    (void)state;
    assert_string_equal(config.model_type, "x");
    assert_int_equal(config.hidden, 5120);
    assert_int_equal(config.vocab, 152064);
    assert_int_equal(config.dtype, FLP_F16);
    assert_int_equal(config.tied, 0);
    config = parsed("{\"thinker_config\": {\"text_config\": {\"hidden_size\": 3584, \"vocab_size\": 152064}}}");
    assert_int_equal(config.hidden, 3584);
}

/* As transformers writes Gemma 3 and LLaVA: an inner value that is its class' default is not there. */
static void an_inner_models_defaults_are_known(void **state)
{
    flp_model_config config =
        parsed("{\"model_type\": \"gemma3\", \"torch_dtype\": \"bfloat16\", \"text_config\": {\"model_type\": \"gemma3_text\", \"hidden_size\": 2560}}");
    (void)state;
    assert_int_equal(config.hidden, 2560);
    assert_int_equal(config.vocab, 262208);
    config = parsed("{\"text_config\": {\"model_type\": \"llama\", \"vocab_size\": 32064}}");
    assert_int_equal(config.hidden, 4096);
    assert_int_equal(config.vocab, 32064);
    config = parsed("{\"text_config\": {\"model_type\": \"gemma2\"}}");
    assert_true(config.softcap == 30);
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 4096}", "vocab_size: the file has none");
    assert_refused("{\"text_config\": {\"model_type\": \"new\", \"vocab_size\": 9}}", "hidden_size: the file has none, and what model_type \"new\" stands for");
}

static void a_wrong_value_is_named(void **state)
{
    (void)state;
    assert_refused("{\"hidden_size\": 0, \"vocab_size\": 9}", "hidden_size: got 0, wanted a whole number from 1");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 2147483648}", "vocab_size: got 2147483648");
    assert_refused("{\"hidden_size\": 8.5, \"vocab_size\": 9}", "hidden_size: got 8.5");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"dtype\": \"float8_e4m3fn\"}", "dtype: got \"float8_e4m3fn\", wanted \"bfloat16\"");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"dtype\": 3}", "dtype: got 3");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"final_logit_softcapping\": -1}", "final_logit_softcapping: got -1");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"tie_word_embeddings\": 1}", "tie_word_embeddings: got 1, wanted true or false");
    assert_refused("[8]", "not a JSON object");
    assert_refused("{\"hidden_size\": 8,", "not JSON");
    assert_refused("", "not JSON");
}

/* As Python's json.dump writes them: Nemotron-H and Mamba 2 have such a time_step_limit. */
static void a_number_that_is_not_finite_is_null(void **state)
{
    (void)state;
    assert_int_equal(parsed("{\"time_step_limit\": [0.0, Infinity], \"a\":-Infinity,\"b\":NaN,\"hidden_size\": 8, \"vocab_size\": 9}").hidden, 8);
    assert_true(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"final_logit_softcapping\": NaN}").softcap == 0);
    assert_string_equal(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"model_type\": \"NaN, -Infinity\", \"b\": NaN}").model_type, "NaN, -Infinity");
    assert_string_equal(parsed("{\"hidden_size\": 8, \"vocab_size\": 9, \"model_type\": \"\\\"NaN\\\\\", \"b\": NaN}").model_type, "\"NaN\\");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"b\": NaNs}", "not JSON");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"b\": --Infinity}", "not JSON");
    assert_refused("{\"hidden_size\": 8, \"vocab_size\": 9, \"b\": \"NaN", "not JSON");
    assert_refused("NaN", "not");
}

static void a_folder_stands_for_the_file_inside(void **state)
{
    char folder[] = "/tmp/fusedlogp-model-XXXXXX", path[sizeof folder + 16];
    flp_model_config config;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(flp_model_config_read(folder, &config), FLP_IO_FAILED);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_non_null(strstr(flp_error_message(), path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"hidden_size\": 8, \"vocab_size\": 0}", file);
    fclose(file);
    assert_int_equal(flp_model_config_read(folder, &config), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "config.json: vocab_size: got 0"));
    assert_int_equal(flp_model_config_read(path, &config), FLP_BAD_ARGUMENT);
    remove(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_model_is_read),
        cmocka_unit_test(what_a_file_leaves_out_is_said_to_be_unknown),
        cmocka_unit_test(every_name_of_a_dtype_is_read),
        cmocka_unit_test(other_families_names_are_known),
        cmocka_unit_test(scaled_logits_are_a_temperature),
        cmocka_unit_test(whether_a_scaling_divides_depends_on_the_family),
        cmocka_unit_test(a_padded_weight_has_more_rows_than_the_vocabulary),
        cmocka_unit_test(a_multimodal_models_language_model_goes_first),
        cmocka_unit_test(an_inner_models_defaults_are_known),
        cmocka_unit_test(a_wrong_value_is_named),
        cmocka_unit_test(a_number_that_is_not_finite_is_null),
        cmocka_unit_test(a_folder_stands_for_the_file_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
