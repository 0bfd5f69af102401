// Puts agents and program addresses into words.
#include "host/machine/report.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

#include "host/machine/machine.hpp"

namespace host {

std::string format(const char *format, ...) {
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

std::string describe_thread(const Thread &thread) {
    const unsigned *block = thread.block->index;
    return format("by thread %d (warp %d, lane %d) of block (%u, %u, %u)", thread.index, thread.index / 32, thread.lane, block[0], block[1], block[2]);
}

std::string describe_agent(uint16_t agent) {
    for (const auto &block : machine.blocks) {
        for (const Thread *thread : block->threads)
            if (thread->bulk.reads && (thread->bulk.reads == agent || thread->bulk.writes == agent))
                return format("the copy engine for thread %d (warp %d) of block %d", thread->index, thread->index / 32, block->rank);
            else if (thread->agent == agent) return format("thread %d (warp %d) of block %d", thread->index, thread->index / 32, block->rank);
        for (size_t i = 0; i < block->groups.size(); i++)
            if (block->groups[i].agent == agent) return format("the matrix products of warpgroup %zu of block %d", i, block->rank);
        for (const auto &entry : block->mbarriers)
            if (entry.second.agent == agent) return format("copies that complete on the mbarrier at shared address %u of block %d", entry.first, block->rank);
    }
    return "nobody";
}

// addr2line's frames, the innermost first, two lines each; those of the wrappers' twins say nothing about the kernel.
std::string describe_place(const void *pc) {
    Dl_info facts;
    char command[1200], line[512];
    std::string places;

    if (!pc || !dladdr(pc, &facts) || !facts.dli_fname || strchr(facts.dli_fname, '\'')) return "";
    snprintf(command, sizeof command, "addr2line -i -e '%s' %#tx 2>/dev/null", facts.dli_fname, (const char *)pc - (const char *)facts.dli_fbase - 1);
    FILE *output = popen(command, "r");
    if (!output) return "";
    while (fgets(line, sizeof line, output)) {
        const char *at = strstr(line, "templates/");
        line[strcspn(line, " \n")] = 0;
        if (at && !strstr(at, "templates/host/") && places.empty()) places = format(" at %s", at);
    }
    pclose(output);
    return places;
}

} // namespace host
