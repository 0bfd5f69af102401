/* The directories that a user's files lie in: named by an option, by the environment, or by the XDG base directories. */
#ifndef FLP_BASE_USER_DIRECTORY_H
#define FLP_BASE_USER_DIRECTORY_H
#include "fusedlogp.h"

enum { FLP_USER_DIRECTORY_BYTES = 4096 };

typedef struct {
    const char *argument, *name;   /* for messages: "cache_directory", "cache directory" */
    const char *variable;          /* names the directory itself: "FUSEDLOGP_CACHE_DIR" */
    const char *base, *below_base; /* "XDG_CACHE_HOME", "/fusedlogp" */
    const char *below_home;        /* "/.cache/fusedlogp" */
} flp_user_directory;

/* The directory, absolute: option, else the environment's; "" where option is "" (or the variable is).
 * FLP_IO_FAILED: none can be named (no HOME), or the path is too long. */
flp_status flp_user_directory_resolve(const flp_user_directory *directory, const char *option, char path[FLP_USER_DIRECTORY_BYTES]);
#endif
