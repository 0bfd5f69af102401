/* Finds and opens cache directories and their files, and refuses those that must not be trusted. */
#include "jit/cubin_cache_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

/* The largest kernels have some hundred KiB. A file above this limit is not ours, and is not read into memory. */
enum { LARGEST_FILE = 64 << 20 };

flp_status flp_cubin_cache_directory_resolve(const char *option, char path[FLP_CUBIN_CACHE_PATH_BYTES])
{
    static const flp_user_directory cache = {
        "cache_directory", "cache directory", "FUSEDLOGP_CACHE_DIR", "XDG_CACHE_HOME", "/fusedlogp", "/.cache/fusedlogp",
    };

    return flp_user_directory_resolve(&cache, option, path);
}

static int others_may_write(const struct stat *facts)
{
    return (facts->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static int ours_or_roots(const struct stat *facts)
{
    return facts->st_uid == geteuid() || facts->st_uid == 0;
}

/* Closes *directory and fails; the reason is `why`, or errno where that is NULL. */
static flp_status refuse(int *directory, const char *path, const char *why)
{
    int reason = errno;

    if (*directory >= 0)
        close(*directory);
    *directory = -1;
    flp_status_fail(FLP_IO_FAILED, "directory %s: %s", path, why ? why : strerror(reason));
    errno = why ? EPERM : reason;
    return FLP_IO_FAILED;
}

flp_status flp_cubin_cache_directory_open(const char *path, flp_cubin_cache_owner owner, int *directory)
{
    struct stat facts;

    *directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*directory < 0 || fstat(*directory, &facts) != 0)
        return refuse(directory, path, NULL);
    if (owner == FLP_CUBIN_CACHE_USER && facts.st_uid != geteuid())
        return refuse(directory, path, "it belongs to another user, and a cached kernel is code");
    if (!ours_or_roots(&facts))
        return refuse(directory, path, "it belongs neither to root nor to this user, and a cached kernel is code");
    if (others_may_write(&facts))
        return refuse(directory, path, "group or others may write to it, and a cached kernel is code");
    return FLP_OK;
}

flp_status flp_cubin_cache_directory_open_inside(int parent, const char *name, unsigned mode, int *directory)
{
    struct stat facts;

    *directory = -1;
    if (mode && mkdirat(parent, name, (mode_t)mode) != 0 && errno != EEXIST)
        return refuse(directory, name, NULL);
    *directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*directory < 0 || fstat(*directory, &facts) != 0)
        return refuse(directory, name, NULL);
    if (!ours_or_roots(&facts) || others_may_write(&facts))
        return refuse(directory, name, "others own it or may write to it, and a cached kernel is code");
    if (mode)
        flp_cubin_cache_directory_share(*directory, mode);
    return FLP_OK;
}

/* The process's umask, which umask() would change while it reads it. Where it cannot be read, it allows others nothing. */
static mode_t read_umask(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    unsigned mask = 077;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    if (file)
        fclose(file);
    return (mode_t)mask;
}

void flp_cubin_cache_directory_share(int descriptor, unsigned mode)
{
    const mode_t of_others = S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
    struct stat facts;
    mode_t missing;

    if (!(mode & of_others) || fstat(descriptor, &facts) != 0 || facts.st_uid != geteuid())
        return;
    missing = mode & of_others & ~facts.st_mode;
    if (missing)
        missing &= ~read_umask();
    if (missing)
        fchmod(descriptor, (facts.st_mode & 07777) | missing);
}

int flp_cubin_cache_directory_trusts(const struct stat *facts)
{
    return S_ISREG(facts->st_mode) && ours_or_roots(facts) && !others_may_write(facts) && facts->st_size <= LARGEST_FILE;
}

/* O_NONBLOCK, because opening a FIFO would otherwise wait for a writer. */
int flp_cubin_cache_directory_open_file(int directory, const char *name, struct stat *facts)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (file < 0)
        return -1;
    if (fstat(file, facts) == 0) {
        if (flp_cubin_cache_directory_trusts(facts))
            return file;
        errno = EPERM;
    }
    int reason = errno;
    close(file);
    errno = reason;
    return -1;
}
