/* fusedlogp: fused linear log-probabilities without materialised logits.
 *
 * The library never prints, never exits and keeps no pointer that a call was given. Every call returns a status;
 * flp_error_message() then says which argument was wrong, what it was and what was wanted. All functions may be
 * called from any thread; one plan may be executed from several threads and streams at once when each call brings
 * its own workspace. */
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

/* ---- status ------------------------------------------------------------------------------------------------- */

#define FLP_STATUS_LIST(X)                                                       \
    X(OK, 0, "success")                                                          \
    X(BAD_ARGUMENT, -1, "an argument is not acceptable")                         \
    X(NO_VARIANT, -2, "no kernel fits this problem on this device")              \
    X(NO_DRIVER, -3, "no CUDA driver or no CUDA device")                         \
    X(NO_NVRTC, -4, "a kernel has to be compiled and NVRTC was not found")       \
    X(COMPILE_FAILED, -5, "NVRTC rejected an emitted kernel")                    \
    X(CUDA_FAILED, -6, "a CUDA driver call failed")                              \
    X(OUT_OF_MEMORY, -7, "not enough host or device memory")                     \
    X(BAD_TARGET, -8, "a target lies outside the vocabulary")                    \
    X(CAPTURING, -9, "a stream is being captured and the call cannot be recorded") \
    X(WRONG_CONTEXT, -10, "no CUDA context is current, or not the plan's")       \
    X(FORKED, -11, "the process forked after the library used CUDA")             \
    X(IO_FAILED, -12, "a file could not be read or written")                     \
    X(INTERNAL, -13, "the library is inconsistent with itself")

typedef enum {
#define FLP_STATUS_ENUM(name, value, text) FLP_##name = value,
    FLP_STATUS_LIST(FLP_STATUS_ENUM)
#undef FLP_STATUS_ENUM
} flp_status;

/* The text of a status; "unknown status" for any other number. Static. */
FLP_API const char *flp_status_text(flp_status status);

/* The detail of the last call of this thread that failed; "" where none did. Valid until this thread's next call. */
FLP_API const char *flp_error_message(void);

/* "MAJOR.MINOR.PATCH" of the library that runs (the macros are those of the header). Static. */
FLP_API const char *flp_version(void);

/* ---- log ---------------------------------------------------------------------------------------------------- */

typedef enum { FLP_LOG_DEBUG, FLP_LOG_INFO, FLP_LOG_WARNING } flp_log_level;

/* message: one line without a newline, valid during the call only. May be called from any thread. */
typedef void (*flp_log_callback)(void *user_data, flp_log_level level, const char *message);

/* Where the library's log goes, for the whole process; NULL (the default): nowhere. */
FLP_API void flp_log_set_callback(flp_log_callback callback, void *user_data);

/* ---- context ------------------------------------------------------------------------------------------------ */

typedef struct flp_context flp_context;

typedef struct {
    const char *cache_directory; /* kernels on disk; NULL: $FUSEDLOGP_CACHE_DIR, else $XDG_CACHE_HOME/fusedlogp,
                                    else ~/.cache/fusedlogp; "": none, memory only */
    const char *system_cache_directories; /* colon-separated, only read; NULL: what was configured at build time */
    int64_t cache_bytes;  /* the user directory's size, least recently used files go first; 0: 1 GiB */
    int cpu_threads;      /* threads of the CPU path; 0: one for each available core */
    unsigned flags;       /* FLP_CONTEXT_... */
} flp_context_options;

enum {
    FLP_CONTEXT_NO_COMPILE = 1u, /* never call NVRTC: a kernel in no cache is FLP_NO_NVRTC */
    FLP_CONTEXT_NO_GPU = 2u      /* plan for the CPU even where there is a GPU */
};

/* options: NULL or zeroed for the defaults. The context is freed with flp_context_destroy, after its plans. It loads
 * neither libcuda nor NVRTC until a plan needs them.
 * FLP_BAD_ARGUMENT: an unknown flag, a negative number. FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_context_create(const flp_context_options *options, flp_context **context);

/* NULL is allowed. Destroy the context's plans first; no stream may still run its kernels. */
FLP_API void flp_context_destroy(flp_context *context);

