/* Runs the kernels of every operator on the host device. A family is the cases of an operator; a new one takes a file host_<operator>.c and a line in
 * host_suite.c. */
#ifndef FLP_TESTS_HOST_SUITE_H
#define FLP_TESTS_HOST_SUITE_H
#include "fusedlogp.h"

typedef struct {
    int (*count)(void);
    const char *(*name)(int index); /* of the case; stays valid */
    /* Makes the case's plan, so that its kernels are compiled. Failures are reported by run. Called by several threads. */
    void (*compile)(flp_context *context, int index);
    /* Executes the case and checks what it wrote. 1, or 0 and a message. */
    int (*run)(flp_context *context, int index, char *message, size_t bytes);
} flp_host_family;

extern const flp_host_family flp_host_linear_logp;                                              /* host_linear_logp.c */
extern const flp_host_family flp_host_linear_logp_backward;                                     /* host_linear_logp_backward.c */
extern const flp_host_family flp_host_linear_logp_shards, flp_host_linear_logp_backward_shards; /* host_linear_logp_shards.c */
extern const flp_host_family flp_host_linear_cross_entropy_shards;                              /* the same file */
extern const flp_host_family flp_host_linear_cross_entropy;                                     /* host_linear_cross_entropy.c */
extern const flp_host_family flp_host_logits_logp;                                              /* host_logits_logp.c */
extern const flp_host_family flp_host_weighted_sum;                                             /* host_weighted_sum.c */
extern const flp_host_family flp_host_scale;                                                    /* host_scale.c */

/* The families, in two parts: a case runs on one core, so two programs share the work where it is long. */
typedef enum {
    FLP_HOST_LINEAR = 1, /* linear_logp and its backward */
    FLP_HOST_OTHERS = 2
} flp_host_part;

/* Runs the cases of the parts' families on a device of the compute capability, as a group of cmocka tests. Returns what main should. share: of the families
 * after linear_logp's, one case in so many runs, and in addition special ones, such as those of saved exponentials. */
int flp_host_suite_run(const char *name, int compute_capability, int share, unsigned parts);

/* n = $FUSEDLOGP_HOST_EVERY, 1 if it is unset. With n > 1, only every n-th case of the families after linear_logp's runs, every n-th repetition of a case with
 * another seed or fill, and every other case of the grid of dtypes and layouts. */
int flp_host_every(void);

/* Runs the first case whose name matches the shell pattern. 1, or 0 and a message. */
int flp_host_suite_run_case(flp_context *context, const char *pattern, char *message, size_t bytes);

/* Says that a case does not run on the host device, because it would take long there. */
void flp_host_suite_leave_out(const char *name);

/* A context on a fresh device, which keeps no kernels on the disk; NULL and the library's message if that fails. */
flp_context *flp_host_suite_start(int compute_capability);

/* A case's buffers, registered as device memory with their exact bytes. */
enum { FLP_HOST_MEMORY_BUFFERS = 32 };
typedef struct {
    void *start[FLP_HOST_MEMORY_BUFFERS];
    int count;
} flp_host_memory;

/* base NULL: there is no such buffer. */
void flp_host_memory_add(flp_host_memory *memory, unsigned char *base, size_t offset, size_t data_bytes);
void flp_host_memory_remove(flp_host_memory *memory);

/* Called before a case is executed: sets the seed of the first interleaving, and forgets earlier failures. */
void flp_host_suite_begin(uint64_t seed);
/* Called after it: 1, or 0 and the rule that a kernel broke, or the library's message. */
int flp_host_suite_succeeded(flp_status status, char *message, size_t bytes);
/* 1: the plan has counted wanted_count bad targets, the first in row wanted_first. Else 0 and a message. */
int flp_host_suite_check_target_errors(flp_plan *plan, int64_t wanted_count, int64_t wanted_first, char *message, size_t bytes);
#endif
