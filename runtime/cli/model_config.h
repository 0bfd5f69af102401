/* A language model's head as its Hugging Face config.json describes it: what is needed to name the problems of training and scoring with the model. */
#ifndef FLP_CLI_MODEL_CONFIG_H
#define FLP_CLI_MODEL_CONFIG_H
#include <inttypes.h>
#include <stddef.h>
#include <sys/stat.h>
#include "fusedlogp.h"

typedef struct {
    char model_type[64];         /* "": the file does not say; the same for architecture */
    char architecture[64];       /* "Gemma2ForCausalLM" */
    int64_t hidden;              /* D: what the head multiplies */
    int64_t vocab, weight_rows;  /* V: the real vocabulary; the rows of the head's weight, which may be padded to more */
    flp_dtype dtype;             /* FLP_NONE: the file does not say */
    double softcap, temperature; /* as in flp_linear_logp_problem and _args; softcap 0: none; temperature 1: none */
    double unknown_scaling;      /* logits_scaling, where it is not known what a model of this type does with it; temperature is without it. 0: none */
    int tied;                    /* 1: the head's weight is the embedding; 0: a tensor of its own; -1: the file does not say */
} flp_model_config;

/* Reads a config.json. path: the file or its folder. In the file of a multimodal model, the keys of its text_config (or language_config, llm_config,
 * thinker_config) take precedence over those of the outer object.
 * FLP_IO_FAILED. FLP_BAD_ARGUMENT: names the file, the key, its value and what was wanted. FLP_OUT_OF_MEMORY. */
flp_status flp_model_config_read(const char *path, flp_model_config *config);

/* Parses the text of a config.json. Errors as above, but messages do not name the file. */
flp_status flp_model_config_parse(const char *text, size_t bytes, flp_model_config *config);

/* The part of a problem's pattern after operator and dtype, with rows as a string: "linear_logp:%s" FLP_MODEL_HEAD("4096"). Its %s is the softcap; any %s
 * after it is the dtype again. */
#define FLP_MODEL_HEAD(rows) ":n" rows ":d%" PRId64 ":v%" PRId64 "%s"

/* Fills each pattern with dtype and the model's sizes and softcap, and appends the canonical strings to the argz *problems. patterns: NULL ends them.
 * FLP_OUT_OF_MEMORY. */
flp_status flp_model_config_append_problems(const flp_model_config *config, flp_dtype dtype, const char *const *patterns, char **problems, size_t *bytes);

/* The head of a model on disk: config.json beside model.safetensors, or beside shards and their index. */
typedef struct {
    flp_model_config config;
    char *weight, *bias; /* as flp_tensor_file_open takes them; bias: NULL where the head has none */
} flp_model_head;

/* Finds the head of a model. path: its config.json, or the folder of it, in which the tensors lie, too. The weight is the head's own tensor or the embedding, as
 * config.json says; where it does not say, the head's own if there is one. Reads no tensor's data. The caller frees head with flp_model_head_free, also after a
 * failure. FLP_IO_FAILED; FLP_BAD_ARGUMENT: names the file and what was wanted of it. */
flp_status flp_model_head_find(const char *path, flp_model_head *head);
void flp_model_head_free(flp_model_head *head);

/* Whether a file is one of those of the model at path: its config.json, the index of its tensors, or one that holds some. */
int flp_model_head_reads(const char *path, const struct stat *file);
#endif
