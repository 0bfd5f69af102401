/* Hands log lines to the callback of the process. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/locale.h"

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

/* The callback runs outside the mutex: it may itself log or set another callback. */
static void write_line(flp_log_level level, const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    flp_log_callback callback;
    void *user_data;

    if (!atomic_load(&enabled))
        return;
    pthread_mutex_lock(&mutex);
    callback = current_callback;
    user_data = current_user_data;
    pthread_mutex_unlock(&mutex);
    if (!callback)
        return;
    flp_locale_print(line, sizeof(line), format, arguments);
    callback(user_data, level, line);
}

#define DEFINE_LEVEL(name, level)              \
    void flp_log_##name(const char *format, ...) \
    {                                          \
        va_list arguments;                     \
        va_start(arguments, format);           \
        write_line(level, format, arguments);  \
        va_end(arguments);                     \
    }

DEFINE_LEVEL(debug, FLP_LOG_DEBUG)
DEFINE_LEVEL(info, FLP_LOG_INFO)
DEFINE_LEVEL(warning, FLP_LOG_WARNING)
