/* See spawn.h. How a library starts a process behind its application's back, and why it is done so.
 *
 * A child's exit signal decides who hears of its end, but execve sets it back to SIGCHLD
 * (execve(2)). So there are two steps. The middle process is made with exit signal 0: its end is
 * neither signalled nor seen by a wait() without __WCLONE. It makes the program's process and ends,
 * and so the program becomes a child of init (or of the nearest subreaper), which reaps it. Only
 * the library waits for the middle process, with __WCLONE.
 *
 * Both share the application's memory (CLONE_VM) and stop their maker until they are gone or have
 * called execve (CLONE_VFORK): nothing is copied, however large the application is, and a failing
 * execve is reported through a variable. The two new processes run on stacks of their own and use
 * raw system calls only: no lock, no allocation, no handler of a sanitizer.
 *
 * The middle process also shares the descriptors (CLONE_FILES), so that the descriptor of the
 * program's process, which the kernel makes in the same step as that process (CLONE_PIDFD), is the
 * application's: it can be watched and ended without ever naming a process number that may belong
 * to another by then.
 *
 * Invariant: signals are blocked in the calling thread from before the clone until after it, so
 * that no handler of the application runs in a process that shares its memory.
 */
#include "util/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/alloc.h"

/* The two functions need a few hundred bytes; a page more in case of a tracer. */
#define STACK_BYTES 16384u

/* Signals are numbered from 1 to this (x86-64 and AArch64). */
#define LAST_SIGNAL 64

/* What close_range does, where the system does not know it (before Linux 5.9): this many. */
#define CLOSE_BY_HAND 4096

#define UNSANITIZED __attribute__((no_sanitize("address", "undefined", "thread")))

/* glibc's clone() under the name that ThreadSanitizer does not intercept: its handler takes the new
 * process for one with memory of its own, and from then on misses what the old one does. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

/* What the new processes work with. */
struct steps {
    const struct sp_spawn *spawn;
    unsigned char *stack; /* its end: of the program's process, until execve */
    int pidfd;            /* written by the kernel; -1 */
    int error;            /* written by the new processes: positive errno, or 0 */
};

/* All dispositions default, then no signal blocked. The kernel's struct sigaction is zeros for
 * SIG_DFL on every architecture; 64 bytes are more than any has. */
static UNSANITIZED void reset_signals(void)
{
    static const uint64_t zeros[8];
    for (int signal = 1; signal <= LAST_SIGNAL; signal++)
        syscall(SYS_rt_sigaction, signal, zeros, NULL, sizeof(uint64_t));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, sizeof(uint64_t));
}

UNSANITIZED void sp_close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) < 0)
        for (int fd = first; fd < CLOSE_BY_HAND; fd++)
            syscall(SYS_close, fd);
}

static UNSANITIZED void arrange_descriptors(int control, bool keeps_output)
{
    /* First of all: the control socket may have a low number itself. */
    if (control != SP_SPAWN_CONTROL_FD)
        syscall(SYS_dup3, control, SP_SPAWN_CONTROL_FD, 0);
    else
        syscall(SYS_fcntl, control, F_SETFD, 0);
    long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    if (null >= 0) {
        syscall(SYS_dup3, null, STDIN_FILENO, 0);
        if (!keeps_output || syscall(SYS_fcntl, STDOUT_FILENO, F_GETFD) < 0)
            syscall(SYS_dup3, null, STDOUT_FILENO, 0);
        if (syscall(SYS_fcntl, STDERR_FILENO, F_GETFD) < 0)
            syscall(SYS_dup3, null, STDERR_FILENO, 0);
    }
    sp_close_from(SP_SPAWN_CONTROL_FD + 1);
}

static UNSANITIZED int be_program(void *argument)
{
    struct steps *steps = argument;
    const struct sp_spawn *spawn = steps->spawn;
    syscall(SYS_setsid);
    syscall(SYS_chdir, "/");
    reset_signals();
    arrange_descriptors(spawn->control, spawn->keeps_output);
    syscall(SYS_execve, spawn->path, spawn->arguments, spawn->environment);
    steps->error = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

static UNSANITIZED int be_middle(void *argument)
{
    struct steps *steps = argument;
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (steps->spawn->pidfd ? CLONE_PIDFD : 0);
    if (__clone(be_program, steps->stack, flags, steps, &steps->pidfd) < 0)
        steps->error = errno;
    syscall(SYS_exit_group, 0);
    return 0;
}

int sp_spawn_unnoticed(const struct sp_spawn *spawn)
{
    sigset_t all, before;
    unsigned char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return -ENOMEM;
    struct steps steps = {.spawn = spawn, .stack = stacks + STACK_BYTES, .pidfd = -1};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t middle =
        __clone(be_middle, stacks + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES, &steps);
    int error = middle < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) {
        while (waitpid(middle, NULL, __WCLONE) < 0 && errno == EINTR)
            ;
        error = steps.error;
    }
    munmap(stacks, 2 * STACK_BYTES);
    if (error && steps.pidfd >= 0) {
        close(steps.pidfd);
        steps.pidfd = -1;
    }
    if (spawn->pidfd)
        *spawn->pidfd = steps.pidfd;
    return -error;
}

char **sp_spawn_environment(void)
{
    static const char fail_alloc[] = "SAMEPAGE_FAIL_ALLOC=";
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    char **environment = sp_alloc_array(count + 1, sizeof(char *));
    for (size_t i = 0; environment && i < count; i++)
        if (strncmp(environ[i], fail_alloc, strlen(fail_alloc)) != 0)
            environment[kept++] = environ[i];
    return environment;
}

char *sp_spawn_find(const char *variable, const char *name, const void *symbol)
{
    const char *given = secure_getenv(variable);
    if (given && *given) {
        /* Absolute, since it is started from another folder. */
        char *absolute = realpath(given, NULL);
        char *copy = sp_strdup(absolute ? absolute : given);
        free(absolute);
        return copy;
    }
    Dl_info library;
    if (!dladdr(symbol, &library) || !library.dli_fname)
        return sp_strdup(name);
    char *resolved = realpath(library.dli_fname, NULL);
    const char *file = resolved ? resolved : library.dli_fname;
    const char *slash = strrchr(file, '/');
    char *path =
        slash ? sp_format("%.*s/%s", (int)(slash - file), file, name) : sp_format("./%s", name);
    free(resolved);
    return path;
}
