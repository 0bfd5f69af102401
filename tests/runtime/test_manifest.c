/* The text form of a manifest is read strictly. */
#include "jit/manifest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "assertions.h"

static const char *const lines[] = {
    "variant linear_logp_tile:bf16:d2048:sm_90a",
    "kernel linear_logp_tile",
    "arch sm_90a",
    "threads 384",
    "shared_bytes 200000",
    "registers 168",
    "local_bytes 336",
    "cluster 2",
    "resident_blocks 1",
    "dependent_launch 1",
    "block_rows 128",
    "block_columns 256",
    "block_inner 64",
    "n_split 32",
    "a_box_rows 64",
    "b_box_columns 64",
    "b_box_rows 256",
    "takes_slabs 1",
    "numerics bf16 fp32-accumulate bv256",
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

/* The lines with line `replaced` (-1: none) replaced; NULL: left out. */
static flp_status parse_with(int replaced, const char *line, flp_manifest *manifest)
{
    flp_text text = { 0 };
    flp_status status;

    for (int i = 0; i < LINES; i++)
        if (i != replaced)
            flp_text_append(&text, "%s\n", lines[i]);
        else if (line)
            flp_text_append(&text, "%s\n", line);
    status = flp_manifest_parse(text.data, manifest);
    flp_text_free(&text);
    return status;
}

static void every_field_is_read(void **state)
{
    flp_manifest manifest;

    (void)state;
    assert_succeeds(parse_with(-1, NULL, &manifest));
    assert_string_equal("linear_logp_tile:bf16:d2048:sm_90a", manifest.variant);
    assert_string_equal("linear_logp_tile", manifest.kernel);
    assert_string_equal("sm_90a", manifest.arch);
    assert_int_equal(384, manifest.threads);
    assert_int_equal(200000, manifest.shared_bytes);
    assert_int_equal(168, manifest.registers);
    assert_int_equal(336, manifest.local_bytes);
    assert_int_equal(2, manifest.cluster);
    assert_int_equal(128, manifest.block_rows);
    assert_int_equal(256, manifest.block_columns);
    assert_int_equal(64, manifest.block_inner);
    assert_int_equal(32, manifest.n_split);
    assert_int_equal(64, manifest.a_box_rows);
    assert_int_equal(64, manifest.b_box_columns);
    assert_int_equal(256, manifest.b_box_rows);
    assert_int_equal(1, manifest.takes_slabs);
    assert_string_equal("bf16 fp32-accumulate bv256", manifest.numerics);
}

static void a_missing_line_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < LINES; i++) {
        flp_manifest manifest;
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(lines[i], " "), lines[i]);
        assert_fails(FLP_INTERNAL, parse_with(i, NULL, &manifest), name);
    }
}

static void a_line_that_is_unknown_or_out_of_order_is_quoted(void **state)
{
    flp_manifest manifest;

    (void)state;
    assert_fails(FLP_INTERNAL, parse_with(3, "colour 384", &manifest), "got \"colour 384\", wanted \"threads VALUE\"");
    assert_fails(FLP_INTERNAL, parse_with(3, "shared_bytes 200000", &manifest), "manifest line 4");
    assert_fails(FLP_INTERNAL, parse_with(3, "threads 384\ncolour 1", &manifest), "colour");
    assert_fails(FLP_INTERNAL, parse_with(LINES - 1, "numerics x\nextra 1", &manifest), "\"extra 1\" follows");
    assert_fails(FLP_INTERNAL, parse_with(3, "threads", &manifest), "threads");
    assert_fails(FLP_INTERNAL, parse_with(3, "threads=384", &manifest), "threads");
    assert_fails(FLP_INTERNAL, parse_with(3, "", &manifest), "threads");
}

static void a_number_is_only_digits_in_its_range(void **state)
{
    const char *const bad[] = { "-1", "+1", "01", "1 ", " 1", "0x10", "1.0", "", "two", "2147483648", "99999999999999999999" };
    flp_manifest manifest;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[64];

        snprintf(line, sizeof(line), "shared_bytes %s", bad[i]);
        assert_fails(FLP_INTERNAL, parse_with(4, line, &manifest), "shared_bytes");
    }
    assert_succeeds(parse_with(4, "shared_bytes 2147483647", &manifest));
    assert_int_equal(2147483647, manifest.shared_bytes);
    assert_succeeds(parse_with(4, "shared_bytes 0", &manifest));
    assert_fails(FLP_INTERNAL, parse_with(3, "threads 0", &manifest), "threads is \"0\", wanted a number of at least 1");
    assert_fails(FLP_INTERNAL, parse_with(6, "cluster 0", &manifest), "cluster");
}

static void a_text_is_printable_and_fits_its_field(void **state)
{
    flp_manifest manifest;
    char line[64];

    (void)state;
    assert_fails(FLP_INTERNAL, parse_with(2, "arch ", &manifest), "arch");
    assert_fails(FLP_INTERNAL, parse_with(2, "arch  sm_90a", &manifest), "arch");
    assert_fails(FLP_INTERNAL, parse_with(2, "arch sm_90a ", &manifest), "arch");
    assert_fails(FLP_INTERNAL, parse_with(2, "arch sm\t90a", &manifest), "arch");
    snprintf(line, sizeof(line), "arch %.15s", "aaaaaaaaaaaaaaaaaaaa");
    assert_succeeds(parse_with(2, line, &manifest));
    assert_int_equal(15, strlen(manifest.arch));
    snprintf(line, sizeof(line), "arch %.16s", "aaaaaaaaaaaaaaaaaaaa");
    assert_fails(FLP_INTERNAL, parse_with(2, line, &manifest), "wanted 1 .. 15");
}

static void a_text_cut_anywhere_is_refused(void **state)
{
    flp_text whole = { 0 };
    flp_manifest manifest;

    (void)state;
    for (int i = 0; i < LINES; i++)
        flp_text_append(&whole, "%s\n", lines[i]);
    assert_succeeds(flp_manifest_parse(whole.data, &manifest));
    while (whole.length > 0) {
        whole.data[--whole.length] = 0;
        assert_int_equal(FLP_INTERNAL, flp_manifest_parse(whole.data, &manifest));
    }
    flp_text_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(a_missing_line_is_named),
        cmocka_unit_test(a_line_that_is_unknown_or_out_of_order_is_quoted),
        cmocka_unit_test(a_number_is_only_digits_in_its_range),
        cmocka_unit_test(a_text_is_printable_and_fits_its_field),
        cmocka_unit_test(a_text_cut_anywhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
