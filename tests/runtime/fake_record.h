/* A record as a tuning on an H200 writes it, for tests to change. */
#ifndef FLP_TESTS_FAKE_RECORD_H
#define FLP_TESTS_FAKE_RECORD_H
#include "tune/record.h"

flp_record fake_record(void);

/* The same for another number of rows. Its file has another name. */
flp_record fake_record_of_rows(int rows);
#endif
