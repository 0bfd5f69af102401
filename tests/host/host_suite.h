/* The kernels of every operator on the host device. A family is an operator's cases; a new one is a file host_<operator>.c and a line in
 * host_suite.c. */
#ifndef FLP_TESTS_HOST_SUITE_H
#define FLP_TESTS_HOST_SUITE_H
#include "fusedlogp.h"

typedef struct {
    int (*count)(void);
    const char *(*name)(int index); /* of the case; lives on */
    /* Makes the case's plan, so that its kernels are compiled. What fails is reported by run. Called by several threads. */
    void (*compile)(flp_context *context, int index);
    /* Executes the case and checks what it wrote. 1, or 0 and a message. */
    int (*run)(flp_context *context, int index, char *message, size_t bytes);
} flp_host_family;

extern const flp_host_family flp_host_linear_logp;                                              /* host_linear_logp.c */
extern const flp_host_family flp_host_linear_logp_backward;                                     /* host_linear_logp_backward.c */
extern const flp_host_family flp_host_linear_logp_shards, flp_host_linear_logp_backward_shards; /* host_linear_logp_shards.c */
extern const flp_host_family flp_host_linear_cross_entropy_shards;                              /* as these */
extern const flp_host_family flp_host_linear_cross_entropy;                                     /* host_linear_cross_entropy.c */
extern const flp_host_family flp_host_logits_logp;                                              /* host_logits_logp.c */
extern const flp_host_family flp_host_weighted_sum;                                             /* host_weighted_sum.c */

/* Two programs share the work where it is long: a case runs on one core. */
typedef enum {
    FLP_HOST_LINEAR = 1, /* linear_logp and its backward */
    FLP_HOST_OTHERS = 2
} flp_host_part;

/* The cases of the parts' families on a device of the compute capability, as a group of cmocka tests; what main returns. share: of the families
 * behind linear_logp's one case in so many, and those of saved exponentials. */
int flp_host_suite_run(const char *name, int compute_capability, int share, unsigned parts);

/* $FUSEDLOGP_HOST_EVERY, 1 where it is unset: of what is tried again with another seed or fill, and of the cases behind
 * linear_logp's forward, every n-th runs, of dtypes and layouts every other one. */
int flp_host_every(void);

/* Runs the first case whose name matches the shell's pattern. 1, or 0 and a message. */
int flp_host_suite_run_case(flp_context *context, const char *pattern, char *message, size_t bytes);

/* A context on a fresh device, which keeps no kernels on the disk; NULL where the library refuses, with its message. */
flp_context *flp_host_suite_start(int compute_capability);

/* A case's buffers while they are the device's memory, each known to the byte. */
enum { FLP_HOST_MEMORY_BUFFERS = 32 };
typedef struct {
    void *start[FLP_HOST_MEMORY_BUFFERS];
    int count;
} flp_host_memory;

/* base NULL: there is no such buffer. */
void flp_host_memory_add(flp_host_memory *memory, unsigned char *base, size_t offset, size_t data_bytes);
void flp_host_memory_remove(flp_host_memory *memory);

/* Before a case's execution: interleavings from the seed on, and no failure yet. */
void flp_host_suite_begin(uint64_t seed);
/* Behind it: 1, or 0 and the rule that a kernel broke, or what the library says. */
int flp_host_suite_succeeded(flp_status status, char *message, size_t bytes);
/* And the plan has counted so many bad targets, the first in that row. */
int flp_host_suite_check_target_errors(flp_plan *plan, int64_t wanted_count, int64_t wanted_first, char *message, size_t bytes);
#endif
