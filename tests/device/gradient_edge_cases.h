/* Cases around the tiles, stages and chunks of the backward's GPU kernels, and a short list for the sanitizers. */
#ifndef FLP_TESTS_DEVICE_GRADIENT_EDGE_CASES_H
#define FLP_TESTS_DEVICE_GRADIENT_EDGE_CASES_H
#include "gradient_cases.h"

int flp_gradient_edge_case_count(void);
void flp_gradient_edge_case_get(int index, flp_gradient_case *out);

/* At least one small case of each kernel family. */
int flp_gradient_edge_case_quick_count(void);
void flp_gradient_edge_case_quick_get(int index, flp_gradient_case *out);
#endif
