/* weighted_sum and its backward on the GPU: every case of the CPU tests, on the chosen path and on the portable one; bits that depend neither on other rows nor
 * on the alignment nor on the path; and more elements than 32 bits can count. */
#include <stdlib.h>

#include "device/device_test.h"
#include "weighted_sum_cases.h"
#include "weighted_sum_depth.h"
#include "base/dtype.h"

static flp_gpu *const gpu = &flp_device_test.gpu;

typedef struct {
    flp_weighted_case c;
    flp_weighted_data data;
    CUdeviceptr base[FLP_WEIGHTED_ROLES];
    void *bases[FLP_WEIGHTED_ROLES];
} on_device;

/* With --quick an allocation ends with the data, so that a sanitizer sees an access to the first byte past them. */
static size_t copied_bytes(const flp_weighted_buffer *buffer)
{
    return flp_device_test.quick ? buffer->offset + buffer->data_bytes : buffer->bytes;
}

static void upload(on_device *on)
{
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++)
        if (on->base[role])
            assert_succeeds(flp_gpu_upload(gpu, on->base[role], on->data.buffer[role].base, copied_bytes(&on->data.buffer[role])));
}

static void set_up(on_device *on)
{
    assert_true(flp_weighted_case_make(&on->c, &on->data));
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++) {
        if (!on->data.buffer[role].base)
            continue;
        assert_succeeds(flp_gpu_allocate(gpu, copied_bytes(&on->data.buffer[role]), &on->base[role]));
        on->bases[role] = flp_gpu_pointer(on->base[role]);
    }
    upload(on);
}

static void tear_down(on_device *on)
{
    flp_weighted_case_free(&on->data);
    flp_gpu_free_all(gpu);
}

/* Downloads all buffers, guards included; inputs too, since they must not change. */
static void fetch(on_device *on)
{
    assert_succeeds(flp_gpu_synchronize(gpu));
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++)
        if (on->base[role])
            assert_succeeds(flp_gpu_download(gpu, on->data.buffer[role].base, on->base[role], copied_bytes(&on->data.buffer[role])));
}

/* ---- the cases */

static void check_forward(on_device *on, flp_backend backend)
{
    flp_weighted_sum_problem problem = on->c.problem.forward;
    flp_weighted_sum_args args;
    char message[256];
    flp_plan *plan;

    problem.backend = backend;
    flp_weighted_case_forward(&on->c, &on->data, on->bases, &args);
    assert_succeeds(flp_weighted_sum_plan_create(flp_device_test.context, &problem, &plan));
    assert_string_equal("portable", flp_backend_name(flp_plan_backend(plan)));
    assert_succeeds(flp_weighted_sum_execute(plan, &args));
    fetch(on);
    if (!flp_weighted_case_check_sum(&on->c, &on->data, flp_weighted_sum_depth(plan), message, sizeof(message)))
        fail_msg("%s: %s", on->c.name, message);
    flp_plan_destroy(plan);
}

/* Executes in a workspace of exactly the bytes that the plan says, and by a call without a plan. */
static void check_backward(on_device *on, flp_backend backend, const char *path)
{
    flp_weighted_sum_backward_problem problem = on->c.problem;
    flp_weighted_sum_backward_args args;
    const int64_t rows = problem.forward.rows;
    char message[256];
    flp_plan *plan;

    problem.forward.backend = backend;
    flp_weighted_case_backward(&on->c, &on->data, on->bases, &args);
    assert_succeeds(flp_weighted_sum_backward_plan_create(flp_device_test.context, &problem, &plan));
    assert_string_equal(path, flp_backend_name(flp_plan_backend(plan)));
    for (int by_dispatch = 0; by_dispatch < 2; by_dispatch++) {
        flp_weighted_case_restore(&on->data);
        upload(on);
        if (by_dispatch) {
            args.workspace = NULL;
            assert_succeeds(flp_weighted_sum_backward(flp_device_test.context, &problem, &args));
        } else {
            CUdeviceptr workspace;
            args.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, rows);
            assert_succeeds(flp_gpu_allocate(gpu, args.workspace_bytes, &workspace));
            assert_succeeds(flp_gpu_set(gpu, workspace, 0xff, args.workspace_bytes));
            args.workspace = flp_gpu_pointer(workspace);
            assert_succeeds(flp_weighted_sum_backward_execute(plan, &args));
        }
        fetch(on);
        if (!flp_weighted_case_check_gradients(&on->c, &on->data, flp_weighted_gradient_depth(plan, rows), message, sizeof(message)))
            fail_msg("%s, %s: %s", on->c.name, path, message);
    }
    flp_plan_destroy(plan);
}

/* The sm_90a path exists only for grad_w, whose combine is launched so that it overlaps the tile kernel. */
static const char *expected_path(const flp_weighted_case *c)
{
    return gpu->facts.compute_capability == 90 && c->problem.grad_w != FLP_NONE ? "sm_90a" : "portable";
}

