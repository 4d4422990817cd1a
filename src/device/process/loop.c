/* The command loop: the one thread that takes commands from the ring and writes completions.
 *
 * Invariant: command_head never passes a record that a backend may still read, and moves before the
 * completion of that record is written, so that who sees the completion may use the room. The
 * completion ring has room for all that can be under way (protocol.h), so nothing here ever waits
 * for the application.
 *
 * Commands that wait for fences are held back (park.c), and are begun, when those are reached,
 * before the next one is taken from the ring. Whoever reaches one wakes the loop as the application
 * does.
 *
 * Sleeping. The loop spins for SPIN_NS after its last command; then it sets process_sleeps, looks
 * at the ring once more, and sleeps on that word. The application writes the tail, then looks at
 * the word. Both do it sequentially consistent: one of the two sees the other, and no command is
 * slept through. The other direction is the same with application_sleeps and an eventfd.
 *
 * Failures. What later commands rely on by their place in the ring alone (bindings, transfers) can
 * fail while the process lives. Each such failure is counted, when it is known, and each command
 * says what count its sender had been told of. Where that is another than ours it may rely on what
 * failed, so it is cancelled, and counted in turn, since others may rely on that (docs/
 * device-process.md).
 *
 * With commands under way in the backend it spins for their end or the next command, as long as the
 * application says; then the backend is told (rest), and wakes the sleeper as the application does.
 */
#include <errno.h>
#include <unistd.h>

#include "device/process/process.h"
#include "util/futex.h"
#include "util/time.h"

/* Longer than a wake-up takes (5 to 50 us on a virtual machine), so that a chain of launches whose
 * end is waited for each time costs no system call; short enough to go unnoticed. */
#define SPIN_NS 50000u

/* Clock reads while spinning, one for so many pauses. */
#define PAUSES_PER_CLOCK 32u

static struct {
    const struct sp_backend *backend;
    struct sp_rings *rings;
    atomic_uint *sleeps; /* process_sleeps of the fence board: the word to sleep on */
    int completions;     /* eventfd */
    uint64_t head;       /* of the command ring: behind the command at hand */
    uint64_t released;   /* what the shared word says: behind the last command that nobody reads */
    uint64_t current;    /* number of the command in the backend's submit; 0: none */
    uint64_t completion_tail;
    uint64_t busy_spin_ns;             /* as SPIN_NS, while works are under way */
    uint64_t undeclared;               /* for the completion to come */
    uint32_t failures;                 /* from 1: sp_device.failures, when all is told */
    bool is_failure[SP_MAX_IN_FLIGHT]; /* by number: counted, and its end is not told yet */
} loop = {.failures = 1};

/* Release/acquire: what a pointer leads to is whole. A slot changes only while no command names it.
 */
static _Atomic(void *) codes[SP_MAX_CODE_SLOTS];

void sp_loop_init(const struct sp_backend *backend, struct sp_rings *rings, int completions,
                  uint32_t spin_us)
{
    loop.busy_spin_ns = spin_us * UINT64_C(1000);
    loop.backend = backend;
    loop.rings = rings;
    loop.sleeps = &sp_park_line()->process_sleeps;
    loop.completions = completions;
}

void *sp_loop_set_code(uint32_t slot, void *code)
{
    /* Acquire: the last command that used the slot was completed before the message to change it
     * was sent, so this reads the head that was released then, or a later one, and all that the
     * loop did with the code lies before. */
    atomic_load_explicit(&loop.rings->command_head, memory_order_acquire);
    return atomic_exchange_explicit(&codes[slot % SP_MAX_CODE_SLOTS], code, memory_order_acq_rel);
}

void sp_loop_wake_application(void)
{
    if (atomic_load_explicit(&loop.rings->application_sleeps, memory_order_seq_cst) &&
        atomic_exchange_explicit(&loop.rings->application_sleeps, 0, memory_order_seq_cst)) {
        uint64_t one = 1;
        while (write(loop.completions, &one, sizeof one) < 0 && errno == EINTR)
            ;
    }
}

static void complete(uint64_t number, enum sp_completion_kind kind, int error, uint64_t start_ns,
                     uint64_t end_ns, bool is_failure, bool is_waking)
{
    struct sp_completion *record =
        &loop.rings->completions[loop.completion_tail % SP_COMPLETION_RECORDS];
    *record = (struct sp_completion){.number = number,
                                     .kind = kind,
                                     .error = error,
                                     .start_ns = start_ns,
                                     .end_ns = end_ns,
                                     .unexports = sp_peers_unexports(),
                                     .is_failure = is_failure,
                                     .undeclared = loop.undeclared};
    loop.completion_tail++;
    /* Sequentially consistent, before the look at application_sleeps; and a release of the record
     * and of what the command did. */
    atomic_store_explicit(&loop.rings->completion_tail, loop.completion_tail, memory_order_seq_cst);
    if (is_waking)
        sp_loop_wake_application();
}

void sp_process_began(const struct sp_command *command, bool is_quick)
{
    if (command->flags & SP_COMMAND_TELL_START)
        complete(command->number, SP_COMPLETION_STARTED, 0, 0, 0, false, !is_quick);
}

void sp_process_ended(uint64_t number, int error, uint64_t start_ns, uint64_t end_ns)
{
    if (number == loop.current)
        loop.released = loop.head;
    /* Release: the room of the command is given back with all reads of it done. */
    atomic_store_explicit(&loop.rings->command_head, loop.released, memory_order_release);
    sp_park_ended(number, error);
    bool *is_failure = &loop.is_failure[number % SP_MAX_IN_FLIGHT];
    complete(number, SP_COMPLETION_FINISHED, error, start_ns, end_ns, *is_failure, true);
    *is_failure = false;
    loop.undeclared = 0;
}

