/* The records that a process knows: where they are, and finding one among them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "tune/records.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/user_directory.h"

#ifndef FUSEDLOGP_SYSTEM_RECORDS_DIRS
#define FUSEDLOGP_SYSTEM_RECORDS_DIRS ""
#endif

struct flp_records {
    char user[FLP_USER_DIRECTORY_BYTES];
    char *systems;
    pthread_mutex_t mutex; /* guards what follows */
    int loaded;
    flp_record_files files;
    uint64_t *hashes; /* of each file's identity; 0: it is no record */
};

flp_status flp_records_create(const flp_records_options *options, flp_records **records)
{
    static const flp_user_directory place = { "records_directory", "records directory",  "FUSEDLOGP_RECORDS_DIR",
                                              "XDG_DATA_HOME",     "/fusedlogp/records", "/.local/share/fusedlogp/records" };
    const char *systems = options->system_directories ? options->system_directories : secure_getenv("FUSEDLOGP_SYSTEM_RECORDS");
    flp_records *made = calloc(1, sizeof(*made));

    *records = NULL;
    if (!made || !(made->systems = flp_text_duplicate(systems ? systems : FUSEDLOGP_SYSTEM_RECORDS_DIRS))) {
        free(made);
        return flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
    }
    pthread_mutex_init(&made->mutex, NULL);
    if (flp_user_directory_resolve(&place, options->directory, made->user) != FLP_OK)
        flp_log_debug("no records of this user: %s", flp_error_message());
    *records = made;
    return FLP_OK;
}

void flp_records_destroy(flp_records *records)
{
    if (!records)
        return;
    pthread_mutex_destroy(&records->mutex);
    flp_record_files_free(&records->files);
    free(records->hashes);
    free(records->systems);
    free(records);
}

const char *flp_records_directory(const flp_records *records)
{
    return records->user;
}

static uint64_t hash_identity(const flp_record_identity *identity)
{
    uint8_t digest[FLP_DIGEST_BYTES];
    flp_text text = { 0 };
    uint64_t hash;

    flp_text_append(&text, "%s\n%s\n%s\n%s\n%s", identity->problem, identity->arch, identity->numerics, identity->templates, identity->selection);
    flp_digest_compute(text.data, text.length, digest);
    flp_text_free(&text);
    memcpy(&hash, digest, sizeof(hash));
    return hash | 1;
}

/* A directory that cannot be listed is left out with a warning, and no call fails for it. */
static flp_status read_directory(flp_records *records, const char *path)
{
    flp_status status = flp_record_files_read(path, &records->files);

    if (status != FLP_IO_FAILED)
        return status;
    if (errno != ENOENT)
        flp_log_warning("records are left out: %s", flp_error_message());
    return FLP_OK;
}

static flp_status read_directories(flp_records *records)
{
    flp_status status = records->user[0] ? read_directory(records, records->user) : FLP_OK;

    for (const char *next = records->systems; status == FLP_OK && *next;) {
        size_t length = strcspn(next, ":");
        char *path = strndup(next, length);

        if (!path)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
        if (length)
            status = read_directory(records, path);
        free(path);
        next += length + (next[length] == ':');
    }
    return status;
}

static flp_status hash_files(flp_records *records)
{
    uint64_t *hashes = calloc(records->files.count + 1, sizeof(*hashes));
    flp_record record;

    if (!hashes)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
    for (size_t i = 0; i < records->files.count; i++)
        if (!records->files.files[i].fault && flp_record_parse(records->files.files[i].text, &record) == FLP_OK)
            hashes[i] = hash_identity(&record.identity);
    free(records->hashes);
    records->hashes = hashes;
    return FLP_OK;
}

static flp_status load(flp_records *records)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    if (records->loaded)
        return FLP_OK;
    flp_status_keep_message(callers_message);
    status = read_directories(records);
    if (status == FLP_OK)
        status = hash_files(records);
    if (status == FLP_OK) {
        records->loaded = 1;
        flp_status_restore_message(callers_message); /* a damaged file is no failure of the call */
    } else {
        flp_record_files_free(&records->files);
    }
    return status;
}

flp_status flp_records_read_again(flp_records *records)
{
    flp_status status;

    flp_mutex_lock(&records->mutex);
    flp_record_files_free(&records->files);
    records->loaded = 0;
    status = load(records);
    flp_mutex_unlock(&records->mutex);
    return status;
}

