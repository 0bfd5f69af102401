/* Where a random problem runs: the CPU path, the host machine's model of a GPU, or a GPU. */
#ifndef FLP_TESTS_RANDOM_MACHINE_H
#define FLP_TESTS_RANDOM_MACHINE_H
#include "random/memory.h"

typedef struct flp_random_machine {
    const char *name;
    flp_context *context;
    int is_cpu;
    double work;                                            /* most multiplications of a usual problem's product */
    int (*enter)(const struct flp_random_machine *machine); /* in each thread that makes plans; NULL: nothing to do */
    void (*begin)(const struct flp_random_machine *machine, uint64_t seed);
    /* Makes the buffers the device's, brings back what it wrote, gives the memory back. 0 and a message where that fails. */
    int (*place)(const struct flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes);
    int (*fetch)(const struct flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes);
    void (*release)(const struct flp_random_machine *machine, flp_random_memory *memory);
    /* Before a backward that looks at what no forward has left: the lives of its workspace's parts are not watched until `begin`. NULL: they never are. */
    void (*watch_no_lives)(const struct flp_random_machine *machine, const flp_random_memory *memory);
    void *(*address)(const flp_random_buffer *buffer); /* of the buffer's first byte */
} flp_random_machine;

/* The CPU path. NULL context: the library refuses. */
flp_random_machine flp_random_cpu_machine(void);

/* What the call's arguments point to; NULL where the problem has no such buffer. */
void *flp_random_machine_at(const flp_random_machine *machine, const flp_random_memory *memory, flp_random_role role);
#endif
