/* fusedlogp score on the GPU path, with the host machine as its device: memory, chunks, results, and failures of each driver call. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/score_gpu.h"
#include "cpu/convert.h"
#include "host/host_device.h"
#include "runtime/assertions.h"
#include "runtime/fake_directory.h"
#include "runtime/fake_driver.h"

enum { ROWS = 70, HIDDEN = 64, VOCAB = 300, IGNORED = 9 };

/* Both sides promise an error of 1e-6 against fp64, relative to the larger of |value| and 1. */
#define TOLERANCE 2e-6

static char *directory;
static uint32_t random_state = 1;

static float next_value(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int)(random_state >> 24) / 256 - 0.5f; /* exact in every type, and logits of a few units */
}

/* columns: 0: the array is a vector. */
static void write_npy(const char *name, flp_dtype dtype, int rows, int columns, const void *data)
{
    static const char *const descr[] = { [FLP_BF16] = "<V2", [FLP_F32] = "<f4", [FLP_I32] = "<i4", [FLP_I64] = "<i8" };
    char header[129], shape[32];
    size_t bytes = (size_t)rows * (size_t)(columns ? columns : 1) * (size_t)flp_dtype_bytes(dtype);
    char *file = malloc(128 + bytes);

    snprintf(shape, sizeof(shape), columns ? "%d, %d" : "%d,", rows, columns);
    snprintf(header, sizeof(header), "%-127s\n", "..........");
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    header[10 + snprintf(header + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr[dtype], shape)] = ' ';
    memcpy(file, header, 128);
    memcpy(file + 128, data, bytes);
    fake_directory_write(fake_directory_path(directory, name), file, 128 + bytes);
    free(file);
}

static void write_values(const char *name, flp_dtype dtype, int rows, int columns)
{
    int count = rows * (columns ? columns : 1);
    float *values = malloc((size_t)count * sizeof(*values));
    void *data = malloc((size_t)count * sizeof(*values));

    for (int i = 0; i < count; i++)
        values[i] = next_value();
    flp_convert_from_f32(dtype, values, data, (size_t)count);
    write_npy(name, dtype, rows, columns, data);
    free(values);
    free(data);
}

static void write_targets(void)
{
    int64_t wide[ROWS];
    int32_t narrow[ROWS];

    for (int i = 0; i < ROWS; i++)
        wide[i] = narrow[i] = i == IGNORED ? -100 : i * 37 % VOCAB;
    write_npy("i64.npy", FLP_I64, ROWS, 0, wide);
    write_npy("i32.npy", FLP_I32, ROWS, 0, narrow);
    write_npy("none-i32.npy", FLP_I32, 0, 0, narrow);
}

static int start(void **state)
{
    (void)state;
    directory = strdup(fake_directory_make());
    setenv("FUSEDLOGP_CACHE_DIR", "", 1);
    write_values("bf16.npy", FLP_BF16, ROWS, HIDDEN);
    write_values("weight-bf16.npy", FLP_BF16, VOCAB, HIDDEN);
    write_values("f32.npy", FLP_F32, ROWS, HIDDEN);
    write_values("weight-f32.npy", FLP_F32, VOCAB, HIDDEN);
    write_values("bias.npy", FLP_F32, VOCAB, 0);
    write_values("logits.npy", FLP_F32, ROWS, VOCAB);
    write_values("none.npy", FLP_BF16, 0, HIDDEN);
    write_targets();
    flp_host_device_install(90);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_directory_remove(directory);
    free(directory);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    flp_host_device_install(90);
    return 0;
}

static const char *path_of(const char *name)
{
    return fake_directory_path(directory, name);
}

/* Options that request every result. */
static flp_score_options linear(const char *hidden, const char *weight, const char *target)
{
    return (flp_score_options){ .hidden = path_of(hidden),
                                .weight = path_of(weight),
                                .target = path_of(target),
                                .bias = path_of("bias.npy"),
                                .out = "out.npy",
                                .lse = "lse.npy",
                                .entropy = "entropy.npy",
                                .argmax = "argmax.npy",
                                .ignore_index = -100,
                                .softcap = 30,
                                .temperature = 0.75,
                                .quiet = 1 };
}

