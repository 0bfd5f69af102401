/* fusedlogp: fused linear log-probabilities without materialised logits.
 *
 * The library never prints, never exits, and keeps no pointer that a call was given. Every call returns a status. After a failure
 * flp_error_message() says which argument was wrong, what it was and what was wanted. All functions may be called from any thread. One plan may
 * be executed from several threads and streams at once if each call brings its own workspace. Texts do not depend on the locale: numbers
 * always have a decimal point. */
#ifndef FUSEDLOGP_H
#define FUSEDLOGP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLP_VERSION_MAJOR 0
#define FLP_VERSION_MINOR 1
#define FLP_VERSION_PATCH 0

#ifndef FLP_API
#if defined(__GNUC__)
#define FLP_API __attribute__((visibility("default")))
#else
#define FLP_API
#endif
#endif

/* How structs grow. A later version may append fields to a struct, and a program that was compiled with one version's header runs with
 * another version's library, newer or older. Therefore each function that takes a struct is inline here (FLP_INLINE). It calls the exported
 * function of the same name with the suffix _sized, whose last argument tells the library how large this header's structs are. A field that
 * the program does not know is read as 0, which means the behaviour from before the field existed. A field that the library does not know is
 * FLP_BAD_ARGUMENT unless it is 0.
 * Programs that do not use this header (dlsym, ctypes) call the _sized functions, with flp_sizes filled in from their own declarations. */
#define FLP_INLINE static inline

/* The size in bytes of each struct in the caller's header; flp_header_sizes() returns this header's. A struct that is the first field of another
 * one has its own entry, because both may grow. */
typedef struct {
    uint32_t bytes; /* of flp_sizes itself */
    uint32_t context_options, counters, device_facts;
    uint32_t linear_logp_problem, linear_logp_args, linear_logp_backward_problem, linear_logp_backward_args;
    uint32_t linear_cross_entropy_problem, linear_cross_entropy_args, token_input, token_parameter;
    uint32_t weighted_sum_problem, weighted_sum_args, weighted_sum_backward_problem, weighted_sum_backward_args;
    uint32_t logits_logp_problem, logits_logp_args, logits_logp_backward_problem, logits_logp_backward_args;
    uint32_t linear_logp_merge_args;
    uint32_t scale_problem, scale_args;
} flp_sizes;

/* ---- status ------------------------------------------------------------------------------------------------- */

#define FLP_STATUS_LIST(X)                                                         \
    X(OK, 0, "success")                                                            \
    X(BAD_ARGUMENT, -1, "an argument is not acceptable")                           \
    X(NO_VARIANT, -2, "no kernel fits this problem on this device")                \
    X(NO_DRIVER, -3, "no CUDA driver or no CUDA device")                           \
    X(NO_NVRTC, -4, "a kernel has to be compiled and NVRTC was not found")         \
    X(COMPILE_FAILED, -5, "NVRTC rejected an emitted kernel")                      \
    X(CUDA_FAILED, -6, "a CUDA driver call failed")                                \
    X(OUT_OF_MEMORY, -7, "not enough host or device memory")                       \
    X(BAD_TARGET, -8, "a target lies outside the vocabulary")                      \
    X(CAPTURING, -9, "a stream is being captured and the call cannot be recorded") \
    X(WRONG_CONTEXT, -10, "no CUDA context is current, or not the plan's")         \
    X(FORKED, -11, "the process forked after the library used CUDA")               \
    X(IO_FAILED, -12, "a file could not be read or written")                       \
    X(INTERNAL, -13, "the library is inconsistent with itself")                    \
    X(NCCL_FAILED, -14, "NCCL is missing, or a call of it failed")

typedef enum {
#define FLP_STATUS_ENUM(name, value, text) FLP_##name = value,
    FLP_STATUS_LIST(FLP_STATUS_ENUM)
#undef FLP_STATUS_ENUM
} flp_status;

/* The text of a status; "unknown status" for any other number. Static. */
FLP_API const char *flp_status_text(flp_status status);

/* The message of this thread's most recent failed call; "" if none has failed. Calls that succeed do not change it. Valid until this thread's
 * next call. */
FLP_API const char *flp_error_message(void);

/* "MAJOR.MINOR.PATCH" of the library that runs (the macros are those of the header). Static. */
FLP_API const char *flp_version(void);

/* ---- log ---------------------------------------------------------------------------------------------------- */

typedef enum { FLP_LOG_DEBUG, FLP_LOG_INFO, FLP_LOG_WARNING } flp_log_level;

/* message: one line without a newline, valid during the callback only. The callback runs on any thread, and may call the library, which holds
 * no lock meanwhile. What such calls log is passed on when the callback has returned. */
typedef void (*flp_log_callback)(void *user_data, flp_log_level level, const char *message);

/* Sets where the library's log goes, for the whole process. NULL, the default: nowhere. Other threads may still run the previous callback, with its
 * user_data, when this function returns. */
FLP_API void flp_log_set_callback(flp_log_callback callback, void *user_data);

/* ---- context ------------------------------------------------------------------------------------------------ */

typedef struct flp_context flp_context;

typedef struct {
    const char *cache_directory;            /* kernels on disk; NULL: $FUSEDLOGP_CACHE_DIR, else $XDG_CACHE_HOME/fusedlogp,
                                    else ~/.cache/fusedlogp; "": none, memory only */
    const char *system_cache_directories;   /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_CACHE, else what was configured at build time;
                                    "": none. A directory is used only if root or this user owns it and nobody else may write to it;
                                    any other logs one warning */
    int64_t cache_bytes;                    /* limit of cache_directory's size: the least recently used files are removed first; 0: 1 GiB */
    int cpu_threads;                        /* threads of the CPU path, 0 .. 1024; 0: one for each available core */
    unsigned flags;                         /* FLP_CONTEXT_... */
    const char *records_directory;          /* records of tunings; NULL: $FUSEDLOGP_RECORDS_DIR, else $XDG_DATA_HOME/fusedlogp/records,
                                    else ~/.local/share/fusedlogp/records; "": none. If there is no record for a plan on a GPU, the plan's
                                    problem is appended to a list there, which fusedlogp tune --untuned works through */
    const char *system_records_directories; /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_RECORDS, else those that were installed; "": none */
    double tune_seconds;                    /* with FLP_CONTEXT_TUNE: seconds for each problem; 0: $FUSEDLOGP_TUNE_SECONDS, else 2 */
} flp_context_options;

enum {
    FLP_CONTEXT_NO_COMPILE = 1u,   /* never call NVRTC: a kernel that is in no cache is FLP_NO_NVRTC */
    FLP_CONTEXT_NO_GPU = 2u,       /* plan for the CPU even if there is a GPU */
    FLP_CONTEXT_SHARED_CACHE = 4u, /* files in cache_directory get the permissions that the umask allows, so that other users can use it as a system
                                    directory; without the flag only this user can read them */
    FLP_CONTEXT_REPLAY = 8u,       /* a plan on a GPU without an exact record of its tuning is FLP_NO_VARIANT, so that all processes with the same
                                    records run the same kernels */
    FLP_CONTEXT_TUNED_BITS = 16u,  /* also follow records that change a row's bits, which fusedlogp tune --numerics writes. Such a record holds for
                                    every number of rows; flp_plan_numerics shows its effect. Without the flag bits are the library's own */
    FLP_CONTEXT_TUNE = 32u         /* before a new plan on a GPU is made without an exact record, tune its problem for tune_seconds, write the record,
                                    and use it. Not done while a stream is captured, or without a records directory. Tuning allocates and frees
                                    device memory of its own, for which the driver may wait for the device. Excludes FLP_CONTEXT_REPLAY and
                                    FLP_CONTEXT_NO_COMPILE */
};

/* options: NULL or zeroed for the defaults. Destroy the context with flp_context_destroy, after its plans. libcuda and NVRTC are not loaded
 * until a plan needs them. A child of a fork may use the CPU path, and a GPU if the parent did not (else FLP_FORKED), unless another thread was in a call of
 * the library at the fork: its locks then stay taken in the child.
 * FLP_BAD_ARGUMENT: an unknown flag, or two that exclude each other; a negative number. FLP_OUT_OF_MEMORY. */
FLP_INLINE flp_status flp_context_create(const flp_context_options *options, flp_context **context);

/* NULL is allowed. Destroy the context's plans first; no stream may still run its kernels. */
FLP_API void flp_context_destroy(flp_context *context);

/* Frees the device memory that the context keeps for calls without a workspace: one buffer for each of the first four streams of a CUDA context,
 * four more that all further streams share, and one for each stream that was prepared or captured. Later calls allocate again. With of_graphs it
 * also frees the memory of captured calls: their graphs must not be replayed any more. It waits for every CUDA context that has such memory.
 * FLP_BAD_ARGUMENT: context is NULL. FLP_CAPTURING: a stream is being captured, and waiting would end the capture. FLP_CUDA_FAILED. After a failure
 * the memory that was not freed is still in use. */
