// cp.async: the bytes arrive when their group has been waited for, as late as they may.
#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

using namespace host;

static const unsigned char poison[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

FLP_HOST_API void flp_host_cp_async(uint32_t to, const void *from, int bytes, int valid) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    Block &block = *self.block;

    if (to % (uint32_t)bytes != 0 || (uintptr_t)from % (uintptr_t)bytes != 0)
        machine.fail(format("cp.async: from %p to %u, wanted multiples of %d bytes", from, to, bytes));
    if (valid < 0 || valid > bytes) machine.fail(format("cp.async: %d valid bytes of %d", valid, bytes));
    check_range(self, block, to, (size_t)bytes, "cp.async");
    if (valid > 0) global_memory.read(self, from, (size_t)valid);
    for (uint32_t at = to; at < to + (uint32_t)bytes; at += 4) {
        Word &word = block.shared.word(at);
        if (!may_overwrite(self, word, 15)) refuse_overwrite(self, block, word, 15, at, "cp.async");
        word.content = Content::copying_thread;
    }
    copy_register(block.shared.at(to), poison, bytes);
    self.copies.push_back({to, (const unsigned char *)from, bytes, valid, self.copy_group});
}

FLP_HOST_API void flp_host_cp_async_commit(void) { machine.current->copy_group++; }

static void finish(Thread &thread, const PendingCopy &copy) {
    SharedMemory &shared = thread.block->shared;

    unsigned char value[16] = {};

    if (copy.valid > 0) copy_register(value, copy.from, copy.valid);
    copy_register(shared.at(copy.to), value, copy.bytes);
    for (uint32_t at = copy.to; at < copy.to + (uint32_t)copy.bytes; at += 4) {
        Word &word = shared.word(at);
        for (Epoch &read : word.reads) read = Epoch();
        word.write = thread.now();
        word.write_mask = word.initialised = 15;
        word.content = Content::generic;
    }
}

FLP_HOST_API void flp_host_cp_async_wait(int pending) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    size_t &done = self.copies_arrived;

    // A copy that was not committed belongs to the group that the next commit closes.
    while (done < self.copies.size() && self.copies[done].group + (uint64_t)pending < self.copy_group) finish(self, self.copies[done++]);
    if (done < 64 && done < self.copies.size()) return;
    self.copies.erase(self.copies.begin(), self.copies.begin() + (long)done);
    done = 0;
}
