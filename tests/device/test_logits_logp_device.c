/* logits_logp on the GPU, both directions: every case of the CPU tests and more rows than a launch has blocks, the chosen path and the portable
 * one; and bits that depend on neither the rows beside, the form, nor the alignment. */
#include <stdlib.h>

#include "device/device_test.h"
#include "logits_cases.h"

/* Enough rows that a block, or a cluster of each size, takes one after the other; the last has room for one row at a time. */
static const flp_logits_case many_rows[] = {
    { .name = "many rows of one warp", .problem = { .dtype = FLP_BF16, .rows = 9001, .vocab = 1000, .argmax = 1 } },
    { .name = "many rows of two warps", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 3001, .vocab = 3000, .entropy = 1 } },
    { .name = "many rows of one block", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 850, .vocab = 10248, .argmax = 1 } },
    { .name = "many rows of one block, odd", .problem = { .dtype = FLP_BF16, .rows = 220, .vocab = 50257 } },
    { .name = "many rows of a cluster of one", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .rows = 450, .vocab = 16384, .entropy = 1 } },
    { .name = "many rows of a cluster of two", .rows = FLP_LOGITS_IGNORED | FLP_LOGITS_BAD_TARGETS,
      .problem = { .dtype = FLP_BF16, .rows = 420, .vocab = 50264 } },
    { .name = "many rows of a cluster of four, capped", .rows = FLP_LOGITS_UNEVEN | FLP_LOGITS_ROW_TEMPERATURES,
      .problem = { .dtype = FLP_F16, .rows = 130, .vocab = 98312, .softcap = 30, .entropy = 1 } },
    { .name = "many rows of a cluster of eight", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F32, .rows = 105, .vocab = 70000 } },
    { .name = "many scattered rows of a cluster", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED | FLP_LOGITS_BAD_INDICES,
      .problem = { .dtype = FLP_BF16, .rows = 500, .vocab = 20488 } },
    { .name = "many rows of a cluster, padded", .gap = 5, .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 300, .vocab = 32003 } },
    { .name = "long rows of a cluster of eight", .problem = { .dtype = FLP_BF16, .rows = 33, .vocab = 500000 } },
};

/* Small ones for the sanitizers. */
static const flp_logits_case quick[] = {
    { .name = "one segment", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_BF16, .rows = 19, .vocab = 1001, .argmax = 1, .entropy = 1 } },
    { .name = "a team, odd", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 7, .vocab = 5003, .softcap = 30 } },
    { .name = "parts", .problem = { .dtype = FLP_F32, .rows = 3, .vocab = 20000, .argmax = 1, .entropy = 1 } },
    { .name = "indexed", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_TARGETS, .problem = { .dtype = FLP_BF16, .rows = 9, .vocab = 2400 } },
    { .name = "one part", .problem = { .dtype = FLP_BF16, .rows = 850, .vocab = 10248 } },
    { .name = "a cluster of one", .gap = 5, .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 140, .vocab = 20483 } },
    { .name = "a cluster of two", .problem = { .dtype = FLP_BF16, .rows = 70, .vocab = 40968, .entropy = 1 } },
    { .name = "a cluster of eight", .problem = { .dtype = FLP_F32, .rows = 18, .vocab = 66000 } },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static flp_logits_case *cases;
static int case_count;

static void take(int index, flp_logits_case *c)
{
    const int shared = flp_device_test.quick ? 0 : flp_logits_case_count();

    if (index < shared) {
        flp_logits_case_get(index, c);
        return;
    }
    *c = flp_device_test.quick ? quick[index] : many_rows[index - shared];
    flp_logits_case_complete(index, c);
}

static void collect_cases(void)
{
    case_count = flp_device_test.quick ? COUNT(quick) : flp_logits_case_count() + COUNT(many_rows);
    cases = calloc((size_t)case_count, sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < case_count; i++)
        take(i, &cases[i]);
}

/* ---- one case on the device */

typedef struct {
    flp_logits_case c;
    flp_logits_data data;
    flp_logits_wanted wanted;
    CUdeviceptr base[FLP_LOGITS_ROLES];
    void *bases[FLP_LOGITS_ROLES];
} on_device;

/* With --quick an allocation ends with the data, so that a sanitizer sees the first byte too far. */
static size_t copied_bytes(const flp_logits_buffer *buffer)
{
    return flp_device_test.quick ? buffer->offset + buffer->data_bytes : buffer->bytes;
}

static void upload(on_device *on, flp_logits_role role)
{
    const flp_logits_buffer *buffer = &on->data.buffer[role];

    if (buffer->base)
        assert_succeeds(flp_gpu_upload(&flp_device_test.gpu, on->base[role], buffer->base, copied_bytes(buffer)));
}

