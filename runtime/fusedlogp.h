/* fusedlogp: fused linear log-probabilities without materialised logits.
 *
 * The library never prints, never exits and keeps no pointer that a call was given. Every call returns a status;
 * flp_error_message() then says which argument was wrong, what it was and what was wanted. All functions may be
 * called from any thread; one plan may be executed from several threads and streams at once when each call brings
 * its own workspace. What the library writes and reads follows no locale: a number has a decimal point whatever setlocale was given. */
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

/* Structs grow: a later version appends fields, and a program compiled against one header runs with the library of another, whichever is the
 * newer. So each function that takes a struct is inline here (FLP_INLINE) and calls the exported function of its name with _sized behind it,
 * whose last argument says how large this header's structs are. A field that the program does not know is 0, which stands for what was before
 * the field; one that the library does not know is FLP_BAD_ARGUMENT unless it is 0.
 * Who calls the library without this header (dlsym, ctypes) calls the _sized functions: with the same arguments as the inline one, and
 * flp_sizes filled from their own declarations of the structs. */
#define FLP_INLINE static inline

/* The bytes of each struct, as the caller's header has it; flp_header_sizes() gives this one's. A struct that is the first field of another has
 * its own size here, too: both may grow. */
typedef struct {
    uint32_t bytes; /* of flp_sizes itself */
    uint32_t context_options, counters, device_facts;
    uint32_t linear_logp_problem, linear_logp_args, linear_logp_backward_problem, linear_logp_backward_args;
    uint32_t linear_cross_entropy_problem, linear_cross_entropy_args, token_input, token_parameter;
    uint32_t weighted_sum_problem, weighted_sum_args, weighted_sum_backward_problem, weighted_sum_backward_args;
    uint32_t logits_logp_problem, logits_logp_args, logits_logp_backward_problem, logits_logp_backward_args;
    uint32_t linear_logp_merge_args;
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

/* The detail of the last call of this thread that failed, which calls that succeed leave alone; "" where none did. Valid until this thread's next
 * call. */
FLP_API const char *flp_error_message(void);

/* "MAJOR.MINOR.PATCH" of the library that runs (the macros are those of the header). Static. */
FLP_API const char *flp_version(void);

/* ---- log ---------------------------------------------------------------------------------------------------- */

typedef enum { FLP_LOG_DEBUG, FLP_LOG_INFO, FLP_LOG_WARNING } flp_log_level;

/* message: one line without a newline, valid during the call only. May be called from any thread, and may call the library: no lock of it is held
 * then, and the lines of such calls follow when the callback has returned. */
typedef void (*flp_log_callback)(void *user_data, flp_log_level level, const char *message);

/* Where the library's log goes, for the whole process; NULL (the default): nowhere. */
FLP_API void flp_log_set_callback(flp_log_callback callback, void *user_data);

/* ---- context ------------------------------------------------------------------------------------------------ */

typedef struct flp_context flp_context;

typedef struct {
    const char *cache_directory;            /* kernels on disk; NULL: $FUSEDLOGP_CACHE_DIR, else $XDG_CACHE_HOME/fusedlogp,
                                    else ~/.cache/fusedlogp; "": none, memory only */
    const char *system_cache_directories;   /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_CACHE, else what was configured at build time;
                                    "": none. One that root or this user owns and nobody else may write to is used, any other is one warning */
    int64_t cache_bytes;                    /* the user directory's size, least recently used files go first; 0: 1 GiB */
    int cpu_threads;                        /* threads of the CPU path, 0 .. 1024; 0: one for each available core */
    unsigned flags;                         /* FLP_CONTEXT_... */
    const char *records_directory;          /* of tunings; NULL: $FUSEDLOGP_RECORDS_DIR, else $XDG_DATA_HOME/fusedlogp/records,
                                    else ~/.local/share/fusedlogp/records; "": none. A GPU's plan without a record adds its problem to the list
                                    there (fusedlogp tune --untuned) */
    const char *system_records_directories; /* colon-separated, only read; NULL: $FUSEDLOGP_SYSTEM_RECORDS, else those that were installed; "": none */
    double tune_seconds;                    /* with FLP_CONTEXT_TUNE, of each problem; 0: $FUSEDLOGP_TUNE_SECONDS, else 2 */
} flp_context_options;

enum {
    FLP_CONTEXT_NO_COMPILE = 1u,   /* never call NVRTC: a kernel in no cache is FLP_NO_NVRTC */
    FLP_CONTEXT_NO_GPU = 2u,       /* plan for the CPU even where there is a GPU */
    FLP_CONTEXT_SHARED_CACHE = 4u, /* what is kept in cache_directory may be read by all whom the umask allows it, as a system directory of theirs;
                                    else by this user alone */
    FLP_CONTEXT_REPLAY = 8u,       /* a plan on a GPU without an exact record of its tuning is FLP_NO_VARIANT: all processes that are given the same
                                    records run the same kernels */
    FLP_CONTEXT_TUNED_BITS = 16u,  /* what a record decides on a row's bits, for any number of rows (fusedlogp tune --numerics), counts, as
                                    flp_plan_numerics says */
    FLP_CONTEXT_TUNE = 32u         /* a GPU's new plan without an exact record is tuned for first, for tune_seconds, in device memory of the tuning's own,
                                    and takes the record that this writes. Not while a stream is captured, nor without a records directory. It allocates
                                    and frees device memory, for which the driver may wait for the device. Not beside FLP_CONTEXT_REPLAY or
                                    FLP_CONTEXT_NO_COMPILE */
};

/* options: NULL or zeroed for the defaults. The context is freed with flp_context_destroy, after its plans. It loads
 * neither libcuda nor NVRTC until a plan needs them.
 * FLP_BAD_ARGUMENT: an unknown flag, or two that exclude each other; a negative number. FLP_OUT_OF_MEMORY. */
FLP_INLINE flp_status flp_context_create(const flp_context_options *options, flp_context **context);

/* NULL is allowed. Destroy the context's plans first; no stream may still run its kernels. */
FLP_API void flp_context_destroy(flp_context *context);

/* Frees the device memory that calls without a workspace have left: the first four streams of a CUDA context have a buffer each, further streams
 * take turns with four more, and a stream that was prepared or captured keeps its own. Later calls allocate anew. With of_graphs also what captured calls
 * use: graphs of them must not be replayed any more. Waits for each CUDA context that has such memory, from whichever thread.
 * FLP_BAD_ARGUMENT: context is NULL. FLP_CAPTURING: a stream is being captured, which such a wait may end. FLP_CUDA_FAILED. What was not freed then is
 * as it was. */
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

/* Each operator X has the same set:
 *     flp_X_problem         what is asked, without data; zero it, then set what differs
 *     flp_X_args            the data of one call; zero it, then set
 *     flp_X_problem_format  its canonical string, and flp_X_problem_parse the inverse
 *     flp_X_plan_create     chooses a path and gets its kernels
 *     flp_X_execute         runs a plan
 *     flp_X                 both in one call
 *     flp_X_prepare         makes now what later calls of flp_X need
 * What is said of these at linear_logp holds for every operator. */

typedef enum { FLP_NONE, FLP_BF16, FLP_F16, FLP_F32, FLP_I32, FLP_I64 } flp_dtype;
typedef enum { FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE, FLP_BACKEND_CPU } flp_backend;

/* "auto", "sm_90a", "portable" or "cpu", as in canonical strings; "unknown backend" for any other number. Static. */
FLP_API const char *flp_backend_name(flp_backend backend);

typedef enum {
    FLP_CHECK_TARGETS = 1u, /* look at every target first; a bad one is FLP_BAD_TARGET. Waits for the stream. */
    FLP_SCATTER = 2u,       /* logits_logp with a row_index: results lie at [row_index[i]], not at [i] */
    FLP_IGNORE_INDEX = 4u   /* rows whose target is args.ignore_index are ignored. Without it none is, and ignore_index is 0 */
} flp_execute_flags;

/* ---- plan --------------------------------------------------------------------------------------------------- */

typedef struct flp_plan flp_plan; /* of one operator: giving it to another's flp_X_execute is FLP_BAD_ARGUMENT */

FLP_API void flp_plan_destroy(flp_plan *plan); /* NULL is allowed */

/* Bytes of workspace that executing rows <= problem.rows takes; -1 where rows is out of range, or plan NULL. */
FLP_API int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows);

