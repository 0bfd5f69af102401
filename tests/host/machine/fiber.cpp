// Creates fibers with ucontext and switches between them without its system calls.
#include "host/machine/fiber.hpp"

#include <cstdlib>
#include <sys/mman.h>

namespace host {

static Fiber *starting;
static size_t allocated;

void Fiber::allocate() {
    const size_t guard = 4096;
    void *memory = mmap(nullptr, guard + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    // A stack that overflows faults instead of running into its neighbour's.
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) abort();
    low_ = (uintptr_t)memory + guard;
    used_bytes_ = stack_bytes - allocated++ % 32 * 128;
}

Fiber::~Fiber() {
    if (low_ != 0) munmap((void *)(low_ - 4096), 4096 + stack_bytes);
}

// Where each body of the fiber begins: none returns, so that this frame stays.
void Fiber::enter() {
    __builtin_setjmp(starting->beginning_);
    starting->body_(starting->argument_);
}

void Fiber::prepare(void (*body)(void *), void *argument) {
    if (low_ == 0) allocate();
    body_ = body;
    argument_ = argument;
    started_ = false;
}

// swapcontext saves the signal mask with a system call at every switch; only a stack's first entry needs a context.
__attribute__((noinline)) void Fiber::switch_between(Fiber &from, Fiber &to) {
    if (__builtin_setjmp(from.place_) != 0) return;
    if (to.started_ || to.low_ == 0) __builtin_longjmp(to.place_, 1);
    to.started_ = true;
    starting = &to;
    if (to.entered_) __builtin_longjmp(to.beginning_, 1);
    to.entered_ = true;
    getcontext(&to.context_);
    to.context_.uc_stack.ss_sp = (void *)to.low_;
    to.context_.uc_stack.ss_size = to.used_bytes_;
    to.context_.uc_link = nullptr;
    makecontext(&to.context_, Fiber::enter, 0);
    setcontext(&to.context_);
    abort();
}

} // namespace host

// A launch that ends early leaves its threads' stacks, and what they own, as they are. And the leak check does not run under a debugger.
// The GPU's driver maps memory where the sanitizer keeps a gap.
extern "C" __attribute__((visibility("default"), used)) const char *__asan_default_options() { return "detect_leaks=0:protect_shadow_gap=0"; }
