/* Commands: made by src/api, ordered by events, run by a driver.
 *
 * The life of one: sp_command_create, then the caller fills in `work` (or leaves it without work:
 * markers, maps) and what must stay alive, then sp_command_enqueue. From there on it is the
 * runtime's: it is submitted when all it depends on has ended well, and ended with
 * CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST when one of those ended in error. A command that was
 * not enqueued is ended with sp_command_discard. One allocation holds the command, its dependencies
 * and `extra` bytes for the caller (an argument block, say).
 */
#ifndef SP_RUNTIME_COMMAND_H
#define SP_RUNTIME_COMMAND_H

#include "device/driver.h"
#include "runtime/callback.h"
#include "runtime/event.h"
#include "runtime/queue.h"
#include "runtime/values.h"
#include "svm/coherence.h"

/* An edge: `waiter` cannot start before the event in whose list this stands has ended. */
struct sp_dependency {
    struct sp_dependency *next;
    struct sp_command *waiter;
    /* From a wait list: an error is passed on. The order of a queue passes none */
    bool is_explicit;
    bool is_until_submitted; /* the submission is enough: both run in order on one device */
};

enum sp_command_stage {
    SP_COMMAND_READY,   /* all that it waits for has ended, or is submitted in front of it */
    SP_COMMAND_GIVEN,   /* and the values that it relies on are given: on its second try */
    SP_COMMAND_CURRENT, /* and what it uses is current */
    SP_COMMAND_FAILED,  /* it was not submitted, and what it comes after has ended */
    SP_COMMAND_RUN,     /* its work is over, and what it comes after has ended */
};

/* A command that another comes after, and whose end that did not wait for (docs/ahead.md). */
struct sp_follow {
    struct sp_command *command; /* a reference */
    bool is_explicit;           /* as sp_dependency */
    bool must_end;              /* it cannot be followed just now */
};

struct sp_command {
    struct _cl_event event; /* first: a cl_event of a command is the command */
    /* It owns the command's fences, from its begin until its event has ended (docs/ahead.md): what
     * others wait for by, and what it waits for. Who follows it reads them under the event's lock,
     * where is_submitted says that it has begun. */
    struct sp_work work;
    bool has_work;           /* false: complete as soon as it is ready */
    bool is_for_host;        /* without work: its ranges are made current for the host (a map) */
    bool is_outside;         /* the work touches memory that is in no region of the context */
    bool is_short_of_memory; /* a range could not be noted */
    bool is_in_place;        /* maps memory of the window itself */
    const char *kernel_name; /* of a kernel, which the command keeps; else NULL */
    /* The initial values of the variables that its kernel reaches, or NULL: none. The kernel's. It
     * does not run where they are not given. */
    struct sp_values *values;
    bool is_barrier;    /* later commands of the queue wait for it */
    bool waits_for_all; /* waits for every earlier command of the queue (no wait list) */
    /* Called after the work (or instead of it) with the command's status so far, before the event
     * ends, with no lock held: unmap bookkeeping, SVM free. Returns the final status. May be NULL.
     * With on_callback_thread it runs on the callback thread, so that it may call the application.
     */
    cl_int (*complete)(struct sp_command *command, cl_int status);
    bool on_callback_thread;
    void *data;  /* for `complete` */
    void *extra; /* the caller's bytes; 128-byte aligned; NULL when none were asked for */
    struct sp_object **uses; /* objects with a reference each, dropped at the end */
    unsigned num_uses, max_uses;
    /* From here on: the runtime's own. */
    size_t block_bytes;             /* of all that was allocated for it at once (util/block.h) */
    struct sp_coherence coherence;  /* the ranges that it uses, in a context that shares memory */
    struct sp_check_command *check; /* checking mode only; NULL otherwise */
    const void *site;               /* likewise: where it was enqueued */
    atomic_int begin_state;         /* who goes on once all ranges are current: see command.c */
    /* Under the event's lock: */
    bool is_submitted; /* its device will run it in order */
    bool is_ahead;     /* it was submitted while it waited for works of other devices */
    bool is_cancelled; /* its work was not done: it ends later, or begins again */
    /* What it comes after of what had not ended when it began; until its end */
    struct sp_follow follows[SP_MAX_FOLLOWED];
    unsigned num_follows;
    atomic_uint run_state; /* num_follows > 0: who goes on when the work is over, see retry.c */
    int work_error;        /* likewise */
    bool is_again;         /* it begins for the second time, and relies on nothing */
    struct sp_values_wait values_wait; /* is_again: for `values` */
    /* The one that it is streamed behind, with a reference */
    struct sp_command *before;
    enum sp_command_stage stage; /* how far it is when it is taken up next */
    cl_int failure;              /* at SP_COMMAND_FAILED */
    /* What has not ended of all it waits for, plus one while it is enqueued */
    atomic_uint waiting_for;
    atomic_int dependency_error; /* nonzero: an event of its wait list ended in error */
    bool waits_for_head;         /* counts in waiting_for until it is the first pending one */
    uint64_t sequence;           /* place in its queue */
    struct sp_dependency *dependencies; /* num_dependencies of them are linked into events */
    unsigned num_dependencies, max_dependencies;
    struct sp_command *next_ready;                      /* in the loop that ends commands */
    struct sp_command *previous_pending, *next_pending; /* in an out-of-order queue */
    struct sp_callback_job job;                         /* for `complete` on the callback thread */
    cl_int job_status;
};

/* A command of `queue` with room for `num_events` waits, `max_uses` objects and `extra_bytes`
 * bytes. NULL when out of memory. */
struct sp_command *sp_command_create(cl_command_queue queue, cl_command_type type,
                                     cl_uint num_events, unsigned max_uses, size_t extra_bytes);

/* Keeps `object` alive until the command has ended; at most max_uses times. */
void sp_command_use(struct sp_command *command, struct sp_object *object);

/* Says that the command uses `bytes` bytes from `address` on (0: the whole region that holds it),
 * so that they are current where it runs. Only contexts with devices that have memory of their own
 * need it; it costs nothing in others. Memory that is in no region is taken for the host's. Running
 * out of memory is told by sp_command_enqueue. */
void sp_command_touch(struct sp_command *command, const void *address, size_t bytes,
                      enum sp_access access);

/* Ends a command that was never enqueued. Takes NULL. */
void sp_command_discard(struct sp_command *command);

/* Enqueues. The wait list was checked (sp_wait_list_check). With `event` not NULL the caller gets
 * the event, one handle on it; with `blocking` the call returns when it has ended: then CL_SUCCESS,
 * or CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST where it ended in error. CL_OUT_OF_HOST_MEMORY
 * where sp_command_touch found none: the command is discarded. Never fails otherwise. */
cl_int sp_command_enqueue(struct sp_command *command, cl_uint num_events, const cl_event *events,
                          bool blocking, cl_event *event);

/* The specification's checks of a wait list: CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT. */
cl_int sp_wait_list_check(cl_context context, cl_uint num_events, const cl_event *events);

#endif
