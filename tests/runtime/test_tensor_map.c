/* Tensor maps: every rule is checked before the driver is asked, and what it is asked is right. */
#include "cuda/tensor_map.h"

#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"

static _Alignas(64) char memory[64];
static CUtensorMap map;

static int install(void **state)
{
    (void)state;
    fake_library_install();
    return 0;
}

static flp_tensor_map_spec good(void)
{
    return (
        flp_tensor_map_spec){ .address = memory, .dtype = FLP_BF16, .columns = 2048, .rows = 131072, .row_bytes = 4096, .box_columns = 64, .box_rows = 256 };
}

static void a_good_spec_is_encoded_as_the_kernels_expect(void **state)
{
    flp_tensor_map_spec spec = good();

    (void)state;
    spec.box_rows = 128;
    assert_succeeds(flp_tensor_map_encode(&spec, &map));
    assert_int_equal(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, fake_driver.map.dtype);
    assert_int_equal(2, fake_driver.map.rank);
    assert_ptr_equal(memory, fake_driver.map.address);
    assert_int_equal(2048, fake_driver.map.dimensions[0]);
    assert_int_equal(131072, fake_driver.map.dimensions[1]);
    assert_int_equal(4096, fake_driver.map.stride_bytes);
    assert_int_equal(64, fake_driver.map.box[0]);
    assert_int_equal(128, fake_driver.map.box[1]);
    assert_int_equal(1, fake_driver.map.element_strides[0]);
    assert_int_equal(1, fake_driver.map.element_strides[1]);
    assert_int_equal(CU_TENSOR_MAP_SWIZZLE_128B, fake_driver.map.swizzle);
    assert_int_equal(CU_TENSOR_MAP_INTERLEAVE_NONE, fake_driver.map.interleave);
    assert_int_equal(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, fake_driver.map.l2_promotion);
    assert_int_equal(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, fake_driver.map.fill);
    spec.fetches_ahead = 1;
    assert_succeeds(flp_tensor_map_encode(&spec, &map));
    assert_int_equal(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, fake_driver.map.l2_promotion);
}

static void each_dtype_has_its_type_and_box_width(void **state)
{
    const struct {
        flp_dtype dtype;
        int type, box_columns;
    } types[] = {
        { FLP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 64 },
        { FLP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 64 },
        { FLP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 32 },
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        flp_tensor_map_spec spec = good();

        spec.dtype = types[i].dtype;
        spec.row_bytes = 8192;
        spec.box_columns = types[i].box_columns;
        assert_succeeds(flp_tensor_map_encode(&spec, &map));
        assert_int_equal(types[i].type, fake_driver.map.dtype);
        spec.box_columns = 96 - types[i].box_columns;
        assert_fails(FLP_BAD_ARGUMENT, flp_tensor_map_encode(&spec, &map), "box_columns");
    }
}

#define BREAKS(field, value, part)                                                \
    do {                                                                          \
        flp_tensor_map_spec spec = good();                                        \
        spec.field = value;                                                       \
        assert_fails(FLP_BAD_ARGUMENT, flp_tensor_map_encode(&spec, &map), part); \
    } while (0)

#define KEEPS(field, value)                                  \
    do {                                                     \
        flp_tensor_map_spec spec = good();                   \
        spec.field = value;                                  \
        assert_succeeds(flp_tensor_map_encode(&spec, &map)); \
    } while (0)

static void a_broken_rule_is_named_before_the_driver_is_asked(void **state)
{
    (void)state;
    BREAKS(address, memory + 8, "address");
    BREAKS(address, NULL, "address");
    BREAKS(dtype, FLP_I32, "dtype");
    BREAKS(dtype, FLP_NONE, "dtype");
    BREAKS(columns, 0, "columns: got 0");
    BREAKS(columns, (INT64_C(1) << 32) + 1, "columns");
    BREAKS(rows, 0, "rows: got 0");
    BREAKS(rows, -1, "rows");
    BREAKS(rows, (INT64_C(1) << 32) + 1, "rows");
    BREAKS(row_bytes, 4104, "row_bytes: got 4104, wanted a multiple of 16");
    BREAKS(row_bytes, INT64_C(1) << 40, "below 2^40");
    BREAKS(row_bytes, 4080, "at least the 4096 bytes");
    BREAKS(row_bytes, -16, "row_bytes");
    BREAKS(box_columns, 128, "box_columns: got 128, wanted 64");
    BREAKS(box_rows, 0, "box_rows");
    BREAKS(box_rows, 257, "box_rows: got 257, wanted 1 .. 256");
    assert_int_equal(0, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
}

static void the_limits_themselves_are_allowed(void **state)
{
    (void)state;
    KEEPS(address, memory + 16);
    KEEPS(rows, INT64_C(1) << 32);
    KEEPS(rows, 1);
    KEEPS(columns, 1);
    KEEPS(row_bytes, (INT64_C(1) << 40) - 16);
    KEEPS(box_rows, 1);
    KEEPS(box_rows, 256);
}

static void a_map_that_is_not_aligned_is_refused(void **state)
{
    static _Alignas(CUtensorMap) char bytes[256];
    flp_tensor_map_spec spec = good();
    void *shifted = bytes + sizeof(CUtensorMap) / 2;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_tensor_map_encode(&spec, shifted), "map");
}

