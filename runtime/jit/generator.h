/* The embedded Lua generator: selects the variants for a problem, and emits the source and manifest of a variant. */
#ifndef FLP_JIT_GENERATOR_H
#define FLP_JIT_GENERATOR_H
#include "jit/manifest.h"
#include "jit/role.h"
#include <stddef.h>

typedef struct flp_generator flp_generator; /* one Lua state; calls from several threads are serialised */

/* Creates a generator from the embedded files of gen/ and templates/, or from those below $FUSEDLOGP_SOURCE_DIR where that is set and not empty. FLP_IO_FAILED
 * names the variable. */
flp_status flp_generator_create(flp_generator **generator);
void flp_generator_destroy(flp_generator *generator);

enum { FLP_TUNING_BYTES = 513 };

typedef struct {
    char path[16];            /* "sm_90a" or "portable" */
    char arch[32];            /* architecture of the kernels */
    char reason[512];         /* why no faster path was chosen; "" for the first choice */
    int tensor_maps;          /* 1: a kernel takes tensor maps, which the driver has to encode */
    int count;                /* number of kernels, and of elements in the arrays below */
    flp_role role[FLP_ROLES]; /* each role at most once */
    char variant[FLP_ROLES][FLP_VARIANT_BYTES];
    int32_t group[FLP_ROLES]; /* how many row groups a launch walks through the columns together; 0: the launch decides */
} flp_selection;

/* What kernels are requested for. */
typedef struct {
    const char *problem; /* canonical string */
    int compute_capability;
    const char *backend; /* "auto", "sm_90a" or "portable"; "ptx": portable kernels as PTX, which the driver compiles for a newer GPU */
    const char *tuning;  /* text of a tuning (gen/tuning.lua); "": the generator's own choice */
} flp_wanted_kernels;

/* Selects the kernels of a problem. FLP_NO_VARIANT: no path has kernels for it (the message gives each path's reason), or the tuning is wrong.
 * FLP_INTERNAL: the generator returned something that C does not know, such as a role that is not in flp_role. */
flp_status flp_generator_select(flp_generator *generator, const flp_wanted_kernels *wanted, flp_selection *selection);

/* What a tuning record must agree with to serve a request; malloc'ed strings. */
typedef struct {
    char *arch, *numerics;
    char *templates; /* text of the templates that the variants use, without comments and layout */
    char *selection; /* the variants that are selected without the tuning, one a line */
} flp_generator_identity;

/* Errors as flp_generator_select. */
flp_status flp_generator_identify(flp_generator *generator, const flp_wanted_kernels *wanted, flp_generator_identity *identity);
void flp_generator_identity_free(flp_generator_identity *identity);

/* The facts of a device that the performance model takes (gen/model.lua); numbers are 0 where they are not known. */
typedef struct {
    int multiprocessors;
    double clock_hz, memory; /* memory: bandwidth in bytes a second */
    int64_t l2_bytes;
    const char *calibration; /* text of a calibration (gen/calibration.lua); "": the model's own coefficients */
} flp_model_facts;

/* Candidate tunings for a problem: malloc'ed lines "picoseconds role tuning", with the time that the model predicts. First comes wanted->tuning, with the role
 * "-"; where that is "", then the tuning of flp_generator_advise, if any, with the role "-" too; then tunings that change the kernel of one role.
 * numerics 1: also tunings that change a row's bits. limit: the most tunings of a role. Errors as flp_generator_select. */
flp_status flp_generator_candidates(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int numerics, int limit,
                                    char **lines);

/* The arithmetics to be tried where a tuning may change a row's bits, for problems that differ in their number of rows: wanted->problem has a line for each
 * problem, and wanted->tuning is ignored. malloc'ed lines: "arithmetic ROLE TUNING", with the items of a tuning that decide on the bits, or "-" for the
 * generator's own arithmetic, which is the first of its role. Each such line is followed by its lines "try PROBLEM TUNING", problems numbered from 0. "" where
 * there is no choice. limit: the most tunings of a role for a problem. Errors as flp_generator_select. */
