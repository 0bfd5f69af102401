/* fusedlogp records export, import and diff. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/console.h"
#include "cli/output_file.h"
#include "cli/records.h"

/* Lists the files of one directory in *taken. Their texts still belong to `all`, so the caller frees only taken->files. */
static int take_directory(const flp_record_files *all, const char *directory, flp_record_files *taken)
{
    *taken = (flp_record_files){ .files = malloc((all->count + 1) * sizeof *taken->files) };
    if (taken->files == NULL) {
        flp_console_error("out of memory");
        return FLP_EXIT_FAILED;
    }
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->files[i].place, directory) == 0)
            taken->files[taken->count++] = all->files[i];
    return FLP_EXIT_OK;
}

static int write_export(const flp_records_command *command, const flp_record_files *files)
{
    flp_text export = { 0 };
    flp_status status = flp_record_files_join(files, &export);
    if (status == FLP_OK)
        status = flp_output_file_write(command->out ? command->out : "/dev/stdout", export.data ? export.data : "", export.length);
    flp_text_free(&export);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

/* Reports each file that is not a record; FLP_EXIT_BAD_INPUT if there is one. */
static int refuse_faults(const flp_record_files *files)
{
    int code = FLP_EXIT_OK;
    for (size_t i = 0; i < files->count; i++) {
        if (files->files[i].fault == NULL)
            continue;
        flp_console_error("%s: %s", files->files[i].place, files->files[i].fault);
        code = FLP_EXIT_BAD_INPUT;
    }
    return code;
}

int flp_records_export(const flp_records_command *command)
{
    const flp_record_files *files = NULL;
    flp_record_files own = { 0 };
    flp_records *records;
    int code = flp_records_open(command, FLP_RECORDS_NEEDED, &records, &files);
    if (code == FLP_EXIT_OK)
        code = take_directory(files, flp_records_directory(records), &own);
    if (code == FLP_EXIT_OK)
        code = write_export(command, command->all ? files : &own);
    if (code == FLP_EXIT_OK)
        code = refuse_faults(command->all ? files : &own); /* the others have been written */
    if (code == FLP_EXIT_OK && !command->quiet && !command->all && !own.count && files->count)
        flp_console_error("none is this user's: an empty export; --all takes the %zu of the system", files->count);
    free(own.files);
    flp_records_destroy(records);
    return code;
}

static const flp_record_file *find_name(const flp_record_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].fault == NULL && strcmp(files->files[i].name, name) == 0)
            return &files->files[i];
    return NULL;
}

typedef struct {
    int added, replaced, same;
} import_counts;

static int import_one(const flp_records_command *command, const char *directory, const flp_record_files *known, const flp_record_file *file,
                      import_counts *counts)
{
    const flp_record_file *old = find_name(known, file->name);
    flp_record record;
    flp_status status = FLP_OK;
    if (old && strcmp(old->text, file->text) == 0) {
        counts->same++;
        return FLP_EXIT_OK;
    }
    if (!command->dry_run && (status = flp_record_parse(file->text, &record)) == FLP_OK)
        status = flp_record_files_publish(directory, &record);
    if (status != FLP_OK)
        return flp_console_fail(status);
    counts->added += old == NULL;
    counts->replaced += old != NULL;
    return FLP_EXIT_OK;
}

static int import_all(const flp_records_command *command, const char *directory, const flp_record_files *known, const flp_record_files *files)
{
    import_counts counts = { 0 };
    int code = FLP_EXIT_OK;
    for (size_t i = 0; code == FLP_EXIT_OK && i < files->count; i++)
        code = import_one(command, directory, known, &files->files[i], &counts);
    if (code == FLP_EXIT_OK && command->json)
        return flp_console_print_json(json_pack("{s:o, s:b, s:i, s:i, s:i}", "directory", flp_console_json_string(directory), "dry_run", command->dry_run,
                                                "new", counts.added, "replaced", counts.replaced, "same", counts.same));
    if (code == FLP_EXIT_OK && !command->quiet)
        printf("%d new, %d replaced, %d as they were; %s%s\n", counts.added, counts.replaced, counts.same, directory,
               command->dry_run ? " (nothing was written)" : "");
    return code;
}

