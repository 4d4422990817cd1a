/* The client's own seam: what its files share. In the application, one client_device stands for a
 * device process; see docs/device-process.md.
 *
 * probe.c        which devices there are
 * description.c  what GPUs say that they are, and what programs are told
 * cuda.c         the same of NVIDIA GPUs (cuda.h)
 * life.c         the device's thread: start, death, restart; forks of the application
 * death.c        how a process died, in words
 * post.c         messages to the process, which never wait for it
 * peers.c        who is told of whose memory
 * submit.c       works to records of the command ring
 * fences.c       the ends of works that other works wait for on their devices
 * completion.c   records of the completion ring to finished works; waiting
 * code.c         loaded code, which outlives the process that it is loaded in
 * unit.c         atomic operations that the device asks for
 *
 * Locks, in order: `claim`, `lock`; and, alone with none of these held, peers.c's lock, then
 * `socket_lock`, and unit.c's lock; those of fences.c, inside of any; `lock` may be taken inside of
 * that of peers. None is held while the runtime is called.
 */
#ifndef SP_DEVICE_CLIENT_CLIENT_H
#define SP_DEVICE_CLIENT_CLIENT_H

#include <pthread.h>
#include <time.h>

#include "device/driver.h"
#include "device/fence.h"
#include "device/process/protocol.h"
#include "device/selection.h"
#include "svm/atomic_part.h"

enum client_state {
    CLIENT_STARTING, /* works wait in `pending` */
    CLIENT_RUNNING,
    CLIENT_LOSING, /* the process died, and the runtime is being told: works will fail */
    CLIENT_DEAD,   /* for good: works fail at once */
};

/* The works that the process has been given, by number. Under `lock`. */
struct in_flight {
    struct sp_work *works[SP_MAX_IN_FLIGHT]; /* number n at n % SP_MAX_IN_FLIGHT; NULL: finished */
    uint64_t first, next; /* numbers of the oldest that is not finished, and of the next to come */
};

/* A message that the process had no room for yet. */
struct client_letter {
    struct client_letter *next;
    struct sp_device_message message;
    int files[SP_MAX_MESSAGE_FILES]; /* owned; -1 behind them */
};

struct work_list {
    struct sp_work *first, *last; /* by driver.next */
};

/* What driver.workers says of a work that was given to submit. */
enum {
    WORK_STARTED = 1,    /* `started` was called, or is about to be */
    WORK_START_DUE = 2,  /* in the list of done: call `started` */
    WORK_FINISH_DUE = 4, /* likewise `finished`, with driver.error */
    WORK_USES_UNIT = 8,  /* a kernel in flight that the atomic unit is served for */
    WORK_COUNTS = 16,    /* sp_device.failures counts it when `finished` has returned */
};

/* The server of a device's atomic unit. */
struct client_unit {
    struct sp_atomic_visitor visitor;
    /* Under the device's lock: */
    bool is_visitor, has_thread;
    unsigned kernels;   /* in flight that may use it */
    atomic_uint wanted; /* futex: 1 while there are any. Written under the lock */
    /* Held by the server while it looks into the ring, and by who gives or takes that: */
    pthread_mutex_t lock;
    struct sp_unit_slot *slots; /* NULL: no process */
    uint64_t served;            /* requests of this process */
    bool is_bad;                /* a request could not be one: */
    uint32_t bad_operation;
    uint64_t bad_address;
};

/* Of a clause that says why a device died: with a refusal, or a kernel's name, in it. */
#define SP_CLIENT_REASON_BYTES 384u

struct client_device {
    struct sp_device device;     /* first */
    uint32_t index;              /* among the client's devices */
    struct sp_selected selected; /* virtual ones */
    uint32_t ordinal;            /* which of the devices of its kind */
    uint32_t spin_us; /* how long a waiting thread, and the process, look for the end of a work
                         before they sleep */
    bool is_doubtful; /* nobody waits for its answer: the last one was that it cannot be used */
    bool is_listed;   /* probe found it */
    bool is_optional; /* nobody asked for it by name: nothing is said where it is not there */
    char name[64];

