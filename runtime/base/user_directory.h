/* The directories of a user's files, named by an option, by the environment, or by the XDG base directories. */
#ifndef FLP_BASE_USER_DIRECTORY_H
#define FLP_BASE_USER_DIRECTORY_H
#include "fusedlogp.h"

enum { FLP_USER_DIRECTORY_BYTES = 4096 };

typedef struct {
    const char *argument, *name;   /* for messages: "cache_directory", "cache directory" */
    const char *variable;          /* environment variable that names the directory: "FUSEDLOGP_CACHE_DIR" */
    const char *base, *below_base; /* variable of a base directory, and the path below it: "XDG_CACHE_HOME", "/fusedlogp" */
    const char *below_home;        /* path below $HOME: "/.cache/fusedlogp" */
} flp_user_directory;

/* path: the directory's absolute path. It is option, where that is not NULL; else what the variable names; else below_base below the base directory; else
 * below_home below $HOME. "" (no directory) where option, or the variable in its place, is "".
 * FLP_IO_FAILED: none can be named (no HOME), the path is too long, or the current directory has no path. */
flp_status flp_user_directory_resolve(const flp_user_directory *directory, const char *option, char path[FLP_USER_DIRECTORY_BYTES]);
#endif
