/* Cases around the tiles, stages and splits of the GPU kernels, and a short list for the sanitizers. */
#ifndef FLP_TESTS_DEVICE_EDGE_CASES_H
#define FLP_TESTS_DEVICE_EDGE_CASES_H
#include "cases.h"

int flp_edge_case_count(void);
void flp_edge_case_get(int index, flp_case *out);

/* At least one small case of each kernel family. */
int flp_edge_case_quick_count(void);
void flp_edge_case_quick_get(int index, flp_case *out);
#endif
