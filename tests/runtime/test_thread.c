/* The library's threads: no signal handler of the host runs on them, but for their own faults. */
#include "base/thread.h"

#include <signal.h>

#include "assertions.h"

static void *read_mask(void *mask)
{
    pthread_sigmask(SIG_BLOCK, NULL, mask);
    return mask;
}

static void a_thread_starts_with_all_signals_but_faults_blocked(void **state)
{
    static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL };
    sigset_t mask, before, after;
    pthread_t thread;
    void *returned;

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_false(sigismember(&before, SIGTERM));
    sigemptyset(&mask);
    assert_int_equal(0, flp_thread_start(&thread, NULL, read_mask, &mask));
    pthread_join(thread, &returned);
    assert_ptr_equal(&mask, returned);
    assert_true(sigismember(&mask, SIGTERM));
    assert_true(sigismember(&mask, SIGALRM));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_false(sigismember(&mask, faults[i]));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_false(sigismember(&after, SIGTERM));
}

static void attributes_count_and_errors_are_returned(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;

    (void)state;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 60);
    assert_int_not_equal(0, flp_thread_start(&thread, &attributes, read_mask, NULL));
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_with_all_signals_but_faults_blocked),
        cmocka_unit_test(attributes_count_and_errors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
