/* Passes log lines to the callback of the process. */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/status.h"

enum { LINE_BYTES = 4096 };

/* A mutex guards callback and user data, which change together. `enabled` lets a process without a callback skip the formatting. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flp_log_callback current_callback;
static void *current_user_data;
static atomic_bool enabled;

void flp_log_set_callback(flp_log_callback callback, void *user_data)
{
    pthread_mutex_lock(&mutex);
    current_callback = callback;
    current_user_data = user_data;
    atomic_store(&enabled, callback != NULL);
    pthread_mutex_unlock(&mutex);
}

/* A queued line: it waits until the thread holds no mutex of the library and no callback runs in this thread. */
typedef struct kept {
    struct kept *next;
    flp_log_level level;
    char text[];
} kept_line;

static _Thread_local struct {
    int holds; /* calls of flp_log_hold that no flp_log_resume has ended yet; at least 1 while the callback runs */
    kept_line *first, **end;
} held;

static void keep(flp_log_level level, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    kept_line *line = malloc(sizeof(*line) + bytes);

    if (!line)
        return;
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, bytes);
    if (!held.first)
        held.end = &held.first;
    *held.end = line;
    held.end = &line->next;
}

/* The callback runs outside the mutex: it may itself log or set another callback. */
static void hand_out(flp_log_level level, const char *text)
{
    char message[FLP_STATUS_MESSAGE_BYTES];
    flp_log_callback callback;
    void *user_data;

    pthread_mutex_lock(&mutex);
    callback = current_callback;
    user_data = current_user_data;
    pthread_mutex_unlock(&mutex);
    if (!callback)
        return;
    flp_status_keep_message(message);
    callback(user_data, level, text);
    flp_status_restore_message(message);
}

void flp_log_hold(void)
{
    held.holds++;
}

/* A callback may call the library. Lines that such a call logs are delivered after the callback has returned, so that it is never called within itself. */
void flp_log_resume(void)
{
    const int callers_errno = errno;

    while (held.holds == 1 && held.first) {
        kept_line *line = held.first;
        held.first = line->next;
        hand_out(line->level, line->text);
        free(line);
    }
    held.holds--;
    errno = callers_errno;
}

static void write_line(flp_log_level level, const char *format, va_list arguments)
{
    const int callers_errno = errno;
    char line[LINE_BYTES];

    if (!atomic_load(&enabled))
        return;
    flp_locale_print(line, sizeof(line), format, arguments);
    flp_log_hold();
    keep(level, line);
    flp_log_resume();
    errno = callers_errno;
}

#define DEFINE_LEVEL(name, level)                \
    void flp_log_##name(const char *format, ...) \
    {                                            \
        va_list arguments;                       \
        va_start(arguments, format);             \
        write_line(level, format, arguments);    \
        va_end(arguments);                       \
    }

DEFINE_LEVEL(debug, FLP_LOG_DEBUG)
DEFINE_LEVEL(info, FLP_LOG_INFO)
DEFINE_LEVEL(warning, FLP_LOG_WARNING)
