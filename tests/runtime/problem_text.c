/* A problem's canonical string, there and back. */
#include "problem_text.h"

#include "assertions.h"

void expect_problem_text(const flp_operator *op, const void *problem, const char *wanted)
{
    char text[FLP_PROBLEM_TEXT_BYTES], again[FLP_PROBLEM_TEXT_BYTES];
    flp_problem_storage parsed;

    assert_succeeds(flp_problem_text_format(op, problem, text, sizeof(text), flp_header_sizes()));
    assert_string_equal(wanted, text);
    assert_succeeds(flp_problem_text_parse(op, text, &parsed, flp_header_sizes()));
    assert_succeeds(flp_problem_text_format(op, &parsed, again, sizeof(again), flp_header_sizes()));
    assert_string_equal(text, again);
}
