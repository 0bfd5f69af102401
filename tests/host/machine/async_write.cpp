// Asynchronous writes to shared memory: what every one of them does, and those that are not tensors: cp.async.bulk and st.async.
#include "host/machine/async_write.hpp"

#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/mbarrier.hpp"
#include "host/machine/report.hpp"

namespace host {

void begin_async_write(const Thread &by, Block &block, uint32_t to, uint32_t bytes, uint32_t barrier, const char *what, bool by_engine) {
    check_range(by, block, to, bytes, what);
    mbarrier_at(by, block, barrier, true);
    for (uint32_t at = to; at < to + bytes; at += 4) {
        Word &word = block.shared.word(at);
        if (!may_overwrite(by, word, 15)) refuse_overwrite(by, block, word, 15, at, what);
        if (by_engine && word.content == Content::generic && !by.clock.has_fenced(word.write))
            machine.fail(format("proxy fence: the copy engine overwrites %s, which %s wrote with no fence.proxy.async between",
                                describe_address(block, at).c_str(), describe_agent(word.write.agent).c_str()));
        word.content = Content::copying;
    }
    memset(block.shared.at(to), 0xff, bytes);
}

Epoch async_arrival(const Thread &by, Block &block, uint32_t barrier) {
    const Mbarrier &object = mbarrier_at(by, block, barrier, true);
    const Epoch arrival = {object.phases + 1, object.agent};

    note_visit(block, arrival);
    return arrival;
}

void place_async_word(Block &block, uint32_t at, const void *bytes, Epoch arrival) {
    Word &word = block.shared.word(at);

    memcpy(block.shared.at(at), bytes, 4);
    word = Word();
    word.write = arrival;
    word.initialised = word.write_mask = 15;
    word.content = Content::copied;
}

// Contiguous bytes on their way to one block. released: what whoever waits for them sees as well; null: nothing.
struct AsyncWrite {
    Block *block;
    const Thread *by;
    uint32_t to, barrier;
    std::vector<unsigned char> bytes;
    std::shared_ptr<const Clock> released;

    bool finish() const {
        check_range(*by, *block, to, bytes.size(), "an asynchronous write");
        const Epoch arrival = async_arrival(*by, *block, barrier);
        for (uint32_t i = 0; i < bytes.size(); i += 4) place_async_word(*block, to + i, &bytes[i], arrival);
        mbarrier_complete_bytes(*by, *block, barrier, (int64_t)bytes.size(), released.get());
        return true;
    }
};

static void start(Thread &self, Block &block, uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, bool releases) {
    auto *first = (const unsigned char *)from;
    AsyncWrite write = {&block, &self, to, barrier, std::vector<unsigned char>(first, first + bytes), nullptr};

    if (releases) {
        write.released = std::make_shared<Clock>(self.clock);
        self.step();
    }
    machine.start_job([write] { return write.finish(); });
}

} // namespace host

using namespace host;

// cp.async.bulk. The bytes are taken at once: nobody may write them while the copy runs.
FLP_HOST_API void flp_host_bulk_load(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    if (bytes < 16 || to % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0)
        machine.fail(format("cp.async.bulk: %d bytes from %p to %u, wanted multiples of 16", bytes, from, to));
    global_memory.read(self, from, (size_t)bytes);
    begin_async_write(self, *self.block, to, (uint32_t)bytes, barrier, "the copy engine's write", true);
    start(self, *self.block, to, from, (uint32_t)bytes, barrier, false);
}

// st.async: to the same address in another block of the cluster; the bytes complete, and release, on the barrier with the same address there.
// The model orders what the thread did before as well: its values have gone into the bytes.
FLP_HOST_API void flp_host_store_async(uint32_t to, int block, const void *from, int bytes, uint32_t barrier) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    if (block < 0 || (size_t)block >= machine.blocks.size()) machine.fail(format("mapa: block %d of a cluster of %zu", block, machine.blocks.size()));
    if (to % (uint32_t)bytes != 0) machine.fail(format("st.async: address %u, wanted a multiple of %d", to, bytes));
    begin_async_write(self, *machine.blocks[(size_t)block], to, (uint32_t)bytes, barrier, "st.async", false);
    start(self, *machine.blocks[(size_t)block], to, from, (uint32_t)bytes, barrier, true);
}
