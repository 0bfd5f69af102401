/* The safetensors reader. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "cli/tensor.h"

/* A heap block of exactly the file's bytes, so that the address sanitizer sees a read behind the end. */
typedef struct {
    unsigned char *bytes;
    size_t count;
} image;

static image make(const char *header, size_t data_bytes)
{
    size_t length = strlen(header);
    image file = { malloc(8 + length + data_bytes), 8 + length + data_bytes };
    assert_non_null(file.bytes);
    for (int i = 0; i < 8; i++)
        file.bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(file.bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        file.bytes[8 + length + i] = (unsigned char)i;
    return file;
}

static flp_status parse(const image *file, const char *name, flp_tensor *tensor)
{
    memset(tensor, 0, sizeof *tensor);
    return flp_safetensors_parse(file->bytes, file->count, name, tensor);
}

static void assert_refused(const char *header, size_t data_bytes, const char *name, const char *message_part)
{
    image file = make(header, data_bytes);
    flp_tensor tensor;
    assert_int_equal(parse(&file, name, &tensor), FLP_BAD_ARGUMENT);
    if (strstr(flp_error_message(), message_part) == NULL)
        fail_msg("'%s' does not hold '%s'", flp_error_message(), message_part);
    free(file.bytes);
}

#define PAIR                                                                                                  \
    "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[12,28]}," \
    "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}   "

static void a_tensor_is_found_by_name(void **state)
{
    image file = make(PAIR, 28);
    flp_tensor tensor;
    (void)state;
    assert_int_equal(parse(&file, "a", &tensor), FLP_OK);
    assert_int_equal(tensor.dtype, FLP_BF16);
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.shape[1], 3);
    assert_ptr_equal(tensor.data, file.bytes + file.count - 28);
    assert_int_equal(parse(&file, "b", &tensor), FLP_OK);
    assert_int_equal(tensor.dtype, FLP_I64);
    assert_int_equal(tensor.bytes, 16);
    assert_ptr_equal(tensor.data, file.bytes + file.count - 16);
    free(file.bytes);
}

static void every_dtype_is_read(void **state)
{
    static const struct {
        const char *header;
        flp_dtype dtype;
        size_t bytes;
    } cases[] = { { "{\"x\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", FLP_BF16, 4 },
                  { "{\"x\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", FLP_F16, 4 },
                  { "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", FLP_F32, 8 },
                  { "{\"x\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}", FLP_I32, 8 },
                  { "{\"x\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]}}", FLP_I64, 16 },
                  { "{\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", FLP_I32, 3 },
                  { "{\"x\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]}}", FLP_I32, 3 },
                  { "{\"x\":{\"dtype\":\"U16\",\"shape\":[3],\"data_offsets\":[0,6]}}", FLP_I32, 6 },
                  { "{\"x\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[0,6]}}", FLP_I32, 6 },
                  { "{\"x\":{\"dtype\":\"U32\",\"shape\":[2],\"data_offsets\":[0,8]}}", FLP_I64, 8 },
                  { "{\"x\":{\"dtype\":\"U64\",\"shape\":[2],\"data_offsets\":[0,16]}}", FLP_I64, 16 },
                  { "{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", FLP_F32, 4 },
                  { "{\"x\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", FLP_F32, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        image file = make(cases[i].header, cases[i].bytes);
        flp_tensor tensor;
        assert_int_equal(parse(&file, NULL, &tensor), FLP_OK);
        assert_int_equal(tensor.dtype, cases[i].dtype);
        assert_int_equal(tensor.bytes, cases[i].bytes);
        free(file.bytes);
    }
}

static void a_missing_or_ambiguous_name_lists_what_there_is(void **state)
{
    (void)state;
    assert_refused(PAIR, 28, "c", "no tensor named c; it holds: b, a");
    assert_refused(PAIR, 28, NULL, "several; it holds: b, a");
    assert_refused(PAIR, 28, "__metadata__", "no tensor named __metadata__");
    assert_refused("{}", 0, NULL, "no tensor; it holds: nothing");
}

static void a_file_that_its_tensors_do_not_fill_is_refused(void **state)
{
    (void)state;
    assert_refused(PAIR, 27, "a", "truncated: the tensors take 28 bytes and the file holds 27");
    assert_refused(PAIR, 29, "a", "too long");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, "a",
                   "'a' and 'b' overlap");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12, "a",
                   "4 bytes before 'b' belong to no tensor");
}

static void a_wrong_header_is_refused_with_the_reason(void **state)
{
    (void)state;
    assert_refused("{\"a\":", 0, NULL, "not JSON");
    assert_refused("not json at all", 0, NULL, "not JSON");
    assert_refused("[1]", 0, NULL, "not a JSON object");
    assert_refused("{\"a\":1,\"a\":2}", 0, NULL, "duplicate");
    assert_refused("{\"a\":7}", 0, NULL, "data_offsets");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, NULL, "data_offsets");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.5]}}", 4, NULL, "data_offsets");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, NULL, "wanted 0 <= begin <= end");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, NULL, "wanted 0 <= begin <= end");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, NULL, "takes 8 bytes and its data_offsets span 4");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, NULL, "extent 0 is -1");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, NULL, "whole numbers");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, NULL, "9 dimensions");
    assert_refused("{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, NULL, "dtype F8_E4M3, wanted");
    assert_refused("{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, NULL, "no dtype");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, NULL, "more bytes than can be addressed");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}}", 4, NULL, "not JSON");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,9223372036854775807]}}", 4, NULL, "truncated");
}

static void another_tensors_unknown_dtype_does_not_matter(void **state)
{
    image file = make("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8);
    flp_tensor tensor;
    (void)state;
    assert_int_equal(parse(&file, "b", &tensor), FLP_OK);
    free(file.bytes);
}

static void a_header_length_that_lies_is_refused(void **state)
{
    image file = make(PAIR, 28);
    flp_tensor tensor;
    (void)state;
    file.bytes[1] = 1; /* 256 bytes more */
    assert_int_equal(parse(&file, "a", &tensor), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "truncated: the header has"));
    file.bytes[7] = 0xff;
    assert_int_equal(parse(&file, "a", &tensor), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "not a safetensors file"));
    free(file.bytes);
}

static void every_prefix_is_refused(void **state)
{
    image file = make(PAIR, 28);
    (void)state;
    for (size_t count = 0; count < file.count; count++) {
        image part = { malloc(count ? count : 1), count };
        flp_tensor tensor;
        assert_non_null(part.bytes);
        memcpy(part.bytes, file.bytes, count);
        assert_int_equal(parse(&part, "a", &tensor), FLP_BAD_ARGUMENT);
        free(part.bytes);
    }
    free(file.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_is_found_by_name),
        cmocka_unit_test(every_dtype_is_read),
        cmocka_unit_test(a_missing_or_ambiguous_name_lists_what_there_is),
        cmocka_unit_test(a_file_that_its_tensors_do_not_fill_is_refused),
        cmocka_unit_test(a_wrong_header_is_refused_with_the_reason),
        cmocka_unit_test(another_tensors_unknown_dtype_does_not_matter),
        cmocka_unit_test(a_header_length_that_lies_is_refused),
        cmocka_unit_test(every_prefix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
