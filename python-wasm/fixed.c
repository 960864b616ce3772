// Preloaded into componentize-py by build.sh: gives the interpreter the same random bytes and times in every build, for
// they become part of the snapshot: the secret of str hashes, the time of an import, the age of a file.
//
// Nothing of it is in the component. At run time random bytes and times are the host's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

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

// The times of files: the importer keeps some, and leaves others behind in memory.
int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    int (*real)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
    int result = real(directory, path, flags, mask, found);
    if (result == 0) {
        struct statx_timestamp fixed = {.tv_sec = TIME};
        found->stx_atime = found->stx_btime = found->stx_ctime = found->stx_mtime = fixed;
    }
    return result;
}
