/* Targets as words are: frequent ones low, all in the vocabulary. */
#include "peaked_inputs.h"

#include <math.h>

#include "runtime/assertions.h"

enum { ROWS = 20000, VOCAB = 128256 };

static void targets_lie_in_the_vocabulary(void **state)
{
    static const int64_t vocabs[] = { 1, 2, 3, 64, VOCAB };

    (void)state;
    for (size_t i = 0; i < sizeof(vocabs) / sizeof(vocabs[0]); i++)
        for (int64_t row = 0; row < ROWS; row++)
            assert_in_range(flp_peaked_inputs_target(row, vocabs[i]), 0, vocabs[i] - 1);
}

/* A share of ln(1 + v) / ln(1 + V) lies below entry v: 6 deviations of a count of so many rows. */
static void targets_follow_zipfs_law(void **state)
{
    (void)state;
    for (int64_t below = 1; below < VOCAB; below *= 10) {
        const double share = log((double)below + 1) / log(VOCAB + 1.0);
        int64_t count = 0;
        for (int64_t row = 0; row < ROWS; row++)
            count += flp_peaked_inputs_target(row, VOCAB) < below;
        assert_true(fabs((double)count - share * ROWS) <= 6 * sqrt(share * (1 - share) * ROWS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_lie_in_the_vocabulary),
        cmocka_unit_test(targets_follow_zipfs_law),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
