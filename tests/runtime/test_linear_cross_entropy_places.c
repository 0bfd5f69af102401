/* Where linear_cross_entropy and linear_logp's backward keep rows, saved exponentials and grad_hidden's sums until they are read: in grad_weight, in grad_hidden
 * and in the workspace. Each launch is followed at the sizes of real models, of which no byte is there: what it reads must be what an earlier launch wrote there
 * last, and it must not write over what it reads itself. A launch that begins beside others must not read what these write; nor, if it does not wait for them before it writes, write what they use. */
#include <stdio.h>
#include <stdlib.h>

#include "assertions.h"
#include "base/dtype.h"
#include "fake_call.h"
#include "fake_driver.h"
#include "params/linear_logp.h"
#include "params/linear_logp_backward.h"
#include "params/matrix_product.h"

/* ---- what is where ---- */

/* What a place holds. */
typedef enum {
    ROWS,         /* rows of hidden, */
    SCALED,       /* which are multiplied by their factors */
    EXPONENTIALS, /* saved ones, */
    DERIVATIVES,  /* or derivatives by the logits */
    GRADIENT,     /* of the weight, complete */
    SUMS,         /* of grad_hidden's products */
    PARTS,        /* of such a product, which are still to be added */
    OF_HIDDEN     /* grad_hidden, as packed rows or in the rows' places */
} kind;
static const char *const kind_names[] = { "rows",        "scaled rows",        "exponentials",       "derivatives",
                                          "grad_weight", "grad_hidden's sums", "parts of a product", "grad_hidden" };

/* first, columns: of exponentials and derivatives, those of the vocabulary that are side by side here; of sums, those that are added up. */
typedef struct {
    uintptr_t begin, end;
    kind holds;
    int64_t first, columns;
} place;
enum { MOST_PLACES = 4096 };
static place places[MOST_PLACES];
static int place_count;
static char launched[512]; /* the launch that is followed, and its call */

static void add_place(place added)
{
    assert_true(place_count < MOST_PLACES);
    if (added.begin < added.end)
        places[place_count++] = added;
}

/* ---- launches beside one another ---- */

/* When a launch waits for those before it (params/matrix_product.h). */
typedef enum { BEFORE_ALL, AT_THE_END, BEFORE_STORE } waits;
static waits waiting; /* the launch that is followed */

/* What the launches use that the one that is followed may run beside: those from the last one on that waited before all. Then what it uses itself. Of rows
 * between whose parts others have theirs: width bytes every stride bytes; stride 0: all bytes. */
typedef struct {
    place at;
    int writes;
    uintptr_t stride, width;
} use;
enum { MOST_USES = 1024 };
static use uses[MOST_USES];
static int use_count, others_count;

static int are_apart(const place *one, const place *other)
{
    return one->end <= other->begin || other->end <= one->begin;
}

/* 1: their rows are parts of the same rows, and lie beside one another. */
static int are_interleaved(const use *one, const use *other)
{
    const use *first = one->at.begin < other->at.begin ? one : other, *second = first == one ? other : one;
    const uintptr_t from = second->at.begin - first->at.begin;

    return one->stride > 0 && one->stride == other->stride && from >= first->width && from + second->width <= one->stride;
}

static void begin_launch(waits when)
{
    waiting = when;
    if (when == BEFORE_ALL)
        use_count = 0;
    others_count = use_count;
}

static uintptr_t stride_of_use, width_of_use; /* of the next use */

static void note_use(const place *at, int writes)
{
    const use noted = { *at, writes, stride_of_use, width_of_use };

    for (int i = 0; i < others_count; i++)
        if ((writes ? waiting == AT_THE_END : uses[i].writes) && !are_apart(at, &uses[i].at) && !are_interleaved(&noted, &uses[i]))
            fail_msg("%s %s %s that a launch beside it %s", launched, writes ? "writes" : "reads", kind_names[uses[i].at.holds],
                     uses[i].writes ? "writes" : "reads");
    assert_true(use_count < MOST_USES);
    uses[use_count++] = noted;
}

