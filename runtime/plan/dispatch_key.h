/* The key that dispatch finds a plan by. */
#ifndef FLP_PLAN_DISPATCH_KEY_H
#define FLP_PLAN_DISPATCH_KEY_H
#include <stdint.h>

enum { FLP_DISPATCH_SIZES = 13, FLP_DISPATCH_CHOICES = 9 };

/* Words without padding, compared and hashed as such. An operator fills sizes and choices; dispatch the rest. */
typedef struct {
    uint64_t operator;     /* its address */
    uint64_t cuda_context; /* its id; 0: none is asked for */
    uint64_t call;         /* what the call decides: bucket of rows and alignment */
    uint64_t choices;      /* enumerations and flags, 7 bits each */
    uint64_t sizes[FLP_DISPATCH_SIZES];
} flp_dispatch_key;

/* count <= FLP_DISPATCH_CHOICES. 0 where one takes more than 7 bits: no acceptable problem has such a value. */
static inline int flp_dispatch_key_choose(flp_dispatch_key *key, const unsigned *choices, int count)
{
    unsigned all = 0;

    key->choices = 0;
    for (int i = 0; i < count; i++) {
        all |= choices[i];
        key->choices = key->choices << 7 | choices[i];
    }
    return all < 128;
}
#endif
