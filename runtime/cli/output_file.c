/* Resolves the name that a user gave for results, and writes there. */
#include "cli/output_file.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/status.h"

#define MOST_LINKS 40 /* the limit of the system itself */

static flp_status refuse(const char *path, const char *why)
{
    return flp_status_fail(FLP_IO_FAILED, "%s: %s", path, why);
}

/* The length of path up to and with its last slash; 0 where it has none. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* The descriptor that a name under /dev stands for, -1 if none: what is open there is written to, not the file of its name. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/" };
    int descriptor, end = 0;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && isdigit((unsigned char)path[strlen(folders[i])]) &&
            sscanf(path + strlen(folders[i]), "%9d%n", &descriptor, &end) == 1 && path[strlen(folders[i]) + (size_t)end] == 0 && descriptor >= 0)
            return descriptor;
    return -1;
}

/* Copies given to path and, as long as that is a symbolic link, replaces it by the link's target, which is relative to the link's folder. Ends at the name of a
 * descriptor, which is then *descriptor, else -1. */
static flp_status follow_links(const char *given, char path[PATH_MAX], int *descriptor)
{
    char target[PATH_MAX], next[PATH_MAX];
    if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX)
        return refuse(given, strerror(ENAMETOOLONG));
    for (int links = 0; links < MOST_LINKS; links++) {
        *descriptor = descriptor_of(path);
        if (*descriptor >= 0)
            return FLP_OK;
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            return FLP_OK; /* no link, or not there */
        target[length] = 0;
        int folder = target[0] == '/' ? 0 : folder_length(path);
        if (snprintf(next, sizeof next, "%.*s%s", folder, path, target) >= (int)sizeof next)
            return refuse(given, strerror(ENAMETOOLONG));
        memcpy(path, next, sizeof next);
    }
    return refuse(given, strerror(ELOOP));
}

/* A new file's facts are those of its folder, in which one must be able to make files: results are written beside their place and renamed to it. */
static flp_status find_folder(const char *given, flp_output_file *file)
{
    char folder[PATH_MAX];
    struct stat facts;
    int length = folder_length(file->path);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? file->path : ".");
    if (file->path[length] == 0)
        return refuse(given, "wanted a file, not a folder");
    if (stat(folder, &facts) != 0)
        return refuse(given, strerror(errno));
    if (access(folder, W_OK | X_OK) != 0)
        return flp_status_fail(FLP_IO_FAILED, "%s: no file can be made in its folder: %s", given, strerror(errno));
    if (file->kind == FLP_OUTPUT_NEW)
        file->facts = facts;
    return FLP_OK;
}

static int is_standard_output(const struct stat *facts)
{
    struct stat output;
    return fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == facts->st_dev && output.st_ino == facts->st_ino;
}

