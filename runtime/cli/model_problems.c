/* Writes the problems of a model's head. */
#include "cli/model_problems.h"
#include <argz.h>
#include <stdio.h>
#include "base/dtype.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"

flp_status flp_model_problems_append(const flp_model_config *config, flp_dtype dtype, const char *const *patterns, char **problems, size_t *bytes)
{
    char softcap[FLP_NUMBER_BYTES + 16] = "", number[FLP_NUMBER_BYTES];
    const char *name = flp_dtype_name(dtype);
    if (config->softcap > 0) {
        flp_number_format(config->softcap, number);
        snprintf(softcap, sizeof softcap, ":softcap%s", number);
    }
    for (int i = 0; patterns[i] != NULL; i++) {
        flp_text text = { 0 };
        flp_text_append(&text, patterns[i], name, config->hidden, config->vocab, softcap, name, name);
        const int failed = text.failed || argz_add(problems, bytes, text.data) != 0;
        flp_text_free(&text);
        if (failed)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "the problems of a model");
    }
    return FLP_OK;
}
