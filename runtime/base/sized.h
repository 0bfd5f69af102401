/* The header's structs as programs of other versions know them: their sizes come with each call. */
#ifndef FLP_BASE_SIZED_H
#define FLP_BASE_SIZED_H
#include <stddef.h>

#include "fusedlogp.h"

enum { FLP_SIZED_PARTS = 3 };

/* A struct of the header; where another is nested at its beginning, both may have grown. */
typedef struct {
    const char *argument; /* as messages name it */
    int parts;
    struct {
        size_t at;           /* of its size, in flp_sizes */
        size_t bytes;        /* as this library knows it */
    } part[FLP_SIZED_PARTS]; /* innermost first */
} flp_sized_struct;

#define FLP_SIZED_PART(name)                          \
    {                                                 \
        offsetof(flp_sizes, name), sizeof(flp_##name) \
    }
static const flp_sized_struct flp_sized_context_options = { "options", 1, { FLP_SIZED_PART(context_options) } };
static const flp_sized_struct flp_sized_counters = { "counters", 1, { FLP_SIZED_PART(counters) } };
static const flp_sized_struct flp_sized_device_facts = { "facts", 1, { FLP_SIZED_PART(device_facts) } };
static const flp_sized_struct flp_sized_linear_logp_problem = { "problem", 1, { FLP_SIZED_PART(linear_logp_problem) } };
static const flp_sized_struct flp_sized_linear_logp_args = { "args", 1, { FLP_SIZED_PART(linear_logp_args) } };
static const flp_sized_struct flp_sized_linear_logp_merge_args = { "args", 1, { FLP_SIZED_PART(linear_logp_merge_args) } };
static const flp_sized_struct flp_sized_linear_logp_backward_problem = {
    "problem", 2, { FLP_SIZED_PART(linear_logp_problem), FLP_SIZED_PART(linear_logp_backward_problem) }
};
static const flp_sized_struct flp_sized_linear_logp_backward_args = { "args", 1, { FLP_SIZED_PART(linear_logp_backward_args) } };
static const flp_sized_struct flp_sized_linear_cross_entropy_problem = {
    "problem", 3, { FLP_SIZED_PART(linear_logp_problem), FLP_SIZED_PART(linear_logp_backward_problem), FLP_SIZED_PART(linear_cross_entropy_problem) }
};
static const flp_sized_struct flp_sized_linear_cross_entropy_args = { "args", 1, { FLP_SIZED_PART(linear_cross_entropy_args) } };
static const flp_sized_struct flp_sized_token_input = { "token_inputs", 1, { FLP_SIZED_PART(token_input) } };
static const flp_sized_struct flp_sized_token_parameter = { "token_parameters", 1, { FLP_SIZED_PART(token_parameter) } };
static const flp_sized_struct flp_sized_weighted_sum_problem = { "problem", 1, { FLP_SIZED_PART(weighted_sum_problem) } };
static const flp_sized_struct flp_sized_weighted_sum_args = { "args", 1, { FLP_SIZED_PART(weighted_sum_args) } };
static const flp_sized_struct flp_sized_weighted_sum_backward_problem = {
    "problem", 2, { FLP_SIZED_PART(weighted_sum_problem), FLP_SIZED_PART(weighted_sum_backward_problem) }
};
static const flp_sized_struct flp_sized_weighted_sum_backward_args = { "args", 1, { FLP_SIZED_PART(weighted_sum_backward_args) } };
static const flp_sized_struct flp_sized_logits_logp_problem = { "problem", 1, { FLP_SIZED_PART(logits_logp_problem) } };
static const flp_sized_struct flp_sized_logits_logp_args = { "args", 1, { FLP_SIZED_PART(logits_logp_args) } };
static const flp_sized_struct flp_sized_logits_logp_backward_problem = { "problem", 1, { FLP_SIZED_PART(logits_logp_backward_problem) } };
static const flp_sized_struct flp_sized_logits_logp_backward_args = { "args", 1, { FLP_SIZED_PART(logits_logp_backward_args) } };

/* What the caller's header says of a struct; 0 where it does not know it. */
static inline size_t flp_sized_bytes(const flp_sizes *sizes, size_t at)
{
    return at < sizes->bytes ? *(const uint32_t *)(const void *)((const char *)sizes + at) : 0;
}

/* 1: the caller knows the struct as this library does. */
static inline int flp_sized_same(const flp_sized_struct *known, const flp_sizes *sizes)
{
    if (!sizes)
        return 0;
    for (int i = 0; i < known->parts; i++)
        if (flp_sized_bytes(sizes, known->part[i].at) != known->part[i].bytes)
            return 0;
    return 1;
}

/* Where the caller's struct has another size: own takes what was given, with zeros for what the caller does not know.
 * FLP_BAD_ARGUMENT: what this library does not know is not 0. */
flp_status flp_sized_copy(const flp_sized_struct *known, const flp_sizes *sizes, const void *given, void *own);

/* `given` where it is as this library knows it, NULL included; else own, which takes it. NULL too where *status is not FLP_OK, then or before. */
static inline const void *flp_sized_take(const flp_sized_struct *known, const flp_sizes *sizes, const void *given, void *own, flp_status *status)
{
    if (flp_sized_same(known, sizes) && *status == FLP_OK)
        return given;
    if (*status == FLP_OK)
        *status = flp_sized_copy(known, sizes, given, own);
    return *status == FLP_OK && given ? own : NULL;
}

/* A result, into a struct as the caller knows it: what this library does not know becomes 0. is_whole: FLP_BAD_ARGUMENT where the
 * caller has no room for something that is not 0. */
flp_status flp_sized_give(const flp_sized_struct *known, const flp_sizes *sizes, const void *own, int is_whole, void *given);
#endif