flp_status flp_records_list(flp_records *records, const flp_record_files **files)
{
    flp_status status;

    flp_mutex_lock(&records->mutex);
    status = load(records);
    flp_mutex_unlock(&records->mutex);
    *files = status == FLP_OK ? &records->files : NULL;
    return status;
}

int flp_records_is_closer(const flp_environment *one, const flp_environment *other, const flp_environment *here)
{
    const struct {
        int64_t one, other, here;
    } sizes[] = {
        { one->multiprocessors, other->multiprocessors, here->multiprocessors },
        { one->l2_bytes, other->l2_bytes, here->l2_bytes },
        { one->power_limit_w, other->power_limit_w, here->power_limit_w },
    };
    int same = flp_environment_same(one, here), others = flp_environment_same(other, here);

    if (same != others)
        return same;
    same = strcmp(one->device, here->device) == 0;
    others = strcmp(other->device, here->device) == 0;
    if (same != others)
        return same;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const intmax_t ones = imaxabs(sizes[i].one - sizes[i].here), theirs = imaxabs(sizes[i].other - sizes[i].here);

        if (ones != theirs)
            return ones < theirs;
    }
    return 0;
}

/* Of records that are equally close the first by name is taken, and of one name the first file, which is the user's. */
static void find(const flp_records *records, const flp_record_identity *identity, const flp_environment *environment, flp_record *record,
                 flp_record_match *match)
{
    const uint64_t hash = hash_identity(identity);
    const char *name = NULL;
    flp_record candidate;

    for (size_t i = 0; i < records->files.count; i++) {
        const flp_record_file *file = &records->files.files[i];

        if (records->hashes[i] != hash || flp_record_parse(file->text, &candidate) != FLP_OK || !flp_record_identity_same(&candidate.identity, identity))
            continue;
        if (name && !flp_records_is_closer(&candidate.environment, &record->environment, environment) &&
            (flp_records_is_closer(&record->environment, &candidate.environment, environment) || strcmp(name, file->name) <= 0))
            continue;
        *record = candidate;
        name = file->name;
    }
    if (name)
        *match = flp_environment_same(&record->environment, environment) ? FLP_RECORD_EXACT : FLP_RECORD_NEARBY;
}

flp_status flp_records_find(flp_records *records, const flp_record_identity *identity, const flp_environment *environment, flp_record *record,
                            flp_record_match *match)
{
    flp_status status;

    *match = FLP_RECORD_NONE;
    flp_mutex_lock(&records->mutex);
    status = load(records);
    if (status == FLP_OK)
        find(records, identity, environment, record, match);
    flp_mutex_unlock(&records->mutex);
    return status;
}

flp_status flp_records_visit(flp_records *records, int (*visit)(void *data, const flp_record *record), void *data)
{
    flp_record record;
    flp_status status;
    int ended = 0;

    flp_mutex_lock(&records->mutex);
    status = load(records);
    for (size_t i = 0; status == FLP_OK && !ended && i < records->files.count; i++)
        if (records->hashes[i] && flp_record_parse(records->files.files[i].text, &record) == FLP_OK)
            ended = visit(data, &record);
    flp_mutex_unlock(&records->mutex);
    return status;
}

flp_status flp_records_publish(flp_records *records, const flp_record *record)
{
    flp_status status;

    flp_mutex_lock(&records->mutex);
    status = load(records);
    if (status == FLP_OK)
        status = flp_record_files_put(&records->files, records->user, record);
    if (status == FLP_OK)
        status = hash_files(records);
    flp_mutex_unlock(&records->mutex);
    if (status != FLP_OK)
        return status;
    if (!records->user[0])
        return flp_status_fail(FLP_IO_FAILED, "records directory: none is configured");
    return flp_record_files_publish(records->user, record);
}

flp_status flp_records_remove(flp_records *records, int (*goes)(void *data, const flp_record *record), void *data)
{
    flp_record record;
    flp_status status;

    flp_mutex_lock(&records->mutex);
    status = load(records);
    for (size_t i = records->files.count; status == FLP_OK && i-- > 0;) {
        const flp_record_file *file = &records->files.files[i];

        if (!records->hashes[i] || strcmp(file->place, records->user) != 0 || flp_record_parse(file->text, &record) != FLP_OK || !goes(data, &record))
            continue;
        status = flp_record_files_remove(&records->files, i);
        if (status == FLP_OK)
            status = hash_files(records);
    }
    flp_mutex_unlock(&records->mutex);
    return status;
}
