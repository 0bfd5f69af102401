/* The arrays of the calls that a tuning makes itself. */
#include "core/tune_arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/int64.h"
#include "base/dtype.h"
#include "base/status.h"
#include "core/plan.h"
#include "cpu/convert.h"

/* ---- sizes ---- */

static const flp_field *field_at(const flp_operator *op, int at)
{
    FLP_EACH_FIELD (field, op)
        if (field->at == at)
            return field;
    return NULL;
}

static int is_asked(const flp_tune_arrays *arrays, const flp_argument *argument)
{
    return flp_arguments_are_for(arrays->calls->arguments, argument, arrays->problem) &&
           (argument->asked_at == 0 || flp_problem_int(arrays->problem, argument->asked_at) != 0);
}

/* An array that a flag of the problem makes optional is a result where the flag is set. */
static flp_argument_values values_of(const flp_tune_arrays *arrays, const flp_argument *argument)
{
    if (argument->optional_at && flp_problem_int(arrays->problem, argument->optional_at) != 0)
        return FLP_VALUES_RESULT;
    return argument->values;
}

static void size_array(const flp_tune_arrays *arrays, flp_tune_array *array)
{
    const flp_operator *op = arrays->calls->op;
    const flp_argument *argument = array->argument;
    const int64_t rows = flp_problem_int64(arrays->problem, (int)op->rows_at);
    const flp_field *field = argument->extent_at ? field_at(op, argument->extent_at) : NULL;

    array->element_bytes = argument->bytes;
    if (argument->bytes == 0) {
        array->dtype = (flp_dtype)flp_problem_int(arrays->problem, argument->dtype_at);
        array->element_bytes = flp_dtype_bytes(array->dtype);
    } else if (array->values != FLP_VALUES_TARGET && argument->bytes == sizeof(float) && strcmp(argument->name, "argmax") != 0) {
        array->dtype = FLP_F32;
    }
    if (!field) {
        array->per_row = argument->row_elements ? argument->row_elements : 1;
        array->elements = array->per_row * rows;
    } else if (field->kind != FLP_FIELD_STRIDE) {
        array->elements = flp_problem_int64(arrays->problem, argument->extent_at);
    } else {
        const int transposed = field->transposed_at && flp_problem_int(arrays->problem, field->transposed_at) != 0;
        const int rows_at = transposed ? field->columns_at : field->rows_at;
        const int64_t stride = flp_problem_int64(arrays->problem, argument->extent_at);

        array->is_matrix = 1;
        array->per_row = rows_at == (int)op->rows_at || rows_at == 0 ? stride : 0;
        array->elements = stride * (array->per_row ? rows : flp_problem_int64(arrays->problem, rows_at));
    }
}

flp_status flp_tune_arrays_describe(flp_tune_arrays *arrays)
{
    FLP_EACH_FIELD (field, arrays->calls->op)
        if (field->takes_plan && flp_problem_int(arrays->problem, field->at) != 0 && !arrays->calls->execute_before)
            return flp_status_fail(FLP_INTERNAL, "%s: got %d, but %s says nothing of a call before", field->name, flp_problem_int(arrays->problem, field->at),
                                   arrays->calls->op->name);
    for (const flp_argument *const *part = arrays->calls->arguments->arrays; *part; part++)
        for (const flp_argument *argument = *part; argument->name; argument++) {
            flp_tune_array *array = &arrays->array[arrays->count];

            if (!is_asked(arrays, argument) || values_of(arrays, argument) == FLP_VALUES_ABSENT)
                continue;
            if (arrays->count == FLP_TUNE_ARRAYS)
                return flp_status_fail(FLP_INTERNAL, "%s has more than %d arrays", arrays->calls->op->name, FLP_TUNE_ARRAYS);
            *array = (flp_tune_array){ .argument = argument, .values = values_of(arrays, argument) };
            size_array(arrays, array);
            arrays->count++;
        }
    return FLP_OK;
}

static size_t bytes_of(const flp_tune_array *array, int64_t rows)
{
    return (size_t)((array->per_row ? array->per_row * rows : array->elements) * array->element_bytes);
}

static size_t all_bytes(const flp_tune_array *array)
{
    return (size_t)(array->elements * array->element_bytes);
}

