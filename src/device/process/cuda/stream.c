/* The order of commands, their ends and their times.
 *
 * One stream carries all: commands take effect in the order in which they came. Behind one or
 * several commands a *mark* is enqueued: the GPU writes its number into a word of host memory,
 * which is all that progress has to read. While more commands come at once several share a mark, so
 * that a chain of launches costs launches alone.
 *
 * Invariant: the commands from `first` to `next` are those not told as ended, in order, each with
 * the mark that ends it; those with the mark `marked + 1` have none enqueued yet.
 *
 * Sleeping. A mark can be polled, not slept for. So where commands follow one that is still under
 * way an event is recorded with its mark, and the waiter thread sleeps in the driver for the oldest
 * of those when the loop rests. It has a lock of its own, held for a few instructions.
 *
 * Faults. An error of the GPU's is for good (CUDA: a "sticky" error): every later call gives it.
 * Then the process ends, and says which command was the first that had not ended.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "device/process/cuda/cuda.h"
#include "util/thread.h"
#include "util/time.h"

/* So many commands share a mark while more come at once: a mark costs half a launch, and the
 * application gets news of what has ended a few times in a long chain. */
#define COMMANDS_PER_MARK 16u

/* Marks under way, each with an event; then commands wait for the next. */
#define MAX_MARKS 64u

/* The driver is asked for errors once in so many looks at the word; asking costs 0.5 us. */
#define LOOKS_PER_QUERY 256u

/* Commands with times under way; each needs two events. */
#define MAX_TIMED 512u

/* The times of events come as a float of milliseconds from a base: exact to 0.1 us for this long.
 */
#define CLOCK_NS UINT64_C(1000000000)

/* Words for the marks, lists of ranges (copy.c), printing (print.c). */
#define PINNED_BYTES ((size_t)5 << 20)

#define WAITER_STACK_BYTES ((size_t)256 << 10)

struct timing {
    CUevent start, end;
    struct timing *next; /* free ones */
};

struct pending {
    uint64_t number, mark, opened_ns;
    struct timing *timing; /* NULL: not timed */
    int error;
    uint16_t flags; /* SP_COMMAND_ */
    bool is_kernel;
    bool is_told; /* that it began */
};

static struct {
    CUstream stream, clock;
    struct pending commands[SP_MAX_IN_FLIGHT];
    uint64_t first, next;    /* count up; at % SP_MAX_IN_FLIGHT */
    struct pending *open;    /* the command that is being enqueued */
    bool is_touched;         /* something was enqueued since it was opened */
    uint64_t marked;         /* marks enqueued */
    volatile uint64_t *done; /* the word: the last mark that came */
    CUevent events[MAX_MARKS];
    uint64_t with_event[MAX_MARKS]; /* the mark that was recorded there */
    unsigned looks;
    bool is_broken; /* by a fault: nothing runs any more */
    struct timing timings[MAX_TIMED];
    struct timing *free_timings;
    CUevent base;
    uint64_t base_ns;
    unsigned char *pinned;
    size_t pinned_used;
} stream;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    CUevent event;
    bool is_waiting; /* for `event` */
} waiter = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* --- Errors --------------------------------------------------------------------------------------
 */

/* The first command under way that runs a program's code, which alone can go wrong on the device;
 * else the first. */
static uint64_t suspect(void)
{
    for (uint64_t i = stream.first; i < stream.next; i++)
        if (stream.commands[i % SP_MAX_IN_FLIGHT].is_kernel)
            return stream.commands[i % SP_MAX_IN_FLIGHT].number;
    return stream.first < stream.next ? stream.commands[stream.first % SP_MAX_IN_FLIGHT].number : 0;
}

static void take_ended(void);

_Noreturn static void fault(CUresult result)
{
    char text[SP_FAULT_REASON_BYTES];
    stream.is_broken = true;
    take_ended();
    sp_process_fault(suspect(), sp_cuda_error_text(result, text, sizeof text));
}

