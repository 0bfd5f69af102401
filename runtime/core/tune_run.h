/* Tunes the kernels of one problem: what a plan takes without a record, those of each role by themselves, then what won of each together. */
#ifndef FLP_CORE_TUNE_RUN_H
#define FLP_CORE_TUNE_RUN_H
#include "core/tune_target.h"
#include "cuda/nvml.h"
#include "tune/hung.h"
#include "tune/record.h"
#include "tune/tuner.h"

/* result: candidates are the target's. progress of options gets those, too. clock: the device's, NULL: its clock is not known. Free the result by
 * flp_tuner_result_free in every case. Of the winner no round: nothing was timed, or not what a plan takes without a record, in whose place a record stands.
 * Errors as flp_tuner_run. */
flp_status flp_tune_run(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, flp_tuner_result *result);

/* The same among the default and some candidates; those that are not asked for stay untried. */
flp_status flp_tune_run_among(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, const int *candidates, int count,
                              flp_tuner_result *result);

/* 1 where a candidate is among the lines of what hung (tune/hung.h) with the templates that its own kernels reach. */
int flp_tune_has_hung(const flp_tune_target *target, int candidate, const flp_text *lines);

/* FLP_BAD_ARGUMENT: which tool distorts times (flp_environment_tool), so that none make a record. To be asked where the driver is loaded, which loads some. */
flp_status flp_tune_check_tool(void);

/* The record of a result, of today. FLP_BAD_ARGUMENT: nothing was timed, or as flp_tune_check_tool; else errors as
 * flp_tune_target_identify. */
flp_status flp_tune_record(const flp_tune_target *target, const flp_tuner_result *result, flp_regime regime, const flp_environment *environment,
                           flp_record *record);
#endif
