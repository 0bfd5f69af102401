/* fusedlogp records prune: removes damaged records and, where the options say so, old ones and those of other versions of the library. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "cli/console.h"
#include "cli/records.h"

enum { SECONDS_OF_DAY = 86400 };

/* The date of days_ago days ago, as "2026-11-22". */
static void format_day(int days_ago, char day[FLP_RECORD_WORD_BYTES])
{
    time_t then = time(NULL) - (time_t)days_ago * SECONDS_OF_DAY;
    struct tm parts;
    strftime(day, FLP_RECORD_WORD_BYTES, "%Y-%m-%d", gmtime_r(&then, &parts));
}

/* Why a record is removed; NULL: it is kept, as is one that cannot be read. A newer library may keep its records in the same directory. */
static const char *find_reason(const flp_records_command *command, const flp_record_file *file)
{
    char day[FLP_RECORD_WORD_BYTES];
    flp_record record;
    if (file->unreadable)
        return NULL;
    const int format = file->text ? flp_record_format_of(file->text) : 0;
    if (format && format != FLP_RECORD_FORMAT)
        return command->other_library ? "another version of the library wrote it" : NULL;
    if (file->fault || flp_record_parse(file->text, &record) != FLP_OK)
        return file->fault ? file->fault : flp_error_message();
    if (command->other_library && strcmp(record.version, flp_version()) != 0)
        return "another version of the library timed it";
    format_day(command->older_than_days, day);
    return command->older_than_days && strcmp(record.date, day) < 0 ? "it is older" : NULL;
}

/* removed: gets it, as JSON; NULL: its line is printed. */
static int remove_file(const flp_records_command *command, int directory, const char *name, const char *reason, json_t *removed)
{
    if (!command->quiet && !removed)
        printf("%s: %s\n", name, reason);
    if (!command->dry_run && unlinkat(directory, name, 0) != 0) {
        flp_console_error("%s: cannot remove it: %m", name);
        return FLP_EXIT_FAILED;
    }
    if (removed)
        json_array_append_new(removed, json_pack("{s:o, s:o}", "file", flp_console_json_string(name), "reason", flp_console_json_string(reason)));
    return FLP_EXIT_OK;
}

/* Removes the private files that killed writers left. */
static int remove_leftovers(const flp_records_command *command, int directory, json_t *removed)
{
    int code = FLP_EXIT_OK, copy = dup(directory);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        struct stat facts;
        if (strstr(entry->d_name, FLP_FILE_PRIVATE_MARK) && fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            flp_file_is_leftover(&facts) && remove_file(command, directory, entry->d_name, "a killed process left it", removed) != FLP_EXIT_OK)
            code = FLP_EXIT_FAILED;
    }
    if (stream)
        closedir(stream);
    return code;
}

static int prune(const flp_records_command *command, const flp_record_files *files, const char *path, json_t *removed)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = FLP_EXIT_OK;
    if (directory < 0)
        return FLP_EXIT_OK; /* there is none yet */
    for (size_t i = 0; i < files->count; i++) {
        const flp_record_file *file = &files->files[i];
        if (strcmp(file->place, path) != 0)
            continue;
        const char *reason = find_reason(command, file);
        if (file->unreadable) {
            flp_console_error("%s: %s", file->name, file->fault);
            code = FLP_EXIT_FAILED;
        }
        if (reason && remove_file(command, directory, file->name, reason, removed) != FLP_EXIT_OK)
            code = FLP_EXIT_FAILED;
    }
    if (remove_leftovers(command, directory, removed) != FLP_EXIT_OK)
        code = FLP_EXIT_FAILED;
    close(directory);
    return code;
}

int flp_records_prune(const flp_records_command *command)
{
    const flp_record_files *files = NULL;
    flp_records *records;
    int code = flp_records_open(command, FLP_RECORDS_NEEDED, &records, &files);
    const char *directory = code == FLP_EXIT_OK ? flp_records_directory(records) : "";
    json_t *removed = command->json && code == FLP_EXIT_OK ? json_array() : NULL;
    if (*directory)
        code = prune(command, files, directory, removed);
    if (removed) {
        const int printed = flp_console_print_json(
            json_pack("{s:o, s:b, s:o}", "directory", flp_console_json_string(directory), "dry_run", command->dry_run, "removed", removed));
        code = code == FLP_EXIT_OK ? printed : code;
    }
    flp_records_destroy(records);
    return code;
}
