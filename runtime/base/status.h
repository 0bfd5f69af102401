/* Errors: a status to return, and a message that is stored for this thread. */
#ifndef FLP_BASE_STATUS_H
#define FLP_BASE_STATUS_H
#include "fusedlogp.h"

/* Records the formatted message for this thread and returns status, so that a failing function ends in one line:
 *     return flp_status_fail(FLP_BAD_ARGUMENT, "vocab: got %" PRId64 ", wanted 1 .. 2147483647", vocab); */
flp_status flp_status_fail(flp_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts the formatted prefix and ": " in front of the recorded message; returns status. */
flp_status flp_status_prefix(flp_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Saves and restores the thread's message, around code whose failures must not show in it: a callback, or an attempt that is allowed to fail. */
enum { FLP_STATUS_MESSAGE_BYTES = 4096 };
void flp_status_keep_message(char kept[FLP_STATUS_MESSAGE_BYTES]);
void flp_status_restore_message(const char kept[FLP_STATUS_MESSAGE_BYTES]);
#endif