static void set_up(on_device *on)
{
    assert_true(flp_logits_case_make(&on->c, &on->data));
    assert_true(flp_logits_case_compute(&on->c, &on->data, &on->wanted));
    for (int role = 0; role < FLP_LOGITS_ROLES; role++) {
        if (!on->data.buffer[role].base)
            continue;
        assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, copied_bytes(&on->data.buffer[role]), &on->base[role]));
        on->bases[role] = flp_gpu_pointer(on->base[role]);
        upload(on, (flp_logits_role)role);
    }
}

static void tear_down(on_device *on)
{
    flp_logits_wanted_free(&on->wanted);
    flp_logits_case_free(&on->data);
    flp_gpu_free_all(&flp_device_test.gpu);
}

/* Poisons the results; in place the logits take the place of the gradients. */
static void prepare(on_device *on, flp_logits_form form)
{
    const flp_logits_buffer *logits = &on->data.buffer[FLP_LOGITS_LOGITS], *gradients = &on->data.buffer[FLP_LOGITS_GRAD];

    flp_logits_case_poison(&on->data);
    if (form == FLP_LOGITS_IN_PLACE)
        memcpy(gradients->base + gradients->offset, logits->base + logits->offset, logits->data_bytes);
    for (int role = FLP_LOGITS_LOGP; role < FLP_LOGITS_ROLES; role++)
        upload(on, (flp_logits_role)role);
}

/* Only what the copy holds comes back, the guards with it. */
static void fetch(on_device *on)
{
    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
    for (int role = FLP_LOGITS_LOGP; role < FLP_LOGITS_ROLES; role++)
        if (on->base[role])
            assert_succeeds(flp_gpu_download(&flp_device_test.gpu, on->data.buffer[role].base, on->base[role],
                                             copied_bytes(&on->data.buffer[role])));
}

static void check_plan(const on_device *on, flp_plan *plan, const char *path)
{
    int64_t count, first;

    assert_contains(flp_plan_describe(plan), path);
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(on->wanted.bad_count, count);
    assert_int_equal(on->wanted.bad_first, first);
}

static void execute(on_device *on, flp_logits_form form, flp_backend backend, const char *path)
{
    flp_logits_logp_problem forward = on->c.problem;
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args backward;
    flp_logits_logp_args args;
    flp_plan *plan;

    forward.backend = backend;
    if (form == FLP_LOGITS_FORWARD) {
        flp_logits_case_forward(&on->c, &on->data, on->bases, &args);
        assert_succeeds(flp_logits_logp_plan_create(flp_device_test.context, &forward, &plan));
        assert_succeeds(flp_logits_logp_execute(plan, &args));
    } else {
        flp_logits_case_backward(&on->c, &on->data, on->bases, form, &problem, &backward);
        problem.backend = backend;
        assert_succeeds(flp_logits_logp_backward_plan_create(flp_device_test.context, &problem, &plan));
        assert_succeeds(flp_logits_logp_backward_execute(plan, &backward));
    }
    check_plan(on, plan, path);
    fetch(on);
    flp_plan_destroy(plan);
}

static void a_case_is_right(void **state)
{
    static const struct {
        flp_backend backend;
        const char *path;
    } paths[] = { { FLP_BACKEND_AUTO, "path: " }, { FLP_BACKEND_PORTABLE, "path: portable\n" } };
    on_device on = { .c = *(const flp_logits_case *)*state };
    char message[256];

    set_up(&on);
    for (int p = 0; p < COUNT(paths); p++)
        for (int form = 0; form < FLP_LOGITS_FORMS; form++) {
            if (!flp_logits_case_has(&on.c, (flp_logits_form)form))
                continue;
            prepare(&on, (flp_logits_form)form);
            execute(&on, (flp_logits_form)form, paths[p].backend, paths[p].path);
            if (!flp_logits_case_check(&on.c, &on.data, &on.wanted, (flp_logits_form)form, message, sizeof(message)))
                fail_msg("%s, %s form %d: %s", on.c.name, paths[p].path, form, message);
        }
    tear_down(&on);
}

/* ---- bits */

static void *bits_of(const on_device *on, flp_logits_role role)
{
    return on->data.buffer[role].base + on->data.buffer[role].offset;
}

static void run(on_device *on, flp_logits_form form)
{
    prepare(on, form);
    execute(on, form, FLP_BACKEND_AUTO, "path: ");
}

