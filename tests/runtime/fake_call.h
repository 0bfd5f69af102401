/* A small linear_logp call, in memory that the fake driver treats as device memory and with which the CPU path can compute. */
#ifndef FLP_TESTS_FAKE_CALL_H
#define FLP_TESTS_FAKE_CALL_H
#include "fusedlogp.h"

enum { FAKE_CALL_ROWS = 300, FAKE_CALL_HIDDEN = 64, FAKE_CALL_VOCAB = 70000 };

/* Resets all fakes, and makes a context that keeps nothing on disk. */
flp_context *fake_call_start(unsigned flags);

/* bf16, FAKE_CALL_ROWS rows. */
flp_linear_logp_problem fake_call_problem(void);

/* hidden, weight, target (int64, all 0) and logp, zeroed and 256-byte aligned; ignore_index -100; no workspace. */
flp_linear_logp_args fake_call_args(int64_t rows);

/* Aligned memory that is neither read nor written, for the optional arguments. */
void *fake_call_memory(void);

/* Log lines since the start, each followed by a newline, with "warning: " before a warning. */
const char *fake_call_log(void);
#endif
