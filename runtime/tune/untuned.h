/* The list of problems that plans on this machine found no record for: the file `untuned` beside the user's records, with a line "ARCH PROBLEM" for each. */
#ifndef FLP_TUNE_UNTUNED_H
#define FLP_TUNE_UNTUNED_H
#include "base/text.h"
#include "fusedlogp.h"

/* Adds a problem, with the bucket of its rows, if the list does not have it. It is appended by one write, so that the lines of several processes do not mix. A
 * list that would exceed 64 KiB takes no more. directory: of the user's records; "": no list is kept. Never fails, and does not change this thread's error
 * message. */
void flp_untuned_note(const char *directory, const char *arch, const char *problem);

/* Appends the list's lines, in the order in which they were added, each once. A missing file is an empty list. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_untuned_read(const char *directory, flp_text *lines);

/* Removes a problem from the list, once it is tuned. A line that another process adds meanwhile may be lost; the next plan of that problem adds it again.
 * FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_untuned_remove(const char *directory, const char *arch, const char *problem);
#endif