/* ---- reading and writing ---- */

/* What was there before is gone. */
static void write_place(place written)
{
    note_use(&written, 1);
    for (int i = place_count - 1; i >= 0; i--) {
        const place old = places[i];
        place before = old, behind = old;

        if (old.begin >= written.end || old.end <= written.begin)
            continue;
        places[i] = places[--place_count];
        before.end = written.begin;
        behind.begin = written.end;
        add_place(before);
        add_place(behind);
    }
    add_place(written);
}

static const place *find_place(uintptr_t at)
{
    for (int i = 0; i < place_count; i++)
        if (places[i].begin <= at && at < places[i].end)
            return &places[i];
    return NULL;
}

/* Asserts that all of a place holds what is read there. */
static void assert_holds(place read)
{
    for (uintptr_t at = read.begin; at < read.end;) {
        const place *found = find_place(at);

        if (!found)
            fail_msg("%s reads %s at a place that nothing was written to", launched, kind_names[read.holds]);
        if (found->holds != read.holds)
            fail_msg("%s reads %s where there are %s", launched, kind_names[read.holds], kind_names[found->holds]);
        if (!(found->first <= read.first && read.first + read.columns <= found->first + found->columns))
            fail_msg("%s reads %s from entry %lld on where there are those from %lld on", launched, kind_names[read.holds], (long long)read.first,
                     (long long)found->first);
        if (read.holds == SUMS && found->columns != read.columns)
            fail_msg("%s reads sums of %lld entries where there are those of %lld", launched, (long long)read.columns, (long long)found->columns);
        at = found->end;
    }
}

static void read_place(place read)
{
    note_use(&read, 0);
    assert_holds(read);
}

static void assert_apart(const place *read, const place *written)
{
    if (!are_apart(read, written))
        fail_msg("%s writes %s over the %s that it reads", launched, kind_names[written->holds], kind_names[read->holds]);
}

/* ---- the call ---- */

enum { FACTOR_OF_ROWS = 4 /* a plan is for so many times D rows */ };

static flp_context *context;
/* The operation that runs: of linear_logp_backward, problem and args have what it takes. */
typedef enum { LOSS_AND_GRADIENTS, BACKWARD_ALONE, FORWARD_AND_BACKWARD } operation;
static operation running;
static flp_linear_cross_entropy_problem problem;
static flp_linear_cross_entropy_args args;
static int followed;       /* launches whose places were followed, since the call began */
static int slabs_together; /* products that took several slabs */

/* An address at which there is nothing. */
static void *address_of(int number)
{
    return (void *)((uintptr_t)(number + 1) << 44);
}
enum { HIDDEN = 0, WEIGHT, BIAS, TARGET, LOSS, STATISTICS, GRAD_HIDDEN, GRAD_WEIGHT, GRAD_BIAS, WORKSPACE };

static place matrix(const void *data, int64_t rows, int64_t columns, int64_t stride, kind holds)
{
    const uintptr_t begin = (uintptr_t)data;

    return (place){ begin, begin + (uintptr_t)(((rows - 1) * stride + columns) * 2), holds, 0, 0 };
}

/* ---- the launches ---- */

static int is_callers(const void *data)
{
    return data == args.hidden;
}

/* Sums in fp32 of grad_hidden's products with the vocabulary's first `columns` entries. */
static place sums_of(const void *data, int64_t rows, int64_t hidden, int64_t stride, int64_t columns)
{
    const uintptr_t begin = (uintptr_t)data;

    return (place){ begin, begin + (uintptr_t)((rows - 1) * stride + hidden) * sizeof(float), SUMS, 0, columns };
}

static place parts_of(const void *data, int64_t parts, int64_t part_rows, int64_t stride)
{
    const uintptr_t begin = (uintptr_t)data;

    return (place){ begin, begin + (uintptr_t)(parts * part_rows * stride * (int64_t)sizeof(float)), PARTS, 0, parts };
}

