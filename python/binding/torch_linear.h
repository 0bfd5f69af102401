/* What the linear operators have in common: the inputs that each begins with, shards of the vocabulary, and the gradients. */
#ifndef FLP_BINDING_TORCH_LINEAR_H
#define FLP_BINDING_TORCH_LINEAR_H
#include "torch_tensors.h"

#define FLP_TORCH_LINEAR \
    "Tensor hidden, Tensor weight, Tensor? bias, Tensor target, Tensor? row_temperature, float temperature, float softcap, int? ignore_index, bool exact, "
enum { HIDDEN, WEIGHT, BIAS, TARGET, ROW_TEMPERATURE, TEMPERATURE, SOFTCAP, IGNORE_INDEX, EXACT, FLP_TORCH_LINEAR_INPUTS };

typedef struct {
    int64_t rows, columns, vocab;
    bool transposed; /* weight [V, D] is stored as [D, V] */
    flp_linear_logp_problem problem;
    flp_linear_logp_args args; /* only the inputs are filled in */
} flp_torch_linear;

/* For the initializer of the arguments of a gradient or of a loss: those that it has in common with a forward. */
#define FLP_TORCH_LINEAR_ARGS(l)                                                                                                   \
    .rows = (l)->rows, .hidden = (l)->args.hidden, .weight = (l)->args.weight, .bias = (l)->args.bias, .target = (l)->args.target, \
    .ignore_index = (l)->args.ignore_index, .flags = (l)->args.flags, .temperature = (l)->args.temperature, .row_temperature = (l)->args.row_temperature

/* Checks and reads the inputs that each linear operator begins with. */
int flp_torch_read_linear(flp_torch_frame *frame, flp_torch_linear *l);

/* 1: weight [V, D] is stored as [D, V], 0: as [V, D], -1: neither. */
int flp_torch_lies_transposed(const flp_torch_value *weight);
int64_t flp_torch_weight_stride(const flp_torch_value *weight, bool transposed);

/* ---- shards of the vocabulary */

#define FLP_TORCH_SHARD "int vocab_first, int vocab_total"
/* Reads the place of a shard. first: the number of the input with the id of the shard's first entry; the input after it is the whole vocabulary's size. */
int flp_torch_read_shard(flp_torch_frame *frame, int first, flp_torch_linear *l);
/* Further inputs of a shard's call, after the others: a CUevent after which grad_hidden may be exchanged (0: none), and how many multiprocessors the work
 * beside this exchange leaves free. */
#define FLP_TORCH_EXCHANGE "int grad_hidden_event, int multiprocessors_left"
enum { FLP_TORCH_EXCHANGE_INPUTS = 2 };
/* Checks the partials of all shards, concatenated along the rows; *ranks: how many shards there are. */
int flp_torch_read_partials(flp_torch_frame *frame, const flp_torch_value *partials, int64_t rows, int64_t *ranks);

/* ---- gradients: of hidden, weight and bias, each where it is wanted */

/* Fills in what the problem says about the wanted gradients. */
void flp_torch_set_gradients(const flp_torch_frame *frame, const flp_torch_linear *l, const bool wanted[3], flp_linear_logp_backward_problem *problem);
/* Does the same, and makes the gradients: the output `first` and the two after it. */
int flp_torch_make_gradients(flp_torch_frame *frame, const flp_torch_linear *l, int first, const bool wanted[3], flp_linear_logp_backward_problem *problem,
                             void *data[3]);
#endif
