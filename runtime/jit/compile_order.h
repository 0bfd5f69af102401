/* The order in which several kernels are compiled: those that take NVRTC longest begin first, so that at the end no core is idle while another compiles. */
#ifndef FLP_JIT_COMPILE_ORDER_H
#define FLP_JIT_COMPILE_ORDER_H

/* The rank of a variant's kernel by compilation time: 0 takes longest. FLP_COMPILE_RANKS - 1: the kernel is not ranked, because it compiles quickly. */
enum { FLP_COMPILE_RANKS = 14 };
int flp_compile_rank(const char *variant);

/* order[count]: receives the indices 0 .. count - 1 of variants by rank, the longest compilations first; variants of one rank keep their order. */
void flp_compile_order(int count, const char *const *variants, int *order);
#endif