int sp_cuda_check(CUresult result)
{
    if (result == CUDA_SUCCESS)
        return 0;
    CUresult state = stream.stream ? sp_cuda.StreamQuery(stream.stream) : CUDA_SUCCESS;
    if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY)
        fault(state);
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        return -ENOMEM;
    case CUDA_ERROR_INVALID_VALUE:
        return -EINVAL;
    default:
        return -EIO;
    }
}

/* --- Start ---------------------------------------------------------------------------------------
 */

static void *wait_for_events(void *unused)
{
    (void)unused;
    sp_cuda.CtxSetCurrent(sp_cuda_device.context);
    pthread_mutex_lock(&waiter.lock);
    for (;;) {
        while (!waiter.is_waiting)
            pthread_cond_wait(&waiter.moved, &waiter.lock);
        pthread_mutex_unlock(&waiter.lock);
        sp_cuda.EventSynchronize(waiter.event); /* an error is found by progress */
        pthread_mutex_lock(&waiter.lock);
        waiter.is_waiting = false;
        sp_process_wake();
    }
    return NULL;
}

void *sp_cuda_pinned(size_t bytes)
{
    bytes = (bytes + 127) & ~(size_t)127;
    if (bytes > PINNED_BYTES - stream.pinned_used)
        return NULL;
    void *at = stream.pinned + stream.pinned_used;
    stream.pinned_used += bytes;
    return at;
}