void sp_process_failed(uint64_t number)
{
    bool *is_failure = &loop.is_failure[number % SP_MAX_IN_FLIGHT];
    loop.failures += !*is_failure;
    *is_failure = true;
}

bool sp_process_is_stale(const struct sp_command *command)
{
    return command->failures_seen && command->failures_seen != loop.failures;
}

/* Never begins. */
static void cancel(const struct sp_command *command, int error)
{
    if (error == -ECANCELED || sp_command_is_relied_on(command))
        sp_process_failed(command->number);
    if (error != -ECANCELED)
        sp_process_began(command, true);
    sp_process_ended(command->number, error, 0, 0);
}

void sp_process_cancel(const struct sp_command *command)
{
    cancel(command, -ECANCELED);
}

void sp_process_undeclared(uint64_t address)
{
    loop.undeclared = address;
}

static bool has_commands(memory_order order)
{
    return atomic_load_explicit(&loop.rings->command_tail, order) != loop.head;
}

void sp_process_wake(void)
{
    if (atomic_exchange_explicit(loop.sleeps, 0, memory_order_seq_cst))
        sp_futex_wake_shared(loop.sleeps, 1);
}

/* A command in the ring, or one that may be held back no more. */
static bool has_something(memory_order order)
{
    return has_commands(order) || (sp_park_is_waiting() && sp_park_has_moved());
}

/* Until there is something to do, or somebody wakes us. */
static void sleep_for_command(bool is_busy)
{
    atomic_store_explicit(loop.sleeps, 1, memory_order_seq_cst);
    /* After the store, so that no wake-up is lost. */
    sp_park_rest();
    if (is_busy)
        loop.backend->rest();
    while (!has_something(memory_order_seq_cst) &&
           atomic_load_explicit(loop.sleeps, memory_order_relaxed))
        sp_futex_wait_shared(loop.sleeps, 1);
    atomic_store_explicit(loop.sleeps, 0, memory_order_relaxed);
}

/* Returns when there is something to do. Acquire: and what is in a command is visible. */
static void wait_for_command(void)
{
    for (;;) {
        uint64_t end = sp_time_ns() + (sp_park_is_waiting() ? loop.busy_spin_ns : SPIN_NS);
        do {
            for (unsigned i = 0; i < PAUSES_PER_CLOCK; i++) {
                if (has_something(memory_order_acquire))
                    return;
                sp_cpu_pause();
            }
        } while (sp_time_ns() < end);
        sleep_for_command(false);
    }
}

/* Lets the backend see to what is under way, until there is something else to do or nothing is
 * under way. */
static void attend(void)
{
    for (;;) {
        uint64_t end = sp_time_ns() + loop.busy_spin_ns, seen = loop.completion_tail;
        do {
            for (unsigned i = 0; i < PAUSES_PER_CLOCK; i++) {
                if (has_something(memory_order_acquire) || !loop.backend->progress(false))
                    return;
                sp_cpu_pause();
            }
        } while (sp_time_ns() < end && seen == loop.completion_tail);
        if (seen == loop.completion_tail)
            sleep_for_command(true);
    }
}

/* A command that is not held back: from the ring, or from where it was. */
static void begin(const struct sp_command *command)
{
    void *code = NULL;
    if (command->kind == SP_COMMAND_KERNEL || command->kind == SP_COMMAND_INIT_GLOBALS) {
        uint32_t slot =
            command->kind == SP_COMMAND_KERNEL ? command->kernel.slot : command->init_globals.slot;
        code = atomic_load_explicit(&codes[slot % SP_MAX_CODE_SLOTS], memory_order_acquire);
        if (!code) { /* it could not be loaded again after a restart */
            cancel(command, -ENOEXEC);
            return;
        }
    }
    /* Relaxed: read only after this process's death. */
    atomic_store_explicit(&loop.rings->running, command->number, memory_order_relaxed);
    loop.backend->submit(command, code);
}

static void take_command(void)
{
    const struct sp_command *command =
        (const struct sp_command *)(loop.rings->commands + loop.head % SP_COMMAND_RING_BYTES);

    loop.head += command->bytes;
    if (command->kind == SP_COMMAND_SKIP)
        return;
    loop.current = command->number;
    int parked = sp_park_take(command);
    if (parked < 0)
        cancel(command, parked);
    else if (!parked)
        begin(command);
    loop.current = 0;
    if (loop.released != loop.head) {
        loop.released = loop.head;
        atomic_store_explicit(&loop.rings->command_head, loop.released, memory_order_release);
    }
}

static void take_parked(void)
{
    const struct sp_command *command;
    int error;
    while ((command = sp_park_next(&error))) {
        if (error)
            cancel(command, error);
        else
            begin(command);
        sp_park_drop(command);
    }
}

void *sp_loop_run(void *unused)
{
    (void)unused;
    sp_fault_prepare_thread();
    for (;;) {
        bool has_more = has_commands(memory_order_acquire);
        take_parked();
        bool is_busy = loop.backend->progress && loop.backend->progress(has_more);
        if (has_more) {
            take_command();
        } else if (is_busy) {
            attend();
        } else {
            atomic_store_explicit(&loop.rings->running, 0, memory_order_relaxed);
            wait_for_command();
        }
    }
    return NULL;
}
