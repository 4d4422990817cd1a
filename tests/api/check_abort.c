/* SAMEPAGE_CHECK=abort stops the program at the first finding, after its callback; no signal
 * handler of the application is touched, and its own faults stay its own; a value that is not known
 * is said to be so; a forked child is not checked. */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check_run.h"

enum { BYTES = 100 };

static struct run_setup setup;
static volatile unsigned char *p;
static sigjmp_buf back;
static volatile sig_atomic_t faults;
static void *volatile fault_address;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    faults++;
    fault_address = info->si_addr;
    siglongjmp(back, 1);
}

static void CL_CALLBACK notify(const char *message, const void *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    fprintf(stderr, "NOTIFIED %.15s\n", message);
}

static void check_handlers(const struct sigaction before[], const struct sigaction after[])
{
    for (int i = 1; i < 32; i++)
        CHECK(before[i].sa_handler == after[i].sa_handler);
}

static void get_handlers(struct sigaction list[])
{
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &list[i]);
}

static void signals_scenario(void)
{
    struct sigaction before[32], after[32];
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
    get_handlers(before);
    run_setup_with(&setup, NULL);
    p = clSVMAlloc(setup.context, 0, BYTES, 0);
    REQUIRE(p);
    p[1] = 1; /* reported */
    get_handlers(after);
    check_handlers(before, after);

    unsigned char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(closed != MAP_FAILED);
    if (!sigsetjmp(back, 1))
        *(volatile unsigned char *)(closed + 5) = 1;
    CHECK(faults == 1 && fault_address == closed + 5);
    clSVMFree(setup.context, (void *)p);
    run_finish(&setup);
}

static void scenario(const char *name)
{
    if (!strcmp(name, "signals")) {
        signals_scenario();
        return;
    }
    run_setup_with(&setup, notify);
    p = clSVMAlloc(setup.context, 0, BYTES, 0);
    REQUIRE(p);
    if (!strcmp(name, "child")) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            p[1] = 1;
            _exit(p[1] == 1 ? 0 : 1);
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    } else {
        p[1] = 1;
        fprintf(stderr, "WENT ON\n");
    }
    clSVMFree(setup.context, (void *)p);
    run_finish(&setup);
}

int main(int argc, char **argv)
{
    struct run run;
    if (argc > 1) {
        scenario(argv[1]);
        return check_result();
    }
    run_self(&run, "perhaps", CPU_ONLY, "store");
    CHECK_RUN_REPORTS(run, 0);
    CHECK_SAYS(run,
               "SAMEPAGE_CHECK=perhaps is not known and nothing is checked; it can be 1, abort or "
               "forgive\n");

    run_require_watch();
    run_self(&run, "abort", CPU_ONLY, "store");
    CHECK_RUN(run, WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGABRT);
    CHECK_RUN(run, run_reports(&run) == 1);
    CHECK_RUN(run, !strstr(run.text, "WENT ON"));
    CHECK_SAYS(run, "NOTIFIED samepage check:");

    run_self(&run, "1", CPU_ONLY, "signals");
    CHECK_RUN_REPORTS(run, 1);
    run_self(&run, "1", ALL_DEVICES, "signals");
    CHECK_RUN_REPORTS(run, 1);

    run_self(&run, "abort", ALL_DEVICES, "child");
    CHECK_RUN_REPORTS(run, 0);
    return check_result();
}