int64_t flp_tune_arrays_bytes(const flp_tune_arrays *arrays)
{
    int64_t bytes = 0;

    for (int i = 0; i < arrays->count; i++)
        bytes = flp_int64_add(bytes, (int64_t)all_bytes(&arrays->array[i]));
    return bytes;
}

/* ---- values ---- */

/* Larger arrays repeat a block of this many random numbers. No row's length is a multiple of it. */
enum { BLOCK_ELEMENTS = (1 << 22) + 4099 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* A scaled sum of four uniform numbers, with mean 0 and standard deviation 1. */
static float normal(uint64_t *state)
{
    const uint64_t bits = next_random(state);
    const double sum = (double)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) / 65536;

    return (float)((sum - 2) * sqrt(3));
}

static float value_of(const flp_tune_arrays *arrays, const flp_tune_array *array, uint64_t *state)
{
    const double columns =
        array->is_matrix ? (double)flp_problem_int64(arrays->problem, field_at(arrays->calls->op, array->argument->extent_at)->columns_at) : 1;
    const double vocab = arrays->calls->arguments->vocab_at ? (double)flp_arguments_vocab(arrays->calls->arguments, arrays->problem) : 1;

    switch (array->values) {
    case FLP_VALUES_WEIGHT:
        return (float)(normal(state) * 2 / sqrt(columns));
    case FLP_VALUES_FACTOR:
        return (float)(0.5 + (double)(next_random(state) >> 40) / (1 << 24));
    case FLP_VALUES_LSE:
        return (float)(log(vocab) + 2);
    case FLP_VALUES_ENTROPY:
        return (float)(log(vocab) - 2);
    default:
        return normal(state);
    }
}

static void fill_targets(const flp_tune_arrays *arrays, const flp_tune_array *array, char *to, int64_t count)
{
    const int64_t vocab = flp_arguments_vocab(arrays->calls->arguments, arrays->problem);

    for (int64_t i = 0; i < count; i++) {
        const int64_t target = flp_tune_arrays_target(i, vocab);
        const int32_t narrow = (int32_t)target;

        memcpy(to + i * array->element_bytes, array->element_bytes == 8 ? (const void *)&target : (const void *)&narrow, (size_t)array->element_bytes);
    }
}

/* Fills in the first `count` elements, at most BLOCK_ELEMENTS except for targets. Each process gives an array the same values. */
static flp_status fill_block(const flp_tune_arrays *arrays, const flp_tune_array *array, char *to, int64_t count)
{
    enum { PIECE = 1024 };
    uint64_t state = (uint64_t)(array - arrays->array) + 1;
    float piece[PIECE];

    if (array->values == FLP_VALUES_TARGET) {
        fill_targets(arrays, array, to, count);
        return FLP_OK;
    }
    if (array->dtype == FLP_NONE)
        return flp_status_fail(FLP_INTERNAL, "%s: no values are known for an array without a dtype", array->argument->name);
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t some = count - at < PIECE ? count - at : PIECE;

        for (int64_t i = 0; i < some; i++)
            piece[i] = value_of(arrays, array, &state);
        flp_convert_from_f32(array->dtype, piece, to + at * array->element_bytes, (size_t)some);
    }
    return FLP_OK;
}

static int64_t block_elements(const flp_tune_array *array)
{
    return array->values != FLP_VALUES_TARGET && array->elements > BLOCK_ELEMENTS ? BLOCK_ELEMENTS : array->elements;
}

static flp_status no_memory(const char *name)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a copy of %s", name);
}

/* The values of an array, or those that it repeats. malloc'ed, and to be freed after a failure (*status), too; NULL: out of memory. */
static char *make_block(const flp_tune_arrays *arrays, const flp_tune_array *array, flp_status *status)
{
    const int64_t elements = block_elements(array);
    char *block = malloc((size_t)elements * (size_t)array->element_bytes + 1);

    *status = block ? fill_block(arrays, array, block, elements) : no_memory(array->argument->name);
    return block;
}

/* ---- on the device ---- */

static flp_status synchronize(const flp_tune_arrays *arrays)
{
    return flp_driver_check(arrays->driver, arrays->driver->stream_synchronize(arrays->stream), "cuStreamSynchronize");
}