static flp_score_options logits(void)
{
    return (flp_score_options){ .logits = path_of("logits.npy"),
                                .target = path_of("i32.npy"),
                                .out = "out.npy",
                                .lse = "lse.npy",
                                .entropy = "entropy.npy",
                                .argmax = "argmax.npy",
                                .ignore_index = -100,
                                .quiet = 1 };
}

/* Scores, and asserts that no device memory or module is left, even after a failure. */
static flp_status score(const flp_score_options *options, flp_score_result *result)
{
    flp_score_inputs inputs;
    flp_status status = flp_score_inputs_open(options, &inputs);

    *result = (flp_score_result){ 0 };
    assert_int_equal(FLP_OK, status);
    status = flp_score_run(options, &inputs, result);
    flp_score_inputs_close(&inputs);
    assert_int_equal(0, fake_driver.live_blocks);
    assert_int_equal(0, fake_driver.live_bytes);
    assert_int_equal(0, fake_driver.live_modules);
    return status;
}

static void score_well(const flp_score_options *options, flp_score_result *result)
{
    assert_succeeds(score(options, result));
    assert_string_equal("", flp_host_device.failure);
}

static void assert_near(const char *what, const float *wanted, const float *got)
{
    for (int i = 0; i < ROWS; i++) {
        double size = fabs((double)wanted[i]) > 1 ? fabs((double)wanted[i]) : 1;
        if (!(fabs((double)got[i] - (double)wanted[i]) <= TOLERANCE * size))
            fail_msg("%s, row %d: got %.9g, wanted %.9g", what, i, (double)got[i], (double)wanted[i]);
    }
}

/* The results must be those of the CPU path, and come from the kernels of `path`. */
static void assert_as_on_the_cpu(flp_score_options options, const char *path)
{
    flp_score_result got, wanted;

    score_well(&options, &got);
    assert_string_equal(path, flp_backend_name(got.path));
    assert_int_equal(ROWS, got.chunk_rows);
    assert_true(flp_host_device.launches > 0);
    options.backend = FLP_BACKEND_CPU;
    score_well(&options, &wanted);
    assert_int_equal(FLP_BACKEND_CPU, wanted.path);
    assert_near("logp", wanted.logp, got.logp);
    assert_near("lse", wanted.lse, got.lse);
    assert_near("entropy", wanted.entropy, got.entropy);
    assert_memory_equal(wanted.argmax, got.argmax, ROWS * sizeof(*got.argmax));
    assert_true(got.logp[IGNORED] == 0);
    assert_true(got.logp[IGNORED + 1] < 0);
    flp_score_run_free(&got);
    flp_score_run_free(&wanted);
}

static void hidden_and_weight_give_what_the_cpu_gives(void **state)
{
    (void)state;
    assert_as_on_the_cpu(linear("bf16.npy", "weight-bf16.npy", "i32.npy"), "sm_90a");
}

static void targets_of_eight_bytes_too(void **state)
{
    (void)state;
    assert_as_on_the_cpu(linear("bf16.npy", "weight-bf16.npy", "i64.npy"), "sm_90a");
}

static void the_portable_path_too(void **state)
{
    flp_score_options options = linear("f32.npy", "weight-f32.npy", "i32.npy");

    (void)state;
    options.backend = FLP_BACKEND_PORTABLE;
    assert_as_on_the_cpu(options, "portable");
}

static void so_do_logits(void **state)
{
    flp_score_options options = logits();

    (void)state;
    options.backend = FLP_BACKEND_SM90A;
    assert_as_on_the_cpu(options, "sm_90a");
}

