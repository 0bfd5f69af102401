/* A problem's canonical string: gen/problem.lua reads it, the programs, tests and records name problems by it.
 * KEEP IN STEP: problem string. */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "cpu/convert.h"
#include "plan/number.h"
#include "plan/problem.h"

#define OPERATOR "linear_logp"

static const char *const backend_names[] = {
    [FLP_BACKEND_AUTO] = "auto", [FLP_BACKEND_SM90A] = "sm_90a", [FLP_BACKEND_PORTABLE] = "portable", [FLP_BACKEND_CPU] = "cpu"
};

/* What differs from the default, always in this order. */
static void append_options(const flp_linear_logp_problem *normal, flp_text *text)
{
    int transposed = normal->weight_layout == FLP_HIDDEN_VOCAB;
    char softcap[FLP_NUMBER_BYTES];

    if (transposed)
        flp_text_append(text, ":dv");
    if (normal->hidden_stride != normal->hidden)
        flp_text_append(text, ":hs%" PRId64, normal->hidden_stride);
    if (normal->weight_stride != (transposed ? normal->vocab : normal->hidden))
        flp_text_append(text, ":ws%" PRId64, normal->weight_stride);
    if (normal->pointer_alignment != 16)
        flp_text_append(text, ":align%d", normal->pointer_alignment);
    if (normal->bias_dtype != FLP_NONE)
        flp_text_append(text, ":bias_%s", flp_dtype_name(normal->bias_dtype));
    if (normal->target_dtype == FLP_I32)
        flp_text_append(text, ":target_i32");
    if (normal->softcap != 0) {
        flp_number_format(normal->softcap, softcap);
        flp_text_append(text, ":softcap%s", softcap);
    }
    if (normal->argmax)
        flp_text_append(text, ":argmax");
    if (normal->precision == FLP_PRECISION_EXACT)
        flp_text_append(text, ":exact");
    if (normal->backend != FLP_BACKEND_AUTO)
        flp_text_append(text, ":%s", backend_names[normal->backend]);
}

flp_status flp_problem_format(const flp_linear_logp_problem *problem, char *text, size_t bytes)
{
    flp_linear_logp_problem normal;
    flp_text built = { 0 };
    flp_status status;

    if (!text)
        return flp_status_fail(FLP_BAD_ARGUMENT, "text: got NULL, wanted a buffer");
    status = flp_problem_normalize(problem, &normal);
    if (status != FLP_OK)
        return status;
    flp_text_append(&built, OPERATOR ":%s:n%" PRId64 ":d%" PRId64 ":v%" PRId64, flp_dtype_name(normal.dtype), normal.rows,
                    normal.hidden, normal.vocab);
    append_options(&normal, &built);
    if (built.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a problem's string");
    else if (built.length >= bytes)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "bytes: got %zu, wanted at least %zu for \"%s\"", bytes, built.length + 1,
                                 built.data);
    else
        memcpy(text, built.data, built.length + 1);
    flp_text_free(&built);
    return status;
}

/* The rest of part behind prefix, or NULL. */
static const char *behind(const char *part, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(part, prefix, length) == 0 ? part + length : NULL;
}

static int parse_backend(const char *part, flp_backend *backend)
{
    for (int i = FLP_BACKEND_SM90A; i <= FLP_BACKEND_CPU; i++)
        if (strcmp(part, backend_names[i]) == 0) {
            *backend = (flp_backend)i;
            return 1;
        }
    return 0;
}