/* The identity of the arithmetic: two plans with equal strings give a row the same bits. Lives as long as the plan; "" of NULL. */
FLP_API const char *flp_plan_numerics(const flp_plan *plan);

/* The path that was taken: FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU; FLP_BACKEND_AUTO of NULL. */
FLP_API flp_backend flp_plan_backend(const flp_plan *plan);

/* Where a plan's tuning is from: a record of this problem on this machine or on one like it, or what the model makes of the record of a shape nearby or, without
 * any, of the device's memory. */
typedef enum { FLP_TUNED_NOT, FLP_TUNED_EXACT, FLP_TUNED_NEARBY, FLP_TUNED_MODEL } flp_tuned_by;
FLP_API flp_tuned_by flp_plan_tuned_by(const flp_plan *plan); /* FLP_TUNED_NOT of NULL */

/* What it changes of the kernels, as `fusedlogp tune` writes it: "tile.cluster=1,tile.group=8"; "" where that is nothing. Lives as long as the plan; "" of
 * NULL. */
FLP_API const char *flp_plan_tuning(const flp_plan *plan);

/* Why it was taken, and why no faster one, in a line without a newline; never empty. Lives as long as the plan; "" of NULL. */
FLP_API const char *flp_plan_reason(const flp_plan *plan);

/* For people, not for programs: problem, path and why, variants, launches, workspace, as lines "key: value". Lives as long as the plan; "" of NULL. */
FLP_API const char *flp_plan_describe(const flp_plan *plan);

/* Out-of-range targets that executions of this plan met since the last call of this function. Waits for the device;
 * first_row is -1 where count is 0. Either pointer may be NULL. */
FLP_API flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row);

/* Counts over this plan's executions with a grad_filter_eps since the last call of this function: how many blocks of derivatives there were, and how many
 * of them the products passed over; 0 and 0 on paths without a filter. Waits for the device. Either pointer may be NULL. */
FLP_API flp_status flp_plan_filter_statistics(flp_plan *plan, int64_t *blocks, int64_t *passed_over);

/* For a plan with_forward: how many executions of flp_linear_logp_backward_execute since the last call of this function did not find in their workspace
 * what the forward leaves for them, and gave NaN gradients. 0 on the CPU path, where such an execution is FLP_BAD_ARGUMENT. Waits for the device.
 * count may be NULL. */
FLP_API flp_status flp_plan_unmatched_backwards(flp_plan *plan, int64_t *count);

/* ---- linear_logp -------------------------------------------------------------------------------------------- */

typedef enum { FLP_VOCAB_HIDDEN, FLP_HIDDEN_VOCAB } flp_weight_layout; /* weight [V, D] or [D, V] */
typedef enum {
    FLP_PRECISION_TENSOR, /* tensor cores; fp32 inputs as three tf32 products, with fp32 accuracy (an infinite entry of hidden
                             makes its row NaN, of weight every row) */
    FLP_PRECISION_EXACT   /* fp32 inputs by fp32 multiply-add, no tensor cores */
} flp_precision;

/* What is asked, without data. Zero it, then set what differs.
 *
 *     z[i][v] = softcap(sum_d hidden[i][d] weight[v][d] + bias[v]) / temperature[i],  softcap(z) = c tanh(z / c)
 *     lse[i]  = log(sum_v exp(z[i][v])),   logp[i] = z[i][target[i]] - lse[i],   argmax[i] = first v of the largest z
 *     entropy[i] = -sum_v p[i][v] log(p[i][v]),  p[i][v] = exp(z[i][v] - lse[i])
 *
 * On GPU paths a finite z beyond +-2.35e38, for whose z log2(e) fp32 has no room, counts as that in the sum; logp has the target's own.
 *
 * A problem may be a shard of the vocabulary: entries vocab_first .. vocab_first + vocab - 1 of vocab_total, whose weight and bias it has. The call then
 * leaves args.partials for flp_linear_logp_merge, which says more.
 * One canonical string: flp_linear_logp_problem_format. */
