/* The buffers of one problem: each between guard bytes, with a copy of what it held before, so that whatever was written outside the outputs shows. */
#ifndef FLP_TESTS_RANDOM_MEMORY_H
#define FLP_TESTS_RANDOM_MEMORY_H
#include "fusedlogp.h"

typedef enum {
    FLP_RANDOM_HIDDEN,
    FLP_RANDOM_WEIGHT,
    FLP_RANDOM_BIAS,
    FLP_RANDOM_TARGET,
    FLP_RANDOM_ROW_TEMPERATURE,
    FLP_RANDOM_ROW_INDEX, /* logits and x: hidden */
    FLP_RANDOM_G_LOGP,
    FLP_RANDOM_G_LSE,
    FLP_RANDOM_G_ENTROPY,
    FLP_RANDOM_GIVEN_LOGP,
    FLP_RANDOM_GIVEN_LSE,
    FLP_RANDOM_GIVEN_ENTROPY,
    FLP_RANDOM_CLASSES,
    FLP_RANDOM_TOKENS,
    FLP_RANDOM_G_LOSS,
    FLP_RANDOM_ADVANTAGES,
    FLP_RANDOM_OLD_LOGP,
    FLP_RANDOM_REFERENCE_LOGP,
    FLP_RANDOM_LOSS,
    FLP_RANDOM_LOGP,
    FLP_RANDOM_LSE,
    FLP_RANDOM_ENTROPY,
    FLP_RANDOM_ARGMAX,
    FLP_RANDOM_Y,
    FLP_RANDOM_GRAD_HIDDEN,
    FLP_RANDOM_GRAD_WEIGHT,
    FLP_RANDOM_GRAD_BIAS,
    FLP_RANDOM_WORKSPACE,
    FLP_RANDOM_ROLES
} flp_random_role;

extern const char *const flp_random_role_names[FLP_RANDOM_ROLES];

/* base is 256-byte aligned, and NULL where the problem has no such buffer. What may be written: rows of columns elements, stride apart. */
typedef struct {
    unsigned char *base, *before;
    size_t bytes, offset, data_bytes;
    int64_t rows, columns, stride;
    int element;
    uint64_t device; /* where a machine with memory of its own keeps it */
} flp_random_buffer;

typedef struct {
    flp_random_buffer buffer[FLP_RANDOM_ROLES];
} flp_random_memory;

int flp_random_element_bytes(int dtype);

/* All bytes are fill. Ends the program where there is no memory. */
void flp_random_memory_add(flp_random_memory *memory, flp_random_role role, int64_t data_bytes, int misalignment, int fill);
void flp_random_memory_add_output(flp_random_memory *memory, flp_random_role role, int64_t rows, int64_t columns, int64_t stride, int element, int misalignment,
                                  int fill);
/* All of it may be written. */
void flp_random_memory_add_workspace(flp_random_memory *memory, int64_t bytes, int fill);
void flp_random_memory_remove(flp_random_memory *memory, flp_random_role role);
void flp_random_memory_free(flp_random_memory *memory);

/* What stands in the buffers now is what they held before. */
void flp_random_memory_seal(flp_random_memory *memory);
void flp_random_memory_restore(flp_random_memory *memory);

/* On the host; NULL where there is none. */
void *flp_random_memory_at(const flp_random_memory *memory, flp_random_role role);

/* 1 where nothing outside the outputs has changed, else 0 and a message. */
int flp_random_memory_check(const flp_random_memory *memory, char *message, size_t bytes);
#endif
