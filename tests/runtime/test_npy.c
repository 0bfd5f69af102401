/* The .npy reader and the header that is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/tensor.h"

typedef struct {
    char bytes[4096];
    size_t count;
} image;

/* version 1: a 2-byte header length; 2 and 3: 4 bytes. */
static image make(int version, const char *dict, size_t data_bytes)
{
    image file = { .count = 0 };
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(file.bytes, "\x93NUMPY", 6);
    file.bytes[6] = (char)version;
    file.bytes[8] = (char)(length & 255);
    file.bytes[9] = (char)(length >> 8);
    memcpy(file.bytes + start, dict, length);
    for (size_t i = 0; i < data_bytes; i++)
        file.bytes[start + length + i] = (char)i;
    file.count = start + length + data_bytes;
    return file;
}

/* Parses a heap copy of exactly count bytes, so that the address sanitizer sees a read behind the end. */
static flp_status parse_bytes(const image *file, size_t count, flp_tensor *tensor)
{
    char *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    memcpy(copy, file->bytes, count);
    memset(tensor, 0, sizeof *tensor);
    flp_status status = flp_npy_parse(copy, count, tensor);
    if (status == FLP_OK)
        tensor->data = file->bytes + ((const char *)tensor->data - copy);
    free(copy);
    return status;
}

static void assert_refused(const char *dict, size_t data_bytes, const char *message_part)
{
    image file = make(1, dict, data_bytes);
    flp_tensor tensor;
    assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_BAD_ARGUMENT);
    if (strstr(flp_error_message(), message_part) == NULL)
        fail_msg("'%s' does not hold '%s'", flp_error_message(), message_part);
}

static void every_version_and_dtype_is_read(void **state)
{
    static const struct {
        const char *descr;
        flp_dtype dtype;
        size_t element;
    } cases[] = { { "<f4", FLP_F32, 4 }, { "<f2", FLP_F16, 2 }, { "<V2", FLP_BF16, 2 }, { "|V2", FLP_BF16, 2 }, { "bfloat16", FLP_BF16, 2 },
                  { "<i4", FLP_I32, 4 }, { "<i8", FLP_I64, 8 }, { "|u1", FLP_I32, 1 },  { "|i1", FLP_I32, 1 },  { "<u2", FLP_I32, 2 },
                  { "<i2", FLP_I32, 2 }, { "<u4", FLP_I64, 4 }, { "<u8", FLP_I64, 8 } };
    (void)state;
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            char dict[128];
            flp_tensor tensor;
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (3, 5), }   \n", cases[i].descr);
            image file = make(version, dict, 15 * cases[i].element);
            assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_OK);
            assert_int_equal(tensor.dtype, cases[i].dtype);
            assert_int_equal(tensor.rank, 2);
            assert_int_equal(tensor.shape[0], 3);
            assert_int_equal(tensor.shape[1], 5);
            assert_int_equal(tensor.bytes, 15 * cases[i].element);
            assert_ptr_equal(tensor.data, file.bytes + file.count - tensor.bytes);
        }
}

static void a_vector_a_scalar_and_an_empty_array_are_read(void **state)
{
    flp_tensor tensor;
    (void)state;
    image vector = make(1, "{'descr':'<i4','fortran_order':False,'shape':(4,)}", 16);
    assert_int_equal(parse_bytes(&vector, vector.count, &tensor), FLP_OK);
    assert_int_equal(tensor.rank, 1);
    image scalar = make(1, "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": ()}", 4);
    assert_int_equal(parse_bytes(&scalar, scalar.count, &tensor), FLP_OK);
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.bytes, 4);
    image empty = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 64)}", 0);
    assert_int_equal(parse_bytes(&empty, empty.count, &tensor), FLP_OK);
    assert_int_equal(tensor.bytes, 0);
}

static void a_wrong_dict_is_refused_with_the_reason(void **state)
{
    (void)state;
    assert_refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8, "big endian");
    assert_refused("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", 16, "'<f8', wanted");
    assert_refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, "structured");
    assert_refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16, "Fortran order");
    assert_refused("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", 8, "neither True nor False");
    assert_refused("{'descr': '<f4', 'shape': (2,)}", 8, "is missing");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': 2}", 8, "not a tuple");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8, "not closed");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, "whole numbers");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, "more than 8");
    assert_refused("{'descr': '<f4', 'extra': 1}", 0, "unknown key 'extra'");
    assert_refused("{'descr' '<f4'}", 0, "a colon");
    assert_refused("{'descr': '<f4' 'shape': (2,)}", 8, "comma");
    assert_refused("[1, 2]", 8, "not a dict");
    assert_refused("", 0, "not a dict");
}

static void a_length_that_lies_is_refused(void **state)
{
    (void)state;
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 8, "truncated: the shape takes 12 bytes and the file holds 8");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 16, "too long");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4)}", 8, "more bytes than can be addressed");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8, "below 2^63");
    /* 2^62 x 4 x 4 bytes is 0 modulo 2^64. */
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", 0, "more bytes than can be addressed");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}", 0, "more bytes than can be addressed");
}

static void every_prefix_is_refused(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        image file = make(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16);
        flp_tensor tensor;
        for (size_t count = 0; count < file.count; count++)
            assert_int_equal(parse_bytes(&file, count, &tensor), FLP_BAD_ARGUMENT);
        assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_OK);
    }
}

static void a_foreign_magic_or_version_is_refused(void **state)
{
    image file = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
    flp_tensor tensor;
    (void)state;
    file.bytes[6] = 4;
    assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "version 4"));
    file.bytes[0] = 'P';
    assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "magic"));
}

static void a_written_header_is_read_back(void **state)
{
    static const int64_t shapes[][FLP_NPY_RANK] = { { 0 }, { 1 }, { 12 }, { 3, 4 }, { 5, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        int rank = i < 3 ? 1 : 2;
        image file = { .count = FLP_NPY_HEADER_BYTES + (size_t)(shapes[i][0] * (rank == 2 ? shapes[i][1] : 1)) * 4 };
        flp_tensor tensor;
        flp_npy_header(i == 1 ? FLP_I32 : FLP_F32, rank, shapes[i], file.bytes);
        assert_int_equal(parse_bytes(&file, file.count, &tensor), FLP_OK);
        assert_int_equal(tensor.dtype, i == 1 ? FLP_I32 : FLP_F32);
        assert_int_equal(tensor.rank, rank);
        assert_memory_equal(tensor.shape, shapes[i], (size_t)rank * sizeof(int64_t));
        assert_ptr_equal(tensor.data, file.bytes + FLP_NPY_HEADER_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_and_dtype_is_read),
        cmocka_unit_test(a_vector_a_scalar_and_an_empty_array_are_read),
        cmocka_unit_test(a_wrong_dict_is_refused_with_the_reason),
        cmocka_unit_test(a_length_that_lies_is_refused),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(a_foreign_magic_or_version_is_refused),
        cmocka_unit_test(a_written_header_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
