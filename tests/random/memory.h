/* The buffers of one problem: each between guard bytes, with a copy of what it held before, so that whatever was written outside the outputs shows. */
#ifndef FLP_TESTS_RANDOM_MEMORY_H
#define FLP_TESTS_RANDOM_MEMORY_H
#include "fusedlogp.h"

/* X(role, name). Logits and x are hidden. */
#define FLP_RANDOM_ROLE_LIST(X)           \
    X(HIDDEN, "hidden")                   \
    X(WEIGHT, "weight")                   \
    X(BIAS, "bias")                       \
    X(TARGET, "target")                   \
    X(ROW_TEMPERATURE, "row_temperature") \
    X(ROW_INDEX, "row_index")             \
    X(G_LOGP, "g_logp")                   \
    X(G_LSE, "g_lse")                     \
    X(G_ENTROPY, "g_entropy")             \
    X(GIVEN_LOGP, "given logp")           \
    X(GIVEN_LSE, "given lse")             \
    X(GIVEN_ENTROPY, "given entropy")     \
    X(CLASSES, "class_weights")           \
    X(TOKENS, "token_weights")            \
    X(G_LOSS, "g_loss")                   \
    X(ADVANTAGES, "advantages")           \
    X(OLD_LOGP, "old_logp")               \
    X(REFERENCE_LOGP, "reference_logp")   \
    X(LOSS, "loss")                       \
    X(LOGP, "logp")                       \
    X(LSE, "lse")                         \
    X(ENTROPY, "entropy")                 \
    X(ARGMAX, "argmax")                   \
    X(Y, "y")                             \
    X(GRAD_HIDDEN, "grad_hidden")         \
    X(GRAD_WEIGHT, "grad_weight")         \
    X(GRAD_BIAS, "grad_bias")             \
    X(WORKSPACE, "workspace")
#define FLP_RANDOM_ROLE(role, name) FLP_RANDOM_##role,
typedef enum { FLP_RANDOM_ROLE_LIST(FLP_RANDOM_ROLE) FLP_RANDOM_ROLES } flp_random_role;
#undef FLP_RANDOM_ROLE

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
