/* A token loss on the host: which inputs it takes, and the operations that give a token's loss and its derivatives.
 *
 * Its text is the generator's, a line an item: "identity TEXT", "input NAME", "parameter NAME DEFAULT", "value OPERATION OPERANDS", "result NAME VALUE".
 * A value is made of values before it; constants are an fp64's bits. What gen/token_loss.lua writes otherwise is refused. */
#ifndef FLP_CPU_TOKEN_PROGRAM_H
#define FLP_CPU_TOKEN_PROGRAM_H
#include "fusedlogp.h"
#include "params/token_loss.h"

/* What a loss depends on. The first four have derivatives. */
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
    int operand[4]; /* values before this one; of a statistic, an input or a parameter its index first */
    double constant;
} flp_token_value;

typedef struct {
    char identity[64]; /* of its arithmetic */
    int inputs, parameters, values;
    char input[FLP_TOKEN_INPUTS][FLP_TOKEN_LOSS_NAME_BYTES];
    char parameter[FLP_TOKEN_PARAMETERS][FLP_TOKEN_LOSS_NAME_BYTES];
    double default_value[FLP_TOKEN_PARAMETERS];
    int uses[FLP_TOKEN_STATISTICS];        /* 1: the loss or a derivative depends on it */
    int loss;                              /* the value that it is */
    int derivative[FLP_TOKEN_DERIVATIVES]; /* by a statistic; -1: 0 */
    flp_token_value value[FLP_TOKEN_VALUES];
} flp_token_program;

/* FLP_INTERNAL: which line is malformed. */
flp_status flp_token_program_parse(const char *text, flp_token_program *program);

typedef struct {
    double statistic[FLP_TOKEN_STATISTICS], input[FLP_TOKEN_INPUTS];
} flp_token_row;

typedef struct {
    double loss, derivative[FLP_TOKEN_DERIVATIVES];
} flp_token_result;

void flp_token_program_run(const flp_token_program *program, const double *parameter, const flp_token_row *row, flp_token_result *result);
#endif