int sp_cuda_stream_init(void)
{
    CUresult result = sp_cuda.StreamCreate(&stream.stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = sp_cuda.StreamCreate(&stream.clock, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = sp_cuda.EventCreate(&stream.base, CU_EVENT_DEFAULT);
    for (unsigned i = 0; i < MAX_MARKS && !result; i++)
        result = sp_cuda.EventCreate(&stream.events[i],
                                     CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = sp_cuda.MemHostAlloc((void **)&stream.pinned, PINNED_BYTES,
                                      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return sp_cuda_check(result);
    memset(stream.pinned, 0, PINNED_BYTES);
    stream.done = sp_cuda_pinned(sizeof *stream.done);
    return sp_thread_start_detached(wait_for_events, NULL, WAITER_STACK_BYTES);
}

/* --- Times ---------------------------------------------------------------------------------------
 */

/* What the base event's time is on the host's clock. The event is on a stream of its own, so it
 * comes at once. */
static void set_clock(void)
{
    stream.base_ns = 0;
    if (sp_cuda.EventRecord(stream.base, stream.clock))
        return;
    while (sp_cuda.EventQuery(stream.base) == CUDA_ERROR_NOT_READY)
        ;
    stream.base_ns = sp_time_ns();
}

/* NULL: the times are those of the host. */
static struct timing *take_timing(void)
{
    static unsigned made;
    struct timing *timing = stream.free_timings;
    if (timing) {
        stream.free_timings = timing->next;
        return timing;
    }
    if (made == MAX_TIMED)
        return NULL;
    timing = &stream.timings[made];
    if (sp_cuda.EventCreate(&timing->start, CU_EVENT_DEFAULT) ||
        sp_cuda.EventCreate(&timing->end, CU_EVENT_DEFAULT))
        return NULL;
    made++;
    return timing;
}

static uint64_t time_of(CUevent event)
{
    float milliseconds;
    if (!stream.base_ns || sp_cuda.EventElapsedTime(&milliseconds, stream.base, event))
        return 0;
    return stream.base_ns + (uint64_t)((double)milliseconds * 1e6);
}

static void get_times(struct pending *command, uint64_t *start_ns, uint64_t *end_ns)
{
    uint64_t start = 0, end = 0;
    if (command->timing) {
        start = time_of(command->timing->start);
        end = time_of(command->timing->end);
        command->timing->next = stream.free_timings;
        stream.free_timings = command->timing;
    }
    /* The two clocks agree to a few microseconds. */
    *start_ns = start > command->opened_ns ? start : command->opened_ns;
    *end_ns = end > *start_ns ? end : end ? *start_ns : sp_time_ns();
}

/* --- Commands ------------------------------------------------------------------------------------
 */

void sp_cuda_stream_touch(void)
{
    stream.is_touched = true;
}

CUstream sp_cuda_stream(void)
{
    sp_cuda_copy_flush();
    stream.is_touched = true;
    return stream.stream;
}

int sp_cuda_stream_read(void *to, CUdeviceptr from, size_t bytes)
{
    int error = sp_cuda_check(sp_cuda.MemcpyDtoHAsync(to, from, bytes, stream.clock));
    return error ? error : sp_cuda_check(sp_cuda.StreamSynchronize(stream.clock));
}

uint64_t sp_cuda_stream_mark(void)
{
    return stream.marked + 1;
}

bool sp_cuda_stream_has_passed(uint64_t mark)
{
    /* Acquire: what the GPU did before is seen by what we do after. */
    uint64_t done = __atomic_load_n(stream.done, __ATOMIC_ACQUIRE);
    return done >= mark;
}

static void record_event(uint64_t mark)
{
    stream.with_event[mark % MAX_MARKS] = mark;
    sp_cuda_check(sp_cuda.EventRecord(stream.events[mark % MAX_MARKS], stream.stream));
}

static bool has_unmarked(void)
{
    return stream.first < stream.next &&
           stream.commands[(stream.next - 1) % SP_MAX_IN_FLIGHT].mark > stream.marked;
}

static void write_mark(void)
{
    sp_cuda_copy_flush();
    uint64_t mark = ++stream.marked;
    int error = sp_cuda_check(
        sp_cuda.StreamWriteValue64(stream.stream, (CUdeviceptr)(uintptr_t)stream.done, mark, 0));
    if (error)
        sp_process_fault(0, "a mark could not be enqueued");
    /* Behind others it is not waited for just now, and will have successors. */
    if (!sp_cuda_stream_has_passed(mark - 1))
        record_event(mark);
}

void sp_cuda_stream_open(const struct sp_command *command)
{
    struct pending *pending = &stream.commands[stream.next % SP_MAX_IN_FLIGHT];
    if (!has_unmarked() && stream.marked &&
        stream.with_event[stream.marked % MAX_MARKS] != stream.marked &&
        !sp_cuda_stream_has_passed(stream.marked))
        record_event(stream.marked);
    *pending = (struct pending){.number = command->number,
                                .flags = command->flags,
                                .is_kernel = command->kind == SP_COMMAND_KERNEL};
    if (command->flags & SP_COMMAND_TIMED) {
        sp_cuda_copy_flush();
        uint64_t now = sp_time_ns();
        if (now - stream.base_ns > CLOCK_NS) {
            set_clock();
            now = sp_time_ns();
        }
        pending->opened_ns = now;
        pending->timing = take_timing();
        if (pending->timing)
            sp_cuda_check(sp_cuda.EventRecord(pending->timing->start, stream.stream));
    }
    stream.open = pending;
    stream.is_touched = false;
}

static void tell_end(struct pending *pending)
{
    uint64_t start_ns = 0, end_ns = 0;
    if (pending->flags & SP_COMMAND_TIMED)
        get_times(pending, &start_ns, &end_ns);
    sp_process_ended(pending->number, pending->error, start_ns, end_ns);
}

void sp_cuda_stream_close(int error)
{
    struct pending *pending = stream.open;
    stream.open = NULL;
    pending->error = error;
    if (!stream.is_touched && !pending->timing && stream.first == stream.next) {
        tell_end(pending);
        return;
    }
    if (pending->timing) {
        sp_cuda_copy_flush();
        sp_cuda_check(sp_cuda.EventRecord(pending->timing->end, stream.stream));
    }
    pending->mark = stream.marked + 1;
    stream.next++;
}

/* Tells the end of what has ended. */
static void take_ended(void)
{
    uint64_t done = __atomic_load_n(stream.done, __ATOMIC_ACQUIRE);
    bool is_any = false;
    bool has_ended =
        stream.first < stream.next && stream.commands[stream.first % SP_MAX_IN_FLIGHT].mark <= done;
    if (has_ended && sp_cuda_print_has_any()) {
        /* Before the application hears of the kernel's end. A later kernel may be about to print.
         */
        if (!stream.is_broken)
            sp_cuda_stream_drain();
        sp_cuda_print_take();
    }
    if (has_ended) /* the end of an unbinding says that it is done */
        sp_cuda_memory_reap();
    while (stream.first < stream.next &&
           stream.commands[stream.first % SP_MAX_IN_FLIGHT].mark <= done) {
        is_any = true;
        tell_end(&stream.commands[stream.first++ % SP_MAX_IN_FLIGHT]);
    }
    if (is_any)
        stream.looks = 0;
}

void sp_cuda_stream_drain(void)
{
    write_mark(); /* so that what waits for a mark finds it passed */
    record_event(stream.marked);
    CUresult result = sp_cuda.EventSynchronize(stream.events[stream.marked % MAX_MARKS]);
    if (!result) /* the event may have come before the word */
        result = sp_cuda.StreamSynchronize(stream.stream);
    if (result)
        fault(result);
}

bool sp_cuda_stream_progress(bool has_more)
{
    bool may_wait = sp_cuda_copy_may_wait();
    if (stream.first == stream.next)
        return !has_more && sp_cuda_memory_is_untidy(); /* what rest will see to */
    if (has_unmarked() && !may_wait) {
        uint64_t done = __atomic_load_n(stream.done, __ATOMIC_ACQUIRE);
        uint64_t oldest = stream.next;
        while (oldest > stream.first && stream.next - oldest < COMMANDS_PER_MARK &&
               stream.commands[(oldest - 1) % SP_MAX_IN_FLIGHT].mark > stream.marked)
            oldest--;
        if ((!has_more || stream.next - oldest == COMMANDS_PER_MARK) &&
            stream.marked - done < MAX_MARKS - 1)
            write_mark();
    }
    take_ended();
    sp_cuda_memory_reap();
    sp_cuda_peers_reap();
    if (stream.first == stream.next)
        return false;
    if (++stream.looks % LOOKS_PER_QUERY == 0) {
        CUresult result = sp_cuda.StreamQuery(stream.stream);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
            fault(result);
    }
    return true;
}

void sp_cuda_stream_rest(void)
{
    if (stream.first == stream.next) {
        /* Nothing has come for a while: the 3 ms that a piece may take will hardly be missed. */
        sp_cuda_memory_tidy();
        sp_process_wake();
        return;
    }
    struct pending *oldest = &stream.commands[stream.first % SP_MAX_IN_FLIGHT];
    if ((oldest->flags & SP_COMMAND_TELL_START) && !oldest->is_told) {
        struct sp_command command = {.number = oldest->number, .flags = oldest->flags};
        oldest->is_told = true;
        sp_process_began(&command, false);
    }
    uint64_t mark = oldest->mark;
    if (stream.with_event[mark % MAX_MARKS] != mark)
        record_event(mark); /* it is the last one: else open would have recorded it */
    /* An error shows itself by ending the waiter's sleep; then progress must find it. */
    stream.looks = LOOKS_PER_QUERY - 1;
    pthread_mutex_lock(&waiter.lock);
    if (!waiter.is_waiting) {
        waiter.event = stream.events[mark % MAX_MARKS];
        waiter.is_waiting = true;
        pthread_cond_signal(&waiter.moved);
    }
    pthread_mutex_unlock(&waiter.lock);
}
