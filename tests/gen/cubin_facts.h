/* What a cubin holds, read from its ELF without a GPU or NVIDIA's tools. */
#ifndef TESTS_GEN_CUBIN_FACTS_H
#define TESTS_GEN_CUBIN_FACTS_H
#include <stddef.h>

typedef struct {
    size_t instructions;
    size_t hgmma, hmma, ffma; /* warpgroup matrix, warp matrix and fp32 multiply-add instructions */
} cubin_facts;

/* Counts the instructions of the global function `kernel` and returns NULL; or returns what is wrong: no CUDA ELF, or no such function with code. */
const char *cubin_facts_read(const void *cubin, size_t bytes, const char *kernel, cubin_facts *facts);
#endif
