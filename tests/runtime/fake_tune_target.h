/* Replaces core/tune_target.c, which the linker then leaves out: candidates for two kernels on a simulated device. */
#ifndef FLP_TESTS_FAKE_TUNE_TARGET_H
#define FLP_TESTS_FAKE_TUNE_TARGET_H
#include "core/tune_target.h"
#include "simulated_device.h"

enum { FAKE_TUNE_CANDIDATES = 16 };

/* What the next targets have. Candidate 0 is the default, and each of the others has a time of a factor times the default's. The tunings are "tile.group=1" and
 * so on for the first role, "combine.w=1" and so on for the second. */
typedef struct {
    int tiles, combines;
    double advised_factor; /* of candidate 1, "combine.w=9,tile.group=9", the advised tuning; 0: none is advised */
    double tile_factors[FAKE_TUNE_CANDIDATES], combine_factors[FAKE_TUNE_CANDIDATES];
    int offers;                                                /* tunings of more than kernels, "chunks.rows=1" and so on, */
    double offer_factors[FLP_TUNE_TARGET_OFFERS];              /* with these factors of the time of the tuning that they are added to */
    double joined_factor;                                      /* of several candidates together, times the product of their own */
    double added_factor;                                       /* of a candidate that flp_tune_target_add adds */
    double (*factor)(const char *problem, const char *tuning); /* the time of a base, or of an added candidate, over that without a tuning; negative: its
                                                                * check fails. NULL: 1, and added_factor */
    int hangs;                                                 /* a candidate whose runs never end; 0: none */
    int default_hangs;                                         /* 1: the default's runs never end */
    int base_hangs;                                            /* 1: the runs of a base that is a tuning never end */
    int compilation_hangs;                                     /* a candidate whose compilation never ends; 0: none */
    const char *target_hangs;                                  /* the creation of a target never ends if this is part of its problem; NULL: none */
    int wrong;                                                 /* a candidate whose check fails; 0: none */
    flp_status failure;                                        /* of flp_tune_target_create */
    int slow_microseconds;                                     /* real time that each timed run takes, */
    int slow_check_microseconds;                               /* each check, */
    int slow_compilation_microseconds;                         /* each compilation, */
    int slow_compilation;                                      /* or only the compilation of this candidate; 0: each */
    int real_identity;                                         /* 1: the identity is that of the problem's plans, so that they use records of it */
    int templates;                   /* stands for the templates of all candidates but the base: another number, other templates; 0: the base's */
    int created;                     /* how many targets were created */
    int timed;                       /* how many runs were timed */
    flp_tune_target_options options; /* of the last target, except for its base: */
    char base[FLP_TUNING_BYTES];
} fake_tune_state;

extern fake_tune_state fake_tune;

/* One role has three candidates, the second of which is 10 % faster than the default; the other has two, the first of which is 5 % faster. */
void fake_tune_reset(void);
#endif
