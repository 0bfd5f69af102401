/* The list of candidates whose kernels hung: the file `hung` beside the user's records, a line "ARCH TEMPLATES SELECTION PROBLEM TUNING" each. TEMPLATES are
 * those that the candidate's own kernels use. A candidate is not tried again until its templates or the selection change. */
#ifndef FLP_TUNE_HUNG_H
#define FLP_TUNE_HUNG_H
#include "tune/record.h"

/* Adds a candidate to the list. directory: of the user's records. FLP_IO_FAILED: the list could not be written; FLP_OUT_OF_MEMORY. */
flp_status flp_hung_note(const char *directory, const flp_record_identity *identity, const char *tuning);
/* Appends the list's lines. A missing file is an empty list. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_hung_read(const char *directory, flp_text *lines);
/* 1: the candidate is among the lines. */
int flp_hung_has(const flp_text *lines, const flp_record_identity *identity, const char *tuning);
#endif
