/* Keeps the list of problems without a record. */
#include "tune/untuned.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

enum { MOST_BYTES = 64 << 10 };

static flp_status out_of_memory(void)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "untuned problems: no memory");
}

static void format_path(const char *directory, flp_text *path)
{
    flp_text_append(path, "%s/untuned", directory);
}

/* 1: line, of `length` bytes without its newline, is a line of text. */
static int has_line(const char *text, const char *line, size_t length)
{
    for (const char *next = text; *next; next += strcspn(next, "\n"), next += *next == '\n')
        if (strncmp(next, line, length) == 0 && next[length] == '\n')
            return 1;
    return 0;
}

static flp_status note(const char *directory, const char *path, const flp_text *line)
{
    char *text;
    size_t count;
    flp_status status = flp_file_read_if_any(AT_FDCWD, path, &text, &count);
    int wanted = status == FLP_OK && count + line->length <= MOST_BYTES && !has_line(text, line->data, line->length - 1);

    free(text);
    if (wanted)
        status = flp_file_make_directories(directory, 0755);
    return wanted && status == FLP_OK ? flp_file_append(AT_FDCWD, path, 0644, line->data, line->length) : status;
}

void flp_untuned_note(const char *directory, const char *arch, const char *problem)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_text path = { 0 }, line = { 0 };

    if (!directory[0])
        return;
    flp_status_keep_message(callers_message);
    format_path(directory, &path);
    flp_text_append(&line, "%s %s\n", arch, problem);
    if (!path.failed && !line.failed && note(directory, path.data, &line) != FLP_OK)
        flp_log_debug("not noted as untuned: %s", flp_error_message());
    flp_text_free(&path);
    flp_text_free(&line);
    flp_status_restore_message(callers_message);
}

/* Appends the lines of text that are complete and that `lines` does not have yet, except `left_out`. */
static flp_status take_lines(const char *text, const char *left_out, flp_text *lines)
{
    for (const char *next = text; strchr(next, '\n'); next = strchr(next, '\n') + 1) {
        size_t length = strcspn(next, "\n");

        if (!length || (lines->length && has_line(lines->data, next, length)) || (left_out && has_line(left_out, next, length)))
            continue;
        flp_text_append_bytes(lines, next, length + 1);
    }
    return lines->failed ? out_of_memory() : FLP_OK;
}

static flp_status read_lines(const char *path, const char *left_out, flp_text *lines)
{
    char *text;
    size_t count;
    flp_status status = flp_file_read_if_any(AT_FDCWD, path, &text, &count);

    if (status == FLP_OK)
        status = take_lines(text, left_out, lines);
    free(text);
    return status;
}

flp_status flp_untuned_read(const char *directory, flp_text *lines)
{
    flp_text path = { 0 };
    flp_status status;

    if (!directory[0])
        return FLP_OK;
    format_path(directory, &path);
    status = path.failed ? out_of_memory() : read_lines(path.data, NULL, lines);
    flp_text_free(&path);
    return status;
}

flp_status flp_untuned_remove(const char *directory, const char *arch, const char *problem)
{
    flp_text path = { 0 }, line = { 0 }, lines = { 0 };
    flp_status status = FLP_OK;

    if (!directory[0])
        return FLP_OK;
    format_path(directory, &path);
    flp_text_append(&line, "%s %s\n", arch, problem);
    if (path.failed || line.failed)
        status = out_of_memory();
    else
        status = read_lines(path.data, line.data, &lines);
    if (status == FLP_OK && access(path.data, F_OK) == 0)
        status = flp_file_publish(AT_FDCWD, path.data, lines.data ? lines.data : "", lines.length);
    flp_text_free(&path);
    flp_text_free(&line);
    flp_text_free(&lines);
    return status;
}
