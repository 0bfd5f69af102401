/* Checks arguments by an operator's table (core/arguments.h). */
#include "core/arguments.h"

#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/workspace.h"
#include "params/types.h"

flp_status flp_arguments_check_address(const char *argument, const void *address, int wanted)
{
    if (!address)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL, wanted an address", argument);
    if ((uintptr_t)address % (unsigned)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted a multiple of %d bytes", argument, address, wanted);
    return FLP_OK;
}

int flp_arguments_ignore(unsigned flags)
{
    return (flags & FLP_IGNORE_INDEX) != 0;
}

double flp_arguments_temperature(double temperature)
{
    return temperature == 0 ? 1 : temperature;
}

float flp_arguments_scale(double temperature)
{
    return (float)(M_LOG2E / flp_arguments_temperature(temperature));
}

flp_status flp_arguments_check_workspace(const void *workspace, size_t bytes, int64_t wanted, int64_t rows)
{
    if (bytes < (uint64_t)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace_bytes: got %zu, wanted at least %" PRId64 " for %" PRId64 " rows", bytes, wanted, rows);
    return flp_arguments_check_address("workspace", workspace, FLP_WORKSPACE_ALIGNMENT);
}

const void *flp_arguments_advance(const void *address, int64_t elements, flp_dtype dtype)
{
    return address ? (const char *)address + elements * flp_dtype_bytes(dtype) : NULL;
}

/* ---- checks by the table ---- */

static const void *address_at(const void *args, int at)
{
    return *(const void *const *)(const void *)((const char *)args + at);
}

/* An ignore_index without the flag is an error: the caller most likely wants such rows to be ignored. */
static flp_status check_flags(unsigned flags, unsigned more, int64_t ignore_index)
{
    const unsigned known = FLP_CHECK_TARGETS | FLP_IGNORE_INDEX | more;

    if (flags & ~known)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got 0x%x, wanted no bits but 0x%x", flags, known);
    if (ignore_index != 0 && !(flags & FLP_IGNORE_INDEX))
        return flp_status_fail(FLP_BAD_ARGUMENT, "ignore_index: got %" PRId64 " without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none",
                               ignore_index);
    return FLP_OK;
}

static flp_status check_temperature(double temperature, const float *row_temperature)
{
    const double shared = flp_arguments_temperature(temperature);

    if (!(shared >= FLP_LEAST_TEMPERATURE && shared <= FLP_MOST_TEMPERATURE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g, wanted 0 (for 1) or 2^-64 .. 2^64", temperature);
    if (row_temperature && shared != 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g beside row_temperature, wanted 0 or 1", temperature);
    return FLP_OK;
}

static flp_status check_scalars(const flp_operator *op, const flp_arguments *table, const void *normal, const char *args)
{
    const int64_t rows = flp_problem_int64(args, 0), most = flp_problem_int64(normal, (int)op->rows_at);
    flp_status status;

    if (rows < 0 || rows > most)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", wanted 0 .. %" PRId64 ", the plan's rows", rows, most);
    if (!table->target_at)
        return FLP_OK;
    status = check_flags((unsigned)flp_problem_int(args, table->flags_at), table->more_flags, flp_problem_int64(args, table->ignore_index_at));
    if (status != FLP_OK || !table->temperature_at)
        return status;
    return check_temperature(*(const double *)(const void *)(args + table->temperature_at), address_at(args, table->row_temperature_at));
}

static flp_status refuse_unasked(const flp_operator *op, const flp_argument *array, const void *address)
{
    FLP_EACH_FIELD (field, op)
        if (field->at == array->asked_at)
            return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted NULL: the problem's %s is %s", array->name, address, field->name,
                                   field->kind == FLP_FIELD_DTYPE ? "FLP_NONE" : "0");
    return flp_status_fail(FLP_INTERNAL, "%s: the problem has no field that asks for it", array->name);
}

static int64_t vocab_total(const flp_arguments *table, const void *problem)
{
    return table->vocab_total_at ? flp_problem_int64(problem, table->vocab_total_at) : 0;
}

int64_t flp_arguments_vocab(const flp_arguments *table, const void *problem)
{
    const int64_t total = vocab_total(table, problem);

    return total > 0 ? total : flp_problem_int64(problem, table->vocab_at);
}

int flp_arguments_are_for(const flp_arguments *table, const flp_argument *array, const void *problem)
{
    return array->owner == FLP_ARGUMENT_OF_ALL || array->owner == (vocab_total(table, problem) > 0 ? FLP_ARGUMENT_OF_SHARD : FLP_ARGUMENT_OF_WHOLE);
}

static flp_status refuse_others(const flp_argument *array, const void *address)
{
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted NULL: the problem's vocab_total is %s", array->name, address,
                           array->owner == FLP_ARGUMENT_OF_SHARD ? "0, it is no shard" : "not 0, a shard has partials alone");
}

static int is_empty(const flp_argument *array, const void *problem)
{
    return array->entries_at && flp_problem_int64(problem, array->entries_at) == 0;
}

static int element_bytes(const flp_argument *array, const void *problem)
{
    return array->bytes ? array->bytes : flp_dtype_bytes((flp_dtype)flp_problem_int(problem, array->dtype_at));
}

/* The lowest pointer_alignment that the array can cause. With by_elements it is an element of the problem's dtype, the first field, even if the array is
 * aligned to less. */
static int least_alignment(const flp_argument *array, const void *problem)
{
    const int bytes = flp_dtype_bytes((flp_dtype)flp_problem_int(problem, 0)); /* 0: the dtype is not valid, and was not checked yet */

    return array->by_elements && bytes > 0 ? bytes : 1;
}

/* An array that the problem does not have must be NULL in a call with 0 rows, too. */
static flp_status check_array(const flp_operator *op, const flp_arguments *table, const flp_argument *array, const void *normal, const void *args)
{
    const int64_t rows = *(const int64_t *)args;
    const void *address = address_at(args, array->at);
    int wanted, aligned;

    if (!flp_arguments_are_for(table, array, normal))
        return address ? refuse_others(array, address) : FLP_OK;
    if (!flp_problem_int(normal, array->asked_at))
        return address && !array->is_unread ? refuse_unasked(op, array, address) : FLP_OK;
    if (rows == 0 && !array->without_rows)
        return FLP_OK;
    if (!address && (array->is_optional || is_empty(array, normal) || (array->optional_at && flp_problem_int(normal, array->optional_at))))
        return FLP_OK;
    wanted = element_bytes(array, normal);
    aligned = array->decides ? flp_problem_int(normal, (int)op->pointer_alignment_at) : 0;
    if (aligned > wanted && aligned > least_alignment(array, normal))
        wanted = aligned;
    return flp_arguments_check_address(array->name, address, wanted);
}

#define EACH_ARRAY(array, table)                                              \
    for (const flp_argument *const *part_ = (table)->arrays; *part_; part_++) \
        for (const flp_argument *array = *part_; array->name; array++)

flp_status flp_arguments_check(const flp_operator *op, const flp_arguments *table, const void *normal, const void *args)
{
    flp_status status = check_scalars(op, table, normal, args);

    EACH_ARRAY(array, table)
    if (status == FLP_OK)
        status = check_array(op, table, array, normal, args);
    return status;
}

flp_status flp_arguments_check_elements(const flp_operator *op, const flp_arguments *table, const void *problem, const void *args)
{
    const int has_rows = *(const int64_t *)args > 0;

    EACH_ARRAY(array, table)
    {
        const void *address = address_at(args, array->at);
        flp_status status = FLP_OK;
        int dtype;
        if (!array->decides || !flp_problem_int(problem, array->asked_at))
            continue;
        status = flp_problem_check_field(op, (size_t)array->dtype_at, problem, &dtype);
        if (status == FLP_OK && (address || (has_rows && !is_empty(array, problem))))
            status = flp_arguments_check_address(array->name, address, flp_dtype_bytes((flp_dtype)dtype));
        if (status != FLP_OK)
            return status;
    }
    return FLP_OK;
}

uintptr_t flp_arguments_addresses(const flp_arguments *table, const void *problem, const void *args)
{
    uintptr_t addresses = 0;

    EACH_ARRAY(array, table)
    if (array->decides && flp_problem_int(problem, array->asked_at)) {
        const uintptr_t address = (uintptr_t)address_at(args, array->at), least = (uintptr_t)least_alignment(array, problem);
        addresses |= address & (least - 1) ? least : address;
    }
    return addresses;
}
