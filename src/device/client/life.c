/* The life of a device's process: its start, its death, and the next one.
 *
 * Each device has a thread. It starts the process, sleeps for completions, messages and death in
 * one poll, and after a death tells the runtime what is lost, fails the works, and starts again. A
 * process that cannot even be started, or dies at once again and again, leaves the device dead.
 *
 * The order at a death matters: completions that the process still wrote are taken first; then
 * `lost` is called once; then every work that was in flight or pending is finished with -EIO; and
 * what is submitted from then on waits for the new process.
 *
 * A fork of the application: the processes are the parent's. In the child every device is dead, its
 * rings are not even mapped (MADV_DONTFORK), and its descriptors are closed, so that it is the
 * parent's end alone that the processes notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/client/client.h"
#include "device/client/cuda.h"
#include "device/process/message.h"
#include "svm/heap.h"
#include "util/alloc.h"
#include "util/spawn.h"
#include "util/thread.h"
#include "util/time.h"

/* A start takes 10 ms; this is for a machine that is out of breath. */
#define START_MILLISECONDS 30000

/* A killed process is gone within a millisecond, but for the freeing of much memory. */
#define END_MILLISECONDS 5000

/* So many deaths within DEATHS_NS, none of whose processes had finished a work, are the last. */
#define MAX_DEATHS 3u
#define DEATHS_NS UINT64_C(1000000000)

/* A time limit is looked at so many times within itself. */
#define LIMIT_LOOKS 8u

/* The device's thread calls the runtime's callbacks. */
#define THREAD_STACK_BYTES ((size_t)1 << 20)

uint64_t sp_client_limit_ns;

/* What processes are started with: taken when the first device starts, on the application's own
 * thread, since the environment may change under our feet later. */
static struct {
    char *path;
    char **environment;
} program;

/* --- The socket ----------------------------------------------------------------------------------
 */

/* The process that the device has from now on; -1, -1: none. */
static void set_process(struct client_device *device, int socket, int pidfd)
{
    pthread_mutex_lock(&device->socket_lock);
    if (device->socket >= 0)
        close(device->socket);
    if (device->pidfd >= 0)
        close(device->pidfd);
    device->socket = socket;
    device->pidfd = pidfd;
    sp_client_forget_letters(device);
    pthread_mutex_unlock(&device->socket_lock);
}