FLP_API flp_status flp_context_release_scratch(flp_context *context, int of_graphs);

typedef struct {
    int64_t compiled;    /* kernels that NVRTC compiled */
    int64_t disk_hits;   /* kernels found in a cache directory */
    int64_t disk_misses; /* ... and not found in any */
    int64_t loaded;      /* modules loaded into a CUDA context */
    int64_t plans;       /* plans created, dispatch included */
} flp_counters;

/* FLP_BAD_ARGUMENT: one of the two is NULL. */
FLP_INLINE flp_status flp_context_counters(const flp_context *context, flp_counters *counters);

/* ---- operators ---------------------------------------------------------------------------------------------- */

/* Each operator X has the same types and functions. The comments at linear_logp hold for every operator.
 *     flp_X_problem         what to compute, without data; zero it, then set the fields that differ
 *     flp_X_args            the data of one call; zero it, then set the fields
 *     flp_X_problem_format  writes a problem's canonical string; flp_X_problem_parse reads one
 *     flp_X_plan_create     chooses a path and obtains its kernels
 *     flp_X_execute         runs a plan
 *     flp_X                 does both in one call
 *     flp_X_prepare         makes in advance what later calls of flp_X need */

typedef enum { FLP_NONE, FLP_BF16, FLP_F16, FLP_F32, FLP_I32, FLP_I64 } flp_dtype;
typedef enum { FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE, FLP_BACKEND_CPU } flp_backend;

/* "auto", "sm_90a", "portable" or "cpu", as in canonical strings; "unknown backend" for any other number. Static. */
FLP_API const char *flp_backend_name(flp_backend backend);

typedef enum {
    FLP_CHECK_TARGETS = 1u, /* check every target first: a bad one is FLP_BAD_TARGET. Waits for the stream */
    FLP_SCATTER = 2u,       /* logits_logp with a row_index: the result of row i is stored at [row_index[i]], not at [i] */
    FLP_IGNORE_INDEX = 4u   /* ignore rows whose target is args.ignore_index. Without it no row is ignored, and ignore_index must be 0 */
} flp_execute_flags;

/* ---- plan --------------------------------------------------------------------------------------------------- */

typedef struct flp_plan flp_plan; /* of one operator: giving it to another's flp_X_execute is FLP_BAD_ARGUMENT */

/* NULL is allowed. No execution of the plan may still run, and CUDA graphs that captured one must not be replayed afterwards: the plan's counters of
 * bad targets are freed. */
FLP_API void flp_plan_destroy(flp_plan *plan);

/* The bytes of workspace that executing this many rows takes, 0 .. problem.rows; -1 if rows is out of range or plan is NULL. */
FLP_API int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows);

/* The numeric identity: two plans with equal strings compute the same bits for a row. Lives as long as the plan; "" for NULL. */
FLP_API const char *flp_plan_numerics(const flp_plan *plan);

/* The path that was chosen: FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU; FLP_BACKEND_AUTO for NULL. */
FLP_API flp_backend flp_plan_backend(const flp_plan *plan);

/* How a plan's tuning was chosen. EXACT: by a record of this problem on this machine. NEARBY: by a record of this problem on a similar machine. MODEL: by the
 * performance model, from the record of a similar shape, or without one from the device's memory bandwidth. NOT: the default is used. */
typedef enum { FLP_TUNED_NOT, FLP_TUNED_EXACT, FLP_TUNED_NEARBY, FLP_TUNED_MODEL } flp_tuned_by;
FLP_API flp_tuned_by flp_plan_tuned_by(const flp_plan *plan); /* FLP_TUNED_NOT for NULL */

/* What the tuning changes in the default kernels, as `fusedlogp tune` writes it: "tile.cluster=1,tile.group=8"; "": nothing. Lives as long as the plan;
 * "" for NULL. */
FLP_API const char *flp_plan_tuning(const flp_plan *plan);

/* Why this path was chosen, and why no faster one: one line without a newline, never empty. Lives as long as the plan; "" for NULL. */
FLP_API const char *flp_plan_reason(const flp_plan *plan);

/* A description for people, not for programs: problem, path and reason, variants, launches, workspace, as lines "key: value". Lives as long as the plan;
 * "" for NULL. */
FLP_API const char *flp_plan_describe(const flp_plan *plan);

/* The number of out-of-range targets in executions of this plan since this function was last called, and the first such row; first_row is -1 if count is 0.
 * Waits for the device. Either pointer may be NULL. */
FLP_API flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row);

/* For a plan with grad_filter_eps: how many blocks of derivatives its executions had since this function was last called, and how many of them the products
 * skipped; 0 and 0 on paths without a filter. Waits for the device. Either pointer may be NULL. */
FLP_API flp_status flp_plan_filter_statistics(flp_plan *plan, int64_t *blocks, int64_t *passed_over);

/* For a plan with_forward: how many executions of flp_linear_logp_backward_execute since this function was last called found no forward in their
 * workspace and wrote NaN gradients. 0 on the CPU path, where such an execution is FLP_BAD_ARGUMENT. Waits for the device. count may be NULL. */
FLP_API flp_status flp_plan_unmatched_backwards(flp_plan *plan, int64_t *count);

/* ---- linear_logp -------------------------------------------------------------------------------------------- */

typedef enum { FLP_VOCAB_HIDDEN, FLP_HIDDEN_VOCAB } flp_weight_layout; /* weight [V, D] or [D, V] */
typedef enum {
    FLP_PRECISION_TENSOR, /* tensor cores; fp32 inputs as three tf32 products, with fp32 accuracy where entries are between 2^-100 and 2^127: smaller
                             ones lose digits, larger and infinite ones of hidden make their row NaN, of weight every row, and a logit that
                             overflows has no certain sign */
    FLP_PRECISION_EXACT   /* fp32 inputs by fp32 multiply-add, no tensor cores */
} flp_precision;

/* Log-probabilities of targets, from hidden states and the weight of a language model's head. Zero the problem, then set the fields that differ.
 *
 *     z[i][v] = softcap(sum_d hidden[i][d] weight[v][d] + bias[v]) / temperature[i],  softcap(z) = c tanh(z / c)
 *     lse[i]  = log(sum_v exp(z[i][v])),   logp[i] = z[i][target[i]] - lse[i],   argmax[i] = first v of the largest z
 *     entropy[i] = -sum_v p[i][v] log(p[i][v]),  p[i][v] = exp(z[i][v] - lse[i])
 *
 * GPU paths sum in fp32 with z log2(e). A finite z with |z| > 2.35e38 would overflow there, so it enters the sum as +-2.35e38; logp uses the target's
 * exact z.
 *
 * A problem may be a shard of the vocabulary: entries vocab_first .. vocab_first + vocab - 1 of vocab_total, with their weight and bias. The call then writes
 * args.partials for flp_linear_logp_merge.
 * Each problem has one canonical string: flp_linear_logp_problem_format. */
typedef struct {
    flp_dtype dtype; /* of hidden and weight: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;    /* the largest N that will be executed; >= 0 */
    int64_t hidden;  /* D >= 1 */
    int64_t vocab;   /* V, 1 .. 2^31 - 1: the real vocabulary; weight may have more rows */
    flp_weight_layout weight_layout;
    int64_t hidden_stride;  /* elements from row to row of hidden; 0: D */
    int64_t weight_stride;  /* elements from row to row of weight; 0: D for [V, D], V for [D, V] */
    int pointer_alignment;  /* bytes to which hidden and weight are aligned; 0: 16. Less than 16: the portable path */
    flp_dtype bias_dtype;   /* FLP_NONE: no bias; else FLP_BF16, FLP_F16, FLP_F32 */
    flp_dtype target_dtype; /* FLP_I32 or FLP_I64; FLP_NONE: FLP_I64 */
    double softcap;         /* c > 0; 0: none */
    int argmax;             /* 1: args.argmax is written */
    int entropy;            /* 1: args.entropy is written; the other outputs keep their bits */
    flp_precision precision;
    flp_backend backend; /* AUTO: the first that fits of sm_90a, portable, CPU; another value: that path, or an error, as FLP_NO_VARIANT or FLP_NO_DRIVER */
    int64_t vocab_first; /* a shard's first vocabulary entry; else 0 */
    int64_t vocab_total; /* the V of all shards together, vocab_first + vocab .. 2^31 - 1. A shard may be empty: vocab is 0, weight and bias are NULL.
                            0: the problem is no shard */
} flp_linear_logp_problem;

/* Writes the canonical string, for example "linear_logp:bf16:n4096:d2048:v131072", with a 0 byte into text [bytes].
 * FLP_BAD_ARGUMENT: the problem is not acceptable (the message names the field), or bytes is too small. */
FLP_INLINE flp_status flp_linear_logp_problem_format(const flp_linear_logp_problem *problem, char *text, size_t bytes);

