/* Hands log lines to the callback of the process. */
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

/* Callback and user data change together, so a mutex guards the pair; the flag lets a silent process skip the formatting. */
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

/* A line that waits until the thread has no lock, or until its callback has returned. */
typedef struct kept {
    struct kept *next;
    flp_log_level level;
    char text[];
} kept_line;

static _Thread_local struct {
    int holds; /* flp_log_hold without its resume; one more while the callback runs */
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

/* Lines of calls that the callback makes wait for it to return, so that a callback which calls the library is not called within itself. */
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