typedef struct {
    flp_dtype dtype; /* of hidden and weight: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;    /* the largest N that will be executed; >= 0 */
    int64_t hidden;  /* D >= 1 */
    int64_t vocab;   /* V, 1 .. 2^31 - 1: the real vocabulary; weight may have more rows */
    flp_weight_layout weight_layout;
    int64_t hidden_stride;  /* elements from row to row of hidden; 0: D */
    int64_t weight_stride;  /* elements from row to row of weight; 0: D for [V, D], V for [D, V] */
    int pointer_alignment;  /* bytes that hidden and weight are aligned to; 0: 16. Less: the portable path */
    flp_dtype bias_dtype;   /* FLP_NONE: no bias; else FLP_BF16, FLP_F16, FLP_F32 */
    flp_dtype target_dtype; /* FLP_I32 or FLP_I64; FLP_NONE: FLP_I64 */
    double softcap;         /* c > 0; 0: none */
    int argmax;             /* 1: args.argmax is written */
    int entropy;            /* 1: args.entropy is written; the other outputs keep their bits */
    flp_precision precision;
    flp_backend backend; /* AUTO: sm_90a, then portable, then CPU; another: that or FLP_NO_VARIANT */
    int64_t vocab_first; /* of a shard: the id of its first entry; else 0 */
    int64_t vocab_total; /* of a shard: V of all of them, vocab_first + vocab .. 2^31 - 1; vocab may be 0 then, and weight and bias NULL. 0: no shard */
} flp_linear_logp_problem;

/* Writes e.g. "linear_logp:bf16:n4096:d2048:v131072" with a 0 byte into text [bytes].
 * FLP_BAD_ARGUMENT: the problem is not acceptable (the message says which field), or bytes is too small. */
FLP_INLINE flp_status flp_linear_logp_problem_format(const flp_linear_logp_problem *problem, char *text, size_t bytes);

/* The inverse. FLP_BAD_ARGUMENT: which part of text, and what was wanted. */
FLP_INLINE flp_status flp_linear_logp_problem_parse(const char *text, flp_linear_logp_problem *problem);

/* Chooses the path, gets the kernels (memory, disk, else NVRTC) and loads them into the CUDA context that is current
 * in this thread. The plan is freed with flp_plan_destroy, before its context.
 * FLP_BAD_ARGUMENT, FLP_NO_VARIANT, FLP_WRONG_CONTEXT (a GPU path was asked for and no CUDA context is current),
 * FLP_NO_NVRTC, FLP_COMPILE_FAILED, FLP_CAPTURING, FLP_CUDA_FAILED, FLP_OUT_OF_MEMORY. Nothing is left behind. */
FLP_INLINE flp_status flp_linear_logp_plan_create(flp_context *context, const flp_linear_logp_problem *problem, flp_plan **plan);

/* On a GPU path every pointer is a device pointer (of the plan's CUDA context) and borrowed until the stream has
 * passed the call; on the CPU path a host pointer, borrowed during the call. Zero it, then set. */
typedef struct {
    int64_t rows;                 /* N, 0 .. problem.rows */
    const void *hidden;           /* [N, D] */
    const void *weight;           /* [V, D] or [D, V] */
    const void *bias;             /* [V]; NULL where bias_dtype is FLP_NONE */
    const void *target;           /* [N] */
    int64_t ignore_index;         /* with FLP_IGNORE_INDEX in flags: a row with this target is ignored and gives logp 0 (the other
                                       outputs are written as usual). Without it: 0, and no row is ignored */
    unsigned flags;               /* flp_execute_flags */
    double temperature;           /* 2^-64 .. 2^64; 0: 1 */
    const float *row_temperature; /* [N] f32, > 0, or NULL; instead of temperature. Outside 2^-64 .. 2^64 it counts as the nearest of them */
    float *logp;                  /* [N] f32 */
    float *lse;                   /* [N] f32 or NULL */
    float *entropy;               /* [N] f32 or NULL, in nats; needs problem.entropy */
    int32_t *argmax;              /* [N] or NULL; needs problem.argmax */
    void *workspace;              /* device memory, 256-byte aligned; NULL: the context's shared scratch */
    size_t workspace_bytes;
    void *stream;    /* CUstream; NULL: the legacy default stream */
    float *partials; /* [N, FLP_PARTIAL_FLOATS] f32 of a shard, whose logp, lse, entropy and argmax are NULL; else NULL */
} flp_linear_logp_args;

/* Computes logp (and lse, entropy, argmax). GPU path: enqueues on the stream and returns; allocates nothing when a workspace is
 * passed; may be captured. CPU path: done on return.
 * A target that is neither ignored nor in 0 .. V - 1 makes its row NaN; see flp_plan_target_errors. In an ignored
 * row logp is 0 whatever hidden holds; lse, entropy and argmax are those of its hidden. A NaN or +inf logit makes its row's
 * logp, lse and entropy NaN.
 * logp has a relative error of at most 2e-6 beyond what rounding the logits to fp32 costs, however likely the target is; the difference of the
 * target's logit and lse does not. lse and entropy are summed up around the target too: their last bits depend on it.
 * FLP_BAD_ARGUMENT names the argument; FLP_BAD_TARGET the row and value; then nothing has been enqueued. */
FLP_INLINE flp_status flp_linear_logp_execute(flp_plan *plan, const flp_linear_logp_args *args);

/* Plan and execute in one call: the context keeps the plan of each problem (rows rounded up to its bucket), and a known
 * one is found without lock, allocation or system call. problem.rows and problem.pointer_alignment are ignored: both are
 * taken from args. Errors as flp_linear_logp_plan_create and flp_linear_logp_execute; a problem that is new while its
 * stream is captured is FLP_CAPTURING: call flp_linear_logp_prepare first. */
FLP_INLINE flp_status flp_linear_logp(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args);

/* Makes the plans that flp_linear_logp would for any N up to problem.rows, and reserves the shared scratch of stream, until
 * flp_context_release_scratch. */
FLP_INLINE flp_status flp_linear_logp_prepare(flp_context *context, const flp_linear_logp_problem *problem, void *stream);

/* ---- linear_logp over shards of the vocabulary --------------------------------------------------------------- */

/* A shard leaves its part of each row's statistics, and the parts of all shards together make the row:
 *
 *     float: offset        k, an integer, in the logarithm to base 2; -inf: the shard has no entry, or none but -inf
 *            sum           sum_v 2^(z2[v] - k) of all entries v but the target, z2 = z log2(e)
 *            target        softcap(logit) of the target where that lies in the shard, else -inf
 *            scale         what makes it z2, log2(e) / temperature; 0: the target lies in another shard, or the row has none
 *            moment        sum_v (z2[v] - k) 2^(z2[v] - k), where the problem has entropy
 *            largest       the largest logit before softcap, where the problem has argmax,
 *     int32: largest_index and its entry's id in the whole vocabulary, the smallest
 *     float: logit_sum     0
 *
 * They are the rows' alone: each transport serves (an all-gather of N x 32 bytes). Targets are ids of the whole vocabulary. */