typedef struct {
    int64_t compiled;    /* kernels that NVRTC compiled */
    int64_t disk_hits;   /* kernels found in a cache directory */
    int64_t disk_misses; /* ... and not found in any */
    int64_t loaded;      /* modules loaded into a CUDA context */
    int64_t plans;       /* plans created, dispatch included */
} flp_counters;

FLP_API void flp_context_counters(const flp_context *context, flp_counters *counters);

/* ---- problem ------------------------------------------------------------------------------------------------ */

typedef enum { FLP_NONE, FLP_BF16, FLP_F16, FLP_F32, FLP_I32, FLP_I64 } flp_dtype;
typedef enum { FLP_VOCAB_HIDDEN, FLP_HIDDEN_VOCAB } flp_weight_layout; /* weight [V, D] or [D, V] */
typedef enum {
    FLP_PRECISION_TENSOR, /* tensor cores; fp32 inputs as three tf32 products, with fp32 accuracy (an infinite entry of hidden
                             makes its row NaN, of weight every row) */
    FLP_PRECISION_EXACT   /* fp32 inputs by fp32 multiply-add, no tensor cores */
} flp_precision;
typedef enum { FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE, FLP_BACKEND_CPU } flp_backend;

/* What is asked, without data. Zero it, then set what differs.
 *
 *     z[i][v] = softcap(sum_d hidden[i][d] weight[v][d] + bias[v]) / temperature[i],  softcap(z) = c tanh(z / c)
 *     lse[i]  = log(sum_v exp(z[i][v])),   logp[i] = z[i][target[i]] - lse[i],   argmax[i] = first v of the largest z
 *
 * One canonical string: flp_problem_format. */
typedef struct {
    flp_dtype dtype;                 /* of hidden and weight: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;                    /* the largest N that will be executed; >= 0 */
    int64_t hidden;                  /* D >= 1 */
    int64_t vocab;                   /* V, 1 .. 2^31 - 1: the real vocabulary; weight may have more rows */
    flp_weight_layout weight_layout;
    int64_t hidden_stride;           /* elements from row to row of hidden; 0: D */
    int64_t weight_stride;           /* elements from row to row of weight; 0: D for [V, D], V for [D, V] */
    int pointer_alignment;           /* bytes that hidden and weight are aligned to; 0: 16. Less: the portable path */
    flp_dtype bias_dtype;            /* FLP_NONE: no bias; else FLP_BF16, FLP_F16, FLP_F32 */
    flp_dtype target_dtype;          /* FLP_I32 or FLP_I64; FLP_NONE: FLP_I64 */
    double softcap;                  /* c > 0; 0: none */
    int argmax;                      /* 1: args.argmax is written */
    flp_precision precision;
    flp_backend backend;             /* AUTO: sm_90a, then portable, then CPU; another: that or FLP_NO_VARIANT */
} flp_linear_logp_problem;

/* Writes e.g. "linear_logp:bf16:n4096:d2048:v131072" with a 0 byte into text [bytes].
 * FLP_BAD_ARGUMENT: the problem is not acceptable (the message says which field), or bytes is too small. */
FLP_API flp_status flp_problem_format(const flp_linear_logp_problem *problem, char *text, size_t bytes);

/* The inverse. FLP_BAD_ARGUMENT: which part of text, and what was wanted. */
FLP_API flp_status flp_problem_parse(const char *text, flp_linear_logp_problem *problem);

/* ---- plan --------------------------------------------------------------------------------------------------- */

typedef struct flp_plan flp_plan;

/* Chooses the path, gets the kernels (memory, disk, else NVRTC) and loads them into the CUDA context that is current
 * in this thread. The plan is freed with flp_plan_destroy, before its context.
 * FLP_BAD_ARGUMENT, FLP_NO_VARIANT, FLP_WRONG_CONTEXT (a GPU path was asked for and no CUDA context is current),
 * FLP_NO_NVRTC, FLP_COMPILE_FAILED, FLP_CAPTURING, FLP_CUDA_FAILED, FLP_OUT_OF_MEMORY. Nothing is left behind. */