static int can_write(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* A standard output that was closed when the program started can only be read (flp_console_start). */
static flp_status check_open(const char *path)
{
    return can_write(STDOUT_FILENO) ? FLP_OK : refuse(path, "standard output is closed");
}

/* Refuses a terminal: the result is binary, for a program to read. */
static flp_status find_standard_output(flp_output_file *file)
{
    file->kind = FLP_OUTPUT_STDOUT;
    flp_status status = check_open("-");
    if (status == FLP_OK && fstat(STDOUT_FILENO, &file->facts) != 0)
        status = refuse("-", strerror(errno));
    if (status == FLP_OK && isatty(STDOUT_FILENO))
        status = refuse("-", "standard output is a terminal, wanted a pipe or a file");
    return status;
}

flp_status flp_output_file_find(const char *path, flp_output_file *file)
{
    memset(file, 0, sizeof *file);
    file->descriptor = -1;
    if (strcmp(path, "-") == 0)
        return find_standard_output(file);
    if (stat(path, &file->facts) != 0 && errno != ENOENT)
        return refuse(path, strerror(errno));
    int exists = file->facts.st_mode != 0;
    if (exists && S_ISDIR(file->facts.st_mode))
        return refuse(path, "wanted a file, not a folder");
    if (exists && is_standard_output(&file->facts)) {
        file->kind = FLP_OUTPUT_STDOUT;
        snprintf(file->path, sizeof file->path, "%s", path);
        return check_open(path);
    }
    flp_status status = follow_links(path, file->path, &file->descriptor);
    if (status != FLP_OK)
        return status;
    if (file->descriptor >= 0 || (exists && !S_ISREG(file->facts.st_mode))) {
        file->kind = FLP_OUTPUT_STREAM;
        snprintf(file->path, sizeof file->path, "%s", path);
        return file->descriptor < 0 || can_write(file->descriptor) ? FLP_OK : refuse(path, "it is not open for writing");
    }
    file->kind = exists ? FLP_OUTPUT_REGULAR : FLP_OUTPUT_NEW;
    return find_folder(path, file);
}

int flp_output_file_is_standard_output(const char *path)
{
    flp_output_file file;
    flp_output_file_find(path, &file); /* what it refuses has its kind, too */
    return file.kind == FLP_OUTPUT_STDOUT && (!S_ISCHR(file.facts.st_mode) || isatty(STDOUT_FILENO));
}

int flp_output_file_is(const flp_output_file *file, const flp_output_file *other)
{
    if ((file->kind == FLP_OUTPUT_NEW) != (other->kind == FLP_OUTPUT_NEW) || S_ISCHR(file->facts.st_mode))
        return 0;
    if (file->facts.st_dev != other->facts.st_dev || file->facts.st_ino != other->facts.st_ino)
        return 0;
    if (file->kind != FLP_OUTPUT_NEW)
        return 1;
    return strcmp(file->path + folder_length(file->path), other->path + folder_length(other->path)) == 0;
}

/* Writes through stdio, whose buffer may hold what was printed before. */
static flp_status write_output(const char *path, const void *bytes, size_t count)
{
    errno = 0;
    if (fwrite(bytes, 1, count, stdout) == count && fflush(stdout) == 0)
        return FLP_OK;
    return flp_status_fail(FLP_IO_FAILED, "%s: cannot write it: %s", path, strerror(errno));
}

static flp_status write_stream(const flp_output_file *file, const void *bytes, size_t count)
{
    const char *path = file->path;
    int descriptor = file->descriptor >= 0 ? fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (stream == NULL) {
        flp_status status = flp_status_fail(FLP_IO_FAILED, "%s: cannot open it: %s", path, strerror(errno));
        if (descriptor >= 0)
            close(descriptor);
        return status;
    }
    int failed = fwrite(bytes, 1, count, stream) != count;
    int reason = errno;
    if (fclose(stream) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    return failed ? flp_status_fail(FLP_IO_FAILED, "%s: cannot write it: %s", path, strerror(reason)) : FLP_OK;
}

flp_status flp_output_file_write(const char *path, const void *bytes, size_t count)
{
    flp_output_file file;
    flp_status status = flp_output_file_find(path, &file);
    if (status != FLP_OK)
        return status;
    if (file.kind == FLP_OUTPUT_STDOUT)
        return write_output(path, bytes, count);
    if (file.kind == FLP_OUTPUT_STREAM)
        return write_stream(&file, bytes, count);
    /* The new file keeps the old one's mode, so that a private file stays private, also while it is written. */
    const unsigned mode = file.kind == FLP_OUTPUT_REGULAR ? file.facts.st_mode & 0666 : 0644;
    status = flp_file_publish_as(AT_FDCWD, file.path, mode | 0200, bytes, count);
    if (status == FLP_OK && file.kind == FLP_OUTPUT_REGULAR && chmod(file.path, file.facts.st_mode & 07777) != 0)
        status = flp_status_fail(FLP_IO_FAILED, "%s: cannot give it the mode that it had: %s", path, strerror(errno));
    return status;
}
