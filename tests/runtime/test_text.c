/* The growing string, and SHA-256 as text. */
#include "base/text.h"

#include <stdlib.h>

#include "base/digest.h"
#include "assertions.h"

static void an_empty_text_has_no_data(void **state)
{
    flp_text text = { 0 };

    (void)state;
    assert_null(text.data);
    flp_text_free(&text);
}

static void appending_formats_and_grows(void **state)
{
    flp_text text = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        flp_text_append(&text, "%d,", i % 10);
    assert_false(text.failed);
    assert_int_equal(2000, text.length);
    assert_int_equal(2000, strlen(text.data));
    assert_int_equal(0, strncmp(text.data, "0,1,2,", 6));
    assert_string_equal("8,9,", text.data + 1996);
    flp_text_free(&text);
    assert_null(text.data);
    assert_int_equal(0, text.length);
}

static void an_empty_append_gives_an_empty_string(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_text_append(&text, "%s", "");
    assert_string_equal("", text.data);
    flp_text_free(&text);
}

static void bytes_may_hold_zeros_and_end_in_a_zero_of_their_own(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_text_append_bytes(&text, "a\0b", 3);
    flp_text_append_bytes(&text, NULL, 0);
    flp_text_append_bytes(&text, "c", 1);
    assert_int_equal(4, text.length);
    assert_memory_equal("a\0bc", text.data, 5);
    flp_text_free(&text);
}

static void a_text_that_fits_exactly_keeps_room_for_its_zero(void **state)
{
    (void)state;
    for (size_t length = 60; length < 70; length++) {
        flp_text text = { 0 };
        char *bytes = malloc(length);

        memset(bytes, 'y', length);
        flp_text_append_bytes(&text, bytes, length);
        assert_true(text.capacity > length);
        assert_int_equal(length, strlen(text.data));
        free(bytes);
        flp_text_free(&text);
    }
}

static void an_append_that_memory_cannot_hold_fails_for_good(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_text_append(&text, "kept");
    flp_text_append_bytes(&text, "", SIZE_MAX - 100);
    assert_true(text.failed);
    flp_text_append(&text, "ignored");
    assert_string_equal("kept", text.data);
    flp_text_free(&text);
}

static void a_duplicate_is_a_copy(void **state)
{
    const char *from = "some text";
    char *copy = flp_text_duplicate(from);

    (void)state;
    assert_ptr_not_equal(from, copy);
    assert_string_equal(from, copy);
    free(copy);
}

/* The digests are those of FIPS 180-2, examples of appendix B, and of the empty message. */
static void a_digest_is_sha_256_in_hexadecimal(void **state)
{
    char text[FLP_DIGEST_TEXT_BYTES];

    (void)state;
    flp_digest_format("", 0, text);
    assert_string_equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", text);
    flp_digest_format("abc", 3, text);
    assert_string_equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_text_has_no_data),
        cmocka_unit_test(appending_formats_and_grows),
        cmocka_unit_test(an_empty_append_gives_an_empty_string),
        cmocka_unit_test(bytes_may_hold_zeros_and_end_in_a_zero_of_their_own),
        cmocka_unit_test(a_text_that_fits_exactly_keeps_room_for_its_zero),
        cmocka_unit_test(an_append_that_memory_cannot_hold_fails_for_good),
        cmocka_unit_test(a_duplicate_is_a_copy),
        cmocka_unit_test(a_digest_is_sha_256_in_hexadecimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
