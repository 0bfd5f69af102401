/* fusedlogp-gen --model: makes the problems that scoring and training a model run. */
#include <argz.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "cli/console.h"
#include "cli/gen.h"
#include "cli/model_config.h"

/* Patterns of the problems, which --help and the manual page list as well. They are filled with the dtype, D, V and softcap, and with the dtypes of the
 * gradients. All numbers of rows up to 65536 are meant, a bucket at a time: kernels differ up to 64, 128 and 256 rows and above, and how a step uses its memory
 * may change with each power of two. */
#define HEAD "%s" FLP_MODEL_HEAD("65536")
static const char *const derived[] = {
    "linear_logp:" HEAD,
    "linear_logp:" HEAD ":argmax",
    "linear_logp:" HEAD ":entropy",
    "linear_logp_backward:" HEAD ":gh_%s:gw_%s",
    "linear_logp_backward:" HEAD ":gh_%s:gw_%s:g_entropy",
    "linear_logp_backward:" HEAD ":gh_%s:gw_f32:acc_weight",
    "linear_cross_entropy:" HEAD,
    "linear_cross_entropy:" HEAD ":gh_%s:gw_%s",
    "linear_cross_entropy:" HEAD ":gh_%s:gw_f32:acc_weight",
    "scale:%s:n65536:d%" PRId64, /* PyTorch's backward of linear_cross_entropy */
    NULL,
};

static int refuse_dtype(const char *name)
{
    flp_console_error("--dtype: got \"%s\", wanted " FLP_DTYPE_FLOATS, name);
    return FLP_EXIT_USAGE;
}

/* Appends the problems of a model in the dtypes that --dtype names, else in the model's own. Returns an exit code rather than a status, because a fault of
 * the file and a fault of the command line have different ones. */
static int append_model(const char *path, flp_gen_options *options)
{
    flp_model_config config;
    flp_status status = flp_model_config_read(path, &config);
    if (status == FLP_OK && config.dtype == FLP_NONE && options->dtypes == NULL)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: dtype: the file has none, wanted one there or --dtype", path);
    if (status != FLP_OK)
        return flp_console_fail(status);
    const char *at = options->dtypes ? options->dtypes : flp_dtype_name(config.dtype);
    for (int more = 1; status == FLP_OK && more;) {
        const size_t length = strcspn(at, ",");
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const flp_dtype dtype = flp_dtype_parse(name);
        if (dtype != FLP_BF16 && dtype != FLP_F16 && dtype != FLP_F32)
            return refuse_dtype(name);
        status = flp_model_config_append_problems(&config, dtype, derived, &options->model_problems, &options->model_problems_bytes);
        more = at[length] != 0;
        at += length + 1;
    }
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

int flp_gen_models_read(flp_gen_options *options)
{
    const char *path = NULL;
    int code = FLP_EXIT_OK;
    while (code == FLP_EXIT_OK && (path = argz_next(options->models, options->models_bytes, path)) != NULL)
        code = append_model(path, options);
    return code;
}
