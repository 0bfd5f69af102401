/* Parses and runs the program of a token loss. */
#include "cpu/token_program.h"
#include "base/status.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const statistics[FLP_TOKEN_STATISTICS] = { "logp", "lse", "entropy", "uniform", "class_weight" };

static const struct {
    const char *name;
    flp_token_operation operation;
    int operands; /* how many values it takes */
} operations[] = {
    { "add", FLP_TOKEN_ADD, 2 }, { "sub", FLP_TOKEN_SUB, 2 },       { "mul", FLP_TOKEN_MUL, 2 },     { "div", FLP_TOKEN_DIV, 2 },
    { "neg", FLP_TOKEN_NEG, 1 }, { "exp", FLP_TOKEN_EXP, 1 },       { "log", FLP_TOKEN_LOG, 1 },     { "min", FLP_TOKEN_MIN, 2 },
    { "max", FLP_TOKEN_MAX, 2 }, { "select", FLP_TOKEN_SELECT, 4 }, { "guard", FLP_TOKEN_GUARD, 2 },
};

/* ---- parsing ---- */

static double number_of(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static int statistic_of(const char *name)
{
    for (int i = 0; i < FLP_TOKEN_STATISTICS; i++)
        if (strcmp(statistics[i], name) == 0)
            return i;
    return -1;
}

static int read_leaf(flp_token_program *program, const char *name, const char *rest, flp_token_value *value)
{
    int64_t bits;
    int index = -1, statistic = statistic_of(name);
    if (statistic >= 0) {
        *value = (flp_token_value){ .operation = FLP_TOKEN_STATISTIC, .operand = { statistic } };
        return program->uses[statistic] = 1;
    }
    if (strcmp(name, "constant") == 0 && sscanf(rest, "%" SCNd64, &bits) == 1) {
        *value = (flp_token_value){ .operation = FLP_TOKEN_CONSTANT, .constant = number_of(bits) };
        return 1;
    }
    sscanf(rest, "%d", &index);
    *value = (flp_token_value){ .operation = name[0] == 'i' ? FLP_TOKEN_INPUT : FLP_TOKEN_PARAMETER, .operand = { index } };
    if (strcmp(name, "input") == 0)
        return index >= 0 && index < program->inputs;
    return strcmp(name, "parameter") == 0 && index >= 0 && index < program->parameters;
}

static int read_value(flp_token_program *program, const char *line)
{
    char name[16];
    int read = 0;
    if (program->values == FLP_TOKEN_VALUES || sscanf(line, "%15s%n", name, &read) != 1)
        return 0;
    flp_token_value *value = &program->value[program->values];
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, name) != 0)
            continue;
        *value = (flp_token_value){ .operation = operations[i].operation };
        int *operand = value->operand, count = sscanf(line + read, "%d %d %d %d", operand, operand + 1, operand + 2, operand + 3);
        for (int k = 0; k < operations[i].operands; k++)
            if (operand[k] < 0 || operand[k] >= program->values)
                return 0;
        program->values++;
        return count == operations[i].operands;
    }
    return read_leaf(program, name, line + read, value) && ++program->values;
}

static int read_result(flp_token_program *program, const char *line)
{
    char name[16];
    int value, statistic;
    if (sscanf(line, "%15s %d", name, &value) != 2 || value < 0 || value >= program->values)
        return 0;
    statistic = statistic_of(name);
    if (strcmp(name, "loss") == 0)
        program->loss = value;
    else if (statistic >= 0 && statistic < FLP_TOKEN_DERIVATIVES)
        program->derivative[statistic] = value;
    else
        return 0;
    return 1;
}

static int read_line(flp_token_program *program, const char *line)
{
    int64_t bits;
    if (strncmp(line, "value ", 6) == 0)
        return read_value(program, line + 6);
    if (strncmp(line, "result ", 7) == 0)
        return read_result(program, line + 7);
    if (sscanf(line, "identity %63s", program->identity) == 1)
        return 1;
    if (program->inputs < FLP_TOKEN_INPUTS && sscanf(line, "input %31s", program->input[program->inputs]) == 1)
        return ++program->inputs;
    if (program->parameters == FLP_TOKEN_PARAMETERS || sscanf(line, "parameter %31s %" SCNd64, program->parameter[program->parameters], &bits) != 2)
        return 0;
    program->default_value[program->parameters++] = number_of(bits);
    return 1;
}

flp_status flp_token_program_parse(const char *text, flp_token_program *program)
{
    *program = (flp_token_program){ .loss = -1, .derivative = { -1, -1, -1, -1 } };
    for (const char *at = text; *at;) {
        char line[96];
        size_t length = strcspn(at, "\n");
        if (length >= sizeof line)
            return flp_status_fail(FLP_INTERNAL, "token loss: the line \"%.40s...\" is too long", at);
        memcpy(line, at, length);
        line[length] = 0;
        if (!read_line(program, line)) {
            if (program->values == FLP_TOKEN_VALUES)
                return flp_status_fail(FLP_BAD_ARGUMENT, "token loss: wanted at most %d operations", FLP_TOKEN_VALUES);
            return flp_status_fail(FLP_INTERNAL, "token loss: the line \"%s\" is malformed", line);
        }
        at += length + (at[length] == '\n');
    }
    return program->loss >= 0 ? FLP_OK : flp_status_fail(FLP_INTERNAL, "token loss: there is no result");
}

/* ---- running ---- */

/* The first one where both are equal; NaN where one of them is NaN. */
static double smaller(double a, double b)
{
    return b < a || isnan(b) ? b : a;
}

static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static double compute(const flp_token_value *of, const double *value, const double *parameter, const flp_token_row *row)
{
    const int *operand = of->operand;
    switch (of->operation) {
    case FLP_TOKEN_CONSTANT:
        return of->constant;
    case FLP_TOKEN_STATISTIC:
        return row->statistic[operand[0]];
    case FLP_TOKEN_INPUT:
        return row->input[operand[0]];
    case FLP_TOKEN_PARAMETER:
        return parameter[operand[0]];
    case FLP_TOKEN_ADD:
        return value[operand[0]] + value[operand[1]];
    case FLP_TOKEN_SUB:
        return value[operand[0]] - value[operand[1]];
    case FLP_TOKEN_MUL:
        return value[operand[0]] * value[operand[1]];
    case FLP_TOKEN_DIV:
        return value[operand[0]] / value[operand[1]];
    case FLP_TOKEN_NEG:
        return -value[operand[0]];
    case FLP_TOKEN_EXP:
        return exp(value[operand[0]]);
    case FLP_TOKEN_LOG:
        return log(value[operand[0]]);
    case FLP_TOKEN_MIN:
        return smaller(value[operand[0]], value[operand[1]]);
    case FLP_TOKEN_MAX:
        return larger(value[operand[0]], value[operand[1]]);
    case FLP_TOKEN_SELECT:
        return value[operand[0]] < value[operand[1]] ? value[operand[2]] : value[operand[3]];
    case FLP_TOKEN_GUARD:
        return value[operand[0]] == 0 ? 0 : value[operand[1]];
    }
    return NAN;
}

void flp_token_program_run(const flp_token_program *program, const double *parameter, const flp_token_row *row, flp_token_result *result)
{
    double value[FLP_TOKEN_VALUES];
    for (int i = 0; i < program->values; i++)
        value[i] = compute(&program->value[i], value, parameter, row);
    result->loss = value[program->loss];
    for (int i = 0; i < FLP_TOKEN_DERIVATIVES; i++)
        result->derivative[i] = program->derivative[i] < 0 ? 0 : value[program->derivative[i]];
}
