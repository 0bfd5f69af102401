/* Keeps the list of candidates whose kernels hung. */
#include "tune/hung.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"

static void append_line(flp_text *text, const flp_record_identity *identity, const char *tuning)
{
    flp_text_append(text, "%s %s %s %s %s\n", identity->arch, identity->templates, identity->selection, identity->problem, tuning[0] ? tuning : "default");
}

flp_status flp_hung_note(const char *directory, const flp_record_identity *identity, const char *tuning)
{
    flp_text path = { 0 }, line = { 0 };
    flp_status status = directory[0] ? flp_file_make_directories(directory, 0755) : flp_status_fail(FLP_IO_FAILED, "records directory: none is configured");

    flp_text_append(&path, "%s/hung", directory);
    flp_text_append(&line, "\n"); /* ends a previous line that was cut short by a full disk */
    append_line(&line, identity, tuning);
    if (status == FLP_OK)
        status = path.failed || line.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "hung candidates: no memory")
                                            : flp_file_append(AT_FDCWD, path.data, 0644, line.data, line.length);
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
    status = path.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "hung candidates: no memory") : flp_file_read_if_any(AT_FDCWD, path.data, &text, &count);
    if (status == FLP_OK)
        flp_text_append_bytes(lines, text, count);
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
