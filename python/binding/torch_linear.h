/* What the linear operators have in common: the inputs that each begins with, shards of the vocabulary, and the gradients. */
#ifndef FLP_BINDING_TORCH_LINEAR_H
#define FLP_BINDING_TORCH_LINEAR_H
#include "torch_tensors.h"

#define FLP_TORCH_LINEAR \
    "Tensor hidden, Tensor weight, Tensor? bias, Tensor target, Tensor? row_temperature, float temperature, float softcap, int? ignore_index, bool exact, "
enum { HIDDEN, WEIGHT, BIAS, TARGET, ROW_TEMPERATURE, TEMPERATURE, SOFTCAP, IGNORE_INDEX, EXACT, FLP_TORCH_LINEAR_INPUTS };

typedef struct {
    int64_t rows, columns, vocab;
    bool transposed; /* weight [V, D] lies as [D, V] */
    flp_linear_logp_problem problem;
    flp_linear_logp_args args; /* inputs alone */
} flp_torch_linear;

/* The arguments that a gradient and a loss take over from these, in an initializer. */
#define FLP_TORCH_LINEAR_ARGS(l)                                                                                                   \
    .rows = (l)->rows, .hidden = (l)->args.hidden, .weight = (l)->args.weight, .bias = (l)->args.bias, .target = (l)->args.target, \
    .ignore_index = (l)->args.ignore_index, .flags = (l)->args.flags, .temperature = (l)->args.temperature, .row_temperature = (l)->args.row_temperature

/* The inputs that each begins with. */
int flp_torch_read_linear(flp_torch_frame *frame, flp_torch_linear *l);

/* 1: weight [V, D] lies as [D, V], 0: as [V, D], -1: neither. */
int flp_torch_lies_transposed(const flp_torch_value *weight);
int64_t flp_torch_weight_stride(const flp_torch_value *weight, bool transposed);

/* ---- shards of the vocabulary */

#define FLP_TORCH_SHARD "int vocab_first, int vocab_total"
/* first: the input with the id of the shard's first entry; the next is the whole vocabulary's size. */
int flp_torch_read_shard(flp_torch_frame *frame, int first, flp_torch_linear *l);
/* Behind which event grad_hidden may be exchanged, and beside what: a CUevent, 0 where there is none, and multiprocessors. Behind a shard's other inputs. */
#define FLP_TORCH_EXCHANGE "int grad_hidden_event, int multiprocessors_left"
enum { FLP_TORCH_EXCHANGE_INPUTS = 2 };
/* The partials of all shards, one behind the other. */
int flp_torch_read_partials(flp_torch_frame *frame, const flp_torch_value *partials, int64_t rows, int64_t *ranks);

/* ---- gradients: of hidden, weight and bias, each where it is wanted */

/* What the problem says of them. */
void flp_torch_set_gradients(const flp_torch_frame *frame, const flp_torch_linear *l, const bool wanted[3], flp_linear_logp_backward_problem *problem);
/* That, and the gradients themselves: outputs `first` and the two behind. */
int flp_torch_make_gradients(flp_torch_frame *frame, const flp_torch_linear *l, int first, const bool wanted[3], flp_linear_logp_backward_problem *problem,
                             void *data[3]);
#endif