static void a_case_is_right(void **state)
{
    on_device on = { .c = *(const flp_weighted_case *)*state };

    set_up(&on);
    check_forward(&on, FLP_BACKEND_AUTO);
    check_backward(&on, FLP_BACKEND_AUTO, expected_path(&on.c));
    check_backward(&on, FLP_BACKEND_PORTABLE, "portable");
    tear_down(&on);
}

/* ---- bits */

enum { BIT_ROWS = 3000 };

static flp_weighted_case bit_case(flp_dtype dtype, int64_t columns)
{
    flp_weighted_case c = { .name = "bits",
                            .problem = {
                                .forward = { .dtype = dtype, .rows = BIT_ROWS, .columns = columns, .x_stride = columns, .w_dtype = dtype, .y_dtype = FLP_F32 },
                                .grad_w = FLP_F32 } };
    return c;
}

static const void *bits_of(const on_device *on, flp_weighted_role role)
{
    return on->data.buffer[role].base + on->data.buffer[role].offset;
}

/* Runs the forward and the backward with `rows` rows of x, from `first` on. */
static void run(on_device *on, int64_t first, int64_t rows, flp_backend backend)
{
    flp_weighted_sum_backward_problem problem = on->c.problem;
    flp_weighted_sum_backward_args backward;
    flp_weighted_sum_args args;

    flp_weighted_case_restore(&on->data);
    upload(on);
    problem.forward.backend = backend;
    flp_weighted_case_forward(&on->c, &on->data, on->bases, &args);
    flp_weighted_case_backward(&on->c, &on->data, on->bases, &backward);
    args.rows = rows;
    args.x = (const char *)args.x + first * problem.forward.x_stride * flp_dtype_bytes(problem.forward.dtype);
    backward.rows = rows;
    assert_succeeds(flp_weighted_sum(flp_device_test.context, &problem.forward, &args));
    assert_succeeds(flp_weighted_sum_backward(flp_device_test.context, &problem, &backward));
    fetch(on);
}

static void a_rows_bits_follow_neither_place_nor_neighbours(void **state)
{
    static const int64_t columns[] = { 5, 100, 1000, 4096, 16392 };
    static float all[BIT_ROWS];

    (void)state;
    for (int i = 0; i < 5; i++) {
        on_device on = { .c = bit_case(i % 2 ? FLP_BF16 : FLP_F32, columns[i]) };
        set_up(&on);
        run(&on, 0, BIT_ROWS, FLP_BACKEND_AUTO);
        memcpy(all, bits_of(&on, FLP_WEIGHTED_Y), sizeof(all));
        for (int64_t first = 1; first < BIT_ROWS; first = first * 3 + 1) {
            const int64_t rows = first % 7 * 13 + 1, fit = BIT_ROWS - first < rows ? BIT_ROWS - first : rows;
            run(&on, first, fit, FLP_BACKEND_AUTO);
            assert_memory_equal(all + first, bits_of(&on, FLP_WEIGHTED_Y), (size_t)fit * sizeof(float));
        }
        tear_down(&on);
    }
}

/* Neither the alignment of x, from which loads are narrow or wide, nor the path changes a bit of y or grad_w. */
static void alignment_and_path_change_no_bit(void **state)
{
    static float y[BIT_ROWS], grad_w[1032];
    static const int misalignments[] = { 0, 2, 4, 8 };

    (void)state;
    for (int i = 0; i < 5; i++) {
        on_device on = { .c = bit_case(FLP_BF16, 1032) };
        on.c.misalignment = misalignments[i % 4];
        set_up(&on);
        run(&on, 0, BIT_ROWS, i == 4 ? FLP_BACKEND_PORTABLE : FLP_BACKEND_AUTO);
        if (i == 0) {
            memcpy(y, bits_of(&on, FLP_WEIGHTED_Y), sizeof(y));
            memcpy(grad_w, bits_of(&on, FLP_WEIGHTED_GRAD_W), sizeof(grad_w));
        }
        assert_memory_equal(y, bits_of(&on, FLP_WEIGHTED_Y), sizeof(y));
        assert_memory_equal(grad_w, bits_of(&on, FLP_WEIGHTED_GRAD_W), sizeof(grad_w));
        tear_down(&on);
    }
}

static void repetitions_have_the_same_bits(void **state)
{
    static float grad_w[1000];
    on_device on = { .c = bit_case(FLP_F32, 1000) };

    (void)state;
    set_up(&on);
    for (int i = 0; i < 20; i++) {
        run(&on, 0, BIT_ROWS, FLP_BACKEND_AUTO);
        if (i == 0)
            memcpy(grad_w, bits_of(&on, FLP_WEIGHTED_GRAD_W), sizeof(grad_w));
        assert_memory_equal(grad_w, bits_of(&on, FLP_WEIGHTED_GRAD_W), sizeof(grad_w));
    }
    tear_down(&on);
}

