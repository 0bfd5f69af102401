// Tensor maps: what cuTensorMapEncodeTiled leaves in 128 bytes, as this machine writes it.
#ifndef FLP_TESTS_HOST_MACHINE_TENSOR_MAP_HPP
#define FLP_TESTS_HOST_MACHINE_TENSOR_MAP_HPP
#include "host/machine/machine_api.h"

namespace host {

// Ends the launch where there is no map.
flp_host_tensor read_tensor_map(const void *map);

// 16-byte chunks within the swizzle's width change places by the row's bits of the address. swizzle: 0 none, 1, 2, 3: 32, 64, 128 bytes.
inline uint32_t swizzled(uint32_t address, int swizzle) { return address ^ ((address >> 7 & ((1u << swizzle) - 1)) << 4); }

} // namespace host
#endif
