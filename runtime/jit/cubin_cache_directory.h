/* Cache directories: where they are, whether they may be trusted, and opening them and their files. */
#ifndef FLP_JIT_CUBIN_CACHE_DIRECTORY_H
#define FLP_JIT_CUBIN_CACHE_DIRECTORY_H
#include <stddef.h>
#include <sys/stat.h>
#include "base/user_directory.h"
#include "fusedlogp.h"

/* FLP_CUBIN_CACHE_NAME_BYTES: "ab/ab12...ef.flpk" and a 0 byte. */
enum { FLP_CUBIN_CACHE_NAME_BYTES = 3 + 64 + 5 + 1, FLP_CUBIN_CACHE_PATH_BYTES = FLP_USER_DIRECTORY_BYTES };

/* path: the absolute path of the user's directory, which option names, or the environment where option is NULL; "" where option is "" (or, for NULL,
 * FUSEDLOGP_CACHE_DIR is ""). FLP_IO_FAILED: none can be named (no HOME), the path is too long, or the current directory has no path. */
flp_status flp_cubin_cache_directory_resolve(const char *option, char path[FLP_CUBIN_CACHE_PATH_BYTES]);

typedef enum { FLP_CUBIN_CACHE_USER, FLP_CUBIN_CACHE_SYSTEM } flp_cubin_cache_owner;

/* Opens a cache directory and checks who owns it and who may write to it; *directory is -1 on failure.
 * FLP_IO_FAILED: missing (errno is ENOENT), unreadable or not to be trusted (errno is EPERM). */
flp_status flp_cubin_cache_directory_open(const char *path, flp_cubin_cache_owner owner, int *directory);

/* The same for a directory inside the open directory `parent`. Where mode is not 0 a missing one is created with it, and one that is there is shared (below). A
 * symbolic link is refused. */
flp_status flp_cubin_cache_directory_open_inside(int parent, const char *name, unsigned mode, int *directory);

/* Gives an open directory or file of this user's those of the mode's rights to read that group and others lack and the umask allows. It may have been made
 * before the cache was shared. Does nothing for a mode without such rights. */
void flp_cubin_cache_directory_share(int descriptor, unsigned mode);

/* 1: a regular file that root or this user owns, that group and others may not write to, and that is no larger than a kernel can be. */
int flp_cubin_cache_directory_trusts(const struct stat *facts);

/* Opens a file inside the open directory for reading; *facts describes it. Returns -1 with errno where that fails, where the file is a symbolic link, or where
 * flp_cubin_cache_directory_trusts refuses it (EPERM). */
int flp_cubin_cache_directory_open_file(int directory, const char *name, struct stat *facts);
#endif