    pthread_mutex_t lock;
    pthread_cond_t moved; /* `state`, `generation`, is_... below or a code's state changed */
    enum client_state state;
    char end_reason[SP_CLIENT_REASON_BYTES]; /* device.is_given_up: why; it changes no more */
    bool is_described;  /* what it is is known, if only from an earlier program; `description`, what
                           this program was told, changes no more */
    bool is_answered;   /* one of its processes has said it */
    bool lacks_atomics; /* the newest process has no atomic unit, and the program was told of one */
    struct sp_device_description description;
    const char *notice; /* sp_device_ops.notice; kept */
    struct kept_text
        *kept_texts;        /* notices and code targets: who was given one may still read it */
    _Atomic uint32_t peers; /* of the newest process (struct sp_device_description). Relaxed: it is
                               a hint, and the process itself finds out */
    /* Counts; for telling a process that dies at once from one that works */
    uint64_t finished_works;
    struct sp_rings *rings; /* NULL: no process. Changes with `claim` held, too */
    uint64_t command_tail;  /* what we wrote; never read back from `rings` */
    struct in_flight in_flight;
    struct work_list pending; /* did not fit, or came before the process was ready */
    struct work_list done;    /* have a call due */
    bool is_burying;          /* a thread is there to call what is due of a dead device */
    bool is_delivering;       /* a thread calls what is due, in order: */
    pthread_t deliverer;
    struct sp_code **codes; /* by slot; NULL: free */
    uint32_t num_slots;

    /* Who holds it reads the completion ring. */
    pthread_mutex_t claim;
    uint64_t completion_head; /* what we read */
    uint64_t print_head;      /* likewise of what kernels printed */
    atomic_bool is_broken; /* the process wrote nonsense: it is to be ended. Set by anyone; relaxed,
                              since nothing is published with it */

    struct client_unit unit;

    unsigned complaints; /* of this process; the device's thread */

    int wake; /* eventfd of the device's thread; lives as long as the device */

    /* Changed by the device's thread alone; others read them, and write to the socket, under this
     * lock. */
    pthread_mutex_t socket_lock;
    int socket; /* -1: none */
    int pidfd;  /* -1: none, or not known to the system */

    struct client_letter *first_letter, *last_letter; /* waiting, oldest first */
    unsigned num_letters;
    bool is_deaf; /* it let too many wait */

    /* Under the lock of peers. */
    bool has_met;    /* it has a process that knows its peers, and they know of it */
    int memory_file; /* of the device, for its peers; -1: none, or it exports its memory in parts */

    /* Upper half: counts processes of this device; 0: none yet. Lower half: ends of exports of that
     * one, as far as completions have told. In one word, so that nobody takes the count of one
     * process for that of another. Changes under `lock`; the upper half under the lock of peers,
     * too. */
    _Atomic uint64_t generation_and_unexports;
    atomic_uint unexports_received; /* from this process; changed by the device's thread. Relaxed:
                                     it is compared only */
};

static inline struct client_device *client_of(struct sp_device *device)
{
    return (struct client_device *)device;
}

static inline uint32_t generation_of(const struct client_device *device)
{
    return (
        uint32_t)(atomic_load_explicit(&device->generation_and_unexports, memory_order_relaxed) >>
                  32);
}

/* probe.c */

/* All devices, from probe on. */
extern struct client_device *sp_client_devices;
extern unsigned sp_client_num_devices;

/* description.c */

/* What the process says that the device is, when it starts: foreign input. 0, or -EBADMSG for
 * nonsense. The device's thread. */
int sp_client_describe(struct client_device *device, struct sp_device_description *said);

/* What an earlier program was told, if it can be: this one is told the same. Before the device
 * starts. */
void sp_client_recall(struct client_device *device, const struct sp_device_description *known);

/* Makes now the moment from which all devices' answers are waited for, for so long. Before any
 * starts. */
void sp_client_set_deadline(void);
const struct timespec *sp_client_deadline(void);

/* Waits until it is known what the device is; until its process has said so. False: it will not be,
 * or the time is over. */
bool sp_client_await_description(struct client_device *device);
bool sp_client_await_answer(struct client_device *device);

