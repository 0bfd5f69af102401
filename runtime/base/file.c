/* Reading whole files, appending to files, publishing them atomically, making directories. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

static flp_status io_failed(const char *path, const char *action)
{
    int reason = errno;

    flp_status_fail(FLP_IO_FAILED, "%s: cannot %s: %s", path, action, strerror(reason));
    errno = reason;
    return FLP_IO_FAILED;
}

/* read() until the buffer is full or the file ends; -1 with errno. */
static ssize_t read_fully(int file, char *bytes, size_t count)
{
    size_t done = 0;

    while (done < count) {
        ssize_t now = read(file, bytes + done, count - done);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return -1;
        if (now == 0)
            break;
        done += (size_t)now;
    }
    return (ssize_t)done;
}

flp_status flp_file_read_descriptor(int file, const char *path, char **bytes, size_t *count)
{
    struct stat facts;
    size_t capacity, length = 0;
    char *buffer = NULL;

    *bytes = NULL;
    *count = 0;
    if (fstat(file, &facts) != 0)
        return io_failed(path, "look at it");
    /* One byte more than the file has, so that read() meets the end of the file before the buffer has to grow. */
    capacity = facts.st_size > 0 ? (size_t)facts.st_size + 1 : 4096;
    for (;;) {
        char *larger = realloc(buffer, capacity + 1);
        ssize_t now;

        if (!larger) {
            free(buffer);
            return flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory for its %zu bytes", path, capacity);
        }
        buffer = larger;
        now = read_fully(file, buffer + length, capacity - length);
        if (now < 0) {
            flp_status status = io_failed(path, "read it");
            free(buffer);
            return status;
        }
        length += (size_t)now;
        if (length < capacity)
            break;
        capacity *= 2;
    }
    buffer[length] = 0;
    *bytes = buffer;
    *count = length;
    return FLP_OK;
}

flp_status flp_file_read(int directory, const char *path, char **bytes, size_t *count)
{
    int file = openat(directory, path, O_RDONLY | O_CLOEXEC);
    flp_status status;
    int reason;

    *bytes = NULL;
    *count = 0;
    if (file < 0)
        return io_failed(path, "open it");
    status = flp_file_read_descriptor(file, path, bytes, count);
    reason = errno;
    close(file);
    errno = reason;
    return status;
}

flp_status flp_file_read_if_any(int directory, const char *path, char **bytes, size_t *count)
{
    const flp_status status = flp_file_read(directory, path, bytes, count);

    if (status != FLP_IO_FAILED || (errno != ENOENT && errno != ENOTDIR))
        return status;
    *count = 0;
    *bytes = calloc(1, 1);
    return *bytes ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory", path);
}

flp_status flp_file_append(int directory, const char *path, unsigned mode, const void *bytes, size_t count)
{
    const int file = openat(directory, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    ssize_t written;
    flp_status status = FLP_OK;

    if (file < 0)
        return io_failed(path, "open it");
    errno = ENOSPC; /* the reason of a write that is cut short */
    written = write(file, bytes, count);
    if (written != (ssize_t)count)
        status = io_failed(path, "write it");
    if (close(file) != 0 && status == FLP_OK)
        status = io_failed(path, "write it");
    return status;
}

int flp_file_is_leftover(const struct stat *facts)
{
    enum { HOUR = 3600 };
    const time_t age = time(NULL) - facts->st_mtim.tv_sec;

    return age >= HOUR || age <= -HOUR;
}

/* Opens a new file beside path under a name that no other process or host has: path's own with a mark, or as much of it as a name has room for. */
static int create_private(int directory, const char *path, unsigned mode, char *name, size_t bytes)
{
    enum { DIGITS = 16, MOST_KEPT = NAME_MAX - (int)sizeof(FLP_FILE_PRIVATE_MARK) + 1 - DIGITS };
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;

    for (;;) {
        unsigned long long number;
        int file;

        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            return -1;
        if ((size_t)snprintf(name, bytes, "%.*s%.*s" FLP_FILE_PRIVATE_MARK "%0*llx", folder, path, MOST_KEPT, path + folder, DIGITS, number) >= bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
}

static int write_fully(int file, const char *bytes, size_t count)
{
    while (count) {
        ssize_t now = write(file, bytes, count);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return -1;
        bytes += now;
        count -= (size_t)now;
    }
    return 0;
}

/* Makes the rename durable. A file system that cannot do it still shows the old file or the new one after a crash, so
 * the result does not matter. */
static void sync_directory_of(int directory, const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int file;

    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    file = openat(directory, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return;
    fsync(file);
    close(file);
}

flp_status flp_file_publish_as(int directory, const char *path, unsigned mode, const void *bytes, size_t count)
{
    char name[PATH_MAX];
    const char *action = "write it";
    int file = create_private(directory, path, mode, name, sizeof(name));
    int failed, reason;

    if (file < 0)
        return io_failed(path, "create a file beside it");
    failed = write_fully(file, bytes, count) != 0 || fsync(file) != 0;
    reason = errno;
    /* A network file system may report a full disk only here. */
    if (close(file) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    if (!failed && renameat(directory, name, directory, path) != 0) {
        failed = 1;
        reason = errno;
        action = "rename the new file to it";
    }
    if (failed) {
        unlinkat(directory, name, 0);
        errno = reason;
        return io_failed(path, action);
    }
    sync_directory_of(directory, path);
    return FLP_OK;
}

flp_status flp_file_publish(int directory, const char *path, const void *bytes, size_t count)
{
    return flp_file_publish_as(directory, path, 0644, bytes, count);
}

flp_status flp_file_make_directories(const char *path, unsigned mode)
{
    char part[PATH_MAX];
    struct stat facts;
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof(part)) {
        errno = length ? ENAMETOOLONG : ENOENT;
        return io_failed(path, "make the directory");
    }
    for (size_t end = 1; end <= length; end++) {
        if (end < length && path[end] != '/')
            continue;
        memcpy(part, path, end);
        part[end] = 0;
        /* For a directory that exists mkdir may fail with EROFS or EACCES instead of EEXIST, so stat decides. */
        if (mkdir(part, (mode_t)mode) != 0) {
            int reason = errno;
            if (stat(part, &facts) == 0 && S_ISDIR(facts.st_mode))
                continue;
            errno = reason == EEXIST ? ENOTDIR : reason;
            return io_failed(part, "make the directory");
        }
    }
    return FLP_OK;
}