static flp_status upload(const flp_tune_arrays *arrays, const flp_tune_array *array)
{
    const size_t total = all_bytes(array), block_bytes = (size_t)(block_elements(array) * array->element_bytes);
    flp_status status;
    char *block = make_block(arrays, array, &status);

    for (size_t at = 0; status == FLP_OK && at < total; at += block_bytes)
        status = flp_driver_check(
            arrays->driver, arrays->driver->copy_to_device(array->device + at, block, total - at < block_bytes ? total - at : block_bytes, arrays->stream),
            "cuMemcpyHtoDAsync");
    if (status == FLP_OK)
        status = synchronize(arrays);
    free(block);
    return status;
}

flp_status flp_tune_arrays_allocate(flp_tune_arrays *arrays)
{
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && i < arrays->count; i++) {
        flp_tune_array *array = &arrays->array[i];

        status = flp_device_memory_allocate((int64_t)all_bytes(array) + FLP_PROBLEM_ALIGNMENT, array->argument->name, &array->device);
        if (status == FLP_OK && array->values != FLP_VALUES_RESULT)
            status = upload(arrays, array);
    }
    return status == FLP_OK ? flp_tune_arrays_clear(arrays) : status;
}

void flp_tune_arrays_free(flp_tune_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        flp_device_memory_free(arrays->owner, arrays->array[i].device);
        for (int sample = 0; sample < FLP_TUNE_SAMPLES; sample++)
            free(arrays->array[i].sample[sample]);
    }
    arrays->count = 0;
}

flp_status flp_tune_arrays_clear(flp_tune_arrays *arrays)
{
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && i < arrays->count; i++) {
        const flp_tune_array *array = &arrays->array[i];

        if (array->values == FLP_VALUES_RESULT)
            status = flp_driver_check(arrays->driver, arrays->driver->memory_set(array->device, 0, all_bytes(array), arrays->stream), "cuMemsetD8Async");
    }
    return status;
}

/* addresses: of the arrays, on the device or the host. */
static void fill_args(const flp_tune_arrays *arrays, int64_t rows, void *const *addresses, void *args)
{
    char *bytes = args;

    memset(args, 0, FLP_CALL_ARGS_BYTES);
    memcpy(bytes, &rows, sizeof(rows));
    for (int i = 0; i < arrays->count; i++)
        memcpy(bytes + arrays->array[i].argument->at, &addresses[i], sizeof(addresses[i]));
}

void flp_tune_arrays_args(const flp_tune_arrays *arrays, int64_t rows, void *workspace, size_t workspace_bytes, void *args)
{
    const flp_arguments *table = arrays->calls->arguments;
    void *addresses[FLP_TUNE_ARRAYS];

    for (int i = 0; i < arrays->count; i++)
        addresses[i] = (void *)(uintptr_t)arrays->array[i].device;
    fill_args(arrays, rows, addresses, args);
    memcpy((char *)args + table->stream_at, &arrays->stream, sizeof(arrays->stream));
    if (table->workspace_at) { /* not every operator takes one */
        memcpy((char *)args + table->workspace_at, &workspace, sizeof(workspace));
        memcpy((char *)args + table->workspace_bytes_at, &workspace_bytes, sizeof(workspace_bytes));
    }
}

flp_status flp_tune_arrays_execute(const flp_tune_arrays *arrays, flp_plan *plan, const void *args)
{
    const flp_operator_calls *calls = arrays->calls;
    flp_status status = calls->execute_before ? calls->execute_before(plan, args) : FLP_OK;

    return status == FLP_OK ? flp_call_execute(calls, plan, args, flp_header_sizes()) : status;
}

/* ---- samples: the beginning and the end of each result ---- */

static size_t sampled_bytes(const flp_tune_arrays *arrays, const flp_tune_array *array, flp_tune_sample sample)
{
    const size_t bytes = sample == FLP_TUNE_ALL ? all_bytes(array) : bytes_of(array, FLP_TUNE_FEW_ROWS);
    const size_t most = (size_t)arrays->checked_bytes / 16 * 16;

    return bytes < most ? bytes : most;
}