/* Reads a canonical string. FLP_BAD_ARGUMENT: the message names the part of text and what was wanted. */
FLP_INLINE flp_status flp_linear_logp_problem_parse(const char *text, flp_linear_logp_problem *problem);

/* Chooses the path, obtains the kernels (from memory, from disk, or by NVRTC) and loads them into the CUDA context that is current in this
 * thread. Destroy the plan with flp_plan_destroy, before its context.
 * FLP_BAD_ARGUMENT, FLP_NO_VARIANT, FLP_NO_DRIVER (a GPU path was requested), FLP_WRONG_CONTEXT (likewise, and no CUDA context is current), FLP_FORKED,
 * FLP_NO_NVRTC, FLP_COMPILE_FAILED, FLP_CAPTURING, FLP_CUDA_FAILED, FLP_OUT_OF_MEMORY. After a failure nothing is left behind, and *plan is NULL. */
FLP_INLINE flp_status flp_linear_logp_plan_create(flp_context *context, const flp_linear_logp_problem *problem, flp_plan **plan);

/* On a GPU path every pointer is a device pointer of the plan's CUDA context, borrowed until the stream has passed the call. On the CPU path
 * it is a host pointer, borrowed during the call. Zero it, then set the fields. */
typedef struct {
    int64_t rows;                 /* N, 0 .. problem.rows */
    const void *hidden;           /* [N, D] */
    const void *weight;           /* [V, D] or [D, V] */
    const void *bias;             /* [V]; NULL if bias_dtype is FLP_NONE */
    const void *target;           /* [N] */
    int64_t ignore_index;         /* with FLP_IGNORE_INDEX in flags: a row with this target is ignored: its logp is 0, and its other
                                       outputs are written as usual. Without the flag: 0 */
    unsigned flags;               /* flp_execute_flags */
    double temperature;           /* 2^-64 .. 2^64; 0: 1 */
    const float *row_temperature; /* [N] f32, > 0, instead of temperature, or NULL. A value outside 2^-64 .. 2^64 is clamped to that range */
    float *logp;                  /* [N] f32 */
    float *lse;                   /* [N] f32 or NULL */
    float *entropy;               /* [N] f32 or NULL, in nats; needs problem.entropy */
    int32_t *argmax;              /* [N] or NULL; needs problem.argmax */
    void *workspace;              /* device memory, 256-byte aligned; NULL: the context's shared scratch */
    size_t workspace_bytes;
    void *stream;    /* CUstream; NULL: the legacy default stream */
    float *partials; /* a shard's [N, FLP_PARTIAL_FLOATS] f32, with logp, lse, entropy and argmax NULL; else NULL */
} flp_linear_logp_args;

/* Computes logp (and lse, entropy, argmax). On a GPU path the call enqueues its work on the stream and returns; with a workspace it allocates
 * nothing; it may be captured. On the CPU path it is complete on return.
 * Targets: one that is neither ignored nor in 0 .. V - 1 makes its row's logp NaN and is counted (flp_plan_target_errors). In an ignored row logp is 0
 * whatever hidden holds. In both, lse, entropy and argmax are computed from its hidden. A NaN logit makes its row's logp, lse and entropy NaN, and so
 * does +inf, except with a softcap c, which makes it c.
 * Accuracy: beyond the rounding of the logits to fp32, logp has a relative error of at most 2e-6 even if the target is nearly certain; the
 * difference of the target's logit and lse does not. On Hopper, a logit that few of hidden's components make up is off by up to D 2^-30 of itself,
 * because tensor cores truncate sums, for which all are corrected by what they lose on average. lse and entropy are summed relative to the target, so
 * their last bits depend on it.
 * FLP_BAD_ARGUMENT names the argument, FLP_BAD_TARGET the row and its target. Then nothing was enqueued. */
FLP_INLINE flp_status flp_linear_logp_execute(flp_plan *plan, const flp_linear_logp_args *args);

/* Plans and executes in one call. The context keeps the plan of each problem, with rows rounded up to a bucket, and finds a known one without
 * lock, allocation or system call. problem.rows and problem.pointer_alignment are ignored: both are taken from args. Errors as
 * flp_linear_logp_plan_create and flp_linear_logp_execute. FLP_CAPTURING: the problem is new and its stream is being captured; call
 * flp_linear_logp_prepare first. */
FLP_INLINE flp_status flp_linear_logp(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args);

/* Makes the plans that flp_linear_logp needs for any N up to problem.rows, and reserves scratch for the stream until
 * flp_context_release_scratch. Without it, a captured call takes the scratch of the last stream with the same handle: prepare a stream that may have the handle
 * of a destroyed one whose work still runs. */
FLP_INLINE flp_status flp_linear_logp_prepare(flp_context *context, const flp_linear_logp_problem *problem, void *stream);

/* ---- linear_logp over shards of the vocabulary --------------------------------------------------------------- */

/* A shard of the vocabulary writes its part of each row's statistics, eight numbers a row, and flp_linear_logp_merge combines the parts of all shards:
 *
 *     float: offset        k, an integer exponent of 2; -inf: all the shard's logits but the target's are -inf, or it has none
 *            sum           sum_v 2^(z2[v] - k) over all entries v but the target, with z2 = z log2(e)
 *            target        softcap(logit) of the target if it lies in the shard, else -inf
 *            scale         the factor from target to z2, log2(e) / temperature; 0: the target lies in another shard, or the row has none
 *            moment        sum_v (z2[v] - k) 2^(z2[v] - k), if the problem has entropy
 *            largest       the largest logit before softcap, if the problem has argmax
 *     int32: largest_index the smallest entry of the whole vocabulary with that logit
 *     float: logit_sum     0
 *
 * How the parts are exchanged is up to the caller: an all-gather of N x 32 bytes does. Targets are entries of the whole vocabulary. */
enum { FLP_PARTIAL_FLOATS = 8 };

/* Pointers as flp_linear_logp_args'. Zero it, then set. */
typedef struct {
    int64_t rows;          /* N, 0 .. problem.rows */
    int ranks;             /* the number of shards, 1 or more; together they are the whole vocabulary */
    unsigned flags;        /* flp_execute_flags */
    const float *partials; /* [ranks, N, FLP_PARTIAL_FLOATS] */
    const void *target;    /* [N], the same as in the shards' calls */
    int64_t ignore_index;  /* as linear_logp's */
    float *logp;           /* [N] f32; each of the four results may be NULL */
    float *lse;
    float *entropy;  /* needs problem.entropy */
    int32_t *argmax; /* needs problem.argmax */
    void *stream;
} flp_linear_logp_merge_args;

/* Computes logp, lse, entropy and argmax over the whole vocabulary from the parts of all shards. problem: any shard's; its vocab_first, vocab and
 * weight_stride are not used. flp_linear_logp_prepare prepares it.
 * Parts are merged in the order of the array: the same parts in the same order give the same bits, which depend on where the vocabulary was cut. Values are
 * those of the call without shards, except that the parts are rounded to fp32. A z with |z log2(e)| > 2^23 is itself rounded to fp32.
 * A target that is neither ignored nor in 0 .. vocab_total - 1 makes its row's logp NaN and is counted here (flp_plan_target_errors), not by the shards. So
 * does, uncounted, a target that lies in no shard.
 * Errors as flp_linear_logp; also FLP_BAD_ARGUMENT if the problem is no shard. */
FLP_INLINE flp_status flp_linear_logp_merge(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args);

/* The same with a plan of linear_logp for a shard. */
FLP_INLINE flp_status flp_linear_logp_execute_merge(flp_plan *plan, const flp_linear_logp_merge_args *args);

/* ---- linear_logp_backward ----------------------------------------------------------------------------------- */

/* Gradients that are added to what their arrays hold. The sum is formed in fp32 and rounded once. */
typedef enum { FLP_ACCUMULATE_HIDDEN = 1u, FLP_ACCUMULATE_WEIGHT = 2u, FLP_ACCUMULATE_BIAS = 4u } flp_accumulate;

