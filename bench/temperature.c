/* Reads a case's temperature, and makes its array. */
#include "temperature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "cases.h"
#include "params/types.h"

enum { MOST_LETTERS = 30, TEMPERATURE_STREAM = 35 };

static flp_status read_ending(const char *part, flp_temperature *temperature)
{
    const char *number = part + strlen(FLP_TEMPERATURE);

    if (strcmp(part, FLP_ROW_TEMPERATURE) == 0)
        temperature->by_row = 1;
    else if (strlen(number) > MOST_LETTERS || !flp_number_parse(number, &temperature->of_all) ||
             !(temperature->of_all >= FLP_LEAST_TEMPERATURE && temperature->of_all <= FLP_MOST_TEMPERATURE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got \"%s\", wanted 2^-64 .. 2^64", number);
    strcpy(temperature->ending, part);
    return FLP_OK;
}

flp_status flp_temperature_cut(const char *text, flp_temperature *temperature, char **problem)
{
    char *const copy = flp_text_duplicate(text), *const part = copy ? strrchr(copy, ':') : NULL;
    flp_status status = copy ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a case");

    *temperature = (flp_temperature){ 0 };
    if (part && (strncmp(part, FLP_TEMPERATURE, strlen(FLP_TEMPERATURE)) == 0 || strcmp(part, FLP_ROW_TEMPERATURE) == 0)) {
        status = read_ending(part, temperature);
        *part = 0;
    }
    *problem = copy;
    return status;
}

static flp_status copy_rows(flp_gpu *gpu, int64_t rows, flp_temperature *temperature)
{
    const size_t bytes = (size_t)rows * sizeof(float);
    float *values = malloc(bytes);
    flp_status status;

    if (!values)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for temperatures");
    for (int64_t i = 0; i < rows; i++)
        values[i] = (float)temperature->rows[i];
    status = flp_gpu_copy_in(gpu, values, bytes, &temperature->row_temperature);
    free(values);
    return status;
}

flp_status flp_temperature_make(flp_gpu *gpu, int64_t rows, flp_temperature *temperature)
{
    if (!temperature->ending[0])
        return FLP_OK;
    temperature->rows = malloc((size_t)rows * sizeof(*temperature->rows));
    if (!temperature->rows)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for temperatures");
    for (int64_t i = 0; i < rows; i++)
        temperature->rows[i] =
            temperature->by_row ? (double)(float)(0.5 + ldexp((double)(flp_case_random(TEMPERATURE_STREAM, (uint64_t)i) >> 32), -32)) : temperature->of_all;
    return temperature->by_row ? copy_rows(gpu, rows, temperature) : FLP_OK;
}

void flp_temperature_free_rows(flp_temperature *temperature)
{
    free(temperature->rows);
    temperature->rows = NULL;
}