/* Fills in `info`, from a description that is known. */
void sp_client_use_description(struct client_device *device);

/* Whether the GPU copies directly from the other one, as far as its process has said so by now. */
bool sp_client_has_peer(const struct client_device *device, const struct client_device *other);

/* sp_device_ops.notice */
const char *sp_client_notice(struct sp_device *device);

/* life.c */

/* How long a work may run (SAMEPAGE_KERNEL_SECONDS); 0: for ever. Set before the first device
 * starts. */
extern uint64_t sp_client_limit_ns;

/* Makes a zeroed device one without a process. */
void sp_client_init(struct client_device *device);

/* Starts the device's thread, which starts its process. Where that fails the device is dead. */
void sp_client_start(struct client_device *device);

/* sp_device_ops.await_ready; until the deadline at the latest. */
const char *sp_client_await_ready(struct sp_device *device);

/* Lets the device's thread look at everything once. */
void sp_client_wake(struct client_device *device);

/* death.c */

/* How a process ended, where we know it ourselves. */
enum client_end { END_DEATH, END_NONSENSE, END_DEAF, END_LIMIT };

struct client_death {
    enum client_end end;
    int error;       /* 0, or it never was ready: why */
    bool is_missing; /* the program could not be run: */
    const char *program;
    bool is_refused; /* it said itself that the device cannot be used: */
    char refusal[SP_WORDS_BYTES];
    char reason[SP_CLIENT_REASON_BYTES]; /* out: a clause */
};

/* Fills in the reason, and the device's fault. With the claim held and all completions taken; after
 * it no work of that process is touched by anybody else. */
void sp_client_describe_death(struct client_device *device, struct client_death *death);

/* post.c */

/* Sends a message to the process, if there is one, and never waits for it: 0 or a negative errno.
 * The files stay the caller's. */
int sp_client_send(struct client_device *device, struct sp_device_message *message,
                   const int *files, unsigned num_files);

/* What the device's thread should poll the socket for, and what it does when there is room. False:
 * the process does not read. */
short sp_client_socket_events(struct client_device *device);
bool sp_client_send_letters(struct client_device *device);

/* With `socket_lock` held: no letter waits any more. */
void sp_client_forget_letters(struct client_device *device);

/* peers.c */

/* The new process and the others learn of each other's memory; `memory_file`, or -1, is the
 * device's from now on. The device's thread. */
void sp_client_meet_peers(struct client_device *device, int memory_file);

/* The process is gone. Nothing where it had not met its peers. */
void sp_client_leave_peers(struct client_device *device);

/* What the process says or asks of exports goes on to whom it concerns. `file`, or -1, stays the
 * caller's. 0, or -EBADMSG for nonsense. The device's thread. */
int sp_client_take_export(struct client_device *device, const struct sp_device_message *message,
                          int file);

/* With all that was sent until `announced` was read received: whether it was announced truly. */
bool sp_client_unexports_came(struct client_device *device, uint32_t announced);

void sp_client_peers_after_fork(void);

/* submit.c */
void sp_client_submit(struct sp_device *device, struct sp_work *work);

/* With the lock held and the device RUNNING: writes what of `pending` fits. */
void sp_client_flush(struct client_device *device);

static inline void work_list_append(struct work_list *list, struct sp_work *work)
{
    work->driver.next = NULL;
    if (list->last)
        list->last->driver.next = work;
    else
        list->first = work;
    list->last = work;
}

static inline struct sp_work *work_list_take(struct work_list *list)
{
    struct sp_work *work = list->first;
    if (work) {
        list->first = work->driver.next;
        if (!list->first)
            list->last = NULL;
    }
    return work;
}

/* fences.c */

/* Makes the board, once. 0 or a negative errno. */
int sp_client_fences_init(void);

/* Of the board. */
int sp_client_fences_file(void);

/* The device's line of the board; NULL where there is no board. */
struct sp_fence_line *sp_client_fence_line(const struct client_device *device);

sp_fence sp_client_take_fence(struct sp_device *device);
void sp_client_keep_fence(sp_fence fence);
void sp_client_drop_fence(sp_fence fence);

