/* Takes and releases lock files. The operating system releases the flock of a process that was killed, so a lock never outlives its process. */
#include "jit/cubin_cache_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mutex.h"

struct flp_cubin_cache_lock_entry {
    int lock, directory;
    char name[NAME_MAX + 1];
    struct flp_cubin_cache_lock_entry *next;
};

enum { POLL_NANOSECONDS = 10 * 1000 * 1000 };

/* 1: the locked file still has this name. A holder unlinks its file on release, so that a waiter may lock a file that has no name any more; such a lock
 * protects nothing. */
static int still_named(int lock, int directory, const char *name)
{
    struct stat held, named;

    return fstat(lock, &held) == 0 && fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* The lock's descriptor; -1 with EWOULDBLOCK where another process or thread holds the lock, or with another errno where it cannot be taken at all. */
static int try_once(int directory, const char *name, int flags)
{
    for (;;) {
        int lock = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
        int reason;

        if (lock < 0)
            return -1;
        if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
            reason = errno;
            close(lock);
            errno = reason;
            return -1;
        }
        if (still_named(lock, directory, name))
            return lock;
        close(lock);
    }
}

/* Removes the file and releases the lock. It is unlocked explicitly, because a child that was forked meanwhile shares the descriptor, so that close() alone
 * would not release the lock. */
static void drop(int lock, int directory, const char *name)
{
    unlinkat(directory, name, 0);
    flock(lock, LOCK_UN);
    close(lock);
}

static int remember(flp_cubin_cache_locks *locks, int lock, int directory, const char *name)
{
    struct flp_cubin_cache_lock_entry *entry = malloc(sizeof(*entry));

    if (!entry)
        return 0;
    entry->lock = lock;
    entry->directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    if (entry->directory < 0 || (size_t)snprintf(entry->name, sizeof(entry->name), "%s", name) >= sizeof(entry->name)) {
        if (entry->directory >= 0)
            close(entry->directory);
        free(entry);
        return 0;
    }
    flp_mutex_lock(&locks->mutex);
    entry->next = locks->held;
    locks->held = entry;
    flp_mutex_unlock(&locks->mutex);
    return 1;
}

int flp_cubin_cache_lock_take(flp_cubin_cache_locks *locks, int directory, const char *name, double seconds)
{
    const struct timespec pause = { 0, POLL_NANOSECONDS };
    double end = flp_clock_seconds() + seconds;
    int lock;

    while ((lock = try_once(directory, name, O_CREAT)) < 0) {
        if (errno != EWOULDBLOCK || flp_clock_seconds() >= end)
            return -1;
        nanosleep(&pause, NULL);
    }
    if (remember(locks, lock, directory, name))
        return lock;
    drop(lock, directory, name);
    return -1;
}

void flp_cubin_cache_lock_release(flp_cubin_cache_locks *locks, int lock)
{
    struct flp_cubin_cache_lock_entry **link, *entry;

    if (lock < 0)
        return;
    flp_mutex_lock(&locks->mutex);
    for (link = &locks->held; *link && (*link)->lock != lock; link = &(*link)->next)
        ;
    entry = *link;
    if (entry)
        *link = entry->next;
    flp_mutex_unlock(&locks->mutex);
    if (!entry)
        return;
    drop(lock, entry->directory, entry->name);
    close(entry->directory);
    free(entry);
}

void flp_cubin_cache_lock_sweep(int directory, const char *name)
{
    int lock = try_once(directory, name, 0);

    if (lock >= 0)
        drop(lock, directory, name);
}
