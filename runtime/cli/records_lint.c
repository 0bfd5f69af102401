/* fusedlogp records lint: finds files that are not records, and stale records, which no plan takes any more. */
#include <stdio.h>
#include <string.h>
#include "cli/console.h"
#include "cli/operators.h"
#include "cli/records.h"
#include "core/calibration.h"
#include "core/plan.h"

typedef struct {
    size_t sound, stale, wrong;
    json_t *stale_list, *faults; /* for JSON; NULL: the findings are printed */
} findings;

/* The identity of a plan of the problem text: on the backend that is chosen automatically or, where that is not of the record's architecture, on the portable
 * one. */
static flp_status identify_plan(flp_context *context, const flp_record *record, const char *text, const flp_wanted_kernels *of_record, flp_record_identity *now)
{
    const flp_operator_calls *calls;
    flp_problem_storage problem;
    flp_wanted_kernels wanted = *of_record;
    flp_status status = flp_operators_parse(text, &calls, &problem);
    if (status != FLP_OK)
        return status;
    status = flp_plan_identify(context, calls->op, &problem, &wanted, now);
    if (status == FLP_OK && strcmp(now->arch, record->identity.arch) == 0)
        return FLP_OK;
    wanted.backend = "portable";
    return flp_plan_identify(context, calls->op, &problem, &wanted, now);
}

/* The identity of a record that decides on the bits of all numbers of rows: its problem has no rows, and its identity is that of a plan without the tuning.
 * The first call only checks that the tuning is valid. */
static flp_status identify_decision(flp_context *context, const flp_record *record, const char *text, const flp_wanted_kernels *of_record,
                                    flp_record_identity *now)
{
    flp_wanted_kernels wanted = *of_record;
    char with_rows[FLP_RECORD_PROBLEM_BYTES];
    flp_status status = identify_plan(context, record, text, &wanted, now);
    wanted.tuning = "";
    if (status == FLP_OK)
        status = identify_plan(context, record, text, &wanted, now);
    if (status == FLP_OK) {
        snprintf(with_rows, sizeof with_rows, "%s", now->problem);
        flp_tuned_without_rows(with_rows, now->problem);
    }
    return status;
}

/* The identity that a record of this tuning must have today. */
static flp_status identify(flp_context *context, const flp_record *record, const char *tuning, flp_record_identity *now)
{
    int compute_capability;
    flp_status status = flp_generator_capability(flp_kernel_store_generator(context->store), record->identity.arch, &compute_capability);
    if (status != FLP_OK)
        return status;
    const flp_wanted_kernels wanted = { "", compute_capability, "auto", tuning };
    char with_rows[FLP_PROBLEM_TEXT_BYTES];
    if (strcmp(record->identity.problem, "model") == 0)
        return flp_calibration_identify(context, compute_capability, now);
    return flp_tuned_with_rows(record->identity.problem, with_rows) ? identify_decision(context, record, with_rows, &wanted, now)
                                                                    : identify_plan(context, record, record->identity.problem, &wanted, now);
}

static const char *compare(const flp_record_identity *recorded, const flp_record_identity *now)
{
    if (strcmp(recorded->problem, now->problem) != 0)
        return "no plan asks for its problem as it is written";
    if (strcmp(recorded->arch, now->arch) != 0)
        return "no plan of its problem takes kernels of its architecture";
    if (strcmp(recorded->templates, now->templates) != 0)
        return strcmp(now->problem, "model") == 0 ? "the model has changed since" : "the templates of its kernels have changed since";
    if (strcmp(recorded->numerics, now->numerics) != 0)
        return "the arithmetic of its kernels has changed since";
    return strcmp(recorded->selection, now->selection) != 0 ? "the kernels that are taken without a tuning have changed since" : "";
}

/* Says why no plan takes a record; "": one may, or that is not known, for example because the record's problem has a token loss that only a program defines. */
static void find_reason(flp_context *context, const flp_record_file *file, const flp_record *record, flp_record_identity *now, char *reason, size_t bytes)
{
    if (identify(context, record, record->tuning, now) == FLP_OK) {
        snprintf(reason, bytes, "%s", compare(&record->identity, now));
        return;
    }
    snprintf(reason, bytes, "%s", flp_error_message());
    if (identify(context, record, "", now) == FLP_OK)
        return;
    flp_console_error("%s/%s: it is not known whether plans take it: %s", file->place, file->name, reason);
    *reason = 0;
}

static void add_stale(findings *found, const flp_record_file *file, const char *reason, const flp_record_identity *now)
{
    found->stale++;
    if (!found->stale_list) {
        flp_console_error("%s/%s: stale: %s", file->place, file->name, reason);
        return;
    }
    json_t *packed = flp_records_pack(file);
    json_object_set_new(packed, "stale", flp_console_json_string(reason));
    json_object_set_new(
        packed, "now",
        json_pack("{s:s, s:s, s:s, s:s}", "arch", now->arch, "numerics", now->numerics, "templates", now->templates, "selection", now->selection));
    json_array_append_new(found->stale_list, packed);
}

static void add_fault(findings *found, const flp_record_file *file)
{
    found->wrong++;
    if (found->faults)
        json_array_append_new(found->faults, flp_records_pack(file));
    else
        flp_console_error("%s%s%s: %s", file->place, file->name[0] ? "/" : "", file->name, file->fault);
}

static void look_at(findings *found, flp_context *context, const flp_record_file *file)
{
    char reason[FLP_STATUS_MESSAGE_BYTES];
    flp_record_identity now;
    flp_record record;
    if (file->fault || flp_record_parse(file->text, &record) != FLP_OK) {
        add_fault(found, file);
        return;
    }
    find_reason(context, file, &record, &now, reason, sizeof reason);
    if (*reason)
        add_stale(found, file, reason, &now);
    else
        found->sound++;
}

static int report(const flp_records_command *command, findings *found)
{
    int code = FLP_EXIT_OK;
    if (command->json)
        code = flp_console_print_json(json_pack("{s:I, s:o, s:o}", "records", (json_int_t)found->sound, "stale", found->stale_list, "faults", found->faults));
    else if (!command->quiet)
        printf("records: %zu sound, %zu stale, %zu wrong\n", found->sound, found->stale, found->wrong);
    return code == FLP_EXIT_OK && found->stale + found->wrong ? FLP_EXIT_BAD_INPUT : code;
}

static int look_at_all(const flp_records_command *command, const flp_record_files *files)
{
    findings found = { .stale_list = command->json ? json_array() : NULL, .faults = command->json ? json_array() : NULL };
    flp_context *context;
    flp_status status = flp_context_create(&(flp_context_options){ .cache_directory = "", .records_directory = "", .cpu_threads = 1 }, &context);
    if (status != FLP_OK)
        return flp_console_fail(status);
    for (size_t i = 0; i < files->count; i++)
        look_at(&found, context, &files->files[i]);
    flp_context_destroy(context);
    return report(command, &found);
}

int flp_records_lint(const flp_records_command *command)
{
    const flp_record_files *known = NULL;
    flp_record_files named = { 0 };
    flp_records *records = NULL;
    int code = command->count ? FLP_EXIT_OK : flp_records_open(command, FLP_RECORDS_NEEDED, &records, &known);
    for (int i = 0; code == FLP_EXIT_OK && i < command->count; i++)
        code = flp_records_read_named(command->words[i], &named);
    if (code == FLP_EXIT_OK)
        code = look_at_all(command, known ? known : &named);
    flp_record_files_free(&named);
    flp_records_destroy(records);
    return code;
}
