/* The temperature of a benchmark's case: an argument of the call, and so no part of the problem, behind which a case names it. */
#ifndef FLP_BENCH_TEMPERATURE_H
#define FLP_BENCH_TEMPERATURE_H
#include "device/gpu.h"

/* What follows the problem: FLP_TEMPERATURE and a number, the temperature of all rows, or FLP_ROW_TEMPERATURE, one of its own for each row. */
#define FLP_TEMPERATURE ":temperature"
#define FLP_ROW_TEMPERATURE ":row_temperature"

typedef struct {
    char ending[48]; /* what was cut off, "" for nothing */
    double of_all;   /* as the operators' argument `temperature`; 0: 1, or by_row */
    int by_row;
    double *rows;                /* [N]: each row's, where the case names a temperature; else NULL */
    CUdeviceptr row_temperature; /* [N] f32 on the device with by_row; else 0 */
} flp_temperature;

/* Reads the temperature at the end of text, if there is one. *problem: the text before it, freed by the caller, also after a failure. FLP_BAD_ARGUMENT: it is
 * no number from 2^-64 to 2^64 of at most 30 letters. */
flp_status flp_temperature_cut(const char *text, flp_temperature *temperature, char **problem);

/* Makes the rows' temperatures, 0.5 to 1.5 with by_row. free_rows: also after a failure; the device's array is freed with the gpu's others. */
flp_status flp_temperature_make(flp_gpu *gpu, int64_t rows, flp_temperature *temperature);
void flp_temperature_free_rows(flp_temperature *temperature);
#endif
