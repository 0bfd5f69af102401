/* cmocka, with the headers that it needs before it, and assertions about the library's statuses and messages. */
#ifndef FLP_TESTS_ASSERTIONS_H
#define FLP_TESTS_ASSERTIONS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fusedlogp.h"

#define assert_contains(text, part)                          \
    do {                                                     \
        if (!strstr(text, part))                             \
            fail_msg("\"%s\" is not in \"%s\"", part, text); \
    } while (0)

/* Asserts that the call fails with status, and that its message contains part. */
#define assert_fails(status, call, part)            \
    do {                                            \
        assert_int_equal(status, call);             \
        assert_contains(flp_error_message(), part); \
    } while (0)

#define assert_succeeds(call)                               \
    do {                                                    \
        flp_status status_ = call;                          \
        if (status_ != FLP_OK)                              \
            fail_msg("%s: %s", #call, flp_error_message()); \
    } while (0)
#endif
