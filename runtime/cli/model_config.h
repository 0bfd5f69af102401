/* A language model's head as its Hugging Face config.json describes it: what trainers and scorers must know to name their problems. */
#ifndef FLP_CLI_MODEL_CONFIG_H
#define FLP_CLI_MODEL_CONFIG_H
#include <inttypes.h>
#include <stddef.h>
#include "fusedlogp.h"

typedef struct {
    char model_type[64];         /* "" where the file does not say, as the next where it names none */
    char architecture[64];       /* "Gemma2ForCausalLM" */
    int64_t hidden;              /* D: what the head multiplies */
    int64_t vocab, weight_rows;  /* V: the real vocabulary; the rows of the head's weight, which may be padded to more */
    flp_dtype dtype;             /* FLP_NONE: the file does not say */
    double softcap, temperature; /* as in flp_linear_logp_problem and _args: 0: none; 1: the logits as they are */
    int tied;                    /* 1: the head's weight is the embedding; 0: its own; -1: the file does not say */
} flp_model_config;

/* path: the file, or the folder in which config.json lies. What a multimodal model has in its text_config (language_config, llm_config) goes before
 * what stands around it.
 * FLP_IO_FAILED. FLP_BAD_ARGUMENT names file, key, what it is and what was wanted. FLP_OUT_OF_MEMORY. */
flp_status flp_model_config_read(const char *path, flp_model_config *config);

/* The same of the file's text; messages name no file. */
flp_status flp_model_config_parse(const char *text, size_t bytes, flp_model_config *config);

/* What a problem's pattern has behind its operator and dtype, for so many rows: "linear_logp:%s" FLP_MODEL_HEAD("4096"). Further %s are the dtype again. */
#define FLP_MODEL_HEAD(rows) ":n" rows ":d%" PRId64 ":v%" PRId64 "%s"

/* Appends, to an argz, the canonical string that each pattern is with the model's sizes and softcap. patterns: NULL ends them. FLP_OUT_OF_MEMORY. */
flp_status flp_model_config_append_problems(const flp_model_config *config, flp_dtype dtype, const char *const *patterns, char **problems, size_t *bytes);

/* Where the head of a model lies: config.json beside model.safetensors, or beside shards and their index. */
typedef struct {
    flp_model_config config;
    char *weight, *bias; /* as flp_tensor_file_open takes them; bias: NULL where the head has none */
} flp_model_head;

/* folder: of the model. The weight is the head's own or the embedding, as config.json says; where it does not say, the head's own if it is there.
 * Nothing of the tensors is read. Freed by flp_model_head_free, also where it failed.
 * FLP_IO_FAILED; FLP_BAD_ARGUMENT names the file and what was wanted of it. */
flp_status flp_model_head_find(const char *folder, flp_model_head *head);
void flp_model_head_free(flp_model_head *head);
#endif