void sp_client_wake(struct client_device *device)
{
    uint64_t one = 1;
    while (write(device->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void take_wake(struct client_device *device)
{
    uint64_t count;
    while (read(device->wake, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

/* --- Start ---------------------------------------------------------------------------------------
 */

static int make_rings(struct sp_rings **rings)
{
    if (sp_alloc_may_fail())
        return -ENOMEM;
    int file = memfd_create("samepage-rings", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    int error = ftruncate(file, sizeof **rings) ? -errno : 0;
    if (!error) {
        *rings = mmap(NULL, sizeof **rings, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        error = *rings == MAP_FAILED ? -errno : 0;
    }
    if (!error && madvise(*rings, sizeof **rings, MADV_DONTFORK)) {
        error = -errno;
        munmap(*rings, sizeof **rings);
    }
    if (error) {
        close(file);
        return error;
    }
    return file;
}

/* Runs the program with one end of a socket pair: 0 or a negative errno. */
static int spawn_process(struct client_device *device)
{
    static char name[] = "samepage-device";
    char start_text[20], bytes_text[20];
    uintptr_t start;
    size_t bytes;
    int pair[2], pidfd = -1;
    sp_window_range(&start, &bytes);
    snprintf(start_text, sizeof start_text, "%" PRIxPTR, start);
    snprintf(bytes_text, sizeof bytes_text, "%zx", bytes);
    char *const arguments[] = {name, start_text, bytes_text,
                               (char *)device->device.info.driver_name, NULL};
    if (!program.path || !program.environment)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    struct sp_spawn spawn = {.path = program.path,
                             .arguments = arguments,
                             .environment = program.environment,
                             .control = pair[1],
                             .keeps_output = true,
                             .pidfd = &pidfd};
    int error = sp_spawn_unnoticed(&spawn);
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    set_process(device, pair[0], pidfd);
    device->complaints = 0;
    return 0;
}

/* Waits for a message of the process: 0; -EPIPE where it is gone; -ETIMEDOUT; -EBADMSG. */
static int receive(struct client_device *device, uint64_t deadline_ns,
                   struct sp_device_message *message, int files[SP_MAX_MESSAGE_FILES])
{
    for (;;) {
        uint64_t now = sp_time_ns();
        struct pollfd polled[3] = {
            {.fd = device->socket, .events = sp_client_socket_events(device)},
            {.fd = device->pidfd, .events = POLLIN},
            {.fd = device->wake, .events = POLLIN}};
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        if (poll(polled, 3, (int)((deadline_ns - now) / 1000000 + 1)) < 0 && errno != EINTR)
            return -errno;
        if (polled[2].revents)
            take_wake(device); /* letters; all else is looked at when the process runs */
        if (!sp_client_send_letters(device))
            return -EPIPE;
        if (polled[0].revents & ~POLLOUT) {
            int error = sp_message_receive(device->socket, false, message, files);
            if (error != -EAGAIN)
                return error;
        }
        if (polled[1].revents)
            return -EPIPE;
    }
}

/* The memory file as peers may map it: not smaller than the window, and never made so. */
static bool is_memory_file(int file)
{
    uintptr_t start;
    size_t bytes;
    struct stat status;
    sp_window_range(&start, &bytes);
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(file, &status) == 0 &&
           (uint64_t)status.st_size >= bytes;
}

static void close_files(const int files[SP_MAX_MESSAGE_FILES])
{
    for (unsigned i = 0; i < SP_MAX_MESSAGE_FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
}

/* Words for people from the process, which are foreign input. */
static void take_words(char words[SP_WORDS_BYTES], const char *said)
{
    size_t length = strnlen(said, SP_WORDS_BYTES - 1);
    for (size_t i = 0; i < length; i++)
        words[i] = (unsigned char)said[i] < ' ' ? ' ' : said[i];
    words[length] = 0;
}

static void take_refusal(struct client_death *death, const char *said)
{
    death->is_refused = true;
    take_words(death->refusal, said);
}

/* 0, or -EBADMSG for too many. */
static int take_complaint(struct client_device *device, const char *said)
{
    char words[SP_WORDS_BYTES];
    void (*noticed)(struct sp_device *, const char *) = device->device.noticed;
    if (device->complaints++ >= SP_MAX_COMPLAINTS)
        return -EBADMSG;
    take_words(words, said);
    if (noticed)
        noticed(&device->device, words);
    return 0;
}

/* Says hello and awaits the answer: 0, with the device's memory file or -1; or a negative errno,
 * with what the process said of it in `death`. */
static int say_hello(struct client_device *device, int rings_file, uint64_t deadline_ns,
                     int *memory_file, struct client_death *death)
{
    struct sp_device_message message = {
        .kind = SP_MESSAGE_HELLO,
        .slot = device->index,
        .memory_bytes = device->device.info.is_gpu ? 0 /* it knows */
                                                   : device->device.info.global_memory_bytes,
        .threads = device->selected.threads,
        .ordinal = device->ordinal,
        .spin_us = device->spin_us};
    uintptr_t atomic_start;
    size_t atomic_bytes;
    sp_atomic_part(&atomic_start, &atomic_bytes);
    message.atomic_start = atomic_start;
    message.atomic_bytes = atomic_bytes;
    int answer_files[SP_MAX_MESSAGE_FILES];
    int window_file = sp_window_file();
    if (window_file < 0)
        return -ENOMEM;
    snprintf(message.memory, sizeof message.memory, "%s", device->selected.memory);
    int application = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int files[SP_HELLO_FILES] = {[SP_HELLO_RINGS] = rings_file,
                                 [SP_HELLO_WINDOW] = window_file,
                                 [SP_HELLO_COMPLETIONS] = device->wake,
                                 [SP_HELLO_FENCES] = sp_client_fences_file(),
                                 [SP_HELLO_APPLICATION] = application};
    int error = sp_client_send(device, &message, files, SP_HELLO_FILES);
    if (application >= 0)
        close(application);
    if (!error)
        error = receive(device, deadline_ns, &message, answer_files);
    if (error)
        return error;
    *memory_file = answer_files[0];
    answer_files[0] = -1;
    close_files(answer_files);
    if (message.kind != SP_MESSAGE_HELLO) {
        error = -EBADMSG;
    } else if (message.error) {
        error = message.error < 0 && message.error > -4096 ? message.error : -EBADMSG;
        take_refusal(death, message.words);
    } else if (*memory_file >= 0 && !is_memory_file(*memory_file)) {
        error = -EBADMSG;
    } else {
        error = sp_client_describe(device, &message.description);
        if (error)
            take_refusal(death, "its process says of it what no device can be");
    }
    if (error && *memory_file >= 0) {
        close(*memory_file);
        *memory_file = -1;
    }
    return error;
}

/* 0 or -EBADMSG. */
static int take_message(struct client_device *device, const struct sp_device_message *message,
                        const int files[SP_MAX_MESSAGE_FILES])
{
    int error = 0;
    if (message->kind == SP_MESSAGE_LOAD)
        sp_client_loaded(device, message, files[0]);
    else if (message->kind == SP_MESSAGE_COMPLAINT)
        error = take_complaint(device, message->words);
    else
        error = sp_client_take_export(device, message, files[0]);
    close_files(files);
    return error;
}

/* Sends all code to the new process, until all is answered. */
static int reload(struct client_device *device, uint64_t deadline_ns)
{
    for (;;) {
        struct sp_device_message message;
        int files[SP_MAX_MESSAGE_FILES];
        int left = sp_client_reload(device);
        if (left <= 0)
            return left;
        int error = receive(device, deadline_ns, &message, files);
        if (!error)
            error = take_message(device, &message, files);
        if (error)
            return error;
    }
}

static void set_rings(struct client_device *device, struct sp_rings *rings)
{
    pthread_mutex_lock(&device->claim);
    pthread_mutex_lock(&device->lock);
    if (device->rings)
        munmap(device->rings, sizeof *device->rings);
    device->rings = rings;
    device->command_tail = 0;
    device->completion_head = 0;
    device->print_head = 0;
    device->is_broken = false;
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_unlock(&device->claim);
}

/* A process, ready and RUNNING: 0. A negative errno: it is of no use, or there is none; `death`
 * says more. */
static int start_process(struct client_device *device, struct client_death *death)
{
    uint64_t deadline_ns = sp_time_ns() + START_MILLISECONDS * UINT64_C(1000000);
    struct sp_rings *rings;
    int memory_file = -1;
    int rings_file = make_rings(&rings);
    if (rings_file < 0)
        return rings_file;
    atomic_store_explicit(&rings->application_sleeps, 1, memory_order_relaxed);
    /* Relaxed: the process that left it is gone, and who woke that knows nothing of the next. */
    atomic_store_explicit(&sp_client_fence_line(device)->process_sleeps, 0, memory_order_relaxed);
    set_rings(device, rings);
    int error = spawn_process(device);
    death->program = program.path;
    death->is_missing = error != 0;
    if (!error)
        error = say_hello(device, rings_file, deadline_ns, &memory_file, death);
    close(rings_file);
    if (error)
        return error;
    sp_client_meet_peers(device, memory_file);
    error = reload(device, deadline_ns);
    if (error)
        return error;
    sp_client_unit_open(device, rings);
    pthread_mutex_lock(&device->lock);
    device->state = CLIENT_RUNNING;
    sp_client_flush(device);
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->lock);
    sp_client_deliver(device, NULL); /* works that were refused */
    return 0;
}

/* --- Life ----------------------------------------------------------------------------------------
 */

/* What the time limit looks at: the oldest work in flight that nothing holds back, and since when
 * it is that. */
struct stopwatch {
    uint64_t number; /* 0: none */
    uint64_t since_ns;
};

/* Milliseconds until the next look; -1: none is needed. *is_over: the oldest work had its time. */
static int check_limit(struct client_device *device, struct stopwatch *watch, bool *is_over)
{
    if (!sp_client_limit_ns)
        return -1;
    uint64_t now = sp_time_ns(), eighth_ms = sp_client_limit_ns / LIMIT_LOOKS / 1000000;
    int look_ms = eighth_ms < 1 ? 1 : eighth_ms > 1000 ? 1000 : (int)eighth_ms;
    pthread_mutex_lock(&device->lock);
    bool is_empty = device->in_flight.first == device->in_flight.next;
    uint64_t oldest = device->in_flight.first;
    const struct sp_work *work;
    while (oldest < device->in_flight.next &&
           (!(work = device->in_flight.works[oldest % SP_MAX_IN_FLIGHT]) ||
            !sp_client_fences_are_reached(work)))
        oldest++;
    bool is_idle = oldest == device->in_flight.next;
    pthread_mutex_unlock(&device->lock);
    if (is_idle) {
        watch->number = 0;
        return is_empty ? -1 : look_ms;
    }
    if (watch->number != oldest)
        *watch = (struct stopwatch){.number = oldest, .since_ns = now};
    *is_over = now - watch->since_ns >= sp_client_limit_ns;
    return look_ms;
}

/* All messages that are there: 0, -EPIPE or -EBADMSG. */
static int take_messages(struct client_device *device)
{
    uint32_t announced =
        (uint32_t)atomic_load_explicit(&device->generation_and_unexports, memory_order_relaxed);
    for (;;) {
        struct sp_device_message message;
        int files[SP_MAX_MESSAGE_FILES];
        int error = sp_message_receive(device->socket, false, &message, files);
        if (error == -EAGAIN)
            return sp_client_unexports_came(device, announced) ? 0 : -EBADMSG;
        if (!error)
            error = take_message(device, &message, files);
        if (error)
            return error;
    }
}

/* Takes completions; false: nonsense. Waits for the claim, which nobody keeps longer than a spin:
 * a waiting thread that has just seen the ring empty, and still holds it, does not look again; so
 * who was woken must. */
static bool take_completions(struct client_device *device)
{
    pthread_mutex_lock(&device->claim);
    atomic_store_explicit(&device->rings->application_sleeps, 0, memory_order_relaxed);
    bool is_sane = sp_client_take_completions(device);
    sp_client_unclaim(device);
    sp_client_deliver(device, NULL);
    return is_sane;
}

/* Until the process dies, or must. */
static enum client_end serve(struct client_device *device)
{
    struct stopwatch watch = {0};
    for (;;) {
        bool is_over = false;
        int timeout = check_limit(device, &watch, &is_over);
        if (is_over)
            return END_LIMIT;
        struct pollfd polled[3] = {
            {.fd = device->wake, .events = POLLIN},
            {.fd = device->socket, .events = sp_client_socket_events(device)},
            {.fd = device->pidfd, .events = POLLIN}};
        if (poll(polled, 3, timeout) < 0 && errno != EINTR)
            return END_DEATH;
        if (polled[0].revents) {
            take_wake(device);
            if (!take_completions(device))
                return END_NONSENSE;
            /* Work that was left by a waiting thread. */
            sp_client_deliver(device, NULL);
        }
        if (!sp_client_send_letters(device))
            return END_DEAF;
        if ((polled[0].revents | polled[1].revents) & ~POLLOUT) {
            int error = take_messages(device);
            if (error)
                return error == -EBADMSG ? END_NONSENSE : END_DEATH;
        }
        if (polled[2].revents)
            return END_DEATH;
    }
}

/* --- Death ---------------------------------------------------------------------------------------
 */

/* Makes sure that the process is gone, so that nothing of it writes any more. */
static void end_process(struct client_device *device)
{
    if (device->pidfd >= 0) {
        struct pollfd polled = {.fd = device->pidfd, .events = POLLIN};
        syscall(SYS_pidfd_send_signal, device->pidfd, SIGKILL, NULL, 0);
        while (poll(&polled, 1, END_MILLISECONDS) < 0 && errno == EINTR)
            ;
    }
    set_process(device, -1, -1); /* the socket's end alone ends the process, too */
}

/* Takes what the process still wrote, and says how it died. After this no work of it is touched by
 * anybody else. */
static void close_rings(struct client_device *device, struct client_death *death)
{
    pthread_mutex_lock(&device->claim);
    if (device->rings && !device->is_broken)
        sp_client_take_completions(device);
    if (device->is_broken)
        death->end = END_NONSENSE;
    sp_client_describe_death(device, death);
    pthread_mutex_lock(&device->lock);
    device->state = CLIENT_LOSING;
    /* Who reads the new life reads a count of it. */
    atomic_store_explicit(&device->device.failures, 1, memory_order_relaxed);
    atomic_store_explicit(&device->device.failures_coming, 1, memory_order_relaxed);
    for (struct sp_work *work = device->done.first; work; work = work->driver.next)
        work->driver.workers &= ~(unsigned)WORK_COUNTS;
    /* Works are compared with it under the lock; sequentially consistent for who sets `lost`
     * (driver.h). */
    atomic_fetch_add_explicit(&device->device.life, 1, memory_order_seq_cst);
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_unlock(&device->claim);
    sp_client_unit_close(device); /* for works that came since the first time */
    set_rings(device, NULL);
    sp_client_deliver(device, NULL);
}

/* With the lock held: there will be no process any more. */
static void give_up_locked(struct client_device *device, const char *reason)
{
    snprintf(device->end_reason, sizeof device->end_reason, "%s", reason);
    atomic_store_explicit(&device->device.is_given_up, true, memory_order_release);
    pthread_cond_broadcast(&device->moved);
}

/* The same, for people and for the next program as well, who come first: a program may wait for
 * this alone before it ends. */
static void give_up(struct client_device *device, const struct client_death *death)
{
    pthread_mutex_lock(&device->lock);
    bool was_listed = device->is_described || !device->device.info.is_gpu;
    bool is_unsure = device->device.info.is_gpu && !device->is_answered && !death->is_missing;
    pthread_mutex_unlock(&device->lock);
    if (was_listed || !device->is_optional || !death->is_refused)
        fprintf(stderr, "samepage: device %s is given up: %s.\n", device->name, death->reason);
    /* The next program does not list it, and waits for what it says, unless it can say nothing
     * else. */
    if (is_unsure && death->is_refused && death->error == -ENOTSUP)
        sp_cuda_remember_refusal(device->ordinal);
    else if (is_unsure)
        sp_cuda_forget(device->ordinal);
    pthread_mutex_lock(&device->lock);
    give_up_locked(device, death->reason);
    pthread_mutex_unlock(&device->lock);
}

/* Fails all works, and lets new ones wait for the next process; there is to be none where it
 * is_last. */
static void fail_works(struct client_device *device, bool is_last)
{
    struct in_flight *table = &device->in_flight;
    struct sp_work *work;
    pthread_mutex_lock(&device->lock);
    for (; table->first < table->next; table->first++) {
        struct sp_work **place = &table->works[table->first % SP_MAX_IN_FLIGHT];
        if (*place)
            sp_client_finish_locked(device, *place, -EIO);
        *place = NULL;
    }
    struct work_list kept = {0}; /* those that came for the next life */
    while ((work = work_list_take(&device->pending)))
        if (work->life && work->life == device->device.life && !is_last)
            work_list_append(&kept, work);
        else
            sp_client_finish_locked(device, work, -EIO);
    device->pending = kept;
    device->state = is_last ? CLIENT_DEAD : CLIENT_STARTING;
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->lock);
    sp_client_deliver(device, NULL);
}

/* The deaths that count, newest first. */
struct deaths {
    uint64_t times[MAX_DEATHS];
    unsigned count;
    uint64_t finished_works; /* at the last of them */
    unsigned starts;         /* that went wrong one after another, however long each took */
};

/* Whether this death was one too many. */
static bool note_death(struct client_device *device, struct deaths *deaths,
                       const struct client_death *death)
{
    uint64_t now = sp_time_ns();
    pthread_mutex_lock(&device->lock);
    uint64_t finished = device->finished_works;
    pthread_mutex_unlock(&device->lock);
    if (finished != deaths->finished_works)
        deaths->count = 0;
    deaths->finished_works = finished;
    memmove(deaths->times + 1, deaths->times, sizeof deaths->times - sizeof deaths->times[0]);
    deaths->times[0] = now;
    if (deaths->count < MAX_DEATHS)
        deaths->count++;
    deaths->starts = death->error ? deaths->starts + 1 : 0;
    return (deaths->count == MAX_DEATHS && now - deaths->times[MAX_DEATHS - 1] < DEATHS_NS) ||
           deaths->starts == MAX_DEATHS;
}

/* A start that will not go better the next time: the program cannot be run, or it ran and said that
 * the device cannot be used. */
static bool is_hopeless(const struct client_death *death)
{
    return death->is_refused || death->error == -ENOENT || death->error == -EACCES ||
           death->error == -ENOEXEC;
}

static void *live(void *argument)
{
    struct client_device *device = argument;
    struct deaths deaths = {0};
    for (bool is_last = false; !is_last;) {
        struct client_death death = {.end = END_DEATH};
        death.error = start_process(device, &death);
        if (!death.error)
            death.end = serve(device);
        end_process(device);
        sp_client_leave_peers(device);
        sp_client_unit_close(device);
        close_rings(device, &death);
        is_last = note_death(device, &deaths, &death) || is_hopeless(&death);
        if (is_last)
            give_up(device, &death);

        void (*lost)(struct sp_device *, const char *) = device->device.lost;
        if (lost)
            lost(&device->device, death.reason);
        fail_works(device, is_last);
    }
    return NULL;
}

/* --- The application's side ----------------------------------------------------------------------
 */

static void close_one(int *file)
{
    if (*file >= 0)
        close(*file);
    *file = -1;
}

static void after_fork_in_child(void)
{
    sp_client_peers_after_fork();
    sp_client_fences_after_fork();
    for (unsigned i = 0; i < sp_client_num_devices; i++) {
        struct client_device *device = &sp_client_devices[i];
        pthread_mutex_init(&device->lock, NULL);
        pthread_mutex_init(&device->claim, NULL);
        pthread_mutex_init(&device->socket_lock, NULL);
        pthread_cond_init(&device->moved, NULL);
        device->state = CLIENT_DEAD;
        give_up_locked(device, "its process is that of another application, which has forked");
        device->rings = NULL; /* not mapped here */
        device->pending = device->done = (struct work_list){0};
        device->in_flight.first = device->in_flight.next;
        device->is_delivering = device->is_burying = false;
        for (uint32_t slot = 0; slot < device->num_slots; slot++)
            if (device->codes[slot])
                device->codes[slot]->senders = 0;
        sp_client_forget_letters(device);
        sp_client_unit_after_fork(device);
        close_one(&device->wake);
        close_one(&device->socket);
        close_one(&device->pidfd);
        close_one(&device->memory_file);
    }
}

/* A copy of its own: the strings of the environment may be the application's. */
static char **copy_environment(void)
{
    char **environment = sp_spawn_environment();
    for (size_t i = 0; environment && environment[i]; i++) {
        environment[i] = sp_strdup(environment[i]);
        if (!environment[i])
            return NULL; /* leaks what was copied, once in a life, out of memory */
    }
    return environment;
}

static int prepare_program(void)
{
    if (program.path && program.environment)
        return 0;
    program.path = sp_spawn_find("SAMEPAGE_DEVICE_PROGRAM", "samepage-device",
                                 (const void *)(uintptr_t)sp_client_init);
    program.environment = copy_environment();
    if (!program.path || !program.environment)
        return -ENOMEM;
    return -pthread_atfork(NULL, NULL, after_fork_in_child);
}

void sp_client_init(struct client_device *device)
{
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->claim, NULL);
    pthread_mutex_init(&device->socket_lock, NULL);
    pthread_cond_init(&device->moved, NULL);
    sp_client_unit_init(device);
    device->in_flight.first = device->in_flight.next = 1; /* 0 stands for none */
    atomic_init(&device->device.life, 1);
    atomic_init(&device->device.failures, 1);
    atomic_init(&device->device.failures_coming, 1);
    device->wake = device->socket = device->pidfd = device->memory_file = -1;
}

void sp_client_start(struct client_device *device)
{
    int error = prepare_program();
    if (!error)
        error = sp_client_fences_init();
    if (!error && sp_alloc_may_fail())
        error = -ENOMEM;
    if (!error) {
        device->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        error = device->wake < 0 ? -errno : 0;
    }
    if (!error)
        error = sp_thread_start_detached(live, device, THREAD_STACK_BYTES);
    if (!error)
        return;
    fprintf(stderr, "samepage: device %s is not available (%s).\n", device->name, strerror(-error));
    pthread_mutex_lock(&device->lock);
    device->state = CLIENT_DEAD;
    give_up_locked(device, strerror(-error));
    pthread_mutex_unlock(&device->lock);
}

const char *sp_client_await_ready(struct sp_device *given)
{
    struct client_device *device = client_of(given);
    const struct timespec *limit = sp_client_deadline();
    pthread_mutex_lock(&device->lock);
    while (device->state != CLIENT_RUNNING && !device->device.is_given_up &&
           pthread_cond_timedwait(&device->moved, &device->lock, limit) == 0)
        ;
    bool is_running = device->state == CLIENT_RUNNING, is_given_up = device->device.is_given_up;
    pthread_mutex_unlock(&device->lock);
    if (is_given_up)
        return device->end_reason;
    return is_running ? NULL : "its process takes too long to start";
}
