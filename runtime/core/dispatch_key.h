/* The key that dispatch finds a plan by. */
#ifndef FLP_CORE_DISPATCH_KEY_H
#define FLP_CORE_DISPATCH_KEY_H
#include <stdint.h>

enum { FLP_DISPATCH_SIZES = 13 };

/* Words without padding, compared and hashed as such. flp_problem_pack fills choices and sizes; dispatch the rest. */
typedef struct {
    uint64_t op;           /* its address */
    uint64_t cuda_context; /* its id; 0: none is asked for */
    uint64_t call;         /* what the call decides: bucket of rows and alignment */
    uint64_t choices;      /* enumerations and flags, up to 3 bits each */
    uint64_t sizes[FLP_DISPATCH_SIZES];
} flp_dispatch_key;
#endif