enum { FLP_PARTIAL_FLOATS = 8 };

/* Pointers as flp_linear_logp_args'. Zero it, then set. */
typedef struct {
    int64_t rows;          /* N, 0 .. problem.rows */
    int ranks;             /* shards, 1 or more: all that the vocabulary is cut into, each once */
    unsigned flags;        /* flp_execute_flags */
    const float *partials; /* [ranks, N, FLP_PARTIAL_FLOATS] */
    const void *target;    /* [N], as the shards had it */
    int64_t ignore_index;  /* as linear_logp's */
    float *logp;           /* [N] f32, each of these four NULL where it is not wanted */
    float *lse;
    float *entropy;  /* needs problem.entropy */
    int32_t *argmax; /* needs problem.argmax */
    void *stream;
} flp_linear_logp_merge_args;

/* logp, lse, entropy and argmax of the whole vocabulary's rows, from the parts of all shards. problem: that of any shard, vocab_first, vocab and weight_stride
 * do not matter; it is prepared by flp_linear_logp_prepare. The parts are merged in the order in which they lie: equal parts in equal order give equal
 * bits, and those depend on where the vocabulary is cut. A value is that of the call without shards but for the rounding of parts to fp32. A z of which
 * z log2(e) is beyond +-2^23 is rounded to fp32 as such.
 * A target that is neither ignored nor in 0 .. vocab_total - 1 makes its row NaN, and is counted here (flp_plan_target_errors), not by the shards; one that
 * no shard has makes it NaN too.
 * Errors as flp_linear_logp; FLP_BAD_ARGUMENT too: the problem is no shard. */
FLP_INLINE flp_status flp_linear_logp_merge(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args);

/* By a plan of a shard, of linear_logp. */
FLP_INLINE flp_status flp_linear_logp_execute_merge(flp_plan *plan, const flp_linear_logp_merge_args *args);

/* ---- linear_logp_backward ----------------------------------------------------------------------------------- */

/* Gradients that are added to what stands there, in fp32 before their one rounding. */
typedef enum { FLP_ACCUMULATE_HIDDEN = 1u, FLP_ACCUMULATE_WEIGHT = 2u, FLP_ACCUMULATE_BIAS = 4u } flp_accumulate;

/* The gradients of a loss by linear_logp's hidden, weight and bias, from its gradients by logp, lse and entropy:
 *
 *     a[i][v] = g_logp[i] ([v = target[i]] - p[i][v]) + g_lse[i] p[i][v] - g_entropy[i] p[i][v] (log(p[i][v]) + entropy[i])
 *     dlogit[i][v] = a[i][v] / temperature[i] (1 - (softcap(logit) / c)^2),   p[i][v] = exp(z[i][v] - lse[i])
 *     grad_hidden = dlogit . weight,   grad_weight = dlogit^T . hidden,   grad_bias[v] = sum_i dlogit[i][v]
 *
 * The logits are computed anew. On a GPU path, and on a CPU that multiplies bf16 (AVX512_BF16) for bf16, dlogit but the target's is rounded to the
 * dtype of the inputs (fp16: scaled by a power of two first; what lies below 2^-28 of the call's largest finite upstream gradient loses digits). Sums are in
 * fp32, each gradient is rounded once, and all repeat bit for bit; a row of grad_hidden depends neither on N nor on other rows. With logits of 1e5 and
 * more the fp32 lse is too coarse for p: there a plan with its forward, or linear_cross_entropy, hands over more.
 *
 * A shard of the vocabulary (forward.vocab_total) takes lse, logp and entropy of the merged rows. Its grad_hidden is the shard's part, which summed up over
 * the shards is the whole (as FLP_F32 it loses nothing to that); grad_weight and grad_bias are those of its entries. */
typedef struct {
    flp_linear_logp_problem forward;               /* as linear_logp was given it, but for argmax and entropy, which are 0. pointer_alignment
                                          counts for grad_hidden and grad_weight too; as an element of dtype it is enough for smaller ones
                                          of theirs at any of their addresses */
    flp_dtype grad_hidden, grad_weight, grad_bias; /* FLP_BF16, FLP_F16 or FLP_F32; FLP_NONE: not wanted. At least one is */
    int64_t grad_hidden_stride;                    /* elements from row to row; 0: hidden's */
    int64_t grad_weight_stride;                    /* 0: weight's. grad_weight lies as weight; behind the real vocabulary it is left alone */
    unsigned accumulate;                           /* flp_accumulate */
    int g_lse, g_entropy;                          /* 1: args brings it */
    int with_forward;                              /* 1: the plan runs linear_logp too, before: flp_linear_logp_backward_execute_forward */
    int64_t memory_budget;                         /* bytes of the whole workspace, that of with_forward included, which a GPU path never exceeds for
                                          problem.rows (without a plan: for N rounded up to its bucket): more memory, fewer flops.
                                          0: at most 265 MiB at N 8192, D 4096, in proportion to N; from 2 D rows on up to 1.4
                                          times that. FLP_BAD_ARGUMENT says the least, which is enough */
    double grad_filter_eps; /* > 0: on sm_90a, blocks of 64 rows x 64 vocabulary entries in which every |dlogit| but the targets' is below
                                          it take no part in grad_hidden and grad_weight, and no time (flp_plan_filter_statistics); the derivatives
                                          by the targets' logits always do. An element of grad_hidden is off
                                          by less than eps times the sum of |weight| over what its row passes over, of grad_weight likewise with
                                          |hidden|. A row's bits then depend on its block. No exponentials are saved. 0: nothing is passed over */
} flp_linear_logp_backward_problem;

