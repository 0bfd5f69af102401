/* Reads, splits, joins and publishes records. */
#include "tune/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

/* Bytes; the records that the library writes have about 1 KiB. */
enum { LARGEST_RECORD = 16 << 10 };
static const char ending[] = ".record";

static flp_status out_of_memory(void)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
}

static void free_file(flp_record_file *file)
{
    free(file->place);
    free(file->text);
    free(file->fault);
}

void flp_record_files_free(flp_record_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free_file(&files->files[i]);
    free(files->files);
    *files = (flp_record_files){ 0 };
}

/* Appends a file with its place, and returns it. NULL: out of memory. */
static flp_record_file *append(flp_record_files *files, const char *place)
{
    flp_record_file *file;

    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? 2 * files->capacity : 64;
        flp_record_file *larger = realloc(files->files, capacity * sizeof(*larger));

        if (!larger)
            return NULL;
        files->files = larger;
        files->capacity = capacity;
    }
    file = &files->files[files->count];
    *file = (flp_record_file){ .place = flp_text_duplicate(place) };
    if (!file->place)
        return NULL;
    files->count++;
    return file;
}

/* Sets the file's fault to this thread's error message. */
static flp_status set_fault(flp_record_file *file)
{
    file->fault = flp_text_duplicate(flp_error_message());
    return file->fault ? FLP_OK : out_of_memory();
}

/* O_NONBLOCK: opening a FIFO would otherwise wait for its writer. */
static flp_status read_text(int directory, const char *name, char **text)
{
    int file = openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat facts;
    size_t count;
    flp_status status;

    *text = NULL;
    if (file < 0 || fstat(file, &facts) != 0) {
        status = flp_status_fail(FLP_IO_FAILED, "cannot open it: %s", strerror(errno));
    } else if (!S_ISREG(facts.st_mode) || facts.st_size > LARGEST_RECORD) {
        status = flp_status_fail(FLP_BAD_ARGUMENT, "wanted a plain file of at most %d bytes", LARGEST_RECORD);
    } else {
        status = flp_file_read_descriptor(file, name, text, &count);
        if (status == FLP_OK && strlen(*text) != count)
            status = flp_status_fail(FLP_BAD_ARGUMENT, "it holds a 0 byte");
    }
    if (file >= 0)
        close(file);
    return status;
}

static flp_status check_name(const flp_record *record, const char *name)
{
    char own[FLP_RECORD_NAME_BYTES];

    flp_record_name(record, own);
    return strcmp(own, name) == 0 ? FLP_OK : flp_status_fail(FLP_BAD_ARGUMENT, "its name would be %s", own);
}

static flp_status read_file(int directory, const char *path, const char *name, flp_record_files *files)
{
    flp_record_file *file = append(files, path);
    flp_record record;
    flp_status status;

    if (!file)
        return out_of_memory();
    snprintf(file->name, sizeof(file->name), "%s", name);
    status = read_text(directory, name, &file->text);
    if (status == FLP_OK)
        status = flp_record_parse(file->text, &record);
    if (status == FLP_OK)
        status = check_name(&record, name);
    if (status == FLP_OUT_OF_MEMORY)
        return status;
    file->unreadable = status == FLP_IO_FAILED;
    return status == FLP_OK ? FLP_OK : set_fault(file);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const flp_record_file *)left)->name, ((const flp_record_file *)right)->name);
}

flp_status flp_record_files_read(const char *path, flp_record_files *files)
{
    DIR *stream = opendir(path);
    size_t before = files->count;
    struct dirent *entry;
    flp_status status = FLP_OK;

    if (!stream) {
        int reason = errno;

        flp_status_fail(FLP_IO_FAILED, "%s: cannot list it: %s", path, strerror(reason));
        errno = reason;
        return FLP_IO_FAILED;
    }
    while (status == FLP_OK && (entry = readdir(stream))) {
        size_t length = strlen(entry->d_name);

        if (length > strlen(ending) && strcmp(entry->d_name + length - strlen(ending), ending) == 0)
            status = read_file(dirfd(stream), path, entry->d_name, files);
    }
    closedir(stream);
    if (files->count > before)
        qsort(files->files + before, files->count - before, sizeof(files->files[0]), by_name);
    return status;
}

