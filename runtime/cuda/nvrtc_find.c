/* Finds libnvrtc as a file in the usual places, so that a start with a filled kernel cache can identify NVRTC's build without loading 100 MiB. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cuda/elf_build_id.h"
#include "cuda/library.h"
#include "cuda/nvrtc.h"

#ifndef FUSEDLOGP_NVRTC_DIR
#define FUSEDLOGP_NVRTC_DIR ""
#endif

static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so" };
enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* The places, in the order in which they are searched. Where a place names an environment variable, that must be set, and %s stands for each directory of its
 * colon-separated value in turn. Patterns are expanded as a shell expands them. */
static const struct {
    const char *variable, *pattern;
} places[] = {
    { "FUSEDLOGP_NVRTC_PATH", "%s" },
    { "LD_LIBRARY_PATH", "%s" },
    { "CUDA_HOME", "%s/lib64" },
    { "CUDA_PATH", "%s/lib64" },
    { NULL, "/usr/lib/*-linux-gnu" },
    { NULL, "/usr/lib64" },
    { NULL, "/usr/lib" },
    { NULL, "/usr/local/lib" },
    { NULL, "/usr/local/cuda/lib64" },
    { NULL, FUSEDLOGP_NVRTC_DIR },
    { "VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cu1[0-9]/lib" },
    { "VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib" },
    { "CONDA_PREFIX", "%s/lib" },
    { "CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/cu1[0-9]/lib" },
    { "CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib" },
    { "HOME", "%s/.local/lib/python3*/site-packages/nvidia/cu1[0-9]/lib" },
    { "HOME", "%s/.local/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib" },
    /* dist-packages in Debian's Python, site-packages in others. */
    { NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu1[0-9]/lib" },
    { NULL, "/usr/local/lib/python3*/*-packages/nvidia/cuda_nvrtc/lib" },
};

typedef struct {
    flp_nvrtc_facts *facts;
    flp_text looked; /* the places searched, for the message */
    flp_text passed; /* the files passed over, each with the reason */
    int found;
} search;

/* The major version in the name of a file after symbolic links are resolved, 11 of libnvrtc.so.11.2; 0 where the name does not say it. */
static int read_major(const char *path)
{
    char *resolved = realpath(path, NULL);
    const char *base = resolved ? strrchr(resolved, '/') + 1 : path;
    const char *version = strstr(base, ".so.");
    const int major = version ? (int)strtol(version + strlen(".so."), NULL, 10) : 0;

    free(resolved);
    return major;
}

/* Remembers a file that was passed over. The same directory may be searched more than once. */
static void pass_over(search *search, const char *path, const char *reason)
{
    char line[PATH_MAX + 64];

    snprintf(line, sizeof(line), "%s is %s", path, reason);
    if (!search->passed.data || !strstr(search->passed.data, line))
        flp_text_append(&search->passed, "%s%s", search->passed.length ? ", " : "", line);
}

/* 1: the file's name says that it is too old. The search then goes on, because an old CUDA toolkit may lie before a newer NVRTC. */
static int is_too_old(search *search, const char *path)
{
    const int major = read_major(path);
    char reason[64];

    if (major <= 0 || major >= FLP_NVRTC_LEAST_MAJOR)
        return 0;
    snprintf(reason, sizeof(reason), "NVRTC %d", major);
    pass_over(search, path, reason);
    return 1;
}

/* Identifies a file without a build id by its name after symbolic links are resolved, which holds the version, and by its size. */
static void name_build(const char *path, char *build, size_t bytes)
{
    char *resolved = realpath(path, NULL);
    const char *base = resolved ? strrchr(resolved, '/') + 1 : path;
    struct stat facts;

    if (stat(path, &facts) != 0)
        facts.st_size = 0;
    snprintf(build, bytes, "%s-%lld", base, (long long)facts.st_size);
    free(resolved);
}

/* 1: the file is taken. Otherwise the message says why it was not, if nothing better is found. */
static int take_file(search *search, const char *path)
{
    flp_nvrtc_facts *facts = search->facts;
    flp_elf_kind kind = flp_elf_build_id_read(path, facts->build, sizeof(facts->build));

    if (kind == FLP_ELF_FOREIGN)
        pass_over(search, path, "not a library of this machine");
    if (kind == FLP_ELF_FOREIGN || is_too_old(search, path) || strlen(path) >= sizeof(facts->path))
        return 0;
    memcpy(facts->path, path, strlen(path) + 1);
    if (kind == FLP_ELF_NO_ID)
        name_build(path, facts->build, sizeof(facts->build));
    return 1;
}

static void look_in(search *search, const char *directory)
{
    const flp_library_loader *loader = flp_library_loader_get();
    char path[PATH_MAX];

    for (int i = 0; i < NAMES && !search->found; i++)
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, names[i]) < sizeof(path) && loader->readable(path))
            search->found = take_file(search, path);
}

