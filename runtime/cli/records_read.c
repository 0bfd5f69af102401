/* Reads the records of fusedlogp records, and packs a record as JSON. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/status.h"
#include "cli/console.h"
#include "cli/records.h"

/* Plans go on without a directory that cannot be listed; here it would be taken for an empty one. */
static flp_status check_directory(const char *path, int may_be_missing)
{
    DIR *directory = path[0] ? opendir(path) : NULL;
    if (directory == NULL && path[0] && !(errno == ENOENT && may_be_missing))
        return flp_status_fail(FLP_IO_FAILED, "%s: %s", path, strerror(errno));
    if (directory != NULL)
        closedir(directory);
    return FLP_OK;
}

int flp_records_open(const flp_records_command *command, flp_records_use use, flp_records **records, const flp_record_files **files)
{
    const int is_named = command->directory != NULL || getenv("FUSEDLOGP_RECORDS_DIR") != NULL;
    flp_status status = flp_records_create(&(flp_records_options){ .directory = command->directory }, records);
    if (status == FLP_OK && (is_named || use != FLP_RECORDS_SHOWN))
        status = check_directory(flp_records_directory(*records), use == FLP_RECORDS_ADDED || command->directory == NULL);
    if (status == FLP_OK)
        status = flp_records_list(*records, files);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

static int read_export(const char *path, flp_record_files *files)
{
    char *text = NULL;
    size_t count;
    flp_status status =
        strcmp(path, "-") == 0 ? flp_file_read_descriptor(STDIN_FILENO, "standard input", &text, &count) : flp_file_read(AT_FDCWD, path, &text, &count);
    if (status == FLP_OK && strlen(text) != count)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: it holds a 0 byte", path);
    if (status == FLP_OK)
        status = flp_record_files_split(strcmp(path, "-") == 0 ? "standard input" : path, text, files);
    free(text);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

int flp_records_read_named(const char *path, flp_record_files *files)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return read_export(path, files);
    close(directory);
    flp_status status = flp_record_files_read(path, files);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

json_t *flp_records_pack(const flp_record_file *file)
{
    flp_record r;
    if (file->fault || flp_record_parse(file->text, &r) != FLP_OK)
        return json_pack("{s:s, s:o, s:o}", "name", file->name, "place", flp_console_json_string(file->place), "fault",
                         flp_console_json_string(file->fault ? file->fault : flp_error_message()));
    json_t *packed =
        json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:s}", "name", file->name, "place", flp_console_json_string(file->place), "problem", r.identity.problem,
                  "arch", r.identity.arch, "numerics", r.identity.numerics, "templates", r.identity.templates, "selection", r.identity.selection);
    json_t *environment =
        json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s}", "device", r.environment.device, "multiprocessors", (json_int_t)r.environment.multiprocessors,
                  "l2_bytes", (json_int_t)r.environment.l2_bytes, "power_limit_w", (json_int_t)r.environment.power_limit_w, "mig", r.environment.mig, "driver",
                  r.environment.driver, "nvrtc", r.environment.nvrtc);
    json_t *result = json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:s, s:s, s:s}", "tuning", r.tuning, "regime", flp_regime_names[r.regime],
                               "seconds", r.seconds, "default_seconds", r.default_seconds, "ratio", r.ratio, "ratio_low", r.ratio_low, "ratio_high",
                               r.ratio_high, "predicted_seconds", r.predicted_seconds, "workspace_bytes", (json_int_t)r.workspace_bytes, "rounds",
                               (json_int_t)r.rounds, "ended", flp_tuning_end_names[r.ended], "date", r.date, "library", r.version);
    if (json_object_update(packed, environment) != 0 || json_object_update(packed, result) != 0) {
        json_decref(packed);
        packed = NULL;
    }
    json_decref(environment);
    json_decref(result);
    return packed;
}