/* Pointers as flp_linear_logp_args'; the outputs overlap nothing. */
typedef struct {
    int64_t rows;                                /* N, 0 .. problem.rows; 0 writes grad_weight and grad_bias (zeros) all the same */
    const void *hidden, *weight, *bias, *target; /* linear_logp's */
    int64_t ignore_index; /* with FLP_IGNORE_INDEX: a row with this target has no part in any gradient, whatever its hidden, g_logp, g_lse
                                       and g_entropy hold; its row of grad_hidden is 0 */
    unsigned flags;       /* flp_execute_flags */
    double temperature;   /* linear_logp's, as row_temperature */
    const float *row_temperature;
    const float *lse;               /* [N] f32: linear_logp's */
    const float *entropy;           /* [N] f32: linear_logp's, where problem.g_entropy is 1; else NULL */
    const float *g_logp;            /* [N] f32 */
    const float *g_lse, *g_entropy; /* [N] f32; NULL where the problem's are 0 */
    void *grad_hidden;              /* [N, D]; NULL where not wanted, as the next two */
    void *grad_weight;              /* [V, D] or [D, V], as weight. On a GPU path, [V, D] in one piece that is not added to is scratch until its
                                       rows are written */
    void *grad_bias;                /* [V] */
    void *workspace;                /* as linear_logp's, as the rest */
    size_t workspace_bytes;
    void *stream;
    const float *logp;            /* [N] f32: linear_logp's, or NULL. With it the derivative by the target's logit keeps its digits however likely
                                       the target is (1 - p is taken from logp); without, it loses those that 1 - p loses */
    void *grad_hidden_event;      /* CUevent, or NULL. On a GPU path it is recorded on the stream behind grad_hidden, which may then be exchanged on another
                                       stream: before the last of grad_weight's products and grad_bias, where grad_hidden has a dtype other than hidden's, no
                                       exponentials are saved and nothing is filtered, else behind all of them. No bit depends on it */
    int64_t multiprocessors_left; /* 0 or more: where that product follows the event, it leaves so many multiprocessors to the exchange */
} flp_linear_logp_backward_args;

