/* Calls the functions whose symbols glibc has renewed since 2.28 by their old symbols, which every later glibc still has, so that the wheel runs on glibc
 * 2.28 and on all later ones. They are hidden, so that only this library uses them; x86-64 only. */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define OLD(name, version, result, parameters)                  \
    __asm__(".symver old_" #name ", " #name "@GLIBC_" version); \
    result old_##name parameters
#define CALL(name, version, result, parameters, arguments) \
    OLD(name, version, result, parameters);                \
    HIDDEN result name parameters                          \
    {                                                      \
        return old_##name arguments;                       \
    }

/* 2.29: the new ones have no wrapper that sets errno by _LIB_VERSION. */
CALL(exp, "2.2.5", double, (double x), (x))
CALL(exp2, "2.2.5", double, (double x), (x))
CALL(log, "2.2.5", double, (double x), (x))
CALL(log2, "2.2.5", double, (double x), (x))
CALL(pow, "2.2.5", double, (double x, double y), (x, y))

/* 2.32 and 2.34: libdl and libpthread became part of libc. */
CALL(dlopen, "2.2.5", void *, (const char *file, int mode), (file, mode))
CALL(dlsym, "2.2.5", void *, (void *handle, const char *name), (handle, name))
CALL(dlerror, "2.2.5", char *, (void), ())
CALL(dladdr, "2.2.5", int, (const void *address, void *info), (address, info))
CALL(pthread_attr_setstacksize, "2.2.5", int, (pthread_attr_t * attributes, size_t bytes), (attributes, bytes))
CALL(pthread_create, "2.2.5", int, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument))
CALL(pthread_join, "2.2.5", int, (pthread_t thread, void **result), (thread, result))
CALL(pthread_once, "2.2.5", int, (pthread_once_t * once, void (*run)(void)), (once, run))
CALL(pthread_sigmask, "2.2.5", int, (int how, const sigset_t *set, sigset_t *old), (how, set, old))

/* 2.33: stat, fstat and fstatat became functions; before, the headers called these with the version of struct stat. */
enum { STAT_VERSION = 1 };
OLD(__xstat, "2.2.5", int, (int version, const char *path, struct stat *status));
OLD(__fxstat, "2.2.5", int, (int version, int file, struct stat *status));
OLD(__fxstatat, "2.4", int, (int version, int directory, const char *path, struct stat *status, int flags));

HIDDEN int stat(const char *path, struct stat *status)
{
    return old___xstat(STAT_VERSION, path, status);
}

HIDDEN int fstat(int file, struct stat *status)
{
    return old___fxstat(STAT_VERSION, file, status);
}

HIDDEN int fstatat(int directory, const char *path, struct stat *status, int flags)
{
    return old___fxstatat(STAT_VERSION, directory, path, status, flags);
}