flp_status flp_generator_arithmetics(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int limit, char **lines);

/* Predicts what a tuning that was measured at one shape gains at another. */
typedef struct {
    flp_wanted_kernels wanted; /* the other shape, with the tuning */
    const char *near_problem;  /* the problem that it was measured at, of the same kind */
    double near_ratio;         /* measured at near_problem: the time with the tuning divided by the time without one */
    double ratio;              /* the result, the ratio predicted for `wanted`: the model's ratio there, times near_ratio / the model's ratio at near_problem */
} flp_transfer;

/* Computes transfer->ratio. FLP_NO_VARIANT: one of the problems has no kernels, or none with this tuning. */
flp_status flp_generator_transfer(flp_generator *generator, flp_transfer *transfer, const flp_model_facts *facts);

/* Advice: the tuning that a device uses where no record has a better one (gen/advice.lua), as it depends on the device's memory bandwidth. It does not change a
 * row's bits. malloc'ed; "": the generator's own choice. wanted->tuning is ignored. Errors as flp_generator_select. */
flp_status flp_generator_advise(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, char **tuning);

/* The identity that a stored calibration must agree with to be used: malloc'ed. */
flp_status flp_generator_calibration_identity(flp_generator *generator, char **text);

/* Fits the model to measured samples, lines "picoseconds backend problem tuning". The result is four malloc'ed lines: the calibration, the number of samples
 * used, and the model's error before and after, in millionths. Samples whose kernels do not exist are left out. FLP_NO_VARIANT: no sample is left. */
flp_status flp_generator_calibrate(flp_generator *generator, const char *samples, int compute_capability, const flp_model_facts *facts, char **lines);

typedef struct {
    char *source;
    size_t source_bytes; /* malloc'ed, 0-terminated */
    char *manifest_text; /* malloc'ed */
    flp_manifest manifest;
} flp_emitted;

/* Emits the source and manifest of a variant. FLP_NO_VARIANT: the variant is not legal, and the message has the reason. FLP_BAD_ARGUMENT: not a variant
 * string. */
flp_status flp_generator_emit(flp_generator *generator, const char *variant, flp_emitted *emitted);
void flp_emitted_free(flp_emitted *emitted);

/* The variants of an architecture that a prebuild compiles: malloc'ed, one a line. dtypes, hidden_sizes: comma-separated; NULL: all. */
flp_status flp_generator_list(flp_generator *generator, const char *arch, const char *dtypes, const char *hidden_sizes, char **variants);
/* What the list of flp_generator_list leaves out: malloc'ed, one item a line. */
flp_status flp_generator_left_out(flp_generator *generator, const char *hidden_sizes, char **lines);
/* Defines a token loss by a name, for the life of the generator. FLP_BAD_ARGUMENT: the definition is wrong, or the name has another definition. */
flp_status flp_generator_define_token_loss(flp_generator *generator, const char *name, const char *definition);
/* The program of a token loss (cpu/token_program.h): malloc'ed. FLP_BAD_ARGUMENT: there is no token loss of that name. */
flp_status flp_generator_token_loss(flp_generator *generator, const char *name, char **program);
/* The architectures that the generator knows, separated by spaces; the string lives as long as the generator. */
flp_status flp_generator_architectures(flp_generator *generator, const char **names);
/* The architecture whose portable kernels newer GPUs run from PTX: malloc'ed. */
flp_status flp_generator_ptx_architecture(flp_generator *generator, char **name);
/* 10 x major + minor of the compute capability of an architecture's GPUs. FLP_BAD_ARGUMENT: the generator does not know the architecture. */
flp_status flp_generator_capability(flp_generator *generator, const char *arch, int *compute_capability);
/* SHA-256 (hex) over gen/ and templates/. */
const char *flp_generator_digest(const flp_generator *generator);
#endif
