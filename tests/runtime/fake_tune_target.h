/* A stand-in for core/tune_target.c, which the linker then leaves out: candidates of two kernels on a simulated device. */
#ifndef FLP_TESTS_FAKE_TUNE_TARGET_H
#define FLP_TESTS_FAKE_TUNE_TARGET_H
#include "core/tune_target.h"
#include "simulated_device.h"

enum { FAKE_TUNE_CANDIDATES = 16 };

/* What the next targets are: candidate 0 is the default; the others multiply its time. Their names are "tile.group=1" and so on for the first role,
 * "combine.w=1" for the second. */
typedef struct {
    int tiles, combines;
    double advised_factor; /* of a candidate 1, "combine.w=9,tile.group=9", that a plan takes without a record; 0: there is none */
    double tile_factors[FAKE_TUNE_CANDIDATES], combine_factors[FAKE_TUNE_CANDIDATES];
    int offers;                                                /* beyond kernels, "chunks.rows=1" and so on, */
    double offer_factors[FLP_TUNE_TARGET_OFFERS];              /* with these factors of what they stand beside */
    double joined_factor;                                      /* of what several are together, beside the product of theirs */
    double added_factor;                                       /* of a candidate that flp_tune_target_add brings */
    double (*factor)(const char *problem, const char *tuning); /* of a base, and of a candidate that is added, to no tuning's time; below 0: its check
                                                                * fails. NULL: 1 and added_factor */
    int hangs;                                                 /* a candidate whose runs never end; 0: none */
    int default_hangs;                                         /* 1: those of the default */
    int base_hangs;                                            /* 1: those of a base that is a tuning */
    int compilation_hangs;                                     /* a candidate whose compilation never ends; 0: none */
    const char *target_hangs;                                  /* part of the problems whose target is never made; NULL: none */
    int wrong;                                                 /* a candidate whose check fails; 0: none */
    flp_status failure;                                        /* of flp_tune_target_create */
    int slow_microseconds;                                     /* of each timed run, in real time */
    int slow_check_microseconds;                               /* of each check */
    int slow_compilation_microseconds;                         /* of each compilation, */
    int slow_compilation;                                      /* or of this candidate's; 0: of each */
    int real_identity;                                         /* 1: that of the problem's plans, with which a record of it counts */
    int templates;                                             /* of what the candidates' kernels are made beside the base's: other numbers, other templates */
    int created;                                               /* targets so far */
    int timed;                                                 /* runs so far whose time was taken */
    flp_tune_target_options options;                           /* of the last, but for the base: */
    char base[FLP_TUNING_BYTES];
} fake_tune_state;

extern fake_tune_state fake_tune;

/* One role with three candidates, of which the second is 10 % faster than the default, and one with two, of which the first is 5 % faster. */
void fake_tune_reset(void);
#endif
