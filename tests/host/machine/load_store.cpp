// Loads and stores that kernels name by instruction.
#include "host/machine/access.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

using namespace host;

// ld.shared and st.shared by address.
FLP_HOST_API void flp_host_load_shared(uint32_t address, void *to, int bytes) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    if (address % (uint32_t)bytes != 0) machine.fail(format("ld.shared: address %u, wanted a multiple of %d", address, bytes));
    read_shared(self, *self.block, address, (size_t)bytes, "ld.shared");
    copy_register(to, self.block->shared.at(address), bytes);
}

FLP_HOST_API void flp_host_store_shared(uint32_t address, const void *from, int bytes) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    if (address % (uint32_t)bytes != 0) machine.fail(format("st.shared: address %u, wanted a multiple of %d", address, bytes));
    write_shared(self, *self.block, address, (size_t)bytes, "st.shared");
    copy_register(self.block->shared.at(address), from, bytes);
}

FLP_HOST_API void flp_host_load_constant(const void *from, void *to, int bytes) {
    FLP_HOST_ENTER();

    if ((uintptr_t)from % (uintptr_t)bytes != 0) machine.fail(format("ld.global.nc: address %p, wanted a multiple of %d", from, bytes));
    global_memory.read_constant(*machine.current, from, (size_t)bytes);
    copy_register(to, from, bytes);
}