static void chunks_change_no_bit(void **state)
{
    static const int64_t chunks[] = { 1, 9, 64, 69, ROWS, 1000 };
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_result whole, part;

    (void)state;
    score_well(&options, &whole);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        int launches;
        options.chunk_rows = chunks[i];
        flp_host_device_install(90);
        score_well(&options, &part);
        launches = flp_host_device.launches;
        assert_int_equal(chunks[i] < ROWS ? chunks[i] : ROWS, part.chunk_rows);
        assert_true(launches >= (ROWS + part.chunk_rows - 1) / part.chunk_rows);
        assert_memory_equal(whole.logp, part.logp, ROWS * sizeof(float));
        assert_memory_equal(whole.lse, part.lse, ROWS * sizeof(float));
        assert_memory_equal(whole.entropy, part.entropy, ROWS * sizeof(float));
        assert_memory_equal(whole.argmax, part.argmax, ROWS * sizeof(int32_t));
        assert_string_equal(whole.numerics, part.numerics);
        flp_score_run_free(&part);
    }
    flp_score_run_free(&whole);
}

static void what_is_not_asked_for_is_not_fetched(void **state)
{
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_result result;

    (void)state;
    options.lse = options.entropy = options.argmax = NULL;
    score_well(&options, &result);
    assert_non_null(result.logp);
    assert_null(result.lse);
    assert_null(result.entropy);
    assert_null(result.argmax);
    assert_int_equal(1, fake_driver.calls[FAKE_copy_to_host]);
    flp_score_run_free(&result);
}

static void no_rows_are_no_work(void **state)
{
    flp_score_options options = linear("none.npy", "weight-bf16.npy", "none-i32.npy");
    flp_score_result result;

    (void)state;
    score_well(&options, &result);
    assert_int_equal(0, flp_host_device.launches);
    flp_score_run_free(&result);
}

/* Device memory of weight and bias; and of a row: its hidden state, its target and the four results. */
enum { FIXED_BYTES = VOCAB * HIDDEN * 2 + VOCAB * 4, ROW_BYTES = HIDDEN * 2 + 4 + 4 * 4 };

/* Device memory of which seven eighths have room for the weight and so many rows. */
static size_t memory_for(int64_t rows)
{
    return (size_t)((FIXED_BYTES + rows * ROW_BYTES + 6) / 7 * 8);
}

static void the_chunk_is_what_fits_beside_the_weight(void **state)
{
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_inputs inputs;
    flp_score_gpu gpu;
    const flp_driver *driver;
    int64_t rows;

    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    assert_succeeds(flp_score_inputs_open(&options, &inputs));
    assert_succeeds(flp_score_gpu_open(driver, 0, 0, &gpu));
    for (int64_t fitting = 1; fitting <= 2 * ROWS; fitting++) {
        fake_driver.memory_bytes = memory_for(fitting);
        assert_succeeds(flp_score_gpu_chunk(&gpu, &inputs, 0, &rows));
        assert_int_equal(fitting < ROWS ? fitting : ROWS, rows);
        assert_succeeds(flp_score_gpu_chunk(&gpu, &inputs, 1, &rows));
        assert_int_equal(1, rows);
        if (fitting < ROWS)
            assert_fails(FLP_OUT_OF_MEMORY, flp_score_gpu_chunk(&gpu, &inputs, fitting + 1, &rows), "wanted a smaller --chunk-rows");
    }
    fake_driver.memory_bytes = memory_for(0);
    assert_fails(FLP_OUT_OF_MEMORY, flp_score_gpu_chunk(&gpu, &inputs, 0, &rows), "weight and bias take 39600 bytes and a chunk of 1 rows 148");
    assert_contains(flp_error_message(), "--backend cpu needs no device memory");
    inputs.problem.rows = (int64_t)1 << 28;
    fake_driver.memory_bytes = (size_t)80 << 30;
    assert_succeeds(flp_score_gpu_chunk(&gpu, &inputs, 0, &rows));
    assert_int_equal(65536, rows); /* larger chunks are no faster */
    flp_score_gpu_close(&gpu);
    flp_score_gpu_close(&gpu);
    flp_score_inputs_close(&inputs);
}

