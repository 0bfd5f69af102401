/* The microkernel of bf16 by the tiles of AMX: sixteen vocabulary entries times sixteen rows of hidden in one instruction. */
#ifndef FLP_CPU_TILE_MICROKERNEL_H
#define FLP_CPU_TILE_MICROKERNEL_H
#include "cpu/microkernel.h"

/* 1: the processor has AMX's tiles and products of bf16 (and AVX-512, which copies operands), and the system lets this process use the tiles. Linux gives
 * the tiles to processes that ask: the first call asks, for all threads and as long as the process runs. It refuses where a thread has an alternate signal
 * stack that is too small for them, and later refuses such stacks (of 8 KiB, say). */
int flp_tile_microkernel_is_supported(void);

/* flp_microkernel_multiply by tiles. Releases the tiles of the calling thread before it returns. */
void flp_tile_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands);
#endif
