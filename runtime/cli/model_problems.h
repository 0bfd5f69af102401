/* The problems that a model's head asks for, as canonical strings. */
#ifndef FLP_CLI_MODEL_PROBLEMS_H
#define FLP_CLI_MODEL_PROBLEMS_H
#include <inttypes.h>
#include "cli/model_config.h"

/* What a pattern has behind its operator and dtype, for so many rows: "linear_logp:%s" FLP_MODEL_HEAD("4096"). Further %s are the dtype again. */
#define FLP_MODEL_HEAD(rows) ":n" rows ":d%" PRId64 ":v%" PRId64 "%s"

/* Appends, to an argz, what each pattern is of the model's sizes and softcap. patterns: NULL ends them. FLP_OUT_OF_MEMORY. */
flp_status flp_model_problems_append(const flp_model_config *config, flp_dtype dtype, const char *const *patterns, char **problems, size_t *bytes);
#endif
