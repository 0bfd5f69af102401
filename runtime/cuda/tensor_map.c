/* Checks the description of a tensor map against the rules of cuTensorMapEncodeTiled, and encodes the map. */
#include "cuda/tensor_map.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "base/status.h"
#include "cuda/library.h"

enum { ADDRESS_ALIGNMENT = 16, STRIDE_ALIGNMENT = 16, LARGEST_BOX = 256, SWIZZLE_BYTES = 128 };
static const int64_t largest_dimension = INT64_C(1) << 32; /* elements, inclusive */
static const int64_t stride_limit = INT64_C(1) << 40;      /* bytes, exclusive */

typedef struct {
    int type, bytes;
} element;

static int find_element(flp_dtype dtype, element *found)
{
    switch (dtype) {
    case FLP_BF16:
        *found = (element){ CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2 };
        return 1;
    case FLP_F16:
        *found = (element){ CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2 };
        return 1;
    case FLP_F32:
        *found = (element){ CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4 };
        return 1;
    default:
        return 0;
    }
}

static flp_status check_tensor(const flp_tensor_map_spec *spec, int element_bytes)
{
    if (!spec->address || (uintptr_t)spec->address % ADDRESS_ALIGNMENT)
        return flp_status_fail(FLP_BAD_ARGUMENT, "address: got %p, wanted a multiple of %d", spec->address, ADDRESS_ALIGNMENT);
    if (spec->columns < 1 || spec->columns > largest_dimension)
        return flp_status_fail(FLP_BAD_ARGUMENT, "columns: got %" PRId64 ", wanted 1 .. 2^32", spec->columns);
    if (spec->rows < 1 || spec->rows > largest_dimension)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", wanted 1 .. 2^32", spec->rows);
    if (spec->row_bytes % STRIDE_ALIGNMENT || spec->row_bytes >= stride_limit)
        return flp_status_fail(FLP_BAD_ARGUMENT, "row_bytes: got %" PRId64 ", wanted a multiple of %d below 2^40", spec->row_bytes, STRIDE_ALIGNMENT);
    if (spec->row_bytes < spec->columns * element_bytes)
        return flp_status_fail(FLP_BAD_ARGUMENT, "row_bytes: got %" PRId64 ", wanted at least the %" PRId64 " bytes of a row", spec->row_bytes,
                               spec->columns * element_bytes);
    return FLP_OK;
}

static flp_status check_box(const flp_tensor_map_spec *spec, int element_bytes)
{
    int wanted = SWIZZLE_BYTES / element_bytes;

    if (spec->box_columns != wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "box_columns: got %d, wanted %d: the 128-byte swizzle's width", spec->box_columns, wanted);
    if (spec->box_rows < 1 || spec->box_rows > LARGEST_BOX)
        return flp_status_fail(FLP_BAD_ARGUMENT, "box_rows: got %d, wanted 1 .. %d", spec->box_rows, LARGEST_BOX);
    return FLP_OK;
}

static flp_status encode(const flp_driver *driver, const flp_tensor_map_spec *spec, int type, CUtensorMap *map)
{
    const uint64_t dimensions[2] = { (uint64_t)spec->columns, (uint64_t)spec->rows };
    const uint64_t strides_bytes[1] = { (uint64_t)spec->row_bytes };
    const uint32_t box[2] = { (uint32_t)spec->box_columns, (uint32_t)spec->box_rows };
    const uint32_t element_strides[2] = { 1, 1 };
    union {
        const void *constant;
        void *plain; /* the driver takes the address, and does not write through it */
    } address = { spec->address };

    return flp_driver_check(driver,
                            driver->tensor_map_encode_tiled(map, type, 2, address.plain, dimensions, strides_bytes, box, element_strides,
                                                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                                            spec->fetches_ahead ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                            "cuTensorMapEncodeTiled");
}

static flp_status check_and_encode(const flp_tensor_map_spec *spec, CUtensorMap *map)
{
    const flp_driver *driver;
    element found;
    flp_status status;

    if (!find_element(spec->dtype, &found))
        return flp_status_fail(FLP_BAD_ARGUMENT, "dtype: got %d, wanted " FLP_DTYPE_FLOAT_CONSTANTS, (int)spec->dtype);
    status = check_tensor(spec, found.bytes);
    if (status == FLP_OK)
        status = check_box(spec, found.bytes);
    if (status == FLP_OK)
        status = flp_driver_get(&driver);
    if (status != FLP_OK)
        return status;
    if (!driver->tensor_map_encode_tiled)
        return flp_status_fail(FLP_NO_DRIVER, "the CUDA driver %d.%d has no cuTensorMapEncodeTiled, 12.0 or newer is wanted", driver->version / 1000,
                               driver->version % 1000 / 10);
    return encode(driver, spec, found.type, map);
}

/* A cache of this thread's recent maps, in sets of eight places each. The driver takes longer to encode one map than the library takes to fill in a launch's
 * parameters, and most calls need the same maps as the call before: up to two for each product of a step, of which few rows have some twenty. */
enum { SETS_LOG2 = 4, WAYS = 8 };
typedef struct {
    CUtensorMap map;
    unsigned generation; /* flp_library_generation() when the map was encoded; 0: there is no map */
    flp_tensor_map_spec spec;
} recent;
typedef struct {
    recent ways[WAYS];
    unsigned next; /* % WAYS: the place of the set's next map */
} recent_set;

static unsigned set_of(const flp_tensor_map_spec *spec)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)spec->address >> 4) + 3 * (uint64_t)spec->rows + 5 * (uint64_t)spec->columns + 7 * (uint64_t)spec->box_rows;

    return (unsigned)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SETS_LOG2));
}

static int is_same(const flp_tensor_map_spec *a, const flp_tensor_map_spec *b)
{
    return a->context_id == b->context_id && a->address == b->address && a->dtype == b->dtype && a->columns == b->columns && a->rows == b->rows &&
           a->row_bytes == b->row_bytes && a->box_columns == b->box_columns && a->box_rows == b->box_rows && a->fetches_ahead == b->fetches_ahead;
}

static recent *find(recent_set *set, const flp_tensor_map_spec *spec, unsigned generation)
{
    for (int i = 0; i < WAYS; i++)
        if (set->ways[i].generation == generation && is_same(&set->ways[i].spec, spec))
            return &set->ways[i];
    return NULL;
}

static flp_status encode_in(recent *place, const flp_tensor_map_spec *spec, unsigned generation)
{
    flp_status status;

    place->generation = 0;
    status = check_and_encode(spec, &place->map);
    if (status == FLP_OK) {
        place->spec = *spec;
        place->generation = generation;
    }
    return status;
}

flp_status flp_tensor_map_encode(const flp_tensor_map_spec *spec, CUtensorMap *map)
{
    static _Thread_local recent_set sets[1 << SETS_LOG2];
    const unsigned generation = flp_library_generation();
    recent_set *set = &sets[set_of(spec)];
    recent *at;
    flp_status status = FLP_OK;

    if ((uintptr_t)map % _Alignof(CUtensorMap))
        return flp_status_fail(FLP_BAD_ARGUMENT, "map: got %p, wanted a multiple of %zu", (void *)map, _Alignof(CUtensorMap));
    at = find(set, spec, generation);
    if (!at) {
        at = &set->ways[set->next++ % WAYS];
        status = encode_in(at, spec, generation);
    }
    if (status == FLP_OK)
        *map = at->map;
    return status;
}
