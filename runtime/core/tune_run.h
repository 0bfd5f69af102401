/* Tunes one problem by several runs of the tuner (tune/tuner.h): first what a plan takes without a record, then the candidates of each role by themselves, then
 * the winners together, and last how the best kernels are launched. */
#ifndef FLP_CORE_TUNE_RUN_H
#define FLP_CORE_TUNE_RUN_H
#include "core/tune_target.h"
#include "cuda/nvml.h"
#include "tune/hung.h"
#include "tune/record.h"
#include "tune/tuner.h"

/* In result and in the callbacks of options, candidates have the target's numbers. clock: the device, for NVML; NULL: its clock is not known. Free the result
 * by flp_tuner_result_free in every case. If the winner has no rounds, there is nothing to record: nothing was timed, or what a plan takes
 * without a record was timed less than FLP_TUNER_LEAST_TO_WIN times, or the time was over before any candidate could have won. Errors as flp_tuner_run. */
flp_status flp_tune_run(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, flp_tuner_result *result);

/* As flp_tune_run, by one run of the tuner over the default and the given candidates. All others stay untried. */
flp_status flp_tune_run_among(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, const int *candidates, int count,
                              flp_tuner_result *result);

/* 1: a candidate is among the lines of the list of those that hung (tune/hung.h), with the templates that its own kernels use. */
int flp_tune_has_hung(const flp_tune_target *target, int candidate, const flp_text *lines);

/* FLP_BAD_ARGUMENT: a tool distorts times (flp_environment_tool), so that no record can be made. Call it once the driver is loaded, because the driver loads
 * some tools. */
flp_status flp_tune_check_tool(void);

/* Makes the record of a result, with today's date. FLP_BAD_ARGUMENT: nothing was timed, or as flp_tune_check_tool. Other errors as flp_tune_target_identify. */
flp_status flp_tune_record(const flp_tune_target *target, const flp_tuner_result *result, flp_regime regime, const flp_environment *environment,
                           flp_record *record);
#endif