/* Gathers rows, multiplies them by their factors, clears sums, or moves exponentials. */
static void follow_gather(const flp_backward_gather_params *params)
{
    const int moves = !params->row && !params->row_factor;
    place to = matrix(params->packed, params->rows, params->hidden_size, params->packed_stride, params->row_factor ? SCALED : ROWS);
    place from = matrix(params->hidden, params->rows, params->hidden_size, params->hidden_stride, ROWS);

    if (params->skips_whole) { /* all products of grad_hidden, before they are moved to their places */
        from.holds = to.holds = OF_HIDDEN;
    } else if (moves) { /* to one of several parts of rows, which then have all entries behind those in grad_weight */
        const place *slab = find_place(from.begin);

        from.holds = to.holds = EXPONENTIALS;
        from.first = slab ? slab->first : 0;
        to.columns = problem.backward.forward.vocab;
    }
    if (!is_callers(params->hidden))
        read_place(from);
    if (moves && !params->skips_whole) {
        stride_of_use = 2 * (uintptr_t)params->packed_stride;
        width_of_use = 2 * (uintptr_t)params->hidden_size;
    }
    write_place(to);
    stride_of_use = width_of_use = 0;
    if (params->sums)
        write_place(sums_of(params->sums, params->rows, params->hidden_size, params->hidden_size, 0));
    followed++;
}

static int64_t columns_of_tile(const char *kernel)
{
    const char *width = strstr(kernel, "_bv");

    return width ? strtoll(width + strlen("_bv"), NULL, 10) : 128; /* a portable kernel's */
}

/* The forward, or blocks of exponentials that are computed again. */
static void follow_save_exp(const char *kernel, const flp_linear_logp_params *params)
{
    const int64_t width = params->saved_block_columns, rows = params->saved_block_rows;
    const int64_t begin = params->phase == FLP_SAVE_EXP_BLOCK ? params->first_tile * columns_of_tile(kernel) / width : 0;

    if (params->phase != FLP_SAVE_EXP_BLOCK && params->phase != FLP_SAVE_EXP_KEEP)
        return;
    if (!is_callers(params->hidden))
        read_place(matrix(params->hidden, params->rows, problem.backward.forward.hidden, params->hidden_stride, ROWS));
    for (int64_t block = begin; block * width < params->saved_columns; block++) {
        place to = matrix((char *)params->saved_exp + block * rows * width * 2, params->rows, width, width, EXPONENTIALS);

        to.first = block * width;
        to.columns = width;
        write_place(to);
    }
    followed++;
}

static void follow_derivatives(const flp_grad_logits_params *params)
{
    place to = matrix(params->out, params->rows, params->columns, params->out_stride, DERIVATIVES);

    to.first = params->first_column;
    to.columns = params->columns;
    read_place(matrix(params->hidden, params->rows, problem.backward.forward.hidden, params->hidden_stride, ROWS));
    write_place(to);
    followed++;
}

/* What a product takes: exponentials or derivatives of `columns` vocabulary entries from `first` on, which may lie in slabs. */
static place terms_of(const flp_matrix_product_params *params, int64_t rows, int64_t first, int64_t columns)
{
    const place *found = find_place((uintptr_t)params->a);
    const kind holds = found && found->holds == DERIVATIVES ? DERIVATIVES : EXPONENTIALS;
    place terms = { .begin = (uintptr_t)params->a, .holds = holds };

    for (int64_t at = 0, slab = 0; at < columns; at += params->slab_columns, slab++) {
        const int64_t of_slab = columns - at < params->slab_columns ? columns - at : params->slab_columns;
        place read = matrix((const char *)params->a + slab * params->slab_rows * params->a_stride * 2, rows, of_slab, params->a_stride, holds);

        read.first = first + at;
        read.columns = of_slab;
        read_place(read);
        terms.end = read.end;
    }
    slabs_together += columns > params->slab_columns;
    return terms;
}

