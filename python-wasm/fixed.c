// Preloaded into componentize-py by build.sh: gives the interpreter the same random bytes and times in every build, for
// they become part of the snapshot (the secret of str hashes, the time of an import).
//
// Nothing of it is in the component. At run time random bytes and times are the host's.
#define _GNU_SOURCE
#include <string.h>
#include <sys/types.h>
#include <time.h>

ssize_t getrandom(void *bytes, size_t length, unsigned flags) {
    (void)flags;
    memset(bytes, 7, length);
    return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    // 2026-01-01: any time would do.
    now->tv_sec = 1767225600;
    now->tv_nsec = 0;
    return 0;
}