/* Copies the beginning and the end of a result. from: the result on the host; NULL: the array on the device. to [sampled_bytes] */
static flp_status take_sample(const flp_tune_arrays *arrays, const flp_tune_array *array, flp_tune_sample sample, const char *from, char *to)
{
    const size_t bytes = sample == FLP_TUNE_ALL ? all_bytes(array) : bytes_of(array, FLP_TUNE_FEW_ROWS);
    const size_t taken = sampled_bytes(arrays, array, sample), head = taken == bytes ? taken : taken / 2;
    const size_t tail_at = bytes - (taken - head);
    flp_status status;

    if (from) {
        memcpy(to, from, head);
        memcpy(to + head, from + tail_at, taken - head);
        return FLP_OK;
    }
    status = flp_driver_check(arrays->driver, arrays->driver->copy_to_host(to, array->device, head, arrays->stream), "cuMemcpyDtoHAsync");
    if (status == FLP_OK && taken > head)
        status = flp_driver_check(arrays->driver, arrays->driver->copy_to_host(to + head, array->device + tail_at, taken - head, arrays->stream),
                                  "cuMemcpyDtoHAsync");
    return status == FLP_OK ? synchronize(arrays) : status;
}

static flp_status keep_one(const flp_tune_arrays *arrays, flp_tune_array *array, flp_tune_sample sample, const char *from)
{
    array->sample[sample] = malloc(sampled_bytes(arrays, array, sample) + 1);
    if (!array->sample[sample])
        return no_memory(array->argument->name);
    return take_sample(arrays, array, sample, from, array->sample[sample]);
}

flp_status flp_tune_arrays_keep(flp_tune_arrays *arrays, flp_tune_sample sample)
{
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && i < arrays->count; i++)
        if (arrays->array[i].values == FLP_VALUES_RESULT)
            status = keep_one(arrays, &arrays->array[i], sample, NULL);
    return status;
}

/* The allowed error, relative to the largest number of the array. Each number of the forward has an error of 1e-6, and so has the CPU path's. Gradients are
 * computed from derivatives that are rounded to the inputs' 16 bits, and are then rounded themselves: each time by half a unit in the last of 8 bits, and the
 * errors of a few rows may add up. */
static double tolerance_of(const flp_tune_array *array)
{
    return strncmp(array->argument->name, "grad_", 5) == 0 ? 0x1p-6 : array->dtype == FLP_F32 ? 0x1p-16 : 0x1p-7;
}

static flp_status differs(const flp_tune_array *array, size_t element, double got, double wanted, double allowed)
{
    return flp_status_fail(FLP_INTERNAL, "%s: sampled element %zu is %g, wanted %g within %g", array->argument->name, element, got, wanted, allowed);
}

static float number_at(const flp_tune_array *array, const char *numbers, size_t i)
{
    float number;

    flp_convert_to_f32(array->dtype, numbers + i * (size_t)array->element_bytes, &number, 1);
    return number;
}

static flp_status compare_numbers(const flp_tune_array *array, const char *got, const char *wanted, size_t count)
{
    double largest = 0, allowed;

    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)number_at(array, wanted, i)));
    allowed = tolerance_of(array) * largest;
    for (size_t i = 0; i < count; i++) {
        const double a = number_at(array, got, i), b = number_at(array, wanted, i);

        if (!(fabs(a - b) <= allowed))
            return differs(array, i, a, b, allowed);
    }
    return FLP_OK;
}

static flp_status compare_bits(const flp_tune_array *array, const char *got, const char *wanted, size_t bytes)
{
    if (memcmp(got, wanted, bytes) == 0)
        return FLP_OK;
    for (size_t i = 0; i < bytes / (size_t)array->element_bytes; i++) {
        const size_t at = i * (size_t)array->element_bytes;

        if (memcmp(got + at, wanted + at, (size_t)array->element_bytes) == 0)
            continue;
        if (array->dtype != FLP_NONE)
            return differs(array, i, number_at(array, got, i), number_at(array, wanted, i), 0);
        return flp_status_fail(FLP_INTERNAL, "%s: sampled element %zu is another", array->argument->name, i);
    }
    return FLP_OK;
}

static flp_status compare_one(const flp_tune_arrays *arrays, const flp_tune_array *array, flp_tune_sample sample, int by_bits)
{
    const size_t bytes = sampled_bytes(arrays, array, sample);
    char *got = malloc(bytes + 1);
    flp_status status;

    if (!got)
        return no_memory(array->argument->name);
    status = take_sample(arrays, array, sample, NULL, got);
    if (status == FLP_OK)
        status = by_bits || array->dtype == FLP_NONE ? compare_bits(array, got, array->sample[sample], bytes)
                                                     : compare_numbers(array, got, array->sample[sample], bytes / (size_t)array->element_bytes);
    free(got);
    return status;
}

