/* How the device process ends: with the application, and by a crash of its own.
 *
 * The application's end. A thread that does nothing else sleeps until the socket or the
 * application's process ends, and then ends this process, whatever kernel runs meanwhile. The
 * socket alone would miss an application whose forked child still holds a copy of it.
 *
 * A crash. The handlers of the signals that stand for one write what happened into the rings' page,
 * which the application reads after our death, and then let the signal do what it does by default.
 * A fault that the backend has made itself, to see what a kernel touches, is undone by it and goes
 * on instead. They are installed here, in a process of ours, never in the application. Every thread
 * that runs kernels has the signals unblocked (the kernel skips the handler of a blocked one) and a
 * stack for the handler (a kernel may have used up its own).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/process/process.h"
#include "util/thread.h"

/* SIGSTKSZ is no constant any more; this holds the registers of today's largest vector units many
 * times over. */
#define HANDLER_STACK_BYTES 65536u
#define WATCH_STACK_BYTES ((size_t)64 << 10)

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

#define NUM_CRASH_SIGNALS (sizeof crash_signals / sizeof crash_signals[0])

static struct sp_rings *reported_to;
static bool (*reveal)(uint64_t address);
static struct pollfd watched[2];

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        if (poll(watched, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            _exit(1);
        }
        if (watched[0].revents || watched[1].revents)
            _exit(0);
    }
    return NULL;
}

int sp_fault_watch(int socket, int application)
{
    /* No events asked for: only the end is told. A pidfd becomes readable at its process's end. */
    watched[0] = (struct pollfd){.fd = socket};
    watched[1] = (struct pollfd){.fd = application, .events = POLLIN};
    return sp_thread_start_detached(watch, NULL, WATCH_STACK_BYTES);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    unsigned none = 0;
    if (number == SIGSEGV && info->si_code > 0 && reveal && reveal((uintptr_t)info->si_addr))
        return;
    /* The first crash is the one that counts. Relaxed: read only after our death. */
    if (atomic_compare_exchange_strong_explicit(&reported_to->fault_signal, &none, (unsigned)number,
                                                memory_order_relaxed, memory_order_relaxed) &&
        info->si_code > 0)
        atomic_store_explicit(&reported_to->fault_address, (uintptr_t)info->si_addr,
                              memory_order_relaxed);
    /* SA_NODEFER left it unblocked: this ends the process. */
    signal(number, SIG_DFL);
    syscall(SYS_tgkill, getpid(), gettid(), number);
}

void sp_fault_report_to(struct sp_rings *rings, bool (*first_reveal)(uint64_t address))
{
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    reported_to = rings;
    reveal = first_reveal;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < NUM_CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &action, NULL);
}

_Noreturn void sp_process_fault(uint64_t number, const char *reason)
{
    /* Relaxed: read only after our death. */
    atomic_store_explicit(&reported_to->running, number, memory_order_relaxed);
    snprintf(reported_to->fault_reason, sizeof reported_to->fault_reason, "%s", reason);
    _exit(1);
}

void sp_fault_prepare_thread(void)
{
    sigset_t crashes;
    sigemptyset(&crashes);
    for (size_t i = 0; i < NUM_CRASH_SIGNALS; i++)
        sigaddset(&crashes, crash_signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &crashes, NULL);

    stack_t stack = {.ss_size = HANDLER_STACK_BYTES};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, NULL); /* it stays until the process ends, as its thread does */
}
