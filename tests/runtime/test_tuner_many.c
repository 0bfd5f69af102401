/* Many tunings of simulated devices: how often the winner is as good as it should be.
 *
 * FUSEDLOGP_TUNINGS=n takes n of them; 0 losses of 2 % or more among 300 show with 95 % certainty that 99 % of all tunings stay below that
 * (0.99^300 = 0.05), and of 10,000 the 99 % are counted themselves. FUSEDLOGP_TUNINGS_NOTES=1 tells the figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "assertions.h"
#include "simulated_device.h"

enum { FEW_TUNINGS = 300, ENOUGH_TO_COUNT = 3000 };

typedef struct {
    int tunings, behind_best, behind_default, unsound, default_kept, ended[4];
    double worst, worst_to_default, rounds, seconds;
} tally;

static void add(uint64_t seed, tally *t)
{
    static simulated_device device;
    flp_tuner_result result;
    double loss, to_default;

    simulated_device_draw(seed, &device);
    assert_succeeds(flp_tuner_run(device.candidates, device.count, &device.device, &(flp_tuner_options){ .seed = seed }, &result));
    loss = simulated_device_loss(&device, result.winner);
    to_default = simulated_device_loss_to_default(&device, result.winner);
    t->tunings++;
    t->unsound += device.kinds[result.winner] != SIMULATED_SOUND;
    t->behind_best += loss > 0.02;
    t->behind_default += to_default > 0.01;
    t->default_kept += result.winner == device.standard;
    t->worst = fmax(t->worst, loss);
    t->worst_to_default = fmax(t->worst_to_default, to_default);
    t->rounds += result.rounds;
    t->seconds += result.spent_seconds;
    t->ended[result.ended]++;
    flp_tuner_result_free(&result);
}

static void note(const tally *t)
{
    print_message("%d tunings: %d winners more than 2 %% behind the best (at most %.2f %%), %d more than 1 %% behind the default (at most %.2f %%)\n",
                  t->tunings, t->behind_best, 100 * t->worst, t->behind_default, 100 * t->worst_to_default);
    print_message("the default kept %d times; rounds %.1f, device seconds %.1f in the mean; settled %d, all rounds %d\n", t->default_kept,
                  t->rounds / t->tunings, t->seconds / t->tunings, t->ended[FLP_TUNING_SETTLED], t->ended[FLP_TUNING_ROUNDS]);
}

static void winners_are_as_fast_as_the_best_and_never_behind_the_default(void **state)
{
    const char *asked = getenv("FUSEDLOGP_TUNINGS");
    const int tunings = asked && atoi(asked) > 0 ? atoi(asked) : FEW_TUNINGS;
    tally t = { 0 };

    (void)state;
    for (int i = 0; i < tunings; i++)
        add((uint64_t)i + 1, &t);
    if (asked || getenv("FUSEDLOGP_TUNINGS_NOTES"))
        note(&t);
    assert_int_equal(0, t.unsound);
    assert_int_equal(0, t.behind_default);
    assert_true(t.behind_best <= (tunings < ENOUGH_TO_COUNT ? 0 : tunings / 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(winners_are_as_fast_as_the_best_and_never_behind_the_default) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