/* The gradients of a loss by linear_logp's hidden, weight and bias, from its gradients by logp, lse and entropy:
 *
 *     a[i][v] = g_logp[i] ([v = target[i]] - p[i][v]) + g_lse[i] p[i][v] - g_entropy[i] p[i][v] (log(p[i][v]) + entropy[i])
 *     dlogit[i][v] = a[i][v] / temperature[i] (1 - (softcap(logit) / c)^2),   p[i][v] = exp(z[i][v] - lse[i])
 *     grad_hidden = dlogit . weight,   grad_weight = dlogit^T . hidden,   grad_bias[v] = sum_i dlogit[i][v]
 *
 * The logits are computed again. dlogit, except at the target, is rounded to the inputs' dtype on GPU paths, and for bf16 on CPUs that multiply bf16
 * (AVX512_BF16, AMX). In fp16 it is first scaled by a power of two, by the call's largest finite upstream gradient, divided by its row's temperature: on GPU
 * paths, what is below 2^-28 of that loses digits. Sums are in fp32 and each gradient is rounded once. All results repeat bit for bit, and a row of
 * grad_hidden depends neither on N nor, but for this factor, on other rows (in linear_cross_entropy on N where N V exceeds about 10^12). For logits of 1e5 and
 * more lse in fp32 is too coarse to give p: use a plan with its forward, or linear_cross_entropy, which pass on more digits.
 *
 * A shard of the vocabulary (forward.vocab_total) takes lse, logp and entropy of the merged rows. Its grad_hidden is the shard's part of a sum over all
 * shards (FLP_F32 loses nothing in that sum); its grad_weight and grad_bias are those of its own entries.
 *
 * memory_budget is an upper bound, in bytes, of the whole workspace for problem.rows rows (in a call without a plan: for N rounded up to its bucket),
 * including the forward's part with with_forward. GPU paths never exceed it. More memory saves flops. A budget that is too small is FLP_BAD_ARGUMENT, whose
 * message has the smallest that is accepted. With 0 the library chooses: at D 4096 at most 265 MiB for each 8192 rows, and for fewer than 8192 rows up to
 * 48 MiB more; linear_cross_entropy takes up to 1.75 times as much for more than 2 D rows, and below D 896 at most 310 MiB for each 8192 rows and 64 MiB more.
 * A grad_hidden in another dtype than hidden's takes N x D elements of hidden's dtype besides. grad_hidden alone takes up to 460 MiB also for few
 * rows, or N x D elements and up to 135 MiB where that is more, and N x D floats besides with with_forward. With a budget, few rows may take no more than the
 * default, where that is faster for them.
 *
 * grad_filter_eps > 0 leaves out, on sm_90a, blocks of 64 rows x 64 vocabulary entries in which every |dlogit| except the targets' is smaller. They take no
 * part in grad_hidden and grad_weight, and no time (flp_plan_filter_statistics); derivatives by the targets' logits always count. An element of
 * grad_hidden is then off by less than eps times the sum of |weight| over the entries that its row leaves out, and one of grad_weight likewise with
 * |hidden|. A row's bits depend on the block that it is in, and no exponentials are saved. 0: nothing is left out. */
typedef struct {
    flp_linear_logp_problem forward;               /* linear_logp's problem, with argmax and entropy 0. pointer_alignment holds for grad_hidden and
                                          grad_weight too; the size of one element of dtype allows any address of gradients with smaller elements */
    flp_dtype grad_hidden, grad_weight, grad_bias; /* FLP_BF16, FLP_F16 or FLP_F32; FLP_NONE: not computed. At least one is not FLP_NONE */
    int64_t grad_hidden_stride;                    /* elements from row to row; 0: hidden's */
    int64_t grad_weight_stride;                    /* 0: weight's. grad_weight has weight's layout; padding after the real vocabulary is not written */
    unsigned accumulate;                           /* flp_accumulate */
    int g_lse, g_entropy;                          /* 1: args has it */
    int with_forward;                              /* 1: the plan can also run linear_logp before: flp_linear_logp_backward_execute_forward */
    int64_t memory_budget;                         /* bytes, or 0: see above */
    double grad_filter_eps;                        /* > 0, or 0: see above */
} flp_linear_logp_backward_problem;

/* Pointers as flp_linear_logp_args'; the outputs overlap nothing. */
typedef struct {
    int64_t rows;                                /* N, 0 .. problem.rows; with 0 rows grad_weight and grad_bias are written as zeros */
    const void *hidden, *weight, *bias, *target; /* linear_logp's */
    int64_t ignore_index;                        /* with FLP_IGNORE_INDEX: a row with this target contributes to no gradient, whatever its hidden, g_logp, g_lse
                                       and g_entropy hold; its row of grad_hidden is 0 */
    unsigned flags;                              /* flp_execute_flags */
    double temperature;                          /* linear_logp's, as row_temperature */
    const float *row_temperature;
    const float *lse;               /* [N] f32: linear_logp's */
    const float *entropy;           /* [N] f32: linear_logp's, if problem.g_entropy is 1, and finite also where g_entropy[i] is 0; else NULL */
    const float *g_logp;            /* [N] f32 */
    const float *g_lse, *g_entropy; /* [N] f32; NULL if the problem's field is 0 */
    void *grad_hidden;              /* [N, D]; NULL if the problem's dtype is FLP_NONE, as the next two */
    void *grad_weight;              /* [V, D] or [D, V], as weight. On a GPU path a contiguous [V, D] that is not accumulated serves as scratch until
                                       its rows are written */
    void *grad_bias;                /* [V] */
    void *workspace;                /* this field and the next two as linear_logp's */
    size_t workspace_bytes;
    void *stream;
    const float *logp;            /* [N] f32: linear_logp's, or NULL. With it the derivative by the target's logit is accurate however likely the target
                                       is, because 1 - p is computed from logp; without it 1 - p loses digits */
    void *grad_hidden_event;      /* CUevent, or NULL. GPU paths record it on the stream once grad_hidden is complete, so that another stream can exchange
                                       grad_hidden. It comes before grad_weight's last product and grad_bias if grad_hidden's dtype differs from hidden's,
                                       no exponentials are saved and no filter is set; otherwise after all of them. It changes no bits */
    int64_t multiprocessors_left; /* 0 or more: how many multiprocessors that last product leaves free for the exchange, if it follows the event */
} flp_linear_logp_backward_args;

