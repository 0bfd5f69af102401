/* The embedded Lua generator: problems to variants, variants to source and manifest. */
#ifndef FLP_JIT_GENERATOR_H
#define FLP_JIT_GENERATOR_H
#include "jit/manifest.h"
#include "jit/role.h"
#include <stddef.h>

typedef struct flp_generator flp_generator; /* one Lua state; calls are serialised inside */

/* Reads the embedded gen/ and templates/, or those below $FUSEDLOGP_SOURCE_DIR. */
flp_status flp_generator_create(flp_generator **generator);
void flp_generator_destroy(flp_generator *generator);

typedef struct {
    char path[16];    /* "sm_90a" or "portable" */
    char reason[512]; /* why no faster path; "" for the first choice */
    int tensor_maps;  /* 1: a kernel takes tensor maps, which the driver encodes */
    int count;
    flp_role role[FLP_ROLES]; /* of each kernel, none twice */
    char variant[FLP_ROLES][FLP_VARIANT_BYTES];
} flp_selection;

/* problem: canonical string; backend: "auto", "sm_90a" or "portable".
 * FLP_NO_VARIANT: for every path the reason. FLP_INTERNAL: what it returned, as a role that is none of flp_role's. */
flp_status flp_generator_select(flp_generator *generator, const char *problem, int compute_capability, const char *backend, flp_selection *selection);

typedef struct {
    char *source;
    size_t source_bytes; /* malloc'ed, 0-terminated */
    char *manifest_text; /* malloc'ed */
    flp_manifest manifest;
} flp_emitted;

/* FLP_NO_VARIANT: the spec is illegal, with the reason. FLP_BAD_ARGUMENT: not a variant string. */
flp_status flp_generator_emit(flp_generator *generator, const char *variant, flp_emitted *emitted);
void flp_emitted_free(flp_emitted *emitted);

/* The useful variants of an architecture: malloc'ed, one a line. dtypes, hidden_sizes: comma-separated, NULL: all. */
flp_status flp_generator_list(flp_generator *generator, const char *arch, const char *dtypes, const char *hidden_sizes, char **variants);
/* Makes a token loss known by a name, for the generator's life. FLP_BAD_ARGUMENT: what is wrong with it, or that the name stands for another. */
flp_status flp_generator_define_token_loss(flp_generator *generator, const char *name, const char *definition);
/* The program of a token loss, malloc'ed: see cpu/token_program.h. FLP_BAD_ARGUMENT: there is none of that name. */
flp_status flp_generator_token_loss(flp_generator *generator, const char *name, char **program);
/* Architectures it knows, separated by spaces; lives as long as the generator. */
flp_status flp_generator_architectures(flp_generator *generator, const char **names);
/* 10 x major + minor of the GPUs of an architecture. FLP_BAD_ARGUMENT: it is none of those. */
flp_status flp_generator_capability(flp_generator *generator, const char *arch, int *compute_capability);
/* SHA-256 (hex) over gen/ and templates/. */
const char *flp_generator_digest(const flp_generator *generator);
#endif