FLP_API flp_status flp_plan_create(flp_context *context, const flp_linear_logp_problem *problem, flp_plan **plan);
FLP_API void flp_plan_destroy(flp_plan *plan); /* NULL is allowed */

/* Bytes of workspace that executing rows <= problem.rows takes; -1 where rows is out of range. */
FLP_API int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows);

/* The identity of the arithmetic: two plans with equal strings give a row the same bits. Lives as long as the plan. */
FLP_API const char *flp_plan_numerics(const flp_plan *plan);

/* Problem, path and why, variants, launches, workspace: lines "key: value". Lives as long as the plan. */
FLP_API const char *flp_plan_describe(const flp_plan *plan);

typedef enum {
    FLP_CHECK_TARGETS = 1u /* look at every target first; a bad one is FLP_BAD_TARGET. Waits for the stream. */
} flp_execute_flags;

/* On a GPU path every pointer is a device pointer (of the plan's CUDA context) and borrowed until the stream has
 * passed the call; on the CPU path a host pointer, borrowed during the call. Zero it, then set. */
typedef struct {
    int64_t rows;                   /* N, 0 .. problem.rows */
    const void *hidden;             /* [N, D] */
    const void *weight;             /* [V, D] or [D, V] */
    const void *bias;               /* [V]; NULL where bias_dtype is FLP_NONE */
    const void *target;             /* [N] */
    int64_t ignore_index;           /* a row with this target gives logp 0 (lse and argmax are written as usual);
                                       to ignore none, set a value that no target has */
    double temperature;             /* > 0; 0: 1 */
    const float *row_temperature;   /* [N] f32, > 0, or NULL; instead of temperature */
    float *logp;                    /* [N] f32 */
    float *lse;                     /* [N] f32 or NULL */
    int32_t *argmax;                /* [N] or NULL; needs problem.argmax */
    void *workspace;                /* device memory, 256-byte aligned; NULL: the context's shared scratch */
    size_t workspace_bytes;
    void *stream;                   /* CUstream; NULL: the legacy default stream */
    unsigned flags;                 /* flp_execute_flags */
} flp_linear_logp_args;

/* Computes logp (and lse, argmax). GPU path: enqueues on the stream and returns; allocates nothing when a workspace is
 * passed; may be captured. CPU path: done on return.
 * A target that is neither ignore_index nor in 0 .. V - 1 makes its row NaN; see flp_plan_target_errors. In an ignored
 * row logp is 0 whatever hidden holds; lse and argmax are those of its hidden.
 * FLP_BAD_ARGUMENT names the argument; FLP_BAD_TARGET the row and value; then nothing has been enqueued. */
FLP_API flp_status flp_plan_execute(flp_plan *plan, const flp_linear_logp_args *args);

/* Out-of-range targets that executions of this plan met since the last call of this function. Waits for the device;
 * first_row is -1 where count is 0. Either pointer may be NULL. */
FLP_API flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row);

/* ---- dispatch ----------------------------------------------------------------------------------------------- */

/* Plan and execute in one call: the context keeps the plan of each problem (rows rounded up to its bucket), and a known
 * one is found without lock, allocation or system call. problem.rows and problem.pointer_alignment are ignored: both are
 * taken from args. Errors as flp_plan_create and flp_plan_execute; a problem that is new while its stream is captured is
 * FLP_CAPTURING: call flp_prepare first. */
FLP_API flp_status flp_linear_logp(flp_context *context, const flp_linear_logp_problem *problem,
                                   const flp_linear_logp_args *args);

/* Makes the plans that flp_linear_logp would for any N up to problem.rows, and reserves the shared scratch of stream. */
FLP_API flp_status flp_prepare(flp_context *context, const flp_linear_logp_problem *problem, void *stream);

/* ---- facts -------------------------------------------------------------------------------------------------- */

typedef struct {
    char name[128];
    int compute_capability;       /* 10 x major + minor */
    int multiprocessors;
    int64_t memory_bytes;
    int shared_bytes_per_block;   /* the opt-in limit */
} flp_device_facts;

/* Devices that the driver shows; 0 and FLP_OK where there is no driver. */
FLP_API flp_status flp_device_count(int *count);
FLP_API flp_status flp_device_describe(int ordinal, flp_device_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
