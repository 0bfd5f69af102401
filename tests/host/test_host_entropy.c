/* The entropy's accuracy that fusedlogp.h promises of logits in memory, on the host machine: rows in which two entries share all probability, far above the
 * columns at which each segment's sums begin. The tables of cases have bounds for any rows, which are too wide to see it. */
#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "host/host_suite.h"
#include "host/machine/machine_api.h"
#include "runtime/assertions.h"

enum { ROWS = 24, VOCAB = 1500, FIRST = 600, SECOND = 900, BEGINNING = 256 };
static const double promised = 2e-6;

/* The buffers of a call, with room for the alignment of a GPU's memory. */
static unsigned char *allocate(flp_host_memory *memory, size_t bytes)
{
    unsigned char *base = aligned_alloc(256, (bytes + 255) / 256 * 256);

    assert_non_null(base);
    flp_host_memory_add(memory, base, 0, bytes);
    return base;
}

static double logit(int row, int column, double gap)
{
    const double noise = flp_case_random_normal(1, (uint64_t)(row * VOCAB + column));

    if (column == FIRST || column == SECOND)
        return gap + 0.2 * noise;
    return column < BEGINNING ? 0.1 * noise : gap - 20 + noise;
}

static double entropy_of(const float *logits)
{
    double largest = -INFINITY, sum = 0, moment = 0;

    for (int v = 0; v < VOCAB; v++)
        largest = fmax(largest, logits[v]);
    for (int v = 0; v < VOCAB; v++) {
        sum += exp(logits[v] - largest);
        moment += exp(logits[v] - largest) * (logits[v] - largest);
    }
    return log(sum) - moment / sum;
}

static void check_gap(flp_context *context, double gap)
{
    const flp_logits_logp_problem problem = { .dtype = FLP_F32, .rows = ROWS, .vocab = VOCAB, .entropy = 1 };
    flp_host_memory memory = { 0 };
    float *logits = (float *)allocate(&memory, (size_t)ROWS * VOCAB * sizeof(float)), *entropy = (float *)allocate(&memory, ROWS * sizeof(float));
    int64_t *target = (int64_t *)allocate(&memory, ROWS * sizeof(int64_t));
    const flp_logits_logp_args args = { .rows = ROWS, .logits = logits, .target = target, .entropy = entropy };
    char message[8192] = "";

    for (int i = 0; i < ROWS; i++) {
        target[i] = i % 2 ? FIRST : BEGINNING;
        for (int v = 0; v < VOCAB; v++)
            logits[i * VOCAB + v] = (float)logit(i, v, gap);
    }
    flp_host_suite_begin(1);
    if (!flp_host_suite_succeeded(flp_logits_logp(context, &problem, &args), message, sizeof(message)))
        fail_msg("%s", message);
    for (int i = 0; i < ROWS; i++)
        if (!(fabs(entropy[i] - entropy_of(logits + (size_t)i * VOCAB)) <= promised))
            fail_msg("row %d, gap %g: entropy %.9g, wanted %.9g", i, gap, entropy[i], entropy_of(logits + (size_t)i * VOCAB));
    flp_host_memory_remove(&memory);
    free(logits);
    free(entropy);
    free(target);
}

static void it_does_not_depend_on_where_a_segments_sums_begin(void **state)
{
    static const int capabilities[] = { 80, 90 };
    static const double gaps[] = { 3, 8, 15, 40 };

    (void)state;
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++) {
        flp_context *context = flp_host_suite_start(capabilities[i]);

        assert_non_null(context);
        for (size_t j = 0; j < sizeof(gaps) / sizeof(*gaps); j++)
            check_gap(context, gaps[j]);
        flp_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_does_not_depend_on_where_a_segments_sums_begin) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
