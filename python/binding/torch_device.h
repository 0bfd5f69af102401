/* The CUDA context of torch's device, current in this thread while an operator runs. */
#ifndef FLP_BINDING_TORCH_DEVICE_H
#define FLP_BINDING_TORCH_DEVICE_H
#include <stdbool.h>

/* Makes the primary context of a GPU current; *changed: flp_torch_device_leave has to undo it. false: the driver refused, or is not there. */
bool flp_torch_device_enter(int ordinal, bool *changed);
void flp_torch_device_leave(bool changed);
#endif
