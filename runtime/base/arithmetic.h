/* The default floating-point environment for one thread at a time: numbers are rounded to the nearest, and subnormal ones are kept. A caller's own mode would
 * change bits, and texts of numbers. */
#ifndef FLP_BASE_ARITHMETIC_H
#define FLP_BASE_ARITHMETIC_H
#include <fenv.h>

typedef struct {
    fenv_t callers;
    unsigned flags; /* where only these are to be restored: x86-64's MXCSR, with the exceptions that had occurred */
    int changed;    /* 0: the caller's is the default one, but for the flags */
} flp_arithmetic;

/* Between the two calls the calling thread computes in the default environment. flp_arithmetic_leave restores the caller's, with the exceptions that had occurred
 * before. */
static inline void flp_arithmetic_enter(flp_arithmetic *arithmetic)
{
#ifdef __x86_64__
    enum { FLAGS = 0x3f, DEFAULT = 0x1f80 }; /* of MXCSR: the exceptions that have occurred; all exceptions masked, to the nearest, nothing flushed */

    /* Asking takes less time than setting. fegetround reads the x87 unit's mode, which the C library's texts of numbers follow. */
    arithmetic->flags = __builtin_ia32_stmxcsr();
    arithmetic->changed = (arithmetic->flags & ~(unsigned)FLAGS) != DEFAULT || fegetround() != FE_TONEAREST;
#else
    arithmetic->changed = 1;
#endif
    if (!arithmetic->changed)
        return;
    fegetenv(&arithmetic->callers);
    fesetenv(FE_DFL_ENV);
}

static inline void flp_arithmetic_leave(const flp_arithmetic *arithmetic)
{
    if (arithmetic->changed)
        fesetenv(&arithmetic->callers);
#ifdef __x86_64__
    else
        __builtin_ia32_ldmxcsr(arithmetic->flags);
#endif
}
#endif