FLP_INLINE flp_status flp_linear_logp_backward_problem_format(const flp_linear_logp_backward_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_linear_logp_backward_problem_parse(const char *text, flp_linear_logp_backward_problem *problem);

/* On a GPU that has no kernels for it, a problem of FLP_BACKEND_AUTO is FLP_NO_VARIANT: the CPU path would read host memory. */
FLP_INLINE flp_status flp_linear_logp_backward_plan_create(flp_context *context, const flp_linear_logp_backward_problem *problem, flp_plan **plan);

/* A target that is neither ignored nor in 0 .. V - 1 is counted as linear_logp does (flp_plan_target_errors), and its row
 * treated as an ignored one. */
FLP_INLINE flp_status flp_linear_logp_backward_execute(flp_plan *plan, const flp_linear_logp_backward_args *args);

/* linear_logp, of a plan whose problem has with_forward = 1, and then, with the same rows, hidden, weight, bias, target, ignore_index, temperature,
 * flags and workspace, flp_linear_logp_backward_execute. Between the two the workspace is left alone: it tells the backward which rows are valid, so
 * that ignored ones cost nothing in either, and, as memory_budget has room, what of the logits it need not compute anew (where
 * linear_cross_entropy would leave it too, unless g_entropy is 1): with room for [N, V] and [N, D] in bf16 and 4 KiB a row, nothing of them. Where
 * grad_hidden alone is wanted and logits may be left, the forward computes its products too, if there is room for [N, D] in fp32 and the logits of 512 rows
 * (by default, up to V 262144), and the backward none. Where logits are left, a row whose derivatives times hidden are beyond bf16's range may make
 * grad_weight NaN. lse is wanted, entropy where g_entropy is 1, else it is NULL; argmax is NULL.
 * lse and entropy are 0 in rows that are ignored or whose target is bad. The workspace is the caller's, on the CPU path too.
 *
 * Each backward takes one forward: it uses up what this one left, so that a second backward needs another forward. The forward leaves a mark in
 * the workspace, of this plan, the rows, ignore_index and temperature, and the backward takes it away. Where there is none, on a GPU path all
 * gradients are NaN and flp_plan_unmatched_backwards counts it; nothing outside of the arrays is read or written, whatever the workspace
 * holds. On the CPU path it is FLP_BAD_ARGUMENT. The two may be captured in one CUDA graph or in two, and replayed in turn.
 * Errors as flp_linear_logp_execute; FLP_BAD_ARGUMENT too: the plan has no forward, or there is no workspace. */
FLP_INLINE flp_status flp_linear_logp_backward_execute_forward(flp_plan *plan, const flp_linear_logp_args *args);

FLP_INLINE flp_status flp_linear_logp_backward(flp_context *context, const flp_linear_logp_backward_problem *problem,
                                               const flp_linear_logp_backward_args *args);
FLP_INLINE flp_status flp_linear_logp_backward_prepare(flp_context *context, const flp_linear_logp_backward_problem *problem, void *stream);

/* ---- linear_logp over the ranks of an NCCL communicator ------------------------------------------------------- */

/* A rank of an NCCL communicator (the caller's, which it keeps) whose ranks have a shard of the vocabulary each. NCCL is the libnccl.so.2 that the
 * process has loaded. It belongs to the CUDA context that is current here. As with a communicator, one thread at a time calls with it, and all ranks call the
 * same, in one order. */
typedef struct flp_ranks flp_ranks;

/* communicator: ncclComm_t. The ranks are freed with flp_ranks_destroy, before their context and communicator.
 * FLP_BAD_ARGUMENT: one of the three is NULL. FLP_NCCL_FAILED, FLP_NO_DRIVER, FLP_WRONG_CONTEXT, FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_ranks_create(flp_context *context, void *communicator, flp_ranks **ranks);
FLP_API void flp_ranks_destroy(flp_ranks *ranks); /* NULL is allowed */

/* Registers memory of the caller's that calls exchange (grad_hidden, partials) with the communicator, so that NCCL may read it in place (ncclCommRegister, NCCL
 * 2.19); an NCCL without that is asked nothing. All ranks do it alike. It is taken back, before the memory is freed, by flp_ranks_unregister, or by
 * flp_ranks_destroy. Of memory that is not registered, unregister does nothing.
 * FLP_BAD_ARGUMENT: NULL, no bytes, or memory that begins where registered one does. FLP_NCCL_FAILED, FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_ranks_register(flp_ranks *ranks, void *memory, size_t bytes);
FLP_API flp_status flp_ranks_unregister(flp_ranks *ranks, void *memory);

/* linear_logp of the whole vocabulary, on every rank: the shard's call, an all-gather of partials (N x 32 bytes a rank) and the merge, on the stream.
 * problem: this rank's shard. args: linear_logp's, of which hidden and target are the same on all ranks (a sequence-parallel caller gathers hidden before);
 * partials is [ranks, N, FLP_PARTIAL_FLOATS], scratch of the call, and logp, lse, entropy and argmax are written, each of them NULL where it is not wanted.
 * All ranks get the same bits.
 *
 * Ranks that disagree (in N, D, vocab_total, dtype, softcap, argmax, entropy, bias, temperature, ignore_index, or on which entries are whose), or of which
 * one is refused its own part, get FLP_BAD_ARGUMENT on every rank at the first call of such a problem: that one waits for the stream, and cannot be
 * captured. Later calls, with whatever N, which is again the same on all ranks, compare nothing and can: an exchange is of N's size, and
 * ranks of which one has another N wait for each other. With FLP_CHECK_TARGETS in flags, on all ranks, each call compares all of this, N too.
 * FLP_NCCL_FAILED names NCCL's call. */
FLP_INLINE flp_status flp_linear_logp_sharded(flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args);

/* Its backward likewise, from the merged lse, logp and entropy: the shard's gradients, then grad_hidden (FLP_F32, rows without gaps, not added to) summed up
 * over the ranks by an all-reduce in its place, on a stream of the ranks' own beside the last of grad_weight's products; the stream waits for it. grad_weight
 * and grad_bias are the shard's. args.grad_hidden_event is NULL: the call has its own. */
FLP_INLINE flp_status flp_linear_logp_backward_sharded(flp_ranks *ranks, const flp_linear_logp_backward_problem *problem,
                                                       const flp_linear_logp_backward_args *args);

/* ---- linear_cross_entropy ----------------------------------------------------------------------------------- */

/* How the rows' losses become the loss. Rows count but for ignored ones; t is token_weights, w class_weights, both 1 where there are none. */
typedef enum {
    FLP_REDUCE_MEAN, /* sum_i t[i] l[i] / sum_i t[i] w[target[i]]; 0 where the divisor is 0 */
    FLP_REDUCE_SUM,  /* sum_i t[i] l[i] */
    FLP_REDUCE_NONE  /* t[i] l[i] of each row */
} flp_reduction;

enum { FLP_TOKEN_LOSS_NAME_BYTES = 32 };

/* The loss of a language model's head, and in the same call its gradients by hidden, weight and bias. Of each row, with linear_logp's z,
 * logp, lse and p:
 *
 *     uniform[i] = -sum_v w[v] log(p[i][v]) / V
 *     l[i] = -(1 - label_smoothing) w[target[i]] logp[i] + label_smoothing uniform[i] + lse_square_scale lse[i]^2
 *
 * or what a token loss makes of these. Gradients as linear_logp_backward's, which says how they are rounded. On a GPU path the valid rows (neither
 * ignored nor with a bad target) are packed first, without waiting for the device: the others cost nothing, with gradients or without. */
typedef struct {
    flp_linear_logp_backward_problem backward; /* g_lse and g_entropy are 0. Without any gradient, the loss alone is computed, in a workspace of
                                                  N x D elements for the packed rows beside linear_logp's scratch. Else
                                                  memory_budget is that of the whole workspace, the forward's and the loss' included. On a
                                                  GPU, with inputs in bf16 and without softcap, label smoothing or a token loss of entropy or
                                                  uniform, room for [N, V] in bf16 and 4 KiB a row saves computing these logits twice.
                                                  Without it a grad_weight [V, D] that is written, not added to, its rows one behind the
                                                  other, holds what it can before its own entries are written: in bf16 the exponentials of
                                                  nearly V D / N entries, by default (from D 1024 on) those of half of V for up to 2 D rows.
                                                  Where grad_weight is not wanted, or f32 and accumulated (and grad_bias so too or none), room for
                                                  512 rows or more (by default, where grad_hidden alone is wanted and V is at most 262144, for as
                                                  many as fit into 256 MiB) saves it too: then the valid rows go through in chunks (beside that they take N x D
                                                  elements, unless grad_hidden is in hidden's dtype and not accumulated). The values change
                                                  within their rounding, and a row whose derivatives times hidden are beyond bf16's range,
                                                  as at a temperature of 2^-64, may make grad_weight NaN. The CPU path saves fp32 logits of the first rows in so much memory (0: 512 MiB)
                                                  and computes these once; no bit shows it. */
    flp_reduction reduction;
    int label_smoothing;                        /* 1: args.label_smoothing is used */
    flp_dtype class_weights;                    /* FLP_NONE: 1; else FLP_BF16, FLP_F16 or FLP_F32 */
    int token_weights;                          /* 1: args.token_weights is used */
    int entropy;                                /* 1: args.entropy is written */
    int reserved;                               /* 0 */
    char token_loss[FLP_TOKEN_LOSS_NAME_BYTES]; /* "": the above. "policy_gradient", "policy_gradient_kl", or a name that
                                                   flp_token_loss_define was given */
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
    int64_t rows;                                /* N, 0 .. problem.rows; 0 writes the loss, grad_weight and grad_bias (zeros) all the same */
    const void *hidden, *weight, *bias, *target; /* linear_logp's */
    int64_t ignore_index; /* with FLP_IGNORE_INDEX: a row with this target has no part in loss or gradients, whatever its inputs hold; with
                                       FLP_REDUCE_NONE its loss is 0 */
    unsigned flags;       /* flp_execute_flags */
    double temperature;   /* linear_logp's, as row_temperature */
    const float *row_temperature;
    const void *class_weights;  /* [V], of a shard too that of the whole vocabulary; NULL where the problem's is FLP_NONE */
    const float *token_weights; /* [N] f32; NULL where the problem's is 0. A row of weight 0 has loss 0 and no derivatives, also where they are infinite */
    double label_smoothing;     /* 0 .. 1; 0 where the problem's is 0 */
    double lse_square_scale;    /* z-loss; 0 with a token loss */
    const flp_token_input *token_inputs; /* [token_input_count] each that the token loss takes, in any order; borrowed during the call */
    int token_input_count;
    const flp_token_parameter *token_parameters; /* [token_parameter_count] those that differ from the token loss' defaults */
    int token_parameter_count;
    const float *g_loss;         /* f32 [1], [N] with FLP_REDUCE_NONE: the gradient by loss; NULL: 1 */
    float *loss;                 /* f32 [1], [N] with FLP_REDUCE_NONE */
    float *logp, *lse, *entropy; /* [N] f32 or NULL: linear_logp's, but that lse and entropy are 0 in rows that are ignored or whose target is bad;
                                       entropy needs problem.entropy */
    void *grad_hidden, *grad_weight, *grad_bias; /* linear_logp_backward's */
    void *workspace;                             /* as linear_logp's, as the rest */
    size_t workspace_bytes;
    void *stream;
    float *partials;         /* of a shard: [N, FLP_PARTIAL_FLOATS] f32, or those of all shards; else NULL */
    int64_t ranks;           /* of a shard's merge: as flp_linear_logp_merge_args' */
    void *grad_hidden_event; /* flp_linear_logp_backward_args', as the next */
    int64_t multiprocessors_left;
} flp_linear_cross_entropy_args;

/* e.g. "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight" */
FLP_INLINE flp_status flp_linear_cross_entropy_problem_format(const flp_linear_cross_entropy_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_linear_cross_entropy_problem_parse(const char *text, flp_linear_cross_entropy_problem *problem);

/* As flp_linear_logp_backward_plan_create. FLP_BAD_ARGUMENT too: the context knows no token loss of that name. */
FLP_INLINE flp_status flp_linear_cross_entropy_plan_create(flp_context *context, const flp_linear_cross_entropy_problem *problem, flp_plan **plan);

/* A target that is neither ignored nor in 0 .. V - 1 is counted as linear_logp does; it makes its row's loss NaN, and with it the mean
 * or the sum, and has no part in the gradients or the mean's divisor. */
FLP_INLINE flp_status flp_linear_cross_entropy_execute(flp_plan *plan, const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                               const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_prepare(flp_context *context, const flp_linear_cross_entropy_problem *problem, void *stream);

/* Over shards of the vocabulary (problem.backward.forward.vocab_total), in two calls of the same problem with the same args, around the caller's exchange;
 * flp_linear_cross_entropy itself refuses a shard, flp_linear_cross_entropy_prepare prepares both.
 *
 * First args.partials [N, FLP_PARTIAL_FLOATS], as linear_logp's shards leave them, with logit_sum = sum_v w[v] z[v] of the shard's entries where the loss
 * takes uniform (label smoothing), and the moment where it takes entropy or the problem's entropy is 1. Of the arguments, it looks at those that
 * linear_logp has and at class_weights. Of rows that do not count they hold nothing of use. Bad targets are counted by the merge. */
FLP_INLINE flp_status flp_linear_cross_entropy_partials(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                                        const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_execute_partials(flp_plan *plan, const flp_linear_cross_entropy_args *args);

/* Then, with args.partials [ranks, N, FLP_PARTIAL_FLOATS] of all shards in their order and args.ranks, what flp_linear_cross_entropy gives: loss, logp, lse and
 * entropy, on every rank the same bits, of rows whose V is the whole's; grad_weight and grad_bias of the shard's entries; and of grad_hidden
 * the shard's part, which summed up over the shards is the whole (FLP_F32 loses nothing to that; what it is added to, with FLP_ACCUMULATE_HIDDEN, counts once a
 * shard). mean divides by all rows: they are the same on all ranks. Logits are computed twice, no exponentials are saved. As flp_linear_logp_backward's, the
 * gradients come from the merged rows' fp32 lse, which is too coarse for logits of 1e5 and more. A target that no shard has makes its row's loss NaN.
 * Errors as flp_linear_cross_entropy; FLP_BAD_ARGUMENT too: the problem is no shard, ranks is less than 1. */
FLP_INLINE flp_status flp_linear_cross_entropy_merge(flp_context *context, const flp_linear_cross_entropy_problem *problem,
                                                     const flp_linear_cross_entropy_args *args);
FLP_INLINE flp_status flp_linear_cross_entropy_execute_merge(flp_plan *plan, const flp_linear_cross_entropy_args *args);

/* All of this over the ranks of an NCCL communicator, as flp_linear_logp_sharded: args.partials is [ranks, N, FLP_PARTIAL_FLOATS], scratch of the call, and
 * args.ranks is not looked at. grad_hidden (FLP_F32, rows without gaps, not added to) is summed up over the ranks in its place. The ranks agree on what the
 * loss is, too: a token loss of one's own by what its definition computes. */
FLP_INLINE flp_status flp_linear_cross_entropy_sharded(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem,
                                                       const flp_linear_cross_entropy_args *args);

/* Makes a token loss of the caller's own known to the context, by a name of letters a to z, digits and _, a letter first. The definition is
 * Lua and gives the loss alone; its derivatives follow from it:
 *
 *     return {
 *       inputs = { "advantages" },                      -- [N] f32 each, by args.token_inputs; at most 8
 *       parameters = { { "entropy_scale", 0.01 } },     -- numbers and their defaults, by args.token_parameters; at most 8
 *       loss = function(t) return -t.advantages * t.logp - t.entropy_scale * t.entropy end,
 *     }
 *
 * t.logp, t.lse, t.entropy, t.uniform and t.class_weight (of the target) are a row's statistics: what a loss does not use is not computed.
 * There are + - * / and ^ with a whole number, exp, log, min, max, abs, clamp(x, low, high), where(less(a, b), x, y), and detach(x), whose
 * derivative is 0. In place of loss, expression = "-advantages * logp" is its text (or that of statements that end in return), with these names without
 * t. Loss and derivatives take at most 256 operations, and defining one at most 10 million instructions of Lua and 64 MiB. The same name with the
 * same definition again changes nothing; one that was refused leaves its name free.
 * FLP_BAD_ARGUMENT: what is wrong with the definition, or that the name stands for another. FLP_OUT_OF_MEMORY. */
FLP_API flp_status flp_token_loss_define(flp_context *context, const char *name, const char *definition);

/* ---- weighted_sum ------------------------------------------------------------------------------------------- */

/* y[i] = sum_d x[i][d] w[d], in fp32, in an order that depends on D and the dtypes alone: a row's bits depend neither on N, nor on its
 * place or its neighbours, nor on the GPU, nor on the alignment of x. x of any leading shape is [rows, D] with rows the product. */
typedef struct {
    flp_dtype dtype;       /* of x: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;          /* the largest N that will be executed; >= 0 */
    int64_t columns;       /* D, 1 .. 2^31 - 1 */
    int64_t x_stride;      /* elements from row to row of x; 0: D */
    int pointer_alignment; /* bytes that x is aligned to; 0: 16. Less, or such a row stride: narrower loads, which are slower */
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
 * x is read once, and only for grad_w. Products and sums are in fp32, each gradient is rounded once, and all repeat bit for bit; the order
 * of grad_w's sums depends on N, D and the dtypes alone. */
typedef struct {
    flp_weighted_sum_problem forward; /* as weighted_sum was given it; y_dtype is g's. pointer_alignment counts for grad_x too */
    flp_dtype grad_x, grad_w;         /* FLP_BF16, FLP_F16 or FLP_F32; FLP_NONE: not wanted. At least one is */
    int accumulate;                   /* 1: grad_w is added to what stands there, in fp32 before its one rounding */
    int64_t grad_x_stride;            /* elements from row to row; 0: x's */
} flp_weighted_sum_backward_problem;

typedef struct {
    int64_t rows;    /* N, 0 .. problem.rows; 0 writes grad_w (zeros) all the same */
    const void *g;   /* [N] */
    const void *x;   /* [N, D]; not read, and may be NULL, where grad_w is not wanted */
    const void *w;   /* [D]; likewise where grad_x is not wanted */
    void *grad_x;    /* [N, D]; NULL where not wanted. May be x itself, with its stride and dtype; overlaps nothing else */
    void *grad_w;    /* [D]; NULL where not wanted */
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

/* ---- logits_logp -------------------------------------------------------------------------------------------- */

/* What linear_logp gives, of logits that are there: one read of them.
 *
 *     z[i][v]    = softcap(logits[i][v]) / temperature[i],    lse[i] = log(sum_v exp(z[i][v])),   logp[i] = z[i][target[i]] - lse[i]
 *     entropy[i] = -sum_v p[i][v] log p[i][v],  p = softmax(z),    argmax[i] = first v of the largest logit */
typedef struct {
    flp_dtype dtype;        /* of logits: FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows;           /* the largest number of rows that will be executed; >= 0 */
    int64_t vocab;          /* V, 1 .. 2^31 - 1: the real vocabulary; a row may be longer */
    int64_t logits_stride;  /* elements from row to row; 0: V */
    int pointer_alignment;  /* bytes that logits is aligned to; 0: 16. Less, like such a stride, costs speed and no bits */
    flp_dtype target_dtype; /* FLP_I32 or FLP_I64; FLP_NONE: FLP_I64 */
    int argmax;             /* 1: args.argmax is written */
    int entropy;            /* 1: args.entropy is written */
    flp_backend backend;
    double softcap; /* c > 0; 0: none */
} flp_logits_logp_problem;

FLP_INLINE flp_status flp_logits_logp_problem_format(const flp_logits_logp_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_logits_logp_problem_parse(const char *text, flp_logits_logp_problem *problem);
FLP_INLINE flp_status flp_logits_logp_plan_create(flp_context *context, const flp_logits_logp_problem *problem, flp_plan **plan);

/* Without row_index, all arrays have `rows` rows. With it, row i of the call is row row_index[i] of logits, target and row_temperature,
 * which have logits_rows rows; results have `rows` rows, or with FLP_SCATTER lie at row_index[i] and leave the others alone. */
typedef struct {
    int64_t rows;                 /* 0 .. problem.rows */
    const void *logits;           /* [N, V] */
    const void *target;           /* [N] */
    const int64_t *row_index;     /* [rows] or NULL: all. 64 bits, as a search for the valid rows gives them; without repetition */
    int64_t logits_rows;          /* with row_index: N, 0 .. 2^28. An index outside is as a bad target, and names nothing */
    int64_t ignore_index;         /* as for linear_logp. Of many rows, an ignored one is not read where only logp is wanted */
    unsigned flags;               /* flp_execute_flags */
    double temperature;           /* 2^-64 .. 2^64; 0: 1 */
    const float *row_temperature; /* [N] f32, > 0, or NULL; instead of temperature, with the bounds of linear_logp's */
    float *logp;                  /* f32, each of these four NULL where it is not wanted */
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

/* The gradient of sum_i (g_logp[i] logp[i] + g_lse[i] lse[i] + g_entropy[i] entropy[i]) with respect to logits, one read and one write:
 *
 *     dz[i][v] = g_logp (v = target) + p[v] (g_lse - g_logp - g_entropy (entropy + log p[v])),   grad_logits = dz dz/dlogits
 *
 * The row of an ignored or bad target is zeros, whatever its logits hold. */
typedef struct {
    flp_dtype dtype; /* of logits and grad_logits */
    int64_t rows, vocab;
    int64_t logits_stride, grad_stride; /* elements from row to row; 0: V */
    int pointer_alignment;              /* of logits and grad_logits */
    flp_dtype target_dtype;
    int entropy; /* 1: g_entropy is read */
    int fused;   /* 1: lse is not known yet: the forward in the same pass, whose results are written too */
    flp_backend backend;
    double softcap;
} flp_logits_logp_backward_problem;

FLP_INLINE flp_status flp_logits_logp_backward_problem_format(const flp_logits_logp_backward_problem *problem, char *text, size_t bytes);
FLP_INLINE flp_status flp_logits_logp_backward_problem_parse(const char *text, flp_logits_logp_backward_problem *problem);
FLP_INLINE flp_status flp_logits_logp_backward_plan_create(flp_context *context, const flp_logits_logp_backward_problem *problem, flp_plan **plan);

/* With row_index the upstream gradients and grad_logits lie as results do. */
typedef struct {
    int64_t rows;
    const void *logits, *target;
    const int64_t *row_index;
    int64_t logits_rows;
    int64_t ignore_index; /* as for logits_logp */
    unsigned flags;       /* flp_execute_flags */
    double temperature;   /* that of the forward, as the next */
    const float *row_temperature;
    const float *g_logp;    /* f32 */
    const float *g_lse;     /* f32 or NULL: zeros */
    const float *g_entropy; /* f32 or NULL: zeros; needs problem.entropy */
    float *lse;             /* read; fused: written, or NULL */
    float *entropy;         /* read where problem.entropy is set; fused: written, or NULL */
    float *logp;            /* fused: written, or NULL; else read, or NULL: then 1 - p of a likely target comes from lse, in
                                     which it has no digits left */
    void *grad_logits;      /* may be logits, with the same stride (and, with row_index, FLP_SCATTER); else the two are apart */
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

/* Devices that the driver shows; 0 and FLP_OK where there is no driver. */
FLP_API flp_status flp_device_count(int *count);
FLP_INLINE flp_status flp_device_describe(int ordinal, flp_device_facts *facts);

/* ---- the inline functions' other halves: nothing to read from here on ----------------------------------------- */

typedef char flp_enumerations_are_ints[sizeof(flp_dtype) == sizeof(int) ? 1 : -1]; /* with -fshort-enums the structs are others */

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
                                     sizeof(flp_linear_logp_merge_args)
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
