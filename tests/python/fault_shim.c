/* Preloaded into a process, makes the n-th call that reads or writes a file below FAULT_FOLDER fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int left = 0, error_number = 0, writes_only = 0;

/* Fail the n-th call from now with an error number; 0 for none. Returns how many calls were left. */
int fault_arm(int n, int error, int only_writes) {
    int was = left;
    left = n, error_number = error, writes_only = only_writes;
    return was;
}

static int fails(int handle, int writes) {
    char link[64], path[4096];
    const char *folder = getenv("FAULT_FOLDER");
    if (left <= 0 || folder == NULL || (writes_only && !writes)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) != 0) return 0;
    errno = error_number;
    return 1;
}

#define FAULTY(result, name, parameters, arguments, handle, writes)                       \
    result name parameters {                                                              \
        static result(*real) parameters;                                                  \
        if (real == NULL) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);           \
        return fails(handle, writes) ? (result)-1 : real arguments;                       \
    }

FAULTY(ssize_t, write, (int f, const void *b, size_t n), (f, b, n), f, 1)
FAULTY(ssize_t, pwrite, (int f, const void *b, size_t n, off_t at), (f, b, n, at), f, 1)
FAULTY(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t at), (f, b, n, at), f, 1)
FAULTY(ssize_t, writev, (int f, const struct iovec *v, int n), (f, v, n), f, 1)
FAULTY(int, ftruncate64, (int f, off64_t n), (f, n), f, 1)
FAULTY(int, fsync, (int f), (f), f, 1)
FAULTY(ssize_t, read, (int f, void *b, size_t n), (f, b, n), f, 0)
FAULTY(ssize_t, pread, (int f, void *b, size_t n, off_t at), (f, b, n, at), f, 0)
FAULTY(ssize_t, pread64, (int f, void *b, size_t n, off64_t at), (f, b, n, at), f, 0)
FAULTY(ssize_t, readv, (int f, const struct iovec *v, int n), (f, v, n), f, 0)
