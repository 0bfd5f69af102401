// Fibers: a stack and a place to go on.
#ifndef FLP_TESTS_HOST_MACHINE_FIBER_HPP
#define FLP_TESTS_HOST_MACHINE_FIBER_HPP
#include <cstddef>
#include <cstdint>
#include <ucontext.h>

namespace host {

class Fiber {
public:
    static constexpr size_t stack_bytes = 256 << 10; // a kernel built without optimisation keeps its accumulators there

    Fiber() = default;
    Fiber(const Fiber &) = delete;
    ~Fiber();

    // Puts the fiber at the start of body(argument), which must never return. What it was doing before is forgotten.
    void prepare(void (*body)(void *), void *argument);
    // Goes on with `to` and returns when somebody switches back.
    static void switch_between(Fiber &from, Fiber &to);

    bool owns(uintptr_t address) const { return address - low_ < stack_bytes; }

private:
    static void enter();
    void allocate();

    uintptr_t low_ = 0;                      // of the stack; 0: the program's own
    size_t used_bytes_ = 0;                  // each stack begins in other cache sets: hundreds of threads do the same at the same depth
    bool started_ = false, entered_ = false; // the body; the stack, by any body
    void (*body_)(void *) = nullptr;
    void *argument_ = nullptr;
    ucontext_t context_;
    void *place_[5], *beginning_[5]; // __builtin_setjmp's: where it goes on, and where a body begins
};

} // namespace host
#endif
