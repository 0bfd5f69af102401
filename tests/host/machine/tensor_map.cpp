// Encodes and reads tensor maps, with the rules of cuTensorMapEncodeTiled.
#include "host/machine/tensor_map.hpp"

#include <cstring>

#include "host/machine/machine.hpp"

namespace host {

static constexpr uint64_t map_magic = UINT64_C(0x686f73742d6d6170);

struct TensorMap {
    uint64_t magic;
    flp_host_tensor tensor;
};
static_assert(sizeof(TensorMap) <= 128, "a tensor map has 128 bytes");

flp_host_tensor read_tensor_map(const void *map) {
    TensorMap image;

    memcpy(&image, map, sizeof image);
    if (image.magic != map_magic) machine.fail("TMA: the tensor map was not encoded");
    if ((uintptr_t)map % 64 != 0) machine.fail("TMA: the tensor map does not lie at a multiple of 64 bytes");
    return image.tensor;
}

} // namespace host

using namespace host;

extern "C" const char *flp_host_tensor_map_encode(const flp_host_tensor *tensor, void *map) {
    const uint64_t inner = (uint64_t)tensor->box_columns * (uint64_t)tensor->element_bytes;
    const TensorMap image = {map_magic, *tensor};

    if ((uintptr_t)map % 64 != 0) return "the map does not lie at a multiple of 64 bytes";
    if ((uintptr_t)tensor->address % 16 != 0) return "the address is not a multiple of 16";
    if (tensor->columns < 1 || tensor->rows < 1 || tensor->columns > UINT64_C(1) << 32 || tensor->rows > UINT64_C(1) << 32)
        return "a dimension is not in 1 .. 2^32";
    if (tensor->row_bytes % 16 != 0 || tensor->row_bytes >= UINT64_C(1) << 40) return "the stride is not a multiple of 16 below 2^40";
    if (tensor->box_columns < 1 || tensor->box_columns > 256 || tensor->box_rows < 1 || tensor->box_rows > 256) return "a side of the box is not in 1 .. 256";
    if (inner % 16 != 0) return "a row of the box is not a multiple of 16 bytes";
    if (tensor->swizzle < 0 || tensor->swizzle > 3) return "the swizzle is unknown";
    if (tensor->swizzle > 0 && inner > 16u << tensor->swizzle) return "a row of the box is wider than the swizzle";
    memset(map, 0, 128);
    memcpy(map, &image, sizeof image);
    return nullptr;
}