static void follow_weight_product(const char *kernel, const flp_matrix_product_params *params)
{
    const int64_t hidden = problem.backward.forward.hidden, bytes = flp_dtype_bytes(problem.backward.grad_weight);
    const place terms = terms_of(params, params->inner, params->first_target, params->rows);
    const place rows = matrix(params->b, params->inner, hidden, params->b_stride, terms.holds == EXPONENTIALS ? SCALED : ROWS);
    const uintptr_t out = (uintptr_t)params->out;
    const place to = { out, out + (uintptr_t)(params->rows * hidden * bytes), GRADIENT, 0, 0 };

    read_place(rows);
    if (strstr(kernel, "_adds")) /* when it stores */
        assert_holds(to);
    assert_apart(&terms, &to);
    assert_apart(&rows, &to);
    write_place(to);
}

/* Its first entry follows from where it reads the weight. A product of the whole vocabulary may be written in place of the packed rows. */
static void follow_hidden_product(const char *kernel, const flp_matrix_product_params *params)
{
    const int64_t first = ((const char *)params->b - (const char *)args.weight) / 2 / problem.backward.forward.hidden;
    const place terms = terms_of(params, params->rows, first, params->inner);
    place to = matrix(params->out, params->rows, params->columns, params->out_stride, OF_HIDDEN);

    if (strstr(kernel, "_parts")) {
        assert_in_range(params->part_rows, params->rows, INT32_MAX);
        assert_true((int64_t)params->part_inner * params->parts >= params->inner && (int64_t)params->part_inner * (params->parts - 1) < params->inner);
        to = parts_of(params->out, params->parts, params->part_rows, params->out_stride);
    } else if (strstr(kernel, "_out_f32")) {
        to = sums_of(params->out, params->rows, params->columns, params->out_stride, first);
        if (strstr(kernel, "_adds")) /* when it stores */
            assert_holds(to);
        else
            assert_int_equal(0, first);
        to.columns = first + params->inner;
    }
    assert_apart(&terms, &to);
    write_place(to);
}

/* The parts of a product of the whole vocabulary, which become sums in fp32 or packed rows of grad_hidden. */
static void follow_sum(const char *kernel, const flp_backward_finish_params *params)
{
    const place from = parts_of(params->sums, params->parts, params->part_rows, params->sums_stride);
    place to = matrix(params->out, params->packed_rows, params->hidden_size, params->out_stride, OF_HIDDEN);

    if (strstr(kernel, "_out_f32"))
        to = sums_of(params->out, params->packed_rows, params->hidden_size, params->out_stride, problem.backward.forward.vocab);
    read_place(from);
    assert_apart(&from, &to);
    write_place(to);
}

/* From sums, or from the products that were moved out of the way, to the places of the rows: no packed row lies behind its row's place. */
static void follow_finish(const char *kernel, const flp_backward_finish_params *params)
{
    const int64_t bytes = flp_dtype_bytes(problem.backward.grad_hidden), left = params->rows - params->first_packed;
    const uintptr_t out = (uintptr_t)params->out + (uintptr_t)(params->first_packed * params->out_stride * bytes);
    const place to = { out, out + (uintptr_t)(((left - 1) * params->out_stride + params->hidden_size) * bytes), OF_HIDDEN, 0, 0 };
    place from = matrix(params->sums, params->packed_rows, params->hidden_size, params->sums_stride, OF_HIDDEN);

    if (!params->count)
        from = sums_of(params->sums, params->packed_rows, params->hidden_size, params->sums_stride, problem.backward.forward.vocab);
    read_place(from);
    if (strstr(kernel, "_adds"))
        assert_holds(to);
    assert_apart(&from, &to);
    write_place(to);
}

