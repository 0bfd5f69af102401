/* fusedlogp-gen: prebuilds, emits and lists kernels, and looks after the cache. */
#ifndef FLP_CLI_GEN_H
#define FLP_CLI_GEN_H
#include <jansson.h>
#include <stddef.h>
#include "base/text.h"
#include "core/context.h"

typedef enum { FLP_GEN_PREBUILD, FLP_GEN_EMIT, FLP_GEN_LIST, FLP_GEN_CHECK, FLP_GEN_CACHE_LIST, FLP_GEN_CACHE_CLEAR } flp_gen_action;

typedef struct {
    flp_gen_action action;
    char *archs;
    size_t archs_bytes;          /* argz */
    char *dtypes, *hidden_sizes; /* comma-separated, or NULL: all */
    char *problems;
    size_t problems_bytes; /* argz: canonical strings; NULL, and models NULL: the usual problems of dtypes and hidden_sizes */
    int any_rows;          /* 1: also the kernels of calls with fewer rows than a problem's */
    int numerics;          /* 1: also the tunings that change a row's bits */
    int ptx;               /* 1: also the kernels of the architecture whose PTX newer GPUs run */
    char *models;
    size_t models_bytes; /* argz: files or folders */
    char *model_problems;
    size_t model_problems_bytes; /* argz, filled by flp_gen_models_read; each as with any_rows */
    char *token_losses;
    size_t token_losses_bytes; /* argz: files */
    const char *out, *emit;    /* directories or NULL */
    int jobs;                  /* 0: one a core */
    int json, quiet;
} flp_gen_options;

typedef struct {
    char **name;
    size_t count;
    char *lines;    /* the memory that the names lie in */
    char *left_out; /* what the usual variants leave out, a line each; NULL where problems or models were named */
} flp_gen_variants;

/* The options of a context that looks for or stores kernels: with options->out, only in that directory, which others may read; else in the usual cache. The
 * records are this user's and the system's. */
flp_context_options flp_gen_context_options(const flp_gen_options *options);

/* Collects the variants of options->archs (NULL: of all known architectures), in the generator's order: those that the named problems take or, where none is
 * named, the usual ones. Before that it defines options->token_losses in the context, each under its file's name; their kernels then belong to the usual
 * ones.
 * FLP_BAD_ARGUMENT: what is wrong with a token loss, or an architecture, dtype, hidden size or problem that the generator does not take. FLP_NO_VARIANT:
 * there are none. FLP_OUT_OF_MEMORY. */
flp_status flp_gen_variants_collect(const flp_gen_options *options, flp_context *context, flp_gen_variants *variants);
void flp_gen_variants_free(flp_gen_variants *variants);
/* Prints on stderr what the list leaves out, and the problems of models, unless the options ask for JSON or quiet. The second returns what the list leaves
 * out as a JSON array of lines. */
void flp_gen_variants_tell(const flp_gen_options *options, const flp_gen_variants *variants);
json_t *flp_gen_variants_left_out(const flp_gen_variants *variants);

/* Fills in options->model_problems from options->models. Returns an exit code, after saying why: FLP_EXIT_BAD_INPUT where a model's configuration is not
 * acceptable, FLP_EXIT_USAGE where --dtype is wrong, FLP_EXIT_FAILED. */
int flp_gen_models_read(flp_gen_options *options);
/* Checks options->token_losses in a context of its own. Returns an exit code, after saying why: FLP_EXIT_BAD_INPUT where one is not acceptable,
 * FLP_EXIT_FAILED. */
int flp_gen_token_losses_check(const flp_gen_options *options);
/* 1: problems were named, directly or by models. */
static inline int flp_gen_has_problems(const flp_gen_options *options)
{
    return options->problems != NULL || options->models != NULL;
}

/* Appends the variants of the options' problems on GPUs of arch, one per line; a variant may come several times. */
flp_status flp_gen_problems_append(const flp_gen_options *options, flp_context *context, const char *arch, flp_text *lines);

/* The actions; each returns an exit code. */
int flp_gen_prebuild_run(const flp_gen_options *options);
int flp_gen_emit_run(const flp_gen_options *options);
int flp_gen_list_run(const flp_gen_options *options);
int flp_gen_check_run(const flp_gen_options *options);
int flp_gen_cache_list(const flp_gen_options *options);
int flp_gen_cache_clear(const flp_gen_options *options);
#endif
