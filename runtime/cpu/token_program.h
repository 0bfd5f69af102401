/* The program of a token loss for the CPU path: the inputs and parameters that it takes, and the operations that compute a token's loss and its derivatives.
 *
 * gen/token_loss.lua writes it as text, with one item on each line: "identity TEXT", "input NAME", "parameter NAME DEFAULT", "value OPERATION OPERANDS",
 * "result NAME VALUE". Values are numbered from 0; the operands of a value are earlier values. A constant is written as the bits of an fp64, as an integer. Any
 * other line is refused. */
#ifndef FLP_CPU_TOKEN_PROGRAM_H
#define FLP_CPU_TOKEN_PROGRAM_H
#include "fusedlogp.h"
#include "params/token_loss.h"

/* What a loss may depend on. The first four (FLP_TOKEN_DERIVATIVES) have derivatives. */
typedef enum {
    FLP_TOKEN_LOGP,
    FLP_TOKEN_LSE,
    FLP_TOKEN_ENTROPY,
    FLP_TOKEN_UNIFORM,
    FLP_TOKEN_CLASS_WEIGHT,
    FLP_TOKEN_STATISTICS,
    FLP_TOKEN_DERIVATIVES = FLP_TOKEN_CLASS_WEIGHT
} flp_token_statistic;

typedef enum {
    FLP_TOKEN_CONSTANT,
    FLP_TOKEN_STATISTIC,
    FLP_TOKEN_INPUT,
    FLP_TOKEN_PARAMETER,
    FLP_TOKEN_ADD,
    FLP_TOKEN_SUB,
    FLP_TOKEN_MUL,
    FLP_TOKEN_DIV,
    FLP_TOKEN_NEG,
    FLP_TOKEN_EXP,
    FLP_TOKEN_LOG,
    FLP_TOKEN_MIN,
    FLP_TOKEN_MAX,
    FLP_TOKEN_SELECT,
    FLP_TOKEN_GUARD
} flp_token_operation;

typedef struct {
    flp_token_operation operation;
    int operand[4]; /* numbers of earlier values; for a statistic, an input or a parameter the first is its index */
    double constant;
} flp_token_value;

typedef struct {
    char identity[64]; /* numeric identity of its arithmetic */
    int inputs, parameters, values;
    char input[FLP_TOKEN_INPUTS][FLP_TOKEN_LOSS_NAME_BYTES];
    char parameter[FLP_TOKEN_PARAMETERS][FLP_TOKEN_LOSS_NAME_BYTES];
    double default_value[FLP_TOKEN_PARAMETERS];
    int uses[FLP_TOKEN_STATISTICS];        /* 1: the loss or a derivative depends on it */
    int loss;                              /* the number of the value that is the loss */
    int derivative[FLP_TOKEN_DERIVATIVES]; /* for each statistic the number of the value that is the derivative by it; -1: the derivative is 0 */
    flp_token_value value[FLP_TOKEN_VALUES];
} flp_token_program;

/* FLP_INTERNAL: a line is malformed or too long (the message names it), or there is no loss. FLP_BAD_ARGUMENT: more than FLP_TOKEN_VALUES values. */
flp_status flp_token_program_parse(const char *text, flp_token_program *program);

typedef struct {
    double statistic[FLP_TOKEN_STATISTICS], input[FLP_TOKEN_INPUTS];
} flp_token_row;

typedef struct {
    double loss, derivative[FLP_TOKEN_DERIVATIVES];
} flp_token_result;

void flp_token_program_run(const flp_token_program *program, const double *parameter, const flp_token_row *row, flp_token_result *result);
#endif
