/* Where the head of a model in the Hugging Face layout lies: config.json beside model.safetensors, or beside shards and their index. */
#ifndef FLP_CLI_MODEL_HEAD_H
#define FLP_CLI_MODEL_HEAD_H
#include "cli/model_config.h"

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