static waits waits_of(const char *kernel, const void *params)
{
    if (strstr(kernel, "grad_logits"))
        return ((const flp_grad_logits_params *)params)->pdl_wait_in_epilogue ? BEFORE_STORE : BEFORE_ALL;
    if (strstr(kernel, "backward_gather"))
        return ((const flp_backward_gather_params *)params)->pdl_wait_last ? AT_THE_END : BEFORE_ALL;
    if (strstr(kernel, "backward_finish"))
        return ((const flp_backward_finish_params *)params)->pdl_wait_last ? AT_THE_END : BEFORE_ALL;
    if (!strstr(kernel, "matrix_product") || ((const flp_matrix_product_params *)params)->pdl_wait_in_epilogue == FLP_PDL_WAIT_FIRST)
        return BEFORE_ALL;
    return ((const flp_matrix_product_params *)params)->pdl_wait_in_epilogue == FLP_PDL_WAIT_BEFORE_STORE ? BEFORE_STORE : AT_THE_END;
}

static void follow(const fake_launch *launch)
{
    const int has_maps = strstr(launch->kernel, "_sm_90a") &&
                         (strstr(launch->kernel, "save_exp") || strstr(launch->kernel, "grad_logits") || strstr(launch->kernel, "matrix_product"));
    const void *params = launch->parameters[has_maps ? 3 : 0]; /* behind three maps */

    snprintf(launched, sizeof(launched), "%s (launch %d) with %lld rows of D %lld, V %lld, grad_weight %s", launch->kernel, fake_driver.launches,
             (long long)args.rows, (long long)problem.backward.forward.hidden, (long long)problem.backward.forward.vocab,
             problem.backward.grad_weight == FLP_F32 ? "f32" : "bf16");
    begin_launch(launch->dependent_launch ? waits_of(launch->kernel, params) : BEFORE_ALL);
    if (strstr(launch->kernel, "backward_gather")) {
        follow_gather(params);
    } else if (strstr(launch->kernel, "save_exp")) {
        follow_save_exp(launch->kernel, params);
    } else if (strstr(launch->kernel, "grad_logits")) {
        follow_derivatives(params);
    } else if (strstr(launch->kernel, "matrix_product")) {
        if (strstr(launch->kernel, "targets_in_rows"))
            follow_weight_product(launch->kernel, params);
        else
            follow_hidden_product(launch->kernel, params);
        followed++;
    } else if (strstr(launch->kernel, "backward_finish") && strstr(launch->kernel, "_parts")) {
        follow_sum(launch->kernel, params);
    } else if (strstr(launch->kernel, "backward_finish")) {
        follow_finish(launch->kernel, params);
    }
}

static void execute_backward(flp_plan *plan)
{
    const flp_linear_logp_args forward = {
        .rows = args.rows,
        .hidden = args.hidden,
        .weight = args.weight,
        .bias = args.bias,
        .target = args.target,
        .logp = address_of(LOSS),
        .lse = address_of(STATISTICS),
        .workspace = args.workspace,
        .workspace_bytes = args.workspace_bytes,
    };
    const flp_linear_logp_backward_args backward = {
        .rows = args.rows,
        .hidden = args.hidden,
        .weight = args.weight,
        .bias = args.bias,
        .target = args.target,
        .lse = address_of(STATISTICS),
        .g_logp = address_of(LOSS),
        .grad_hidden = args.grad_hidden,
        .grad_weight = args.grad_weight,
        .grad_bias = args.grad_bias,
        .workspace = args.workspace,
        .workspace_bytes = args.workspace_bytes,
    };

    if (running == FORWARD_AND_BACKWARD)
        assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    assert_succeeds(flp_linear_logp_backward_execute(plan, &backward));
}

static place whole_gradient(const void *data, int64_t rows, flp_dtype dtype, kind holds)
{
    const uintptr_t begin = (uintptr_t)data;

    return (place){ begin, begin + (uintptr_t)(rows * problem.backward.forward.hidden * flp_dtype_bytes(dtype)), holds, 0, 0 };
}