static void little_memory_takes_more_chunks(void **state)
{
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_result whole, part;

    (void)state;
    score_well(&options, &whole);
    fake_driver.memory_bytes = memory_for(30);
    score_well(&options, &part);
    assert_int_equal(30, part.chunk_rows);
    assert_memory_equal(whole.logp, part.logp, ROWS * sizeof(float));
    assert_memory_equal(whole.argmax, part.argmax, ROWS * sizeof(int32_t));
    flp_score_run_free(&whole);
    flp_score_run_free(&part);
    fake_driver.memory_bytes = 1000;
    assert_fails(FLP_OUT_OF_MEMORY, score(&options, &part), "of 1000 bytes free");
    flp_score_run_free(&part);
}

static int failing, failing_call, calls_seen;

/* Called at each driver call: makes the next one fail, if it is call number failing_call of the function. */
static void count_call(int function)
{
    if (function == failing && ++calls_seen == failing_call - 1)
        fake_driver_fail(failing, CUDA_ERROR_OUT_OF_MEMORY, 1);
}

/* Makes each driver call of a run fail once, one run for each. */
static void every_driver_call_that_fails_is_told_and_leaves_nothing(void **state)
{
    static const struct {
        int function, least; /* calls of it in a run of three chunks */
        const char *name;
    } functions[] = {
        { FAKE_device_count, 2, "cuDeviceGetCount" },
        { FAKE_device_get, 1, "cuDeviceGet" },
        { FAKE_primary_retain, 1, "cuDevicePrimaryCtxRetain" },
        { FAKE_context_set_current, 1, "cuCtxSetCurrent" },
        { FAKE_stream_create, 1, "cuStreamCreate" },
        { FAKE_memory_info, 1, "cuMemGetInfo" },
        { FAKE_memory_allocate, 9, "cuMemAlloc" },
        { FAKE_copy_to_device, 2 + 3 * 2, "cuMemcpyHtoDAsync" },
        { FAKE_copy_to_host, 3 * 4, "cuMemcpyDtoHAsync" },
        { FAKE_stream_synchronize, 3, "cuStreamSynchronize" },
    };
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");

    (void)state;
    options.chunk_rows = 32;
    options.backend = FLP_BACKEND_SM90A; /* "auto" would go on without a driver */
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (int call = 1; call <= functions[i].least; call++) {
            flp_score_result result;
            flp_host_device_install(90);
            failing = functions[i].function;
            failing_call = call;
            calls_seen = 0;
            fake_driver.on_call = count_call;
            if (call == 1)
                fake_driver_fail(failing, CUDA_ERROR_OUT_OF_MEMORY, 1);
            if (score(&options, &result) == FLP_OK)
                fail_msg("%s: call %d failed and nobody saw it", functions[i].name, call);
            assert_contains(flp_error_message(), functions[i].name);
            assert_int_equal(fake_driver.calls[FAKE_primary_retain] - (failing == FAKE_primary_retain), fake_driver.calls[FAKE_primary_release]);
            assert_int_equal(fake_driver.calls[FAKE_stream_create] - (failing == FAKE_stream_create), fake_driver.calls[FAKE_stream_destroy]);
            flp_score_run_free(&result);
        }
    }
}

static void a_device_that_is_not_there_is_named(void **state)
{
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_result result;

    (void)state;
    options.device = 1;
    assert_fails(FLP_NO_DRIVER, score(&options, &result), "--device: got 1, and the driver shows 1 device");
    flp_score_run_free(&result);
}

/* The CPU path computes from the mapped files, so no device memory is allocated and the context is released before. */
static void a_device_without_kernels_leaves_the_cpu(void **state)
{
    flp_score_options options = linear("bf16.npy", "weight-bf16.npy", "i32.npy");
    flp_score_result result;

    (void)state;
    flp_host_device_install(70);
    score_well(&options, &result);
    assert_string_equal("cpu", flp_backend_name(result.path));
    assert_contains(result.reason, "compute capability 7.0");
    assert_int_equal(0, flp_host_device.launches);
    assert_int_equal(0, fake_driver.calls[FAKE_memory_allocate]);
    assert_int_equal(1, fake_driver.calls[FAKE_primary_release]);
    flp_score_run_free(&result);
    options.backend = FLP_BACKEND_SM90A;
    assert_fails(FLP_NO_VARIANT, score(&options, &result), "sm_90a");
    flp_score_run_free(&result);
}

