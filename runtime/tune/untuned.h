/* The list of what plans on this machine asked for without a record: the file `untuned` beside the user's records, a line "ARCH PROBLEM" each. */
#ifndef FLP_TUNE_UNTUNED_H
#define FLP_TUNE_UNTUNED_H
#include "base/text.h"
#include "fusedlogp.h"

/* Adds a problem, with the bucket of its rows, where the list does not have it: in one write at the file's end, so that processes do not tear each other's
 * lines. A list of 64 KiB takes no more. directory: the user's records'; "": nothing is kept. It never fails, and this thread's error message stays. */
void flp_untuned_note(const char *directory, const char *arch, const char *problem);

/* Appends the lines, in the order in which they came, each once. No list is an empty one. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_untuned_read(const char *directory, flp_text *lines);

/* Takes one off the list, once it is tuned. What another process adds meanwhile may be lost: it will be asked for again. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_untuned_remove(const char *directory, const char *arch, const char *problem);
#endif