/* ---- more than 2^31 elements: ones, whose sums are exact, and another value in the last row */

static void elements_beyond_32_bits_are_reached(void **state)
{
    enum { COLUMNS = 4096, ROWS = 600000, LAST = 5 };
    const flp_weighted_sum_backward_problem problem = {
        .forward = { .dtype = FLP_BF16, .rows = ROWS, .columns = COLUMNS, .w_dtype = FLP_F32, .y_dtype = FLP_F32 }, .grad_x = FLP_BF16, .grad_w = FLP_F32
    };
    const size_t row_bytes = COLUMNS * 2, bytes = (size_t)ROWS * row_bytes;
    static uint16_t row[COLUMNS];
    static float w[COLUMNS], grad_w[COLUMNS], y[LAST], *g;
    CUdeviceptr x, device_w, device_g, device_y, device_grad_w;

    (void)state;
    g = calloc(ROWS, sizeof(*g));
    assert_non_null(g);
    g[0] = g[ROWS - 1] = 1;
    for (int d = 0; d < COLUMNS; d++) {
        w[d] = 1;
        row[d] = 0x4000; /* 2 */
    }
    assert_succeeds(flp_gpu_allocate(gpu, bytes, &x));
    assert_succeeds(flp_gpu_set(gpu, x, 0x3f, bytes)); /* 0x3f3f: 0.74609375 */
    assert_succeeds(flp_gpu_upload(gpu, x + bytes - row_bytes, row, row_bytes));
    assert_succeeds(flp_gpu_copy_in(gpu, w, sizeof(w), &device_w));
    assert_succeeds(flp_gpu_copy_in(gpu, g, ROWS * sizeof(*g), &device_g));
    assert_succeeds(flp_gpu_allocate(gpu, ROWS * sizeof(float), &device_y));
    assert_succeeds(flp_gpu_allocate(gpu, sizeof(grad_w), &device_grad_w));
    const flp_weighted_sum_args args = { .rows = ROWS, .x = flp_gpu_pointer(x), .w = flp_gpu_pointer(device_w), .y = flp_gpu_pointer(device_y) };
    const flp_weighted_sum_backward_args backward = { .rows = ROWS,
                                                      .g = flp_gpu_pointer(device_g),
                                                      .x = flp_gpu_pointer(x),
                                                      .w = flp_gpu_pointer(device_w),
                                                      .grad_x = flp_gpu_pointer(x),
                                                      .grad_w = flp_gpu_pointer(device_grad_w) };
    assert_succeeds(flp_weighted_sum(flp_device_test.context, &problem.forward, &args));
    assert_succeeds(flp_weighted_sum_backward(flp_device_test.context, &problem, &backward));
    assert_succeeds(flp_gpu_synchronize(gpu));
    assert_succeeds(flp_gpu_download(gpu, y, device_y + (ROWS - LAST) * sizeof(float), sizeof(y)));
    assert_succeeds(flp_gpu_download(gpu, grad_w, device_grad_w, sizeof(grad_w)));
    for (int i = 0; i < LAST; i++)
        assert_true(y[i] == (i == LAST - 1 ? 2 * COLUMNS : 0.74609375f * COLUMNS));
    for (int d = 0; d < COLUMNS; d++)
        assert_true(grad_w[d] == 2.74609375f);
    for (int64_t i = ROWS - 2; i < ROWS; i++) { /* grad_x, which is written over x */
        assert_succeeds(flp_gpu_download(gpu, row, x + (size_t)i * row_bytes, row_bytes));
        for (int d = 0; d < COLUMNS; d++)
            assert_int_equal(i == ROWS - 1 ? 0x3f80 : 0, row[d]);
    }
    free(g);
}

static flp_weighted_case *cases;

static struct CMUnitTest test_at(int index)
{
    flp_weighted_case_get(index, &cases[index]);
    return flp_device_test_case(cases[index].name, a_case_is_right, &cases[index]);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest bits[] = {
        flp_device_test_of(a_rows_bits_follow_neither_place_nor_neighbours),
        flp_device_test_of(alignment_and_path_change_no_bit),
        flp_device_test_of(repetitions_have_the_same_bits),
        flp_device_test_of(elements_beyond_32_bits_are_reached),
    };
    int code = flp_device_test_start(argc, argv), count, failed;

    if (code != 0)
        return code;
    count = flp_device_test.quick ? FLP_WEIGHTED_QUICK : flp_weighted_case_count();
    cases = calloc((size_t)count, sizeof(*cases));
    if (!cases)
        return 1;
    failed = flp_device_test_run_cases("weighted_sum on the device", count, test_at);
    if (!flp_device_test.quick)
        failed += cmocka_run_group_tests_name("bits of weighted_sum", bits, NULL, NULL);
    flp_device_test_finish();
    free(cases);
    return failed;
}
