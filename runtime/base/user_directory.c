/* Finds the directory of a user's files: by an option, the environment, or the XDG base directories. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "base/user_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static flp_status use_path(const flp_user_directory *directory, const char *given, const char *below, char path[FLP_USER_DIRECTORY_BYTES])
{
    char here[FLP_USER_DIRECTORY_BYTES] = "";
    int length;

    /* A relative path is made absolute, because the process may change its working directory between two calls. */
    if (given[0] != '/' && given[0] && !getcwd(here, sizeof(here)))
        return flp_status_fail(FLP_IO_FAILED, "%s: the current directory has no path: %s", given, strerror(errno));
    length = snprintf(path, FLP_USER_DIRECTORY_BYTES, "%s%s%s%s", here, here[0] ? "/" : "", given, below);
    if (length < FLP_USER_DIRECTORY_BYTES)
        return FLP_OK;
    path[0] = 0;
    return flp_status_fail(FLP_IO_FAILED, "%s: got a path of %d bytes, wanted fewer than %d", directory->argument, length, FLP_USER_DIRECTORY_BYTES);
}

flp_status flp_user_directory_resolve(const flp_user_directory *directory, const char *option, char path[FLP_USER_DIRECTORY_BYTES])
{
    const char *base;

    path[0] = 0;
    if (!option)
        option = secure_getenv(directory->variable);
    if (option)
        return use_path(directory, option, "", path);
    base = secure_getenv(directory->base);
    if (base && base[0] == '/')
        return use_path(directory, base, directory->below_base, path);
    base = secure_getenv("HOME");
    if (base && base[0] == '/')
        return use_path(directory, base, directory->below_home, path);
    return flp_status_fail(FLP_IO_FAILED, "%s: neither %s, %s nor HOME names one", directory->name, directory->variable, directory->base);
}