static void look_through(search *search, const char *pattern)
{
    glob_t matches;

    flp_text_append(&search->looked, "%s%s", search->looked.length ? ", " : "", pattern);
    if (!strpbrk(pattern, "*?[")) {
        look_in(search, pattern);
        return;
    }
    if (glob(pattern, GLOB_NOSORT, NULL, &matches) != 0)
        return;
    for (size_t i = 0; i < matches.gl_pathc && !search->found; i++)
        look_in(search, matches.gl_pathv[i]);
    globfree(&matches);
}

static void look_at_place(search *search, const char *variable, const char *pattern)
{
    const char *value = variable ? secure_getenv(variable) : "";
    char path[PATH_MAX];

    while (value && !search->found) {
        size_t length = strcspn(value, ":");
        size_t head = strcspn(pattern, "%");
        const char *tail = pattern[head] ? pattern + head + 2 : "";

        if ((!variable || length) && pattern[0] &&
            (size_t)snprintf(path, sizeof(path), "%.*s%.*s%s", (int)head, pattern, (int)length, value, tail) < sizeof(path))
            look_through(search, path);
        value = value[length] ? value + length + 1 : NULL;
    }
}

/* Loads libnvrtc by its bare name: the loader also searches ld.so.cache and the program's run path. */
static void ask_loader(search *search)
{
    const flp_library_loader *loader = flp_library_loader_get();
    flp_nvrtc_facts *facts = search->facts;

    for (int i = 0; i < NAMES && !search->found; i++) {
        void *library = loader->open(names[i]);
        void *symbol = library ? loader->symbol(library, "nvrtcVersion") : NULL;
        const char *file = symbol ? loader->origin(symbol) : NULL;

        if (!symbol || (file && is_too_old(search, file)))
            continue;
        search->found = 1;
        if (file && take_file(search, file))
            continue;
        snprintf(facts->path, sizeof(facts->path), "%s", names[i]);
        name_build(names[i], facts->build, sizeof(facts->build));
    }
}

static flp_nvrtc_facts known;

static flp_status find(void)
{
    search search = { .facts = &known };
    flp_status status = FLP_OK;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !search.found; i++)
        look_at_place(&search, places[i].variable, places[i].pattern);
    ask_loader(&search);
    if (!search.found)
        status = flp_status_fail(FLP_NO_NVRTC, "%s: %s%sno libnvrtc.so.13, .12 or libnvrtc.so in %s, nor where the loader looks (%s)", FLP_NVRTC_ADVICE,
                                 search.passed.data ? search.passed.data : "", search.passed.data ? "; " : "",
                                 search.looked.failed ? "any place" : search.looked.data, flp_library_loader_get()->error());
    else
        flp_log_info("NVRTC: %s, build %s%s%s", known.path, known.build, search.passed.data ? "; passed over: " : "",
                     search.passed.data ? search.passed.data : "");
    flp_text_free(&search.passed);
    flp_text_free(&search.looked);
    return status;
}

flp_status flp_nvrtc_find(flp_nvrtc_facts *facts)
{
    static flp_library_once once = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    flp_status status = flp_library_load_once(&once, find);

    *facts = status == FLP_OK ? known : (flp_nvrtc_facts){ 0 };
    return status;
}