FLP_INLINE flp_status flp_linear_logp_backward_problem_format(const flp_linear_logp_backward_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_linear_logp_backward_problem_parse(const char *text, flp_linear_logp_backward_problem *problem);

/* On a GPU without kernels for the problem, FLP_BACKEND_AUTO is FLP_NO_VARIANT, not the CPU path, which would read host memory. */
FLP_INLINE flp_status flp_linear_logp_backward_plan_create(flp_context *context, const flp_linear_logp_backward_problem *problem, flp_plan **plan);

/* A target that is neither ignored nor in 0 .. V - 1 is counted (flp_plan_target_errors), and its row is treated as an ignored one. */
FLP_INLINE flp_status flp_linear_logp_backward_execute(flp_plan *plan, const flp_linear_logp_backward_args *args);

/* Runs linear_logp with a plan whose problem has with_forward = 1.
 *
 * Order: call flp_linear_logp_backward_execute next, with the same rows, hidden, weight, bias, target, ignore_index, temperature, flags and workspace. A
 * forward serves one backward. Both may be captured, in one CUDA graph or in two that are replayed in turn.
 *
 * Memory: the workspace is the caller's, on the CPU path too, and must not be changed between the two calls. It tells the backward which rows are valid,
 * so that ignored rows cost nothing in either call.
 *
 * What is saved: as far as memory_budget has room, the workspace also keeps exponentials of the logits, so that the backward does not compute those logits
 * again: under the conditions of linear_cross_entropy, and if g_entropy is 0. With room for [N, V] and [N, D] in bf16 and 4 KiB a row no logit is computed
 * again, but for so few rows that this is faster. If grad_hidden is the only gradient, the forward computes its product, too, chunk of rows by chunk of rows,
 * given room for [N, D] in fp32 and the exponentials of 512 rows (by default up to V 393216). A row whose derivatives times hidden exceed bf16's range may
 * then make grad_weight NaN.
 *
 * args: lse is required, entropy if g_entropy is 1, else it is NULL; argmax is NULL. lse and entropy are 0 in rows that are ignored or whose target is bad.
 *
 * Errors as flp_linear_logp_execute; also FLP_BAD_ARGUMENT if the plan has no forward or there is no workspace. If the backward finds no forward of this plan
 * in its workspace, with the same rows, ignore_index and temperature, a GPU path writes NaN gradients and counts it (flp_plan_unmatched_backwards), and the
 * CPU path returns FLP_BAD_ARGUMENT. Nothing outside of the arrays is read or written, whatever the workspace holds. */
FLP_INLINE flp_status flp_linear_logp_backward_execute_forward(flp_plan *plan, const flp_linear_logp_args *args);

FLP_INLINE flp_status flp_linear_logp_backward(flp_context *context, const flp_linear_logp_backward_problem *problem,
                                               const flp_linear_logp_backward_args *args);
FLP_INLINE flp_status flp_linear_logp_backward_prepare(flp_context *context, const flp_linear_logp_backward_problem *problem, void *stream);

/* ---- linear_logp over the ranks of an NCCL communicator ------------------------------------------------------- */

/* One rank of the caller's NCCL communicator, in which each rank has a shard of the vocabulary. NCCL is the libnccl.so.2 that the process has loaded.
 * The ranks belong to the CUDA context that is current in flp_ranks_create. As with a communicator, only one thread at a time may use them, and all
 * ranks make the same calls in the same order. */
typedef struct flp_ranks flp_ranks;

/* communicator: ncclComm_t, which stays the caller's. Destroy the ranks with flp_ranks_destroy, before their context and communicator.
 * FLP_BAD_ARGUMENT: an argument is NULL. FLP_NCCL_FAILED, FLP_NO_DRIVER, FLP_WRONG_CONTEXT, FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_ranks_create(flp_context *context, void *communicator, flp_ranks **ranks);
FLP_API void flp_ranks_destroy(flp_ranks *ranks); /* NULL is allowed */

/* Registers memory that calls exchange (grad_hidden, partials) with the communicator, so that NCCL can read it in place (ncclCommRegister, from NCCL
 * 2.19 on; older ones do without). All ranks must do the same. flp_ranks_unregister, or flp_ranks_destroy, ends the registration; do it before the
 * memory is freed. Unregistering memory that is not registered does nothing.
 * FLP_BAD_ARGUMENT: an argument is NULL, bytes is 0, or memory of this address is registered already. FLP_NCCL_FAILED, FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_ranks_register(flp_ranks *ranks, void *memory, size_t bytes);
FLP_API flp_status flp_ranks_unregister(flp_ranks *ranks, void *memory);

/* linear_logp over the whole vocabulary, on every rank: the shard's call, an all-gather of the parts (N x 32 bytes a rank) and the merge, all on the stream.
 * problem: this rank's shard. args: linear_logp's. hidden and target are the same on all ranks; a sequence-parallel caller gathers hidden before. partials is
 * [ranks, N, FLP_PARTIAL_FLOATS], scratch of the call. logp, lse, entropy and argmax are written; each may be NULL. All ranks get the same bits.
 *
 * Agreement: the first call of a problem compares the ranks' N, D, vocab_total, dtype, softcap, argmax, entropy, bias, temperature, ignore_index and shard
 * bounds. If they differ, or one rank refuses its own arguments, every rank gets FLP_BAD_ARGUMENT. This first call waits for the stream and cannot be
 * captured. Later calls compare nothing and can be captured. N may change from call to call, but must be equal on all ranks: if it is not, they wait for each
 * other for ever. With FLP_CHECK_TARGETS in flags on all ranks every call compares everything.
 * FLP_NCCL_FAILED names the NCCL call. */
FLP_INLINE flp_status flp_linear_logp_sharded(flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args);

/* The backward of the same, from the merged lse, logp and entropy: the shard's gradients, then an all-reduce of grad_hidden in place, on a stream of the
 * ranks' own, beside grad_weight's last product; the caller's stream waits for it. grad_hidden is FLP_F32, contiguous and not accumulated. grad_weight
 * and grad_bias are those of the shard's entries. args.grad_hidden_event is NULL, because the call uses its own. */
FLP_INLINE flp_status flp_linear_logp_backward_sharded(flp_ranks *ranks, const flp_linear_logp_backward_problem *problem,
                                                       const flp_linear_logp_backward_args *args);

/* ---- linear_cross_entropy ----------------------------------------------------------------------------------- */

/* How the loss is made of the rows' losses l. Sums are over all rows that are not ignored; t is token_weights and w is class_weights, 1 where there are
 * none. */
typedef enum {
    FLP_REDUCE_MEAN, /* sum_i t[i] l[i] / sum_i t[i] w[target[i]]; 0 if the divisor is 0 */
    FLP_REDUCE_SUM,  /* sum_i t[i] l[i] */
    FLP_REDUCE_NONE  /* t[i] l[i] of each row */
} flp_reduction;

enum { FLP_TOKEN_LOSS_NAME_BYTES = 32 };

/* The loss of a language model's head and, in the same call, its gradients by hidden, weight and bias. Of each row, with linear_logp's z, logp,
 * lse and p:
 *
 *     uniform[i] = -sum_v w[v] log(p[i][v]) / V
 *     l[i] = -(1 - label_smoothing) w[target[i]] logp[i] + label_smoothing uniform[i] + lse_square_scale lse[i]^2
 *
 * or what a token loss computes from these. Gradients are rounded as linear_logp_backward's. GPU paths first pack the valid rows (neither ignored
 * nor with a bad target), without waiting for the device, so that the other rows cost nothing.
 *
 * backward.memory_budget bounds the whole workspace, including the forward's and the loss's parts. If no gradient is requested, only the loss is
 * computed, in a workspace of N x D elements for the packed rows and linear_logp's scratch.
 *
 * On a GPU the forward can save exponentials of the logits, so that the gradients do not compute those logits a second time. This takes bf16
 * inputs and neither softcap, label smoothing, grad_filter_eps nor a token loss that uses entropy or uniform. They are saved
 *   (a) in the workspace, all of them, if it has room for [N, V] in bf16 and 4 KiB a row, unless (b) is possible and, for so few rows, faster; else
 *   (b) in grad_weight, until its own entries are written, if it is [V, D], contiguous and not accumulated: with a bf16 grad_weight those of about
 *       V D / N entries; by default for D >= 256, if V is not small, and below D 896 those of 16896 entries in the workspace where it holds fewer;
 *   (c) chunk of rows by chunk of rows, at least 512 at a time, if grad_weight, and grad_bias likewise, is not requested or is accumulated in fp32.
 *       The packed rows take N x D elements besides, unless grad_hidden has hidden's dtype and is not accumulated. By default this is done only if
 *       grad_hidden is the only gradient and V <= 393216, with at most 384 MiB of exponentials.
 * Values then differ within their rounding, and a row whose derivatives times hidden exceed bf16's range, as at a temperature of 2^-64, may make
 * grad_weight NaN. The CPU path saves fp32 logits of the first rows in as much memory as the budget says (0: 512 MiB), which changes no bits. */
typedef struct {
    flp_linear_logp_backward_problem backward; /* g_lse and g_entropy are 0 */
    flp_reduction reduction;
    int label_smoothing;                        /* 1: args.label_smoothing is used */
    flp_dtype class_weights;                    /* FLP_NONE: 1; else FLP_BF16, FLP_F16 or FLP_F32 */
    int token_weights;                          /* 1: args.token_weights is used */
    int entropy;                                /* 1: args.entropy is written */
    int reserved;                               /* 0 */
    char token_loss[FLP_TOKEN_LOSS_NAME_BYTES]; /* "": the loss above. "policy_gradient", "policy_gradient_kl", or a name that
                                                   flp_token_loss_define has defined */
} flp_linear_cross_entropy_problem;

typedef struct {
    const char *name;
    const float *values; /* [N] f32, where the other inputs are */
} flp_token_input;

typedef struct {
    const char *name;
    double value;
} flp_token_parameter;

/* Pointers as flp_linear_logp_args'; the outputs overlap nothing. */
typedef struct {
    int64_t rows;                                /* N, 0 .. problem.rows; with 0 rows the loss, grad_weight and grad_bias are written as zeros */
    const void *hidden, *weight, *bias, *target; /* linear_logp's */
    int64_t ignore_index; /* with FLP_IGNORE_INDEX: a row with this target contributes to neither loss nor gradients, whatever its inputs hold;
                                       with FLP_REDUCE_NONE its loss is 0 */
    unsigned flags;       /* flp_execute_flags */
    double temperature;   /* linear_logp's, as row_temperature */
    const float *row_temperature;
    const void *class_weights; /* [V], for a shard also of the whole vocabulary; NULL if the problem's is FLP_NONE */
    /* [N] f32; NULL if the problem's is 0. A row of weight 0 has loss 0 and derivatives 0, whatever its token inputs are and even if the loss were infinite or
     * NaN. Only a hidden state or a logit that is not finite, or logits that are all -inf, still make gradients NaN, because 0 times these is NaN: ignore_index
     * leaves a row out altogether. */
    const float *token_weights;
    double label_smoothing;              /* 0 .. 1; 0 if the problem's is 0 */
    double lse_square_scale;             /* z-loss; 0 with a token loss */
    const flp_token_input *token_inputs; /* [token_input_count] all inputs of the token loss, in any order; borrowed during the call */
    int token_input_count;
    const flp_token_parameter *token_parameters; /* [token_parameter_count] the parameters that differ from the token loss's defaults */
    int token_parameter_count;
    const float *g_loss;         /* f32 [1], [N] with FLP_REDUCE_NONE: the gradient by loss; NULL: 1 */
    float *loss;                 /* f32 [1], [N] with FLP_REDUCE_NONE */
    float *logp, *lse, *entropy; /* [N] f32 or NULL: linear_logp's, except that lse and entropy are 0 in rows that are ignored or whose target is bad;
                                       entropy needs problem.entropy */
    void *grad_hidden, *grad_weight, *grad_bias; /* linear_logp_backward's */
    void *workspace;                             /* this field and the next two as linear_logp's */
    size_t workspace_bytes;
    void *stream;
    float *partials;         /* for a shard: its [N, FLP_PARTIAL_FLOATS] f32, or in the merge those of all shards; else NULL */
    int64_t ranks;           /* for a shard's merge: as in flp_linear_logp_merge_args */
    void *grad_hidden_event; /* this field and the next as in flp_linear_logp_backward_args */
    int64_t multiprocessors_left;
} flp_linear_cross_entropy_args;

/* e.g. "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight" */
FLP_INLINE flp_status flp_linear_cross_entropy_problem_format(const flp_linear_cross_entropy_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_linear_cross_entropy_problem_parse(const char *text, flp_linear_cross_entropy_problem *problem);

/* As flp_linear_logp_backward_plan_create; also FLP_BAD_ARGUMENT if the context knows no token loss of that name. */
FLP_INLINE flp_status flp_linear_cross_entropy_plan_create(flp_context *context, const flp_linear_cross_entropy_problem *problem, flp_plan **plan);

/* A target that is neither ignored nor in 0 .. V - 1 is counted (flp_plan_target_errors). It makes its row's loss NaN, and with it the mean or the
 * sum; it contributes neither to the gradients nor to the mean's divisor. */
FLP_INLINE flp_status flp_linear_cross_entropy_execute(flp_plan *plan, const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                               const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_prepare(flp_context *context, const flp_linear_cross_entropy_problem *problem, void *stream);

/* linear_cross_entropy over shards of the vocabulary (problem.backward.forward.vocab_total) takes two calls with the same problem and args, with the caller's
 * exchange between them. flp_linear_cross_entropy itself refuses a shard; flp_linear_cross_entropy_prepare prepares both calls.
 *
 * The first call writes args.partials [N, FLP_PARTIAL_FLOATS] as linear_logp does for a shard. logit_sum is sum_v w[v] z[v] over the shard's entries if
 * the loss uses uniform (label smoothing); moment is written if the loss uses entropy or the problem's entropy is 1. The call reads linear_logp's
 * arguments and class_weights only. The parts of rows that are ignored are undefined. Bad targets are counted by the merge. */
FLP_INLINE flp_status flp_linear_cross_entropy_partials(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                                        const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_execute_partials(flp_plan *plan, const flp_linear_cross_entropy_args *args);

/* The second call reads args.partials [ranks, N, FLP_PARTIAL_FLOATS] of all shards in their order, and args.ranks. It writes loss, logp, lse and entropy
 * over the whole vocabulary, with the same bits on every rank; grad_weight and grad_bias of the shard's entries; and the shard's part of grad_hidden,
 * which the caller sums over the shards (FLP_F32 loses nothing in that sum; with FLP_ACCUMULATE_HIDDEN each shard adds to what its array holds).
 * FLP_REDUCE_MEAN divides by all rows, which are the same on all ranks. Logits are computed twice, and no exponentials are saved. As in
 * flp_linear_logp_backward the gradients come from the merged lse in fp32, which is too coarse for logits of 1e5 and more. A target that lies in no
 * shard makes its row's loss NaN.
 * Errors as flp_linear_cross_entropy; also FLP_BAD_ARGUMENT if the problem is no shard or ranks is less than 1. */
FLP_INLINE flp_status flp_linear_cross_entropy_merge(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                                     const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_execute_merge(flp_plan *plan, const flp_linear_cross_entropy_args *args);

/* Both calls and the exchange over the ranks of an NCCL communicator, as flp_linear_logp_sharded. args.partials is [ranks, N, FLP_PARTIAL_FLOATS],
 * scratch of the call; args.ranks is not read. grad_hidden (FLP_F32, contiguous, not accumulated) is summed over the ranks in place. The comparison of
 * the ranks includes the loss: of a token loss that was defined, what its definition computes. */
FLP_INLINE flp_status flp_linear_cross_entropy_sharded(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem,
                                                       const flp_linear_cross_entropy_args *args);

/* Defines a token loss in the context, under a name of letters a to z, digits and _ that begins with a letter. The definition is a text in Lua that
 * computes the loss only; its derivatives are derived from it:
 *
 *     return {
 *       inputs = { "advantages" },                      -- [N] f32 each, by args.token_inputs; at most 8
 *       parameters = { { "entropy_scale", 0.01 } },     -- numbers and their defaults, by args.token_parameters; at most 8
 *       loss = function(t) return -t.advantages * t.logp - t.entropy_scale * t.entropy end,
 *     }
 *
 * t.logp, t.lse, t.entropy, t.uniform and t.class_weight (of the target) are the row's statistics; those that a loss does not use are not computed.
 * The operations are + - * /, ^ with a whole number, exp, log, min, max, abs, clamp(x, low, high), where(less(a, b), x, y), and detach(x), whose
 * derivative is 0. Instead of loss a definition may have expression = "-advantages * logp", the text of an expression or of statements that end in
 * return, with the same names without t.
 * Loss and derivatives may take 256 operations, and defining them 10 million instructions of Lua, 64 MiB at a time and 1 GiB in all, with strings of
 * at most 64 KiB. Defining the same name with the same definition again changes nothing. A definition that was refused leaves its name free.
 * FLP_BAD_ARGUMENT: what is wrong with the definition, or the name has another definition. FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_token_loss_define(flp_context *context, const char *name, const char *definition);

/* ---- weighted_sum ------------------------------------------------------------------------------------------- */

/* y[i] = sum_d x[i][d] w[d], summed in fp32 in an order that depends only on D and the dtypes: a row's bits depend neither on N, nor on its place or
 * its neighbours, nor on the GPU, nor on the alignment of x. An x with more dimensions is [rows, D], with rows the product of the leading ones. */
typedef struct {
    flp_dtype dtype;       /* of x: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;          /* the largest N that will be executed; >= 0 */
    int64_t columns;       /* D, 1 .. 2^31 - 1 */
    int64_t x_stride;      /* elements from row to row of x; 0: D */
    int pointer_alignment; /* bytes to which x is aligned; 0: 16. A smaller alignment, or a row stride that is no multiple of 16 bytes, makes loads
                              narrower and slower */
    flp_dtype w_dtype;     /* FLP_NONE: dtype */
    flp_dtype y_dtype;     /* FLP_NONE: dtype */
    flp_backend backend;
} flp_weighted_sum_problem;

/* Pointers as flp_linear_logp_args'. w and y are aligned to their elements. */
typedef struct {
    int64_t rows;  /* N, 0 .. problem.rows */
    const void *x; /* [N, D] */
    const void *w; /* [D] */
    void *y;       /* [N] */
    void *stream;
} flp_weighted_sum_args;

/* e.g. "weighted_sum:bf16:n65536:d4096" */
FLP_INLINE flp_status flp_weighted_sum_problem_format(const flp_weighted_sum_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_weighted_sum_problem_parse(const char *text, flp_weighted_sum_problem *problem);
FLP_INLINE flp_status flp_weighted_sum_plan_create(flp_context *context, const flp_weighted_sum_problem *problem, flp_plan **plan);
FLP_INLINE flp_status flp_weighted_sum_execute(flp_plan *plan, const flp_weighted_sum_args *args);
FLP_INLINE flp_status flp_weighted_sum(flp_context *context, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args);
FLP_INLINE flp_status flp_weighted_sum_prepare(flp_context *context, const flp_weighted_sum_problem *problem, void *stream);

/* ---- weighted_sum_backward ---------------------------------------------------------------------------------- */

/* The gradients by x and w, from the gradient g by y:
 *
 *     grad_x[i][d] = g[i] w[d],   grad_w[d] = sum_i g[i] x[i][d]
 *
 * x is read once, and only for grad_w. Products and sums are in fp32, and each gradient is rounded once. All results repeat bit for bit; the order of
 * grad_w's sums depends only on N, D and the dtypes. */
typedef struct {
    flp_weighted_sum_problem forward; /* weighted_sum's problem; y_dtype is g's dtype. pointer_alignment holds for grad_x too */
    flp_dtype grad_x, grad_w;         /* FLP_BF16, FLP_F16 or FLP_F32; FLP_NONE: not computed. At least one is not FLP_NONE */
    int accumulate;                   /* 1: grad_w is added to what its array holds, in fp32 before its one rounding */
    int64_t grad_x_stride;            /* elements from row to row; 0: x's */
} flp_weighted_sum_backward_problem;

typedef struct {
    int64_t rows;    /* N, 0 .. problem.rows; with 0 rows grad_w is written as zeros */
    const void *g;   /* [N] */
    const void *x;   /* [N, D]; not read if grad_w is not computed, and may then be NULL */
    const void *w;   /* [D]; not read if grad_x is not computed, and may then be NULL */
    void *grad_x;    /* [N, D]; NULL if not computed. May be x itself, with its stride and dtype; overlaps nothing else */
    void *grad_w;    /* [D]; NULL if not computed */
    void *workspace; /* as linear_logp's */
    size_t workspace_bytes;
    void *stream;
} flp_weighted_sum_backward_args;

FLP_INLINE flp_status flp_weighted_sum_backward_problem_format(const flp_weighted_sum_backward_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_weighted_sum_backward_problem_parse(const char *text, flp_weighted_sum_backward_problem *problem);
FLP_INLINE flp_status flp_weighted_sum_backward_plan_create(flp_context *context, const flp_weighted_sum_backward_problem *problem, flp_plan **plan);
FLP_INLINE flp_status flp_weighted_sum_backward_execute(flp_plan *plan, const flp_weighted_sum_backward_args *args);
FLP_INLINE flp_status flp_weighted_sum_backward(flp_context *context, const flp_weighted_sum_backward_problem *problem,
                                                const flp_weighted_sum_backward_args *args);
FLP_INLINE flp_status flp_weighted_sum_backward_prepare(flp_context *context, const flp_weighted_sum_backward_problem *problem, void *stream);

/* ---- scale -------------------------------------------------------------------------------------------------- */

/* x[i][d] = x[i][d] factor, in place. The product is in fp32 and rounded once; a factor of 1 leaves x as it is, which is then neither read nor
 * written. The factor is read when the call runs on the stream, so the caller does not wait for it. For gradients that are there before a factor of
 * theirs is known: that of the loss after linear_cross_entropy, or a limit of their norm. */
typedef struct {
    flp_dtype dtype;       /* of x: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;          /* the largest N that will be executed; >= 0 */
    int64_t columns;       /* D, 1 .. 2^31 - 1 */
    int64_t x_stride;      /* elements from row to row of x; 0: D */
    int pointer_alignment; /* bytes to which x is aligned; 0: 16. Not relied on: any address of an element will do */
    flp_backend backend;
} flp_scale_problem;

/* Pointers as flp_linear_logp_args'. */
typedef struct {
    int64_t rows;        /* N, 0 .. problem.rows */
    void *x;             /* [N, D] */
    const float *factor; /* f32 [1]; not in x */
    void *stream;
} flp_scale_args;

/* e.g. "scale:bf16:n128256:d4096" */
FLP_INLINE flp_status flp_scale_problem_format(const flp_scale_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_scale_problem_parse(const char *text, flp_scale_problem *problem);
FLP_INLINE flp_status flp_scale_plan_create(flp_context *context, const flp_scale_problem *problem, flp_plan **plan);
FLP_INLINE flp_status flp_scale_execute(flp_plan *plan, const flp_scale_args *args);
FLP_INLINE flp_status flp_scale(flp_context *context, const flp_scale_problem *problem, const flp_scale_args *args);
FLP_INLINE flp_status flp_scale_prepare(flp_context *context, const flp_scale_problem *problem, void *stream);

/* ---- logits_logp -------------------------------------------------------------------------------------------- */

/* What linear_logp computes, from logits that are in memory, which are read once.
 *
 *     z[i][v]    = softcap(logits[i][v]) / temperature[i],    lse[i] = log(sum_v exp(z[i][v])),   logp[i] = z[i][target[i]] - lse[i]
 *     entropy[i] = -sum_v p[i][v] log p[i][v],  p = softmax(z),    argmax[i] = first v of the largest logit
 *
 * Accuracy: logp's is linear_logp's; the entropy has an absolute error of about 2e-6 at most, beyond what the rounding of the logits makes of it. */
typedef struct {
    flp_dtype dtype;        /* of logits: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;           /* the largest number of rows that will be executed; >= 0 */
    int64_t vocab;          /* V, 1 .. 2^31 - 1: the real vocabulary; a row may be longer */
    int64_t logits_stride;  /* elements from row to row; 0: V */
    int pointer_alignment;  /* bytes to which logits is aligned; 0: 16. A smaller alignment, or a row stride that is no multiple of 16 bytes, costs
                               speed and changes no bits */
    flp_dtype target_dtype; /* FLP_I32 or FLP_I64; FLP_NONE: FLP_I64 */
    int argmax;             /* 1: args.argmax is written */
    int entropy;            /* 1: args.entropy is written */
    flp_backend backend;
    double softcap; /* c > 0; 0: none */
} flp_logits_logp_problem;

FLP_INLINE flp_status flp_logits_logp_problem_format(const flp_logits_logp_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_logits_logp_problem_parse(const char *text, flp_logits_logp_problem *problem);
FLP_INLINE flp_status flp_logits_logp_plan_create(flp_context *context, const flp_logits_logp_problem *problem, flp_plan **plan);

/* Without row_index all arrays have `rows` rows. With it, row i of the call is row row_index[i] of logits, target and row_temperature, which have
 * logits_rows rows. Results have `rows` rows; with FLP_SCATTER they are stored at row_index[i], and the other rows are not written. */
typedef struct {
    int64_t rows;                 /* 0 .. problem.rows */
    const void *logits;           /* [N, V] */
    const void *target;           /* [N] */
    const int64_t *row_index;     /* [rows], without repetition; NULL: all rows */
    int64_t logits_rows;          /* with row_index: N, 0 .. 2^28. An index outside is treated as a bad target, and nothing is read or written there */
    int64_t ignore_index;         /* as for linear_logp. If logp is the only result and rows are many, ignored rows are not read */
    unsigned flags;               /* flp_execute_flags */
    double temperature;           /* 2^-64 .. 2^64; 0: 1 */
    const float *row_temperature; /* [N] f32, > 0, or NULL; instead of temperature, with the bounds of linear_logp's */
    float *logp;                  /* f32; each of the four results may be NULL */
    float *lse;
    float *entropy;  /* needs problem.entropy */
    int32_t *argmax; /* needs problem.argmax */
    void *workspace; /* device memory, 256-byte aligned; NULL: the context's shared scratch */
    size_t workspace_bytes;
    void *stream;
} flp_logits_logp_args;

FLP_INLINE flp_status flp_logits_logp_execute(flp_plan *plan, const flp_logits_logp_args *args);
FLP_INLINE flp_status flp_logits_logp(flp_context *context, const flp_logits_logp_problem *problem, const flp_logits_logp_args *args);
FLP_INLINE flp_status flp_logits_logp_prepare(flp_context *context, const flp_logits_logp_problem *problem, void *stream);

/* The gradient of sum_i (g_logp[i] logp[i] + g_lse[i] lse[i] + g_entropy[i] entropy[i]) by the logits, with one read and one write of them:
 *
 *     dz[i][v] = g_logp (v = target) + p[v] (g_lse - g_logp - g_entropy (entropy + log p[v])),   grad_logits = dz dz/dlogits
 *
 * A row whose target is ignored or bad is 0, whatever its logits hold. Unless `fused` is set, p comes from lse, which in fp32 is too coarse for logits of 1e5
 * and more. */
typedef struct {
    flp_dtype dtype; /* of logits and grad_logits */
    int64_t rows, vocab;
    int64_t logits_stride, grad_stride; /* elements from row to row; 0: V */
    int pointer_alignment;              /* of logits and grad_logits */
    flp_dtype target_dtype;
    int entropy; /* 1: g_entropy is read */
    int fused;   /* 1: lse is not known yet: the same call also computes the forward and writes its results */
    flp_backend backend;
    double softcap;
} flp_logits_logp_backward_problem;

FLP_INLINE flp_status flp_logits_logp_backward_problem_format(const flp_logits_logp_backward_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_logits_logp_backward_problem_parse(const char *text, flp_logits_logp_backward_problem *problem);
FLP_INLINE flp_status flp_logits_logp_backward_plan_create(flp_context *context, const flp_logits_logp_backward_problem *problem, flp_plan **plan);

/* With row_index the upstream gradients and grad_logits are indexed as results are. */
typedef struct {
    int64_t rows;
    const void *logits, *target;
    const int64_t *row_index;
    int64_t logits_rows;
    int64_t ignore_index; /* as for logits_logp */
    unsigned flags;       /* flp_execute_flags */
    double temperature;   /* this field and the next as in the forward */
    const float *row_temperature;
    const float *g_logp;    /* f32 */
    const float *g_lse;     /* f32 or NULL: zeros */
    const float *g_entropy; /* f32 or NULL: zeros; needs problem.entropy */
    float *lse;             /* read; fused: written, or NULL */
    float *entropy;         /* read if problem.entropy is set; fused: written, or NULL */
    float *logp;            /* fused: written, or NULL. Else read, or NULL: then 1 - p of a likely target is computed from lse, which has too few
                                     digits for it */
    void *grad_logits;      /* may be logits itself, with the same stride (and, with row_index, FLP_SCATTER); otherwise the two do not overlap */
    void *workspace;
    size_t workspace_bytes;
    void *stream;
} flp_logits_logp_backward_args;

FLP_INLINE flp_status flp_logits_logp_backward_execute(flp_plan *plan, const flp_logits_logp_backward_args *args);
FLP_INLINE flp_status flp_logits_logp_backward(flp_context *context, const flp_logits_logp_backward_problem *problem,
                                               const flp_logits_logp_backward_args *args);
FLP_INLINE flp_status flp_logits_logp_backward_prepare(flp_context *context, const flp_logits_logp_backward_problem *problem, void *stream);

/* ---- facts -------------------------------------------------------------------------------------------------- */

typedef struct {
    char name[128];
    int compute_capability; /* 10 x major + minor */
    int multiprocessors;
    int shared_bytes_per_block; /* the opt-in limit */
    int64_t memory_bytes;
} flp_device_facts;

/* The number of devices that the driver shows; 0 and FLP_OK if there is no driver. */
FLP_API flp_status flp_device_count(int *count);
FLP_INLINE flp_status flp_device_describe(int ordinal, flp_device_facts *facts);

/* ---- the exported functions that the inline ones call: not for readers ------------------------------------------ */

typedef char flp_enumerations_are_ints[sizeof(flp_dtype) == sizeof(int) ? 1 : -1]; /* -fshort-enums would change the structs */

FLP_INLINE const flp_sizes *flp_header_sizes(void)
{
    static const flp_sizes sizes = { /* in the order of flp_sizes */
                                     sizeof(flp_sizes),
                                     sizeof(flp_context_options),
                                     sizeof(flp_counters),
                                     sizeof(flp_device_facts),
                                     sizeof(flp_linear_logp_problem),
                                     sizeof(flp_linear_logp_args),
                                     sizeof(flp_linear_logp_backward_problem),
                                     sizeof(flp_linear_logp_backward_args),
                                     sizeof(flp_linear_cross_entropy_problem),
                                     sizeof(flp_linear_cross_entropy_args),
                                     sizeof(flp_token_input),
                                     sizeof(flp_token_parameter),
                                     sizeof(flp_weighted_sum_problem),
                                     sizeof(flp_weighted_sum_args),
                                     sizeof(flp_weighted_sum_backward_problem),
                                     sizeof(flp_weighted_sum_backward_args),
                                     sizeof(flp_logits_logp_problem),
                                     sizeof(flp_logits_logp_args),
                                     sizeof(flp_logits_logp_backward_problem),
                                     sizeof(flp_logits_logp_backward_args),
                                     sizeof(flp_linear_logp_merge_args),
                                     sizeof(flp_scale_problem),
                                     sizeof(flp_scale_args)
    };

    return &sizes;
}

#define FLP_OPERATOR(X)                                                                                                                  \
    FLP_API flp_status X##_problem_format_sized(const X##_problem *problem, char *text, size_t bytes, const flp_sizes *sizes);           \
    FLP_API flp_status X##_problem_parse_sized(const char *text, X##_problem *problem, const flp_sizes *sizes);                          \
    FLP_API flp_status X##_plan_create_sized(flp_context *context, const X##_problem *problem, flp_plan **plan, const flp_sizes *sizes); \
    FLP_API flp_status X##_execute_sized(flp_plan *plan, const X##_args *args, const flp_sizes *sizes);                                  \
    FLP_API flp_status X##_sized(flp_context *context, const X##_problem *problem, const X##_args *args, const flp_sizes *sizes);        \
    FLP_API flp_status X##_prepare_sized(flp_context *context, const X##_problem *problem, void *stream, const flp_sizes *sizes);        \
    FLP_INLINE flp_status X##_problem_format(const X##_problem *problem, char *text, size_t bytes)                                       \
    {                                                                                                                                    \
        return X##_problem_format_sized(problem, text, bytes, flp_header_sizes());                                                       \
    }                                                                                                                                    \
    FLP_INLINE flp_status X##_problem_parse(const char *text, X##_problem *problem)                                                      \
    {                                                                                                                                    \
        return X##_problem_parse_sized(text, problem, flp_header_sizes());                                                               \
    }                                                                                                                                    \
    FLP_INLINE flp_status X##_plan_create(flp_context *context, const X##_problem *problem, flp_plan **plan)                             \
    {                                                                                                                                    \
        return X##_plan_create_sized(context, problem, plan, flp_header_sizes());                                                        \
    }                                                                                                                                    \
    FLP_INLINE flp_status X##_execute(flp_plan *plan, const X##_args *args)                                                              \
    {                                                                                                                                    \
        return X##_execute_sized(plan, args, flp_header_sizes());                                                                        \
    }                                                                                                                                    \
    FLP_INLINE flp_status X(flp_context *context, const X##_problem *problem, const X##_args *args)                                      \
    {                                                                                                                                    \
        return X##_sized(context, problem, args, flp_header_sizes());                                                                    \
    }                                                                                                                                    \
    FLP_INLINE flp_status X##_prepare(flp_context *context, const X##_problem *problem, void *stream)                                    \
    {                                                                                                                                    \
        return X##_prepare_sized(context, problem, stream, flp_header_sizes());                                                          \
    }
FLP_OPERATOR(flp_linear_logp)
FLP_OPERATOR(flp_linear_logp_backward)
FLP_OPERATOR(flp_linear_cross_entropy)
FLP_OPERATOR(flp_weighted_sum)
FLP_OPERATOR(flp_weighted_sum_backward)
FLP_OPERATOR(flp_logits_logp)
FLP_OPERATOR(flp_logits_logp_backward)
FLP_OPERATOR(flp_scale)
#undef FLP_OPERATOR

FLP_API flp_status flp_context_create_sized(const flp_context_options *options, flp_context **context, const flp_sizes *sizes);
FLP_INLINE flp_status flp_context_create(const flp_context_options *options, flp_context **context)
{
    return flp_context_create_sized(options, context, flp_header_sizes());
}

FLP_API flp_status flp_context_counters_sized(const flp_context *context, flp_counters *counters, const flp_sizes *sizes);
FLP_INLINE flp_status flp_context_counters(const flp_context *context, flp_counters *counters)
{
    return flp_context_counters_sized(context, counters, flp_header_sizes());
}

FLP_API flp_status flp_linear_logp_merge_sized(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args,
                                               const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_logp_merge(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args)
{
    return flp_linear_logp_merge_sized(context, problem, args, flp_header_sizes());
}

FLP_API flp_status flp_linear_logp_execute_merge_sized(flp_plan *plan, const flp_linear_logp_merge_args *args, const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_logp_execute_merge(flp_plan *plan, const flp_linear_logp_merge_args *args)
{
    return flp_linear_logp_execute_merge_sized(plan, args, flp_header_sizes());
}

#define FLP_OF_SHARD(X)                                                                                                                                 \
    FLP_API flp_status flp_linear_cross_entropy_##X##_sized(flp_context *context, const flp_linear_cross_entropy_problem *problem,                      \
                                                            const flp_linear_cross_entropy_args *args, const flp_sizes *sizes);                         \
    FLP_API flp_status flp_linear_cross_entropy_execute_##X##_sized(flp_plan *plan, const flp_linear_cross_entropy_args *args, const flp_sizes *sizes); \
    FLP_INLINE flp_status flp_linear_cross_entropy_##X(flp_context *context, const flp_linear_cross_entropy_problem *problem,                           \
                                                       const flp_linear_cross_entropy_args *args)                                                       \
    {                                                                                                                                                   \
        return flp_linear_cross_entropy_##X##_sized(context, problem, args, flp_header_sizes());                                                        \
    }                                                                                                                                                   \
    FLP_INLINE flp_status flp_linear_cross_entropy_execute_##X(flp_plan *plan, const flp_linear_cross_entropy_args *args)                               \
    {                                                                                                                                                   \
        return flp_linear_cross_entropy_execute_##X##_sized(plan, args, flp_header_sizes());                                                            \
    }
FLP_OF_SHARD(partials)
FLP_OF_SHARD(merge)
#undef FLP_OF_SHARD

FLP_API flp_status flp_linear_logp_sharded_sized(flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                                                 const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_logp_sharded(flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    return flp_linear_logp_sharded_sized(ranks, problem, args, flp_header_sizes());
}

FLP_API flp_status flp_linear_logp_backward_sharded_sized(flp_ranks *ranks, const flp_linear_logp_backward_problem *problem,
                                                          const flp_linear_logp_backward_args *args, const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_logp_backward_sharded(flp_ranks *ranks, const flp_linear_logp_backward_problem *problem,
                                                       const flp_linear_logp_backward_args *args)
{
    return flp_linear_logp_backward_sharded_sized(ranks, problem, args, flp_header_sizes());
}

FLP_API flp_status flp_linear_cross_entropy_sharded_sized(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem,
                                                          const flp_linear_cross_entropy_args *args, const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_cross_entropy_sharded(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem,
                                                       const flp_linear_cross_entropy_args *args)
{
    return flp_linear_cross_entropy_sharded_sized(ranks, problem, args, flp_header_sizes());
}

FLP_API flp_status flp_linear_logp_backward_execute_forward_sized(flp_plan *plan, const flp_linear_logp_args *args, const flp_sizes *sizes);
FLP_INLINE flp_status flp_linear_logp_backward_execute_forward(flp_plan *plan, const flp_linear_logp_args *args)
{
    return flp_linear_logp_backward_execute_forward_sized(plan, args, flp_header_sizes());
}

FLP_API flp_status flp_device_describe_sized(int ordinal, flp_device_facts *facts, const flp_sizes *sizes);
FLP_INLINE flp_status flp_device_describe(int ordinal, flp_device_facts *facts)
{
    return flp_device_describe_sized(ordinal, facts, flp_header_sizes());
}

#ifdef __cplusplus
}
#endif
#endif
