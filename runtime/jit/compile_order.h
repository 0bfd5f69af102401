/* In which order several kernels are compiled: what takes NVRTC longest begins first, so that no core waits for it at the end. */
#ifndef FLP_JIT_COMPILE_ORDER_H
#define FLP_JIT_COMPILE_ORDER_H

/* 0: a variant of the kernels that take longest; more: of shorter ones; FLP_COMPILE_RANKS - 1: of all others, each of which is done soon. */
enum { FLP_COMPILE_RANKS = 13 };
int flp_compile_rank(const char *variant);

/* order[0 .. count - 1]: the numbers 0 .. count - 1, those of longer compilations first, equals as they come. */
void flp_compile_order(int count, const char *const *variants, int *order);
#endif
