/* Cache directories: where they are, whether they may be trusted, and opening what lies in them. */
#ifndef FLP_JIT_CUBIN_CACHE_DIRECTORY_H
#define FLP_JIT_CUBIN_CACHE_DIRECTORY_H
#include <stddef.h>
#include <sys/stat.h>
#include "base/user_directory.h"
#include "fusedlogp.h"

/* "ab/ab12...ef.flpk" and a 0 byte. */
enum { FLP_CUBIN_CACHE_NAME_BYTES = 3 + 64 + 5 + 1, FLP_CUBIN_CACHE_PATH_BYTES = FLP_USER_DIRECTORY_BYTES };

/* The user's directory, absolute: option, else the environment's; "" where option is "" (or FUSEDLOGP_CACHE_DIR is).
 * FLP_IO_FAILED: none can be named (no HOME), or the path is too long. */
flp_status flp_cubin_cache_directory_resolve(const char *option, char path[FLP_CUBIN_CACHE_PATH_BYTES]);

typedef enum { FLP_CUBIN_CACHE_USER, FLP_CUBIN_CACHE_SYSTEM } flp_cubin_cache_owner;

/* Opens a cache directory and checks whose it is and who may write to it; *directory is -1 on failure.
 * FLP_IO_FAILED: missing (errno is ENOENT), unreadable or not to be trusted (errno is EPERM). */
flp_status flp_cubin_cache_directory_open(const char *path, flp_cubin_cache_owner owner, int *directory);

/* The same for a directory inside, made with this mode where it is not 0. A symbolic link is refused. */
flp_status flp_cubin_cache_directory_open_inside(int parent, const char *name, unsigned mode, int *directory);

/* 1: a plain file, of root or this user, that nobody else may write to, and no larger than a kernel can be. */
int flp_cubin_cache_directory_trusts(const struct stat *facts);

/* Opens a file inside for reading; *facts describes it. Refused: a symbolic link, and what is not to be trusted. -1 with errno. */
int flp_cubin_cache_directory_open_file(int directory, const char *name, struct stat *facts);
#endif
