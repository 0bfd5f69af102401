/* The record that tests begin with. */
#include "fake_record.h"

#include <stdio.h>

flp_record fake_record(void)
{
    return (flp_record){
        .identity = { "linear_logp:bf16:n4096:d2048:v131072", "sm_90a", "linear_logp.r3.bf16.s132",
                      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210" },
        .environment = { "NVIDIA H200", 132, 62914560, 700, "none", "580", "a1b2c3" },
        .tuning = "tile.bm=128,tile.group=8",
        .seconds = 0.00125,
        .default_seconds = 0.00131,
        .ratio = 0.954,
        .ratio_low = 0.951,
        .ratio_high = 0.956,
        .predicted_seconds = 0.00119,
        .workspace_bytes = 4325376,
        .rounds = 24,
        .ended = FLP_TUNING_SETTLED,
        .date = "2026-11-22",
        .version = "0.1.0",
    };
}

flp_record fake_record_of_rows(int rows)
{
    flp_record record = fake_record();

    snprintf(record.identity.problem, sizeof(record.identity.problem), "linear_logp:bf16:n%d:d2048:v131072", rows);
    return record;
}
