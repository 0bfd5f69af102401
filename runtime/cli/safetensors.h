/* What the programs need of a safetensors file beside its tensors. */
#ifndef FLP_CLI_SAFETENSORS_H
#define FLP_CLI_SAFETENSORS_H
#include <jansson.h>
#include "fusedlogp.h"

/* The header as an object from names to entries, "__metadata__" among them, which the caller releases; the data begin at data_at. bytes[count] is the
 * whole file. FLP_BAD_ARGUMENT: not such a file; names no file. */
flp_status flp_safetensors_header(const void *bytes, size_t count, json_t **header, size_t *data_at);
#endif