static void run(flp_plan *plan, int64_t rows)
{
    const place grad_weight = whole_gradient(args.grad_weight, problem.backward.forward.vocab, problem.backward.grad_weight, GRADIENT);
    const place grad_hidden = whole_gradient(args.grad_hidden, rows, problem.backward.grad_hidden, OF_HIDDEN);

    args.rows = rows;
    place_count = use_count = followed = 0;
    if (problem.backward.accumulate & FLP_ACCUMULATE_WEIGHT)
        add_place(grad_weight);
    if (problem.backward.accumulate & FLP_ACCUMULATE_HIDDEN)
        add_place(grad_hidden);
    fake_driver.launches = 0;
    if (running == LOSS_AND_GRADIENTS)
        assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    else
        execute_backward(plan);
    assert_true(followed >= 2);
    snprintf(launched, sizeof(launched), "the caller, after %lld rows,", (long long)rows);
    begin_launch(BEFORE_ALL);
    if (args.grad_weight)
        read_place(grad_weight);
    if (args.grad_hidden)
        read_place(grad_hidden);
}

/* 0: the budget is too small. */
static int create_plan(flp_plan **plan)
{
    flp_status status;

    problem.backward.with_forward = running == FORWARD_AND_BACKWARD;
    if (running == LOSS_AND_GRADIENTS)
        status = flp_linear_cross_entropy_plan_create(context, &problem, plan);
    else
        status = flp_linear_logp_backward_plan_create(context, &problem.backward, plan);
    args.grad_weight = problem.backward.grad_weight == FLP_NONE ? NULL : address_of(GRAD_WEIGHT);
    args.grad_hidden = problem.backward.grad_hidden == FLP_NONE ? NULL : address_of(GRAD_HIDDEN);
    args.bias = problem.backward.grad_bias == FLP_NONE ? NULL : address_of(BIAS);
    args.grad_bias = problem.backward.grad_bias == FLP_NONE ? NULL : address_of(GRAD_BIAS);
    if (status != FLP_OK) {
        assert_int_equal(FLP_BAD_ARGUMENT, status);
        assert_contains(flp_error_message(), "memory_budget");
        return 0;
    }
    args.workspace_bytes = (size_t)flp_plan_workspace_bytes(*plan, problem.backward.forward.rows);
    return 1;
}

/* Many numbers of rows, up to a plan's. */
static void run_up_to(int64_t most, int64_t hidden, int64_t vocab, flp_dtype grad_weight, double softcap)
{
    flp_plan *plan;

    problem =
        (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_BF16, .rows = most, .hidden = hidden, .vocab = vocab, .softcap = softcap },
                                                          .grad_hidden = FLP_BF16,
                                                          .grad_weight = grad_weight } };
    assert_true(create_plan(&plan));
    for (int64_t rows = 1; rows <= most; rows += 1 + (rows < 2 * hidden ? hidden / 19 : hidden / 3))
        run(plan, rows);
    flp_plan_destroy(plan);
}

/* Up to four times D: exponentials of all rows in grad_weight, in parts of it, beside them in the workspace, and computed again. */
static void run_sizes(int64_t hidden, int64_t vocab, flp_dtype grad_weight, double softcap)
{
    run_up_to(FACTOR_OF_ROWS * hidden, hidden, vocab, grad_weight, softcap);
}

static void what_a_launch_reads_is_what_was_written_for_it(void **state)
{
    static const int64_t hidden[] = { 64, 512, 1024, 2048, 4096, 5120, 7168 }, vocab[] = { 32000, 50304, 129280, 256000 };

    (void)state;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        for (size_t j = 0; j < sizeof(vocab) / sizeof(*vocab); j++) {
            run_sizes(hidden[i], vocab[j], FLP_BF16, 0);
            run_sizes(hidden[i], vocab[j], FLP_F32, 0);
            run_sizes(hidden[i], vocab[j], FLP_BF16, 30);
        }
}