static void a_driver_without_tensor_maps_is_too_old(void **state)
{
    flp_tensor_map_spec spec = good();

    (void)state;
    fake_library.missing = "cuTensorMapEncodeTiled";
    assert_fails(FLP_NO_DRIVER, flp_tensor_map_encode(&spec, &map), "cuTensorMapEncodeTiled");
}

static void a_driver_that_refuses_is_quoted(void **state)
{
    flp_tensor_map_spec spec = good();

    (void)state;
    fake_driver_fail(FAKE_tensor_map_encode_tiled, CUDA_ERROR_INVALID_VALUE, 1);
    assert_fails(FLP_CUDA_FAILED, flp_tensor_map_encode(&spec, &map), "cuTensorMapEncodeTiled");
}

static void encode_counted(const flp_tensor_map_spec *spec, int calls)
{
    CUtensorMap made;

    assert_succeeds(flp_tensor_map_encode(spec, &made));
    assert_int_equal(calls, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
}

/* CHANGES: the map of good() is kept, that of a spec which differs by one field is another. */
#define CHANGES(field, value)                                 \
    do {                                                      \
        flp_tensor_map_spec spec = good();                    \
        fake_library_install();                               \
        encode_counted(&spec, 1);                             \
        assert_succeeds(flp_tensor_map_encode(&spec, &kept)); \
        encode_counted(&spec, 1);                             \
        spec.field = value;                                   \
        encode_counted(&spec, 2);                             \
    } while (0)

static void a_map_is_encoded_anew_when_anything_of_it_changes(void **state)
{
    CUtensorMap kept;

    (void)state;
    CHANGES(context_id, 7);
    CHANGES(address, memory + 16);
    CHANGES(dtype, FLP_F16);
    CHANGES(columns, 1024);
    CHANGES(rows, 131071);
    CHANGES(row_bytes, 8192);
    CHANGES(box_rows, 128);
    CHANGES(fetches_ahead, 1);
}

static void a_map_that_was_refused_is_not_kept(void **state)
{
    flp_tensor_map_spec spec = good();

    (void)state;
    fake_driver_fail(FAKE_tensor_map_encode_tiled, CUDA_ERROR_INVALID_VALUE, 1);
    assert_fails(FLP_CUDA_FAILED, flp_tensor_map_encode(&spec, &map), "cuTensorMapEncodeTiled");
    encode_counted(&spec, 2);
    spec.row_bytes = 8;
    assert_fails(FLP_BAD_ARGUMENT, flp_tensor_map_encode(&spec, &map), "row_bytes");
    assert_fails(FLP_BAD_ARGUMENT, flp_tensor_map_encode(&spec, &map), "row_bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_good_spec_is_encoded_as_the_kernels_expect, install),
        cmocka_unit_test_setup(each_dtype_has_its_type_and_box_width, install),
        cmocka_unit_test_setup(a_broken_rule_is_named_before_the_driver_is_asked, install),
        cmocka_unit_test_setup(the_limits_themselves_are_allowed, install),
        cmocka_unit_test_setup(a_map_that_is_not_aligned_is_refused, install),
        cmocka_unit_test_setup(a_driver_without_tensor_maps_is_too_old, install),
        cmocka_unit_test_setup(a_driver_that_refuses_is_quoted, install),
        cmocka_unit_test_setup(a_map_is_encoded_anew_when_anything_of_it_changes, install),
        cmocka_unit_test_setup(a_map_that_was_refused_is_not_kept, install),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
