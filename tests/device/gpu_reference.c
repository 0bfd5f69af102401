/* The device computes the logits of a row in fp64, and the host sums over them. */
#include "device/gpu_reference.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"

/* softcap: 0 or > 0. */
static void soften(double *logits, int64_t vocab, double softcap, double temperature)
{
    for (int64_t v = 0; softcap > 0 && v < vocab; v++)
        logits[v] = softcap * tanh(logits[v] / softcap);
    for (int64_t v = 0; v < vocab; v++)
        logits[v] /= temperature;
}

static flp_gpu_reference_row finish_row(const double *logits, int64_t vocab, int64_t hidden_size, int64_t target)
{
    flp_gpu_reference_row row = { .argmax = 0 };
    double sum = 0, largest = 0;

    for (int64_t v = 1; v < vocab; v++)
        if (logits[v] > logits[row.argmax])
            row.argmax = v;
    for (int64_t v = 0; v < vocab; v++) {
        sum += exp(logits[v] - logits[row.argmax]);
        largest = fmax(largest, fabs(logits[v]));
    }
    row.lse = logits[row.argmax] + log(sum);
    row.logp = logits[target] - row.lse;
    row.rounding = ldexp(0.41 * sqrt((double)hidden_size) * largest + 3 * largest + 8, -24);
    return row;
}

static flp_status finish_rows(const flp_gpu *gpu, CUdeviceptr logits, int64_t vocab, int64_t hidden_size, const flp_gpu_reference_options *options, int count,
                              const int64_t *rows, const int64_t *targets, flp_gpu_reference_row *reference)
{
    const size_t row_bytes = (size_t)vocab * sizeof(double);
    double *row = malloc(row_bytes);
    flp_status status = row ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a row of logits");

    for (int i = 0; i < count && status == FLP_OK; i++) {
        status = flp_gpu_download(gpu, row, logits + (size_t)i * row_bytes, row_bytes);
        if (status != FLP_OK)
            break;
        soften(row, vocab, options->softcap, options->temperatures ? options->temperatures[rows[i]] : 1);
        reference[i] = finish_row(row, vocab, hidden_size, targets[i]);
    }
    free(row);
    return status;
}

flp_status flp_gpu_reference_compute(flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight,
                                     const flp_gpu_reference_options *options, int count, const int64_t *rows, const int64_t *targets,
                                     flp_gpu_reference_row *reference)
{
    CUdeviceptr row_index, logits;
    flp_status status = flp_gpu_copy_in(gpu, rows, (size_t)count * sizeof(*rows), &row_index);

    if (status == FLP_OK)
        status = flp_gpu_allocate(gpu, (size_t)count * (size_t)weight->rows * sizeof(double), &logits);
    if (status == FLP_OK)
        status = flp_gpu_kernels_logits(gpu, kernels, hidden, weight, row_index, count, logits);
    return status == FLP_OK ? finish_rows(gpu, logits, weight->rows, hidden->columns, options, count, rows, targets, reference) : status;
}
