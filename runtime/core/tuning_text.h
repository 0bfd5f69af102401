/* Tunings as text, "role.field=number,...": gen/tuning.lua. */
#ifndef FLP_CORE_TUNING_TEXT_H
#define FLP_CORE_TUNING_TEXT_H
#include "jit/generator.h"

/* One that changes what all of these change, in the order that is wanted of a tuning. Of an item that several have there is one. text [FLP_TUNING_BYTES].
 * FLP_BAD_ARGUMENT: it is longer. */
flp_status flp_tuning_text_join(const char *const *tunings, int count, char *text);

/* The items of a role; with others 1, those of the other ones. text [FLP_TUNING_BYTES] */
void flp_tuning_text_of_role(const char *tuning, flp_role role, int others, char *text);

/* 1: an item says how a call goes by, "chunks.columns=28", rather than what a kernel is. */
int flp_tuning_text_has_chunks(const char *tuning);

/* FLP_ROLES: it changes none, or several. */
flp_role flp_tuning_text_role(const char *tuning);
#endif
