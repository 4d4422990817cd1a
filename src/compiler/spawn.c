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
 * Invariant: signals are blocked in the calling thread from before the clone until after it, so
 * that no handler of the application runs in a process that shares its memory.
 */
#include "compiler/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/protocol.h"

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

struct spawn {
    const char *path;
    char *const *arguments;
    char *const *environment;
    int control;
    int error; /* written by the new processes: positive errno, or 0 */
};

static alignas(64) unsigned char middle_stack[STACK_BYTES];
static alignas(64) unsigned char program_stack[STACK_BYTES];

/* All dispositions default, then no signal blocked. The kernel's struct sigaction is zeros for
 * SIG_DFL on every architecture; 64 bytes are more than any has. */
static UNSANITIZED void reset_signals(void)
{
    static const uint64_t zeros[8];
    for (int signal = 1; signal <= LAST_SIGNAL; signal++)
        syscall(SYS_rt_sigaction, signal, zeros, NULL, sizeof(uint64_t));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, sizeof(uint64_t));
}

static UNSANITIZED void arrange_descriptors(int control)
{
    /* First of all: the control socket may have a low number itself. */
    if (control != SP_CC_CONTROL_FD)
        syscall(SYS_dup3, control, SP_CC_CONTROL_FD, 0);
    else
        syscall(SYS_fcntl, control, F_SETFD, 0);
    long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    if (null >= 0) {
        syscall(SYS_dup3, null, STDIN_FILENO, 0);
        syscall(SYS_dup3, null, STDOUT_FILENO, 0);
        if (syscall(SYS_fcntl, STDERR_FILENO, F_GETFD) < 0)
            syscall(SYS_dup3, null, STDERR_FILENO, 0);
    }
    if (syscall(SYS_close_range, SP_CC_CONTROL_FD + 1, ~0u, 0) < 0)
        for (int fd = SP_CC_CONTROL_FD + 1; fd < CLOSE_BY_HAND; fd++)
            syscall(SYS_close, fd);
}

static UNSANITIZED int be_program(void *argument)
{
    struct spawn *spawn = argument;
    syscall(SYS_setsid);
    syscall(SYS_chdir, "/");
    reset_signals();
    arrange_descriptors(spawn->control);
    syscall(SYS_execve, spawn->path, spawn->arguments, spawn->environment);
    spawn->error = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

static UNSANITIZED int be_middle(void *argument)
{
    struct spawn *spawn = argument;
    if (__clone(be_program, program_stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, spawn) <
        0)
        spawn->error = errno;
    syscall(SYS_exit_group, 0);
    return 0;
}

int sp_spawn_unnoticed(const char *path, char *const *environment, int control)
{
    static char name[] = "samepage-cc";
    char *const arguments[] = {name, NULL};
    struct spawn spawn = {
        .path = path, .arguments = arguments, .environment = environment, .control = control};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t middle = __clone(be_middle, middle_stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, &spawn);
    int error = middle < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return -error;
    while (waitpid(middle, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    return -spawn.error;
}
