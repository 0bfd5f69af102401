/* Collects the problems that fusedlogp tune is to tune. */
#include <stdlib.h>
#include <string.h>
#include "base/status.h"
#include "cli/console.h"
#include "cli/model_config.h"
#include "cli/operators.h"
#include "cli/tune.h"
#include "core/plan.h"
#include "tune/untuned.h"

/* --probe: typical shapes of models; most other shapes are near one of them. */
static const char *const probed[] = {
    "linear_logp:bf16:n4096:d2048:v131072",
    "linear_logp:bf16:n64:d4096:v128256",
    "linear_logp:bf16:n4096:d512:v32768", /* short tiles and a short kernel, for the model */
    "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
    "logits_logp:bf16:n4096:v131072",
    "logits_logp_backward:bf16:n4096:v131072",
    "logits_logp_backward:bf16:n64:v32768", /* little but its launch */
    "weighted_sum:bf16:n8192:d4096",
    NULL,
};

static flp_status out_of_memory(void)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "problems: no memory");
}

static int is_known(const flp_tune_list *list, const char *text, const char *arch)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0 && (!list->items[i].arch || (arch && strcmp(list->items[i].arch, arch) == 0)))
            return 1;
    return 0;
}

/* Appends a problem with its bucket of rows and its defaults filled in, so that different strings of one problem are the same item. */
static flp_status append(flp_tune_list *list, const char *given, const char *arch)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    const flp_operator_calls *calls;
    flp_problem_storage problem, normal;
    flp_status status = flp_operators_read(given, &calls, &problem);
    if (status == FLP_OK)
        status = flp_problem_normalize(calls->op, &problem, &normal);
    if (status == FLP_OK)
        status = flp_tuned_problem_text(calls->op, &normal, text);
    if (status != FLP_OK || is_known(list, text, arch))
        return status;
    flp_tune_item *larger = realloc(list->items, (list->count + 1) * sizeof *larger);
    if (larger == NULL)
        return out_of_memory();
    list->items = larger;
    list->items[list->count] = (flp_tune_item){ flp_text_duplicate(text), arch ? flp_text_duplicate(arch) : NULL };
    list->count++;
    return larger[list->count - 1].text && (!arch || larger[list->count - 1].arch) ? FLP_OK : out_of_memory();
}

/* Appends a model's problems: scoring a prompt, scoring a few tokens, and training; in bf16 where the model does not say its dtype. */
static flp_status append_model(flp_tune_list *list, const char *path)
{
    static const char *const patterns[] = { "linear_logp:%s" FLP_MODEL_HEAD("4096"), "linear_logp:%s" FLP_MODEL_HEAD("64"),
                                            "linear_cross_entropy:%s" FLP_MODEL_HEAD("4096") ":gh_%s:gw_%s", NULL };
    flp_model_config config;
    char *problems = NULL;
    size_t bytes = 0;
    flp_status status = flp_model_config_read(path, &config);
    if (status == FLP_OK)
        status = flp_model_config_append_problems(&config, config.dtype == FLP_NONE ? FLP_BF16 : config.dtype, patterns, &problems, &bytes);
    for (const char *text = NULL; status == FLP_OK && (text = argz_next(problems, bytes, text)) != NULL;)
        status = append(list, text, NULL);
    free(problems);
    return status;
}

/* Appends the list of untuned problems, lines "ARCH PROBLEM"; a problem that this library does not know any more is skipped. */
static flp_status append_untuned(flp_tune_list *list, const char *directory)
{
    flp_text lines = { 0 };
    char *rest = NULL;
    flp_status status = flp_untuned_read(directory, &lines);
    for (char *line = lines.data ? strtok_r(lines.data, "\n", &rest) : NULL; line && status == FLP_OK; line = strtok_r(NULL, "\n", &rest)) {
        char *problem = strchr(line, ' ');
        if (problem == NULL)
            continue;
        *problem++ = 0;
        status = append(list, problem, line);
        if (status == FLP_BAD_ARGUMENT)
            status = FLP_OK;
    }
    flp_text_free(&lines);
    return status;
}

static void remove_item(flp_tune_list *list, size_t number)
{
    free(list->items[number].text);
    free(list->items[number].arch);
    memmove(list->items + number, list->items + number + 1, (--list->count - number) * sizeof *list->items);
}

/* 1 where the problems differ only in their rows and the second has more, so that tuning all numbers of rows up to the second's covers the first. */
static int is_part(const flp_tune_item *one, const flp_tune_item *other)
{
    char text[FLP_PROBLEM_TEXT_BYTES], others[FLP_PROBLEM_TEXT_BYTES];
    const size_t rows = strlen(one->text), others_rows = strlen(other->text); /* the longer one has more digits */
    if (!flp_tuned_without_rows(one->text, text) || !flp_tuned_without_rows(other->text, others) || strcmp(text, others) != 0)
        return 0;
    return (!one->arch == !other->arch) && (!one->arch || strcmp(one->arch, other->arch) == 0) &&
           (rows != others_rows ? rows < others_rows : strcmp(one->text, other->text) < 0);
}

/* --numerics: of problems that differ only in their rows, keeps the one with the most. */
static void join_rows(flp_tune_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = 0; j < list->count; j++)
            if (is_part(&list->items[i], &list->items[j])) {
                remove_item(list, i--);
                break;
            }
}

/* Appends the problems of models, of --probe and of the list of untuned problems. */
static flp_status append_read(flp_tune_list *list, const flp_tune_command *command, const char *records_directory)
{
    flp_status status = FLP_OK;
    for (const char *path = NULL; status == FLP_OK && (path = argz_next(command->models, command->models_bytes, path)) != NULL;)
        status = append_model(list, path);
    for (int i = 0; status == FLP_OK && command->probe && probed[i]; i++)
        status = append(list, probed[i], NULL);
    if (status == FLP_OK && command->untuned)
        status = append_untuned(list, records_directory);
    return status;
}

int flp_tune_list_collect(const flp_tune_command *command, const char *records_directory, flp_tune_list *list)
{
    flp_status status = FLP_OK;
    *list = (flp_tune_list){ 0 };
    for (const char *text = NULL; status == FLP_OK && (text = argz_next(command->problems, command->problems_bytes, text)) != NULL;)
        status = append(list, text, NULL);
    if (status == FLP_BAD_ARGUMENT) {
        flp_console_fail(status);
        return FLP_EXIT_USAGE;
    }
    if (status == FLP_OK)
        status = append_read(list, command, records_directory);
    if (status != FLP_OK)
        return flp_console_fail(status);
    if (command->numerics)
        join_rows(list);
    return FLP_EXIT_OK;
}

void flp_tune_list_free(flp_tune_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        free(list->items[i].arch);
    }
    free(list->items);
    *list = (flp_tune_list){ 0 };
}
