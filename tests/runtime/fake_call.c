/* A small linear_logp call. */
#include "fake_call.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "assertions.h"
#include "fake_library.h"

static _Alignas(256) uint16_t hidden[FAKE_CALL_ROWS * FAKE_CALL_HIDDEN];
static _Alignas(256) uint16_t weight[FAKE_CALL_VOCAB * FAKE_CALL_HIDDEN];
static _Alignas(256) int64_t target[FAKE_CALL_ROWS];
static _Alignas(256) float logp[FAKE_CALL_ROWS];
static _Alignas(256) char memory[256];
static char lines[8192];

static void keep_line(void *data, flp_log_level level, const char *message)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    size_t used;

    (void)data;
    pthread_mutex_lock(&mutex);
    used = strlen(lines);
    snprintf(lines + used, sizeof(lines) - used, "%s%s\n", level == FLP_LOG_WARNING ? "warning: " : "", message);
    pthread_mutex_unlock(&mutex);
}

flp_context *fake_call_start(unsigned flags)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 1, .flags = flags };
    flp_context *context;

    fake_library_install();
    lines[0] = 0;
    flp_log_set_callback(keep_line, NULL);
    assert_succeeds(flp_context_create(&options, &context));
    return context;
}

flp_linear_logp_problem fake_call_problem(void)
{
    return (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = FAKE_CALL_ROWS, .hidden = FAKE_CALL_HIDDEN, .vocab = FAKE_CALL_VOCAB };
}

flp_linear_logp_args fake_call_args(int64_t rows)
{
    memset(target, 0, sizeof(target));
    return (flp_linear_logp_args){
        .rows = rows, .hidden = hidden, .weight = weight, .target = target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX, .logp = logp
    };
}

void *fake_call_memory(void)
{
    return memory;
}

const char *fake_call_log(void)
{
    return lines;
}