/* A work is finished: where its process did not reach its fence, it is reached badly. */
void sp_client_fences_finish(struct client_device *device, const struct sp_work *work);

/* Whether nothing holds the work back any more. */
bool sp_client_fences_are_reached(const struct sp_work *work);

void sp_client_fences_after_fork(void);

/* completion.c */

/* One record as it was copied out of the ring: the work that it speaks of, or NULL where it is
 * nonsense (no such work in flight, no such kind). A FINISHED one is taken out of the table. */
struct sp_work *sp_in_flight_take(struct in_flight *table, const struct sp_completion *record);

/* With `claim` held: reads what is in the ring, and lists works as done. False: the process wrote
 * nonsense. */
bool sp_client_take_completions(struct client_device *device);

/* With the lock held: the work is finished with this error, when its turn comes. */
void sp_client_finish_locked(struct client_device *device, struct sp_work *work, int error);

/* Calls what is due, in order, until nothing is, or until `gate` (may be NULL) is open. No lock
 * held. */
void sp_client_deliver(struct client_device *device, struct sp_gate *gate);

/* Gives up `claim`: from here on the process wakes the device's thread. */
void sp_client_unclaim(struct client_device *device);

void sp_client_wait(struct sp_device *device, struct sp_gate *gate, const void *stream);

/* unit.c */

struct sp_code_kernel;

void sp_client_unit_init(struct client_device *device);

/* A process begins, with zeroed rings, or has ended: nothing of its rings is touched any more. Not
 * with the device's lock held. */
void sp_client_unit_open(struct client_device *device, struct sp_rings *rings);
void sp_client_unit_close(struct client_device *device);

/* With the lock held: whether the kernel may use the unit of this device, that is whether
 * sp_client_unit_begin is to be called before the process sees it. */
bool sp_client_unit_is_for(const struct client_device *device, const struct sp_code_kernel *kernel);

/* With the lock held: one more kernel is in flight. -ENOMEM where there is no thread to serve it,
 * -ENOTSUP where the process has no unit. */
int sp_client_unit_begin(struct client_device *device);

/* With the lock held: one such kernel has ended. */
void sp_client_unit_end(struct client_device *device);

/* After close: where it was a request that ended the process, the reason for people. */
bool sp_client_unit_blames(const struct client_device *device, char *text, size_t size);

void sp_client_unit_after_fork(struct client_device *device);

/* code.c */

struct sp_code_kernel {
    struct sp_code *code;
    uint32_t index;
    uint32_t args_bytes;
    bool has_shared_atomics;
    const char *name;
};

enum code_state {
    CODE_LOADING, /* sent, no answer yet */
    CODE_LOADED,
    CODE_FAILED,
};

struct sp_code {
    struct client_device *device;
    uint32_t slot;
    unsigned char *image; /* owned: info in wire format, then the shared object */
    size_t image_bytes, info_bytes;
    uint32_t num_kernels;
    struct sp_code_kernel *kernels;
    /* Under the device's lock: */
    enum code_state state;
    int error; /* FAILED: why */
    char *log; /* owned: what the first process that loaded it, or failed to, said; or NULL */
    uint32_t generation; /* of the process that it was sent to; 0: none */
    bool is_wanted;      /* to be sent to every new process */
    unsigned senders;    /* threads that read the image */
};

int sp_client_load(struct sp_device *device, const void *image, size_t bytes,
                   const struct sp_program_info *info, const struct sp_kernel_code *codes,
                   uint32_t num_codes, char **log, struct sp_code **code);
void sp_client_unload(struct sp_code *code);
struct sp_code_kernel *sp_client_find(struct sp_code *code, const char *name);

/* Sends a new process all code that it lacks. 1 where something was sent that has no answer yet, 0
 * where all is answered, or a negative errno. The device's thread, while STARTING. */
int sp_client_reload(struct client_device *device);

/* The answer to a LOAD, with the file of its text or -1, which stays the caller's; nonsense is
 * ignored. */
void sp_client_loaded(struct client_device *device, const struct sp_device_message *answer,
                      int log_file);

#endif
