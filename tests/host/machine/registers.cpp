// setmaxnreg: no register is modelled, but the rules are, and a claim waits until the block has that many free.
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

using namespace host;

static std::string describe_registers(const void *object, uint64_t count) {
    return format("setmaxnreg.inc to %llu registers, of which its block has %d free", (unsigned long long)count, ((const Block *)object)->free_registers);
}

FLP_HOST_API void flp_host_set_registers(int count, bool claims) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    Block &block = *self.block;
    const char *name = claims ? "setmaxnreg.inc" : "setmaxnreg.dec";

    if (count < 24 || count > 256 || count % 8 != 0) machine.fail(format("%s: %d registers, wanted a multiple of 8 in 24 .. 256", name, count));
    if (claims ? count < self.registers : count > self.registers) machine.fail(format("%s: to %d registers from %d", name, count, self.registers));
    while (count - self.registers > block.free_registers) {
        block.wanting_registers.push_back(&self);
        machine.wait({describe_registers, &block, (uint64_t)count});
    }
    block.free_registers -= count - self.registers;
    self.registers = count;
    machine.wake_all(block.wanting_registers);
}
