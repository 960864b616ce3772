// Preloaded into componentize-py by build.sh: gives the interpreter the same random bytes and times in every build, for
// they become part of the snapshot: the secret of str hashes, the time of an import, the age of a file.
//
// Nothing of it is in the component. At run time random bytes and times are the host's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

// 2026-01-01: any time would do.
#define TIME 1767225600

ssize_t getrandom(void *bytes, size_t length, unsigned flags) {
    (void)flags;
    memset(bytes, 7, length);
    return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    now->tv_sec = TIME;
    now->tv_nsec = 0;
    return 0;
}

// A file's number by its path, in the place of its inode. Without the first two names of the path, which are those of
// a temporary directory.
static unsigned long long number_of(int directory, const char *path) {
    char link[32], full[8192];
    size_t length = 0;
    if (path == NULL || path[0] != '/') {
        snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
        ssize_t got = readlink(link, full, sizeof full / 2);
        length = got > 0 ? (size_t)got : 0;
    }
    if (path != NULL && path[0] != 0) {
        snprintf(full + length, sizeof full - length, "%s%s", path[0] == '/' ? "" : "/", path);
    } else {
        full[length] = 0;
    }
    const char *rest = full;
    for (int name = 0; name < 3 && strchr(rest, '/'); name++) rest = strchr(rest, '/') + 1;
    // FNV-1a.
    unsigned long long hash = 14695981039346656037ull;
    for (; *rest; rest++) hash = (hash ^ (unsigned char)*rest) * 1099511628211ull;
    return hash;
}

// The times and numbers of files: the importer keeps some, and leaves others behind in memory.
int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    int (*real)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
    int result = real(directory, path, flags, mask, found);
    if (result == 0) {
        struct statx_timestamp fixed = {.tv_sec = TIME};
        found->stx_atime = found->stx_btime = found->stx_ctime = found->stx_mtime = fixed;
        found->stx_ino = number_of(directory, path);
        found->stx_dev_major = found->stx_dev_minor = 1;
    }
    return result;
}
