/* The message that belongs to a thread's last failed call. */
#include "base/status.h"

#include <stdarg.h>
#include <string.h>

#include "base/locale.h"

static _Thread_local char message[FLP_STATUS_MESSAGE_BYTES];

const char *flp_status_text(flp_status status)
{
    switch (status) {
#define TEXT_CASE(name, value, text) \
    case FLP_##name:                 \
        return text;
        FLP_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}

const char *flp_error_message(void)
{
    return message;
}

/* The arguments may point into the old message, so the new one is formatted in a buffer of its own first. */
flp_status flp_status_fail(flp_status status, const char *format, ...)
{
    char text[FLP_STATUS_MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    flp_locale_print(text, sizeof(text), format, arguments);
    va_end(arguments);
    memcpy(message, text, strlen(text) + 1);
    return status;
}

flp_status flp_status_prefix(flp_status status, const char *format, ...)
{
    char prefix[FLP_STATUS_MESSAGE_BYTES], old[FLP_STATUS_MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    flp_locale_print(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    memcpy(old, message, sizeof(old));
    return flp_status_fail(status, "%s: %s", prefix, old);
}

void flp_status_keep_message(char kept[FLP_STATUS_MESSAGE_BYTES])
{
    memcpy(kept, message, strlen(message) + 1);
}

void flp_status_restore_message(const char kept[FLP_STATUS_MESSAGE_BYTES])
{
    memcpy(message, kept, strlen(kept) + 1);
}