/* 1 where part is an option with a well-formed value; whether the value is acceptable is for flp_problem_normalize. */
static int parse_option(const char *part, flp_linear_logp_problem *problem)
{
    const char *value;
    int64_t alignment;

    if ((value = behind(part, "hs")))
        return flp_number_parse_integer(value, &problem->hidden_stride);
    if ((value = behind(part, "ws")))
        return flp_number_parse_integer(value, &problem->weight_stride);
    if ((value = behind(part, "bias_")))
        return (problem->bias_dtype = flp_dtype_parse(value)) != FLP_NONE;
    if ((value = behind(part, "softcap")))
        return flp_number_parse(value, &problem->softcap);
    if ((value = behind(part, "align"))) {
        if (!flp_number_parse_integer(value, &alignment) || alignment > INT32_MAX)
            return 0;
        problem->pointer_alignment = (int)alignment;
        return 1;
    }
    if (strcmp(part, "dv") == 0)
        problem->weight_layout = FLP_HIDDEN_VOCAB;
    else if (strcmp(part, "target_i32") == 0)
        problem->target_dtype = FLP_I32;
    else if (strcmp(part, "argmax") == 0)
        problem->argmax = 1;
    else if (strcmp(part, "exact") == 0)
        problem->precision = FLP_PRECISION_EXACT;
    else
        return parse_backend(part, &problem->backend);
    return 1;
}

static int parse_size(const char *part, const char *prefix, int64_t *size)
{
    const char *digits = behind(part, prefix);

    return digits && flp_number_parse_integer(digits, size);
}

/* index: the part's place, 0 for the operator. */
static flp_status parse_part(const char *part, int index, flp_linear_logp_problem *problem)
{
    static const char *const wanted[] = { OPERATOR, "bf16, f16 or f32", "n<rows>", "d<hidden>", "v<vocab>" };
    int good;

    switch (index) {
    case 0:
        good = strcmp(part, OPERATOR) == 0;
        break;
    case 1:
        good = (problem->dtype = flp_dtype_parse(part)) != FLP_NONE;
        break;
    case 2:
        good = parse_size(part, "n", &problem->rows);
        break;
    case 3:
        good = parse_size(part, "d", &problem->hidden);
        break;
    case 4:
        good = parse_size(part, "v", &problem->vocab);
        break;
    default:
        if (parse_option(part, problem))
            return FLP_OK;
        return flp_status_fail(FLP_BAD_ARGUMENT,
                               "part %d: got \"%s\", wanted dv, hs<stride>, ws<stride>, align<bytes>, bias_<dtype>, target_i32, "
                               "softcap<number>, argmax, exact, sm_90a, portable or cpu", index + 1, part);
    }
    return good ? FLP_OK : flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%s\", wanted %s", index + 1, part, wanted[index]);
}

static flp_status parse_parts(const char *text, flp_linear_logp_problem *problem)
{
    char part[64];
    flp_status status = FLP_OK;
    int index = 0;

    for (const char *at = text;; index++) {
        size_t length = strcspn(at, ":");
        if (length >= sizeof(part))
            return flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%.40s...\", wanted fewer than %zu characters", index + 1, at,
                                   sizeof(part));
        memcpy(part, at, length);
        part[length] = 0;
        status = parse_part(part, index, problem);
        at += length;
        if (status != FLP_OK || *at == 0)
            break;
        at++;
    }
    if (status == FLP_OK && index < 4)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "got %d parts, wanted at least " OPERATOR ":<dtype>:n<rows>:d<hidden>:v<vocab>",
                                 index + 1);
    return status;
}

/* A problem has one string: what formats differently (another order, leading zeros, a default spelled out) is refused. */
static flp_status check_canonical(const char *text, const flp_linear_logp_problem *problem)
{
    char canonical[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_format(problem, canonical, sizeof(canonical));

    if (status == FLP_OK && strcmp(text, canonical) != 0)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "wanted the canonical \"%s\"", canonical);
    return status;
}

flp_status flp_problem_parse(const char *text, flp_linear_logp_problem *problem)
{
    flp_linear_logp_problem parsed = { 0 };
    flp_status status;

    if (!text || !problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", text ? "problem" : "text");
    status = parse_parts(text, &parsed);
    if (status == FLP_OK)
        status = check_canonical(text, &parsed);
    if (status != FLP_OK)
        return flp_status_prefix(status, "problem \"%.200s\"", text);
    *problem = parsed;
    return FLP_OK;
}
