/* Keeps the list of candidates whose kernels hung. */
#include "tune/hung.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

static void append_line(flp_text *text, const flp_record_identity *identity, const char *tuning)
{
    flp_text_append(text, "%s %s %s %s %s\n", identity->arch, identity->templates, identity->selection, identity->problem, tuning[0] ? tuning : "default");
}

static flp_status write_line(const char *path, const flp_text *line)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    const int failed = file < 0 || write(file, line->data, line->length) != (ssize_t)line->length, reason = errno;

    if (file >= 0)
        close(file);
    return failed ? flp_status_fail(FLP_IO_FAILED, "%s: cannot write it: %s", path, strerror(reason)) : FLP_OK;
}

flp_status flp_hung_note(const char *directory, const flp_record_identity *identity, const char *tuning)
{
    flp_text path = { 0 }, line = { 0 };
    flp_status status = directory[0] ? flp_file_make_directories(directory, 0755) : flp_status_fail(FLP_IO_FAILED, "records directory: none is configured");

    flp_text_append(&path, "%s/hung", directory);
    append_line(&line, identity, tuning);
    if (status == FLP_OK)
        status = path.failed || line.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "hung candidates: no memory") : write_line(path.data, &line);
    flp_text_free(&path);
    flp_text_free(&line);
    return status;
}

flp_status flp_hung_read(const char *directory, flp_text *lines)
{
    flp_text path = { 0 };
    char *text = NULL;
    size_t count = 0;
    flp_status status;

    if (!directory[0])
        return FLP_OK;
    flp_text_append(&path, "%s/hung", directory);
    status = path.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "hung candidates: no memory") : flp_file_read(AT_FDCWD, path.data, &text, &count);
    if (status == FLP_OK)
        flp_text_append_bytes(lines, text, count);
    else if (status == FLP_IO_FAILED && (errno == ENOENT || errno == ENOTDIR))
        status = FLP_OK;
    free(text);
    flp_text_free(&path);
    return status;
}

int flp_hung_has(const flp_text *lines, const flp_record_identity *identity, const char *tuning)
{
    flp_text line = { 0 };
    int found = 0;

    if (!lines->length)
        return 0;
    append_line(&line, identity, tuning);
    for (const char *at = lines->data; line.data && !found && (at = strstr(at, line.data)); at++)
        found = at == lines->data || at[-1] == '\n';
    flp_text_free(&line);
    return found;
}