/* Plans for so few rows that their products take several slabs of exponentials at once. */
static void it_is_so_with_several_slabs_in_a_product(void **state)
{
    static const int64_t hidden[] = { 1536, 2048, 4096 }, vocab[] = { 32000, 50304, 129280, 256000 };

    (void)state;
    slabs_together = 0;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        for (size_t j = 0; j < sizeof(vocab) / sizeof(*vocab); j++)
            for (int64_t most = 512; most <= 2048; most *= 2) {
                run_up_to(most, hidden[i], vocab[j], FLP_BF16, 0);
                run_up_to(most, hidden[i], vocab[j], FLP_F32, 0);
            }
    assert_in_range(slabs_together, 300, 10000);
}

/* In chunks of rows, whose products may be written over the packed rows, or in the last case, where a row of hidden has more elements than dlogit's, not. */
static void it_is_so_with_a_frozen_head(void **state)
{
    (void)state;
    run_sizes(2048, 131072, FLP_NONE, 0);
    run_sizes(4096, 128256, FLP_NONE, 30);
    run_sizes(32768, 24000, FLP_NONE, 0);
}

static uint64_t drawn = 1;

static int64_t draw(int64_t below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((drawn >> 33) % (uint64_t)below);
}

/* A number of any order of magnitude up to 2^log2. */
static int64_t draw_size(int log2)
{
    return 1 + draw(INT64_C(1) << (1 + draw(log2)));
}

static void it_is_so_for_any_sizes_gradients_and_budgets(void **state)
{
    static const flp_dtype dtypes[] = { FLP_BF16, FLP_F32, FLP_BF16, FLP_F32, FLP_NONE };
    int plans = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        flp_plan *plan;

        problem = (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_BF16,
                                                                                 .rows = draw_size(14),
                                                                                 .hidden = 8 * draw_size(10),
                                                                                 .vocab = draw(4) ? 1 + draw(300000) : draw_size(15),
                                                                                 .softcap = draw(5) ? 0 : 30 },
                                                                    .grad_hidden = dtypes[draw(5)],
                                                                    .grad_weight = dtypes[draw(5)],
                                                                    .grad_bias = draw(4) ? FLP_NONE : FLP_F32,
                                                                    .memory_budget = draw(3) ? 0 : INT64_C(1) << (16 + draw(18)) } };
        if (draw(2))
            problem.backward.accumulate = (problem.backward.grad_hidden ? draw(2) * FLP_ACCUMULATE_HIDDEN : 0) |
                                          (problem.backward.grad_weight ? draw(2) * FLP_ACCUMULATE_WEIGHT : 0) |
                                          (problem.backward.grad_bias ? draw(2) * FLP_ACCUMULATE_BIAS : 0);
        running = (operation)draw(3);
        problem.backward.forward.bias_dtype = problem.backward.grad_bias;
        problem.backward.forward.backend = draw(4) ? FLP_BACKEND_SM90A : FLP_BACKEND_PORTABLE;
        if (problem.backward.grad_hidden == FLP_NONE && problem.backward.grad_weight == FLP_NONE)
            problem.backward.grad_weight = FLP_BF16;
        if (!create_plan(&plan))
            continue;
        plans++;
        for (int64_t rows = problem.backward.forward.rows; rows > 0; rows -= 1 + draw(rows) / 3)
            run(plan, rows);
        flp_plan_destroy(plan);
    }
    assert_true(plans > 700);
}

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    args = (flp_linear_cross_entropy_args){
        .hidden = address_of(HIDDEN),
        .weight = address_of(WEIGHT),
        .target = address_of(TARGET),
        .loss = address_of(LOSS),
        .workspace = address_of(WORKSPACE),
    };
    running = LOSS_AND_GRADIENTS;
    fake_driver.on_launch = follow;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_driver.on_launch = NULL;
    flp_context_destroy(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_launch_reads_is_what_was_written_for_it, start, stop),
        cmocka_unit_test_setup_teardown(it_is_so_with_several_slabs_in_a_product, start, stop),
        cmocka_unit_test_setup_teardown(it_is_so_with_a_frozen_head, start, stop),
        cmocka_unit_test_setup_teardown(it_is_so_for_any_sizes_gradients_and_budgets, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
