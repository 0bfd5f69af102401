/* Tunings as text, "role.field=number,...", as gen/tuning.lua writes them. */
#ifndef FLP_CORE_TUNING_TEXT_H
#define FLP_CORE_TUNING_TEXT_H
#include "core/operator.h"
#include "jit/generator.h"

/* The tuning that changes what any of these changes, its items in alphabetical order, as gen/tuning.lua wants them. An item that several have is
 * written once. text [FLP_TUNING_BYTES]. FLP_BAD_ARGUMENT: the result is longer. */
flp_status flp_tuning_text_join(const char *const *tunings, int count, char *text);

/* The items of a role; with others 1, the items of all other roles. text [FLP_TUNING_BYTES] */
void flp_tuning_text_of_role(const char *tuning, flp_role role, int others, char *text);

/* 1: an item sets how a call is divided, "chunks.columns=28", rather than a kernel's parameter. */
int flp_tuning_text_has_chunks(const char *tuning);

/* The role that a tuning changes. FLP_ROLES: it changes none, or several. */
flp_role flp_tuning_text_role(const char *tuning);
#endif
