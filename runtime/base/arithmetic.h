/* The default floating-point environment for one thread at a time: numbers are rounded to the nearest, and subnormal ones are kept. A caller's own mode would
 * change bits, and texts of numbers. */
#ifndef FLP_BASE_ARITHMETIC_H
#define FLP_BASE_ARITHMETIC_H
#include <fenv.h>

typedef struct {
    fenv_t callers;
    int changed; /* 0: the caller's is the default one, and nothing is to be restored */
} flp_arithmetic;

/* 1 where the calling thread is known to compute in the default environment: asking takes less time than setting it. */
static inline int flp_arithmetic_is_default(void)
{
#ifdef __x86_64__
    enum { FLAGS = 0x3f, DEFAULT = 0x1f80 }; /* of MXCSR: the exceptions that have occurred; all exceptions masked, to the nearest, nothing flushed */
    return (__builtin_ia32_stmxcsr() & ~(unsigned)FLAGS) == DEFAULT;
#else
    return 0;
#endif
}

/* Between the two calls the calling thread computes in the default environment. */
static inline void flp_arithmetic_enter(flp_arithmetic *arithmetic)
{
    arithmetic->changed = !flp_arithmetic_is_default();
    if (!arithmetic->changed)
        return;
    fegetenv(&arithmetic->callers);
    fesetenv(FE_DFL_ENV);
}

static inline void flp_arithmetic_leave(const flp_arithmetic *arithmetic)
{
    if (arithmetic->changed)
        fesetenv(&arithmetic->callers);
}
#endif