flp_status flp_tune_arrays_compare(flp_tune_arrays *arrays, flp_tune_sample sample, int by_bits)
{
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && i < arrays->count; i++)
        if (arrays->array[i].values == FLP_VALUES_RESULT)
            status = compare_one(arrays, &arrays->array[i], sample, by_bits);
    return status;
}

/* ---- the reference ---- */

/* The array on the host: inputs as the device has them, results zeroed. malloc'ed. */
static char *host_array(const flp_tune_arrays *arrays, const flp_tune_array *array, flp_status *status)
{
    const size_t bytes = bytes_of(array, FLP_TUNE_FEW_ROWS);
    const size_t block_bytes = (size_t)(block_elements(array) * array->element_bytes);
    char *block = array->values == FLP_VALUES_RESULT ? NULL : make_block(arrays, array, status);
    char *made = *status == FLP_OK ? calloc(bytes + 1, 1) : NULL;

    if (*status == FLP_OK && !made)
        *status = no_memory(array->argument->name);
    for (size_t at = 0; block && made && at < bytes; at += block_bytes)
        memcpy(made + at, block, bytes - at < block_bytes ? bytes - at : block_bytes);
    free(block);
    return made;
}

/* Sets args to a workspace, which the CPU path needs for a call that another one comes before. *workspace: to be freed. */
static flp_status lend_workspace(const flp_arguments *table, const flp_plan *plan, void **workspace, void *args)
{
    const size_t bytes = (size_t)plan->workspace_bytes;
    const size_t aligned = (bytes + FLP_WORKSPACE_ALIGNMENT - 1) / FLP_WORKSPACE_ALIGNMENT * FLP_WORKSPACE_ALIGNMENT;

    if (bytes == 0)
        return FLP_OK;
    *workspace = aligned_alloc(FLP_WORKSPACE_ALIGNMENT, aligned);
    if (!*workspace)
        return no_memory("the workspace");
    memcpy((char *)args + table->workspace_at, workspace, sizeof(*workspace));
    memcpy((char *)args + table->workspace_bytes_at, &aligned, sizeof(aligned));
    return FLP_OK;
}

static flp_status run_on_cpu(const flp_tune_arrays *arrays, flp_context *context, void *const *addresses)
{
    const flp_operator *op = arrays->calls->op;
    flp_problem_storage problem;
    union {
        max_align_t aligned;
        char bytes[FLP_CALL_ARGS_BYTES];
    } args;
    void *workspace = NULL; /* only of a call that another one comes before */
    flp_plan *plan = NULL;
    flp_status status;

    memcpy(&problem, arrays->problem, op->problem_bytes);
    *flp_operator_rows(op, &problem) = FLP_TUNE_FEW_ROWS;
    *flp_operator_pointer_alignment(op, &problem) = 0;
    memcpy(problem.bytes + op->backend_at, &(flp_backend){ FLP_BACKEND_CPU }, sizeof(flp_backend));
    fill_args(arrays, FLP_TUNE_FEW_ROWS, addresses, &args);
    status = flp_create_plan(context, op, &problem, &plan);
    if (status == FLP_OK)
        status = lend_workspace(arrays->calls->arguments, plan, &workspace, &args);
    if (status == FLP_OK)
        status = flp_tune_arrays_execute(arrays, plan, &args);
    flp_plan_destroy(plan);
    free(workspace);
    return status;
}

flp_status flp_tune_arrays_run_reference(flp_tune_arrays *arrays, flp_context *context)
{
    void *addresses[FLP_TUNE_ARRAYS] = { NULL };
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && i < arrays->count; i++)
        addresses[i] = host_array(arrays, &arrays->array[i], &status);
    if (status == FLP_OK)
        status = run_on_cpu(arrays, context, addresses);
    for (int i = 0; status == FLP_OK && i < arrays->count; i++)
        if (arrays->array[i].values == FLP_VALUES_RESULT)
            status = keep_one(arrays, &arrays->array[i], FLP_TUNE_REFERENCE, addresses[i]);
    for (int i = 0; i < arrays->count; i++)
        free(addresses[i]);
    return status;
}