/* On a GPU without NVRTC and without prebuilt kernels there is no result, and a single message that says what to do. */
static void without_nvrtc_it_says_once_what_to_install(void **state)
{
    char *argv[] = { "fusedlogp score",          "--hidden", (char *)path_of("bf16.npy"), "--weight", (char *)path_of("weight-bf16.npy"), "--target",
                     (char *)path_of("i32.npy"), NULL };
    const char *messages_path = path_of("messages");
    const int kept = dup(STDERR_FILENO), file = open(messages_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char *messages;
    size_t count;
    int code;

    (void)state;
    flp_host_device.no_nvrtc = 1;
    dup2(file, STDERR_FILENO);
    code = flp_score_main(7, argv);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    messages = fake_directory_read(messages_path, &count);
    assert_int_equal(FLP_EXIT_NO_DEVICE, code);
    assert_contains(messages, "install NVRTC 12.0 or newer (pip install nvidia-cuda-nvrtc)");
    assert_contains(messages, "kernels that fusedlogp-gen has prebuilt, or --backend cpu");
    assert_int_equal(count - 1, strcspn(messages, "\n")); /* it is one line */
    free(messages);
}

static char *changed;

/* Changes the time of an input file while the device computes. */
static void change_input(int function)
{
    const struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };

    if (function == FAKE_copy_to_host)
        assert_int_equal(0, utimensat(AT_FDCWD, changed, times, 0));
}

static void an_input_that_changes_meanwhile_leaves_no_result(void **state)
{
    static const char *const options[] = { "--hidden", "--weight", "--target", "--bias" };
    static const char *const files[] = { "bf16.npy", "weight-bf16.npy", "i32.npy", "bias.npy" };
    char out[256];

    (void)state;
    snprintf(out, sizeof(out), "%s", path_of("never.csv"));
    for (int i = -1; i < 4; i++) {
        char *argv[] = { "fusedlogp score",
                         "--hidden",
                         (char *)path_of(files[0]),
                         "--weight",
                         (char *)path_of(files[1]),
                         "--target",
                         (char *)path_of(files[2]),
                         "--bias",
                         (char *)path_of(files[3]),
                         "--out",
                         out,
                         "--quiet",
                         NULL };
        flp_host_device_install(90);
        changed = i < 0 ? NULL : argv[2 * i + 2];
        fake_driver.on_call = changed ? change_input : NULL;
        if (i < 0) {
            assert_int_equal(FLP_EXIT_OK, flp_score_main(12, argv));
            assert_int_equal(0, remove(out));
            continue;
        }
        assert_int_equal(FLP_EXIT_FAILED, flp_score_main(12, argv));
        assert_contains(flp_error_message(), options[i]);
        assert_contains(flp_error_message(), "the file was written to while it was read");
        assert_int_not_equal(0, access(out, F_OK));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(hidden_and_weight_give_what_the_cpu_gives, begin),
        cmocka_unit_test_setup(targets_of_eight_bytes_too, begin),
        cmocka_unit_test_setup(without_nvrtc_it_says_once_what_to_install, begin),
        cmocka_unit_test_setup(the_portable_path_too, begin),
        cmocka_unit_test_setup(so_do_logits, begin),
        cmocka_unit_test_setup(chunks_change_no_bit, begin),
        cmocka_unit_test_setup(what_is_not_asked_for_is_not_fetched, begin),
        cmocka_unit_test_setup(no_rows_are_no_work, begin),
        cmocka_unit_test_setup(the_chunk_is_what_fits_beside_the_weight, begin),
        cmocka_unit_test_setup(little_memory_takes_more_chunks, begin),
        cmocka_unit_test_setup(every_driver_call_that_fails_is_told_and_leaves_nothing, begin),
        cmocka_unit_test_setup(a_device_that_is_not_there_is_named, begin),
        cmocka_unit_test_setup(a_device_without_kernels_leaves_the_cpu, begin),
        cmocka_unit_test_setup(an_input_that_changes_meanwhile_leaves_no_result, begin),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