int flp_records_import(const flp_records_command *command)
{
    const flp_record_files *known = NULL;
    flp_record_files files = { 0 }, own = { 0 };
    flp_records *records;
    int code = flp_records_open(command, FLP_RECORDS_ADDED, &records, &known);
    const char *directory = code == FLP_EXIT_OK ? flp_records_directory(records) : "";
    for (int i = 0; code == FLP_EXIT_OK && i < command->count; i++)
        code = flp_records_read_named(command->words[i], &files);
    if (code == FLP_EXIT_OK)
        code = refuse_faults(&files);
    if (code == FLP_EXIT_OK && !*directory) {
        flp_console_error("there is no directory of this user's: wanted --directory, FUSEDLOGP_RECORDS_DIR or HOME");
        code = FLP_EXIT_FAILED;
    }
    if (code == FLP_EXIT_OK)
        code = take_directory(known, directory, &own);
    if (code == FLP_EXIT_OK)
        code = import_all(command, directory, &own, &files);
    free(own.files);
    flp_record_files_free(&files);
    flp_records_destroy(records);
    return code;
}

/* Prints a line, "- problem ... " or "+ problem ... ", for a record that only the left or only the right side has, and "~" with both tunings and times for
 * one that both have. With a list, appends an object to it instead. */
static void print_difference(const flp_records_command *command, const flp_record_file *left, const flp_record_file *right, json_t *list)
{
    flp_record one, other;
    const char *sign = left && right ? "~" : left ? "-" : "+";
    if (list) {
        json_array_append_new(list, json_pack("{s:s, s:o*, s:o*}", "change", sign, "left", left ? flp_records_pack(left) : NULL, "right",
                                              right ? flp_records_pack(right) : NULL));
        return;
    }
    if (command->quiet)
        return;
    if ((left && flp_record_parse(left->text, &one) != FLP_OK) || (right && flp_record_parse(right->text, &other) != FLP_OK))
        return;
    const flp_record *either = left ? &one : &other;
    printf("%s %s  %s  %s  ", sign, either->identity.problem, either->identity.arch, either->environment.device);
    if (left && right)
        printf("%s -> %s  %.4g -> %.4g s (%+.1f %%)\n", one.tuning[0] ? one.tuning : "default", other.tuning[0] ? other.tuning : "default", one.seconds,
               other.seconds, 100 * (other.seconds / one.seconds - 1));
    else
        printf("%s  %.4g s\n", either->tuning[0] ? either->tuning : "default", either->seconds);
}

static int print_differences(const flp_records_command *command, const flp_record_files *left, const flp_record_files *right)
{
    json_t *list = command->json ? json_array() : NULL;
    int differences = 0;
    for (size_t i = 0; i < left->count; i++) {
        const flp_record_file *one = &left->files[i], *other = one->fault ? NULL : find_name(right, one->name);
        if (one->fault || find_name(left, one->name) != one || (other && strcmp(one->text, other->text) == 0))
            continue;
        print_difference(command, one, other, list);
        differences++;
    }
    for (size_t i = 0; i < right->count; i++) {
        const flp_record_file *one = &right->files[i];
        if (one->fault || find_name(right, one->name) != one || find_name(left, one->name))
            continue;
        print_difference(command, NULL, one, list);
        differences++;
    }
    int code = command->json ? flp_console_print_json(json_pack("{s:o}", "differences", list)) : FLP_EXIT_OK;
    return code == FLP_EXIT_OK && differences ? FLP_EXIT_FAILED : code;
}

int flp_records_diff(const flp_records_command *command)
{
    const flp_record_files *known = NULL;
    flp_record_files sides[2] = { { 0 }, { 0 } };
    flp_records *records = NULL;
    int code = FLP_EXIT_OK;
    for (int i = 0; code == FLP_EXIT_OK && i < command->count; i++)
        code = flp_records_read_named(command->words[i], &sides[i]);
    if (code == FLP_EXIT_OK && command->count == 1)
        code = flp_records_open(command, FLP_RECORDS_NEEDED, &records, &known);
    if (code == FLP_EXIT_OK)
        code = refuse_faults(&sides[0]);
    if (code == FLP_EXIT_OK)
        code = refuse_faults(&sides[1]);
    if (code == FLP_EXIT_OK)
        code = print_differences(command, &sides[0], known ? known : &sides[1]);
    flp_record_files_free(&sides[0]);
    flp_record_files_free(&sides[1]);
    flp_records_destroy(records);
    return code;
}
