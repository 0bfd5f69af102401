/* Registers the operators with torch's dispatcher through its stable C ABI. */
#ifndef FLP_BINDING_TORCH_STABLE_ABI_H
#define FLP_BINDING_TORCH_STABLE_ABI_H
#include "fusedlogp.h"
#include <stddef.h>

/* To be called once in a process. cpu, cuda: the paths of libtorch_cpu.so and libtorch_cuda.so, as they are loaded; cuda may be NULL. Returns 0, or text
 * [bytes] says what is missing. */
FLP_API int flp_torch_register(const char *cpu, const char *cuda, char *text, size_t bytes);
#endif
