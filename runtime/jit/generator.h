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

enum { FLP_TUNING_BYTES = 513 };

typedef struct {
    char path[16];    /* "sm_90a" or "portable" */
    char arch[32];    /* of its kernels */
    char reason[512]; /* why no faster path; "" for the first choice */
    int tensor_maps;  /* 1: a kernel takes tensor maps, which the driver encodes */
    int count;
    flp_role role[FLP_ROLES]; /* of each kernel, none twice */
    char variant[FLP_ROLES][FLP_VARIANT_BYTES];
    int32_t group[FLP_ROLES]; /* of each kernel: groups of rows that a launch walks together; 0: the launch decides */
} flp_selection;

/* What kernels are wanted for. */
typedef struct {
    const char *problem; /* canonical string */
    int compute_capability;
    const char *backend; /* "auto", "sm_90a" or "portable"; "ptx": portable kernels that a newer GPU's driver compiles */
    const char *tuning;  /* gen/tuning.lua; "": the generator's own choice */
} flp_wanted_kernels;

/* FLP_NO_VARIANT: for every path the reason, or what is wrong with the tuning. FLP_INTERNAL: what it returned, as a role that is none of flp_role's. */
flp_status flp_generator_select(flp_generator *generator, const flp_wanted_kernels *wanted, flp_selection *selection);

/* What a record of a tuning for what is wanted must agree with; malloc'ed strings. */
typedef struct {
    char *arch, *numerics;
    char *templates; /* those that the variants reach, without comments and layout */
    char *selection; /* the variants that there are without the tuning, a line each */
} flp_generator_identity;

/* Errors as flp_generator_select. */
flp_status flp_generator_identify(flp_generator *generator, const flp_wanted_kernels *wanted, flp_generator_identity *identity);
void flp_generator_identity_free(flp_generator_identity *identity);

/* What the model of gen/model.lua asks of a device. */
typedef struct {
    int multiprocessors;
    double clock_hz, memory; /* bytes a second */
    int64_t l2_bytes;
    const char *calibration; /* gen/calibration.lua; "": the model's own coefficients */
} flp_model_facts;

/* Tunings of what is wanted: malloc'ed lines "picoseconds role tuning", the time predicted, the wanted one first (its role "-"), then, where that is the
 * generator's own, what flp_generator_advise has (its role too), then those that change one role. numerics: 1: those that change a row's bits, too. limit:
 * of a role. Errors as flp_generator_select. */
flp_status flp_generator_candidates(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int numerics, int limit,
                                    char **lines);

/* What may be tried where a row's bits may change. Of wanted, problem is a line for each of several numbers of rows, and the tuning does not count. malloc'ed
 * lines "arithmetic ROLE TUNING", what decides on it, "-" for the generator's own, which is the first of its role, and behind each of them its lines
 * "try PROBLEM TUNING", problems numbered from 0; "" where there is no choice. limit: of a role's tunings for a problem. Errors as flp_generator_select. */
flp_status flp_generator_arithmetics(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int limit, char **lines);

/* A tuning that was measured at one shape, for another. */
typedef struct {
    flp_wanted_kernels wanted; /* with the tuning */
    const char *near_problem;  /* what it was measured for, of the same kind */
    double near_ratio;         /* of its time there to that without a tuning */
    double ratio;              /* the answer: the same here, by the model times what it was wrong by there */
} flp_transfer;

/* FLP_NO_VARIANT: one of the problems has no kernels, or not with this tuning. */
flp_status flp_generator_transfer(flp_generator *generator, flp_transfer *transfer, const flp_model_facts *facts);

/* The tuning that serves a device where no record says more (gen/advice.lua), of the same bits: malloc'ed; "": the generator's own choice. Of wanted, the
 * tuning does not count. Errors as flp_generator_select. */
flp_status flp_generator_advise(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, char **tuning);

/* What a calibration must agree with to be read: malloc'ed. */
flp_status flp_generator_calibration_identity(flp_generator *generator, char **text);

/* Fits the model to samples, lines "picoseconds backend problem tuning": four malloc'ed lines, the calibration, how many samples there were, and by how many
 * millionths the model was wrong before and is now. What of the samples has no kernels is left out. FLP_NO_VARIANT: all of them. */
flp_status flp_generator_calibrate(flp_generator *generator, const char *samples, int compute_capability, const flp_model_facts *facts, char **lines);

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
/* What such a list leaves out: malloc'ed, one thing a line. */
flp_status flp_generator_left_out(flp_generator *generator, const char *hidden_sizes, char **lines);
/* Makes a token loss known by a name, for the generator's life. FLP_BAD_ARGUMENT: what is wrong with it, or that the name stands for another. */
flp_status flp_generator_define_token_loss(flp_generator *generator, const char *name, const char *definition);
/* The program of a token loss, malloc'ed: see cpu/token_program.h. FLP_BAD_ARGUMENT: there is none of that name. */
flp_status flp_generator_token_loss(flp_generator *generator, const char *name, char **program);
/* Architectures it knows, separated by spaces; lives as long as the generator. */
flp_status flp_generator_architectures(flp_generator *generator, const char **names);
/* The architecture whose portable kernels newer GPUs run from PTX: malloc'ed. */
flp_status flp_generator_ptx_architecture(flp_generator *generator, char **name);
/* 10 x major + minor of the GPUs of an architecture. FLP_BAD_ARGUMENT: it is none of those. */
flp_status flp_generator_capability(flp_generator *generator, const char *arch, int *compute_capability);
/* SHA-256 (hex) over gen/ and templates/. */
const char *flp_generator_digest(const flp_generator *generator);
#endif
