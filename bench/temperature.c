/* Reads a case's temperature, and makes its array. */
#include "temperature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "cases.h"

enum { MOST_LETTERS = 30, TEMPERATURE_STREAM = 35, LEAST_EXPONENT = -64, MOST_EXPONENT = 64 };

flp_status flp_temperature_cut(char *text, flp_temperature *temperature)
{
    char *const part = strrchr(text, ':');
    const size_t word = strlen(FLP_TEMPERATURE);
    double value;

    *temperature = (flp_temperature){ 0 };
    if (part && strcmp(part, FLP_ROW_TEMPERATURE) == 0) {
        temperature->by_row = 1;
    } else if (part && strncmp(part, FLP_TEMPERATURE, word) == 0) {
        if (strlen(part + word) > MOST_LETTERS || !flp_number_parse(part + word, &value) ||
            !(value >= ldexp(1, LEAST_EXPONENT) && value <= ldexp(1, MOST_EXPONENT)))
            return flp_status_fail(FLP_BAD_ARGUMENT, "case %s: temperature: got \"%s\", wanted 2^-64 .. 2^64", text, part + word);
        temperature->of_all = value;
    } else {
        return FLP_OK;
    }
    strcpy(temperature->ending, part);
    *part = 0;
    return FLP_OK;
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
    if (!temperature->by_row && temperature->of_all == 0)
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
