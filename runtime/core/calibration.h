/* Calibrations: the performance model's coefficients, fitted to times that were measured on a device; and the facts of a device that the model takes.
 *
 * A calibration is stored as a record (tune/record.h) of the problem "model" with the numerics "model". Its tuning is the text of the coefficients
 * (gen/calibration.lua), seconds and default_seconds are the total time of the samples, and rounds is their number. ratio is the factor by which the calibrated
 * model is wrong, as a root mean square; ratio_high is that factor for the model's own coefficients. */
#ifndef FLP_CORE_CALIBRATION_H
#define FLP_CORE_CALIBRATION_H
#include "core/context.h"
#include "cuda/device.h"

/* Fills in a device's facts for the model: from the driver's attributes, and from the calibration record of such a device, if there is one. text: receives the
 * coefficients; facts points to it. Never fails: what is not known is 0 or "", and a calibration that cannot be read is a warning. Does not change this
 * thread's error message. */
void flp_calibration_facts(flp_context *context, const flp_device *device, flp_model_facts *facts, char text[FLP_RECORD_TUNING_BYTES]);

/* The identity that the record of a calibration must agree with. FLP_OUT_OF_MEMORY. */
flp_status flp_calibration_identify(flp_context *context, int compute_capability, flp_record_identity *identity);

/* Fits the model to samples, and makes the record of the calibration with today's date. samples: lines, as flp_generator_calibrate takes them; seconds: their
 * total time. FLP_NO_VARIANT: there are too few samples, or none with kernels that exist. */
flp_status flp_calibration_make(flp_context *context, const flp_device *device, const char *samples, double seconds, flp_record *record);
#endif