/* A case's forward among all its rows, and each of the first rows by itself: parts of a row on many blocks then, one block before. */
static void a_rows_bits_do_not_follow_its_neighbours(void **state)
{
    enum { ALONE = 8 };
    static const flp_logits_role roles[] = { FLP_LOGITS_LOGP, FLP_LOGITS_LSE, FLP_LOGITS_ENTROPY };
    on_device on = { .c = { .name = "bits", .problem = { .dtype = FLP_BF16, .rows = 900, .vocab = 16401, .entropy = 1 } } };
    uint32_t together[3][ALONE];
    flp_logits_logp_args args;

    (void)state;
    flp_logits_case_complete(0, &on.c);
    set_up(&on);
    run(&on, FLP_LOGITS_FORWARD);
    for (int r = 0; r < COUNT(roles); r++)
        memcpy(together[r], bits_of(&on, roles[r]), sizeof(together[r]));
    for (int i = 0; i < ALONE; i++) {
        prepare(&on, FLP_LOGITS_FORWARD);
        flp_logits_case_forward(&on.c, &on.data, on.bases, &args);
        args.rows = 1;
        args.logits = (const char *)args.logits + (int64_t)i * on.c.problem.logits_stride * 2;
        args.target = (const int64_t *)args.target + i;
        assert_succeeds(flp_logits_logp(flp_device_test.context, &on.c.problem, &args));
        fetch(&on);
        for (int r = 0; r < COUNT(roles); r++)
            assert_memory_equal(&together[r][i], bits_of(&on, roles[r]), sizeof(uint32_t));
    }
    tear_down(&on);
}

/* Fused in clusters, fused in one block, and in steps: the forward's results, and gradients that depend on none of it. */
static void the_fused_form_has_the_forwards_bits(void **state)
{
    on_device on = { .c = { .name = "bits", .problem = { .dtype = FLP_F32, .rows = 120, .vocab = 40004, .entropy = 1 } } };
    const size_t bytes = 120 * sizeof(float), row_bytes = 40004 * sizeof(float);
    float *lse = malloc(bytes), *gradients = malloc(row_bytes);
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args;

    (void)state;
    flp_logits_case_complete(0, &on.c);
    set_up(&on);
    run(&on, FLP_LOGITS_FORWARD);
    memcpy(lse, bits_of(&on, FLP_LOGITS_LSE), bytes);
    run(&on, FLP_LOGITS_FUSED);
    assert_memory_equal(lse, bits_of(&on, FLP_LOGITS_LSE), bytes);
    memcpy(gradients, bits_of(&on, FLP_LOGITS_GRAD), row_bytes);
    prepare(&on, FLP_LOGITS_FUSED);
    flp_logits_case_backward(&on.c, &on.data, on.bases, FLP_LOGITS_FUSED, &problem, &args);
    args.rows = 1; /* too few for the fused kernel */
    assert_succeeds(flp_logits_logp_backward(flp_device_test.context, &problem, &args));
    fetch(&on);
    assert_memory_equal(lse, bits_of(&on, FLP_LOGITS_LSE), sizeof(float));
    assert_memory_equal(gradients, bits_of(&on, FLP_LOGITS_GRAD), row_bytes);
    free(lse);
    free(gradients);
    tear_down(&on);
}

static void the_alignment_changes_no_bit(void **state)
{
    on_device aligned = { .c = { .name = "bits", .problem = { .dtype = FLP_BF16, .rows = 21, .vocab = 16400, .entropy = 1 } } }, moved;
    const size_t bytes = 21 * sizeof(float);
    float lse[21];

    (void)state;
    flp_logits_case_complete(0, &aligned.c);
    moved = aligned;
    moved.c.misalignment = 2;
    flp_logits_case_complete(0, &moved.c);
    set_up(&aligned);
    run(&aligned, FLP_LOGITS_FORWARD);
    memcpy(lse, bits_of(&aligned, FLP_LOGITS_LSE), bytes);
    tear_down(&aligned);
    set_up(&moved);
    run(&moved, FLP_LOGITS_FORWARD);
    assert_memory_equal(lse, bits_of(&moved, FLP_LOGITS_LSE), bytes);
    tear_down(&moved);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest bits[] = {
        flp_device_test_of(a_rows_bits_do_not_follow_its_neighbours),
        flp_device_test_of(the_fused_form_has_the_forwards_bits),
        flp_device_test_of(the_alignment_changes_no_bit),
    };
    int code = flp_device_test_start(argc, argv), failed;
    struct CMUnitTest *tests;

    if (code != 0)
        return code;
    collect_cases();
    tests = calloc((size_t)case_count, sizeof(*tests));
    if (!tests)
        return 1;
    for (int i = 0; i < case_count; i++)
        tests[i] = (struct CMUnitTest){ cases[i].name, a_case_is_right, flp_device_test_setup, flp_device_test_teardown, &cases[i] };
    failed = _cmocka_run_group_tests("logits_logp on the device", tests, (size_t)case_count, NULL, NULL);
    if (!flp_device_test.quick)
        failed += cmocka_run_group_tests_name("bits of logits_logp", bits, NULL, NULL);
    flp_device_test_finish();
    free(tests);
    free(cases);
    return failed;
}
