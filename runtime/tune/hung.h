/* The list of candidates whose kernels hung: the file `hung` beside the user's records, a line "ARCH TEMPLATES SELECTION PROBLEM TUNING" each; the templates
 * are those that the candidate's own kernels reach. None is tried again until these or the selection change. */
#ifndef FLP_TUNE_HUNG_H
#define FLP_TUNE_HUNG_H
#include "tune/record.h"

/* FLP_IO_FAILED: it could not be noted; FLP_OUT_OF_MEMORY. directory: the user's records'. */
flp_status flp_hung_note(const char *directory, const flp_record_identity *identity, const char *tuning);
/* Appends the lines. No list is an empty one. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_hung_read(const char *directory, flp_text *lines);
/* 1 where it is among the lines. */
int flp_hung_has(const flp_text *lines, const flp_record_identity *identity, const char *tuning);
#endif