static flp_status split_one(const char *place, int line, const char *text, size_t length, flp_record_files *files)
{
    char where[64];
    flp_text full = { 0 };
    flp_record_file *file;
    flp_record record;
    flp_status status;

    snprintf(where, sizeof(where), "line %d", line);
    flp_text_append(&full, "%s, %s", place, where);
    file = full.failed ? NULL : append(files, full.data);
    flp_text_free(&full);
    if (!file || !(file->text = strndup(text, length)))
        return out_of_memory();
    status = flp_record_parse(file->text, &record);
    if (status == FLP_OK)
        flp_record_name(&record, file->name);
    return status == FLP_OK || status == FLP_OUT_OF_MEMORY ? status : set_fault(file);
}

flp_status flp_record_files_split(const char *place, const char *export, flp_record_files *files)
{
    int line = 1;
    flp_status status = FLP_OK;

    while (status == FLP_OK && *export) {
        const char *end = strstr(export, "\n\n");
        size_t length = end ? (size_t)(end - export) + 1 : strlen(export);

        status = split_one(place, line, export, length, files);
        for (size_t i = 0; i < length; i++)
            line += export[i] == '\n';
        line++;
        export += length + (end != NULL);
    }
    return status;
}

static int by_text(const void *left, const void *right)
{
    return strcmp((*(const flp_record_file *const *)left)->text, (*(const flp_record_file *const *)right)->text);
}

/* 1: no valid file before it has the same name. */
static int is_first(const flp_record_files *files, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (!files->files[i].fault && strcmp(files->files[i].name, files->files[at].name) == 0)
            return 0;
    return 1;
}

flp_status flp_record_files_join(const flp_record_files *files, flp_text *export)
{
    const flp_record_file **sorted = malloc((files->count + 1) * sizeof(*sorted));
    size_t count = 0;

    if (!sorted)
        return out_of_memory();
    for (size_t i = 0; i < files->count; i++)
        if (!files->files[i].fault && is_first(files, i))
            sorted[count++] = &files->files[i];
    qsort(sorted, count, sizeof(*sorted), by_text);
    for (size_t i = 0; i < count; i++)
        flp_text_append(export, "%s%s", i ? "\n" : "", sorted[i]->text);
    free(sorted);
    return export->failed ? out_of_memory() : FLP_OK;
}

flp_status flp_record_files_put(flp_record_files *files, const char *directory, const flp_record *record)
{
    char name[FLP_RECORD_NAME_BYTES];
    flp_text text = { 0 };
    flp_record_file made;
    flp_status status = flp_record_format(record, &text);
    size_t at = 0;

    if (status != FLP_OK || !append(files, directory)) {
        flp_text_free(&text);
        return status == FLP_OK ? out_of_memory() : status;
    }
    flp_record_name(record, name);
    made = files->files[--files->count];
    made.text = text.data;
    strcpy(made.name, name);
    while (at < files->count && (strcmp(files->files[at].name, name) != 0 || strcmp(files->files[at].place, directory) != 0))
        at++;
    if (at < files->count) {
        free_file(&files->files[at]);
    } else {
        memmove(files->files + 1, files->files, files->count++ * sizeof(files->files[0]));
        at = 0;
    }
    files->files[at] = made;
    return FLP_OK;
}

flp_status flp_record_files_publish(const char *path, const flp_record *record)
{
    char name[FLP_RECORD_NAME_BYTES];
    flp_text text = { 0 };
    int directory = -1;
    flp_status status = flp_record_format(record, &text);

    if (status == FLP_OK)
        status = flp_file_make_directories(path, 0755);
    if (status == FLP_OK) {
        directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
            status = flp_status_fail(FLP_IO_FAILED, "%s: cannot open it: %s", path, strerror(errno));
    }
    if (status == FLP_OK) {
        flp_record_name(record, name);
        status = flp_file_publish(directory, name, text.data, text.length);
        if (status != FLP_OK)
            flp_status_prefix(status, "%s", path);
    }
    if (directory >= 0)
        close(directory);
    flp_text_free(&text);
    return status;
}

flp_status flp_record_files_remove(flp_record_files *files, size_t number)
{
    flp_record_file *file = &files->files[number];
    flp_text path = { 0 };
    flp_status status = FLP_OK;

    flp_text_append(&path, "%s/%s", file->place, file->name);
    if (path.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
    else if (unlink(path.data) != 0 && errno != ENOENT)
        status = flp_status_fail(FLP_IO_FAILED, "%s: cannot remove it: %s", path.data, strerror(errno));
    flp_text_free(&path);
    if (status != FLP_OK)
        return status;
    free_file(file);
    memmove(file, file + 1, (--files->count - number) * sizeof(*file));
    return FLP_OK;
}
