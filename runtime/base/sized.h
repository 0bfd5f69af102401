/* Copies of public structs between this library and a program that was compiled against another version of fusedlogp.h. Each call passes the sizes that
 * the structs have in the caller's header (flp_sizes). */
#ifndef FLP_BASE_SIZED_H
#define FLP_BASE_SIZED_H
#include <stddef.h>

#include "fusedlogp.h"

enum { FLP_SIZED_PARTS = 3 };

/* A public struct as a list of parts. Where its first field is another public struct, that one is a part of its own, because a later version may append
 * fields to both. */
typedef struct {
    const char *argument; /* as messages name it */
    int parts;
    struct {
        size_t at;           /* offset in flp_sizes of the size in the caller's header */
        size_t bytes;        /* size in this library, with all parts before it */
    } part[FLP_SIZED_PARTS]; /* the innermost struct first */
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
static const flp_sized_struct flp_sized_scale_problem = { "problem", 1, { FLP_SIZED_PART(scale_problem) } };
static const flp_sized_struct flp_sized_scale_args = { "args", 1, { FLP_SIZED_PART(scale_args) } };
static const flp_sized_struct flp_sized_logits_logp_problem = { "problem", 1, { FLP_SIZED_PART(logits_logp_problem) } };
static const flp_sized_struct flp_sized_logits_logp_args = { "args", 1, { FLP_SIZED_PART(logits_logp_args) } };
static const flp_sized_struct flp_sized_logits_logp_backward_problem = { "problem", 1, { FLP_SIZED_PART(logits_logp_backward_problem) } };
static const flp_sized_struct flp_sized_logits_logp_backward_args = { "args", 1, { FLP_SIZED_PART(logits_logp_backward_args) } };

/* The size of a struct in the caller's header; 0 where that header does not have the struct. at: offset of this size in flp_sizes. */
static inline size_t flp_sized_bytes(const flp_sizes *sizes, size_t at)
{
    return at < sizes->bytes ? *(const uint32_t *)(const void *)((const char *)sizes + at) : 0;
}

/* 1: the struct has the same size in the caller's header and in this library. */
static inline int flp_sized_same(const flp_sized_struct *known, const flp_sizes *sizes)
{
    if (!sizes)
        return 0;
    for (int i = 0; i < known->parts; i++)
        if (flp_sized_bytes(sizes, known->part[i].at) != known->part[i].bytes)
            return 0;
    return 1;
}

/* Copies the caller's struct `given` to `own`, a struct of this library. Fields that the caller's header does not have become 0; a given that is NULL copies
 * nothing. FLP_BAD_ARGUMENT: a field that this library does not know is not 0, or the sizes are wrong. */
flp_status flp_sized_copy(const flp_sized_struct *known, const flp_sizes *sizes, const void *given, void *own);

/* Returns `given` itself, which may be NULL, where it has the size that this library knows; else `own`, after flp_sized_copy to it. Returns NULL where *status
 * is not FLP_OK at the call, or where the copy fails, whose status it then takes. */
static inline const void *flp_sized_take(const flp_sized_struct *known, const flp_sizes *sizes, const void *given, void *own, flp_status *status)
{
    if (flp_sized_same(known, sizes) && *status == FLP_OK)
        return given;
    if (*status == FLP_OK)
        *status = flp_sized_copy(known, sizes, given, own);
    return *status == FLP_OK && given ? own : NULL;
}

/* Copies a result `own` to the caller's struct `given`; fields that this library does not know become 0. is_whole 1: FLP_BAD_ARGUMENT where a field that is
 * not 0 has no room in the caller's struct; 0: such a field is dropped. FLP_BAD_ARGUMENT also where the sizes are wrong. */
flp_status flp_sized_give(const flp_sized_struct *known, const flp_sizes *sizes, const void *own, int is_whole, void *given);
#endif
