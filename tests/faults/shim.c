/* Loaded before the C library: count every operation that changes files below a path, and break the n-th one.

   Python arms it with fault_arm(prefix, number, kind, log); operations count from 1. Kinds: 'c' counts only, 'n' is a
   disk that is full from then on, 'e' one EIO, 'a' one EACCES where that can happen, 'k' a kill. A write that fails or
   is killed has written half of its bytes, as on a real disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char prefix[PATH_MAX], kind = 0;
static long target = 0, count = 0, broken = 0;
static int log_fd = -1;

void fault_arm(const char *path, long number, int how, const char *log) {
    strncpy(prefix, path, sizeof prefix - 1);
    target = number, count = broken = 0;
    if (log && *log) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    kind = how;
}
void fault_disarm(void) { kind = 0; }
long fault_count(void) { return count; }
long fault_broken(void) { return broken; }

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int under(const char *path) { return path && !strncmp(path, prefix, strlen(prefix)); }

static const char *absolute(int dir, const char *path, char *full) {
    char base[PATH_MAX] = "", link[64];
    if (!path) return "";
    if (path[0] == '/') return path;
    if (dir == AT_FDCWD) {
        if (syscall(SYS_getcwd, base, sizeof base) < 0) return "";
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        base[got < 0 ? 0 : got] = 0;
    }
    size_t used = strlen(base);
    if (used + strlen(path) + 2 > PATH_MAX) return "";
    memcpy(full, base, used), full[used] = '/', strcpy(full + used + 1, path);
    return full;
}

/* Return 0 to go on, or the errno to fail with; 'k' ends the process unless the caller has to write a half first. */
static int fault(char type, const char *path, int *half) {
    if (!kind || !under(path)) return 0;
    count++;
    if (log_fd >= 0) {
        char line[PATH_MAX + 32];
        int size = snprintf(line, sizeof line, "%ld %c %s\n", count, type, path);
        syscall(SYS_write, log_fd, line, (size_t)size);
    }
    int now = count == target, grows = type == 'w' || type == 'o' || type == 'm';
    int code = 0;
    if (kind == 'n' && grows && count >= target && target) code = ENOSPC;
    if (kind == 'e' && now) code = EIO;
    if (kind == 'a' && now && type != 'w' && type != 's') code = EACCES;
    if (kind == 'k' && now) code = -1;
    if (code) broken++;
    if (half) *half = code && (now || kind != 'n');
    else if (code == -1) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    return code;
}

static int fault_at(char type, int dir, const char *path) {
    char full[PATH_MAX];
    return kind ? fault(type, absolute(dir, path, full), NULL) : 0;
}

static const char *fd_path(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[got < 0 ? 0 : got] = 0;
    return path;
}

static int fault_fd(char type, int fd, int *half) {
    char path[PATH_MAX];
    return kind ? fault(type, fd_path(fd, path), half) : 0;
}

static ssize_t broken_write(int fd, int code, int half, const void *bytes, size_t size) {
    if (half && size > 1) syscall(SYS_write, fd, bytes, size / 2);
    if (code == -1) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    errno = code;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(write); int half = 0, code = fault_fd('w', fd, &half);
    return code ? broken_write(fd, code, half, bytes, size) : real(fd, bytes, size);
}
ssize_t writev(int fd, const struct iovec *parts, int number) {
    REAL(writev); int half = 0, code = fault_fd('w', fd, &half);
    return code ? broken_write(fd, code, half, parts->iov_base, parts->iov_len) : real(fd, parts, number);
}
#define PWRITE(name, offset_type) ssize_t name(int fd, const void *bytes, size_t size, offset_type offset) { \
    REAL(name); int half = 0, code = fault_fd('w', fd, &half); \
    if (code && half && size > 1) real(fd, bytes, size / 2, offset); \
    return code ? broken_write(fd, code, 0, bytes, size) : real(fd, bytes, size, offset); }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
#define COPY(name, type) ssize_t name(int out, int in, type *offset, size_t size) { \
    REAL(name); int half = 0, code = fault_fd('w', out, &half); \
    return code ? broken_write(out, code, 0, NULL, 0) : real(out, in, offset, size); }
COPY(sendfile, off_t)
COPY(sendfile64, off64_t)
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    REAL(copy_file_range); int half = 0, code = fault_fd('w', out, &half);
    return code ? broken_write(out, code, 0, NULL, 0) : real(in, from, out, to, size, flags);
}

/* The C library writes a FILE without calling write() above: here a buffer that cannot be flushed is lost. */
size_t fwrite(const void *bytes, size_t size, size_t number, FILE *file) {
    REAL(fwrite); int half = 0, code = fault_fd('w', fileno(file), &half);
    if (!code) return real(bytes, size, number, file);
    if (half) real(bytes, size, number / 2, file), fflush(file);
    if (code == -1) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    errno = code;
    return half ? number / 2 : 0;
}
int fclose(FILE *file) {
    REAL(fclose);
    if (!kind || !__fpending(file)) return real(file);
    int half = 0, code = fault_fd('w', fileno(file), &half);
    if (!code) return real(file);
    if (code == -1) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    __fpurge(file), real(file);
    errno = code;
    return EOF;
}
#define FOPEN(name) FILE *name(const char *path, const char *mode) { \
    REAL(name); int code = strpbrk(mode, "wa+") ? fault_at('o', AT_FDCWD, path) : 0; \
    if (code) { errno = code; return NULL; } \
    return real(path, mode); }
FOPEN(fopen)
FOPEN(fopen64)

#define WRITES(flags) ((flags) & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC))
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); }
#define OPEN(name) int name(const char *path, int flags, ...) { \
    REAL(name); MODE int code = WRITES(flags) ? fault_at('o', AT_FDCWD, path) : 0; \
    if (code) { errno = code; return -1; } \
    return real(path, flags, mode); }
#define OPENAT(name) int name(int dir, const char *path, int flags, ...) { \
    REAL(name); MODE int code = WRITES(flags) ? fault_at('o', dir, path) : 0; \
    if (code) { errno = code; return -1; } \
    return real(dir, path, flags, mode); }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define PLAIN(type, check, name, parameters, arguments) int name parameters { \
    REAL(name); int code = check; \
    if (code) { errno = code; return -1; } \
    return real arguments; }
PLAIN('s', fault_fd('s', fd, NULL), fsync, (int fd), (fd))
PLAIN('s', fault_fd('s', fd, NULL), fdatasync, (int fd), (fd))
PLAIN('w', fault_fd('w', fd, NULL), ftruncate, (int fd, off_t size), (fd, size))
PLAIN('w', fault_fd('w', fd, NULL), ftruncate64, (int fd, off64_t size), (fd, size))
PLAIN('r', fault_at('r', AT_FDCWD, to), rename, (const char *from, const char *to), (from, to))
PLAIN('r', fault_at('r', d2, to), renameat, (int d1, const char *from, int d2, const char *to), (d1, from, d2, to))
PLAIN('r', fault_at('r', d2, to), renameat2,
      (int d1, const char *from, int d2, const char *to, unsigned flags), (d1, from, d2, to, flags))
PLAIN('m', fault_at('m', AT_FDCWD, path), mkdir, (const char *path, mode_t mode), (path, mode))
PLAIN('m', fault_at('m', dir, path), mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
PLAIN('u', fault_at('u', AT_FDCWD, path), unlink, (const char *path), (path))
PLAIN('u', fault_at('u', dir, path), unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
PLAIN('u', fault_at('u', AT_FDCWD, path), rmdir, (const char *path), (path))
