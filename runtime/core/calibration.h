/* The model's coefficients as this device showed them, and the facts that the model takes of it. A calibration is a record (tune/record.h) of the problem
 * "model" and the arithmetic "model": its tuning are the coefficients (gen/calibration.lua), seconds and default_seconds what the samples took together,
 * rounds their number, and ratio the factor by which the model is off, as a root mean square; ratio_high that of the model's own coefficients. */
#ifndef FLP_CORE_CALIBRATION_H
#define FLP_CORE_CALIBRATION_H
#include "core/context.h"
#include "cuda/device.h"

/* What the model is told of a device: by the driver's attributes, and by the record of its calibration, where there is one of such a device. text: receives
 * the coefficients, and lives as long as facts. Never fails: what is not known is 0 or "", and a warning. This thread's error message stays. */
void flp_calibration_facts(flp_context *context, const flp_device *device, flp_model_facts *facts, char text[FLP_RECORD_TUNING_BYTES]);

/* What the record of a calibration must agree with. FLP_OUT_OF_MEMORY. */
flp_status flp_calibration_identify(flp_context *context, int compute_capability, flp_record_identity *identity);

/* The record of a fit, of today. samples: lines, as flp_generator_calibrate takes them; seconds: what they took together. FLP_NO_VARIANT: they are too few,
 * or of nothing that the model knows. */
flp_status flp_calibration_make(flp_context *context, const flp_device *device, const char *samples, double seconds, flp_record *record);
#endif
