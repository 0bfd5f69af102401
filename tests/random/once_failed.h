/* Problems that a path has once got wrong, or whose bound was once too narrow: in the form that FUSEDLOGP_RANDOM prints, and repeats. */
#ifndef FLP_TESTS_RANDOM_ONCE_FAILED_H
#define FLP_TESTS_RANDOM_ONCE_FAILED_H

extern const char *const flp_random_once_failed[]; /* ends with NULL */
#endif
