/* The order of commands, their ends and their times.
 *
 * Three *lanes*, each a stream: kernels and all else that the GPU does for itself, transfers to it,
 * and transfers to the host. So the two directions of the bus and a kernel run at once. Commands of
 * one lane take effect in the order in which they came; a command comes after what was enqueued in
 * the other lanes before it, but for what it says that it may run beside (SP_COMMAND_BESIDE_): its
 * lane is made to wait for an event of theirs. A lane waits only for what was enqueued earlier, so
 * no two wait for each other. The memory of a new binding is zeroed on a stream of its own, for
 * which all lanes wait.
 *
 * Behind one or several commands of a lane a *mark* is enqueued: the GPU writes its number into the
 * lane's word of host memory, which is all that progress has to read. While more commands come at
 * once several share a mark, so that a chain of launches costs launches alone.
 *
 * Invariant: the commands from `first` to `next` of a lane are those not told as ended, in order,
 * each with the mark that ends it. An unbinding is in a list of its own, with the marks of all
 * lanes.
 *
 * Sleeping. A mark can be polled, not slept for. So where commands follow one that is still under
 * way an event is recorded with its mark, and the lane's waiter thread sleeps in the driver for the
 * oldest of those when the loop rests. It has a lock of its own, held for a few instructions.
 *
 * Faults. An error of the GPU's is for good (CUDA: a "sticky" error): every later call gives it.
 * Then the process ends, and says which command was the first that had not ended.
 */
#include <errno.h>
#include <limits.h>
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

/* Marks under way in a lane, each with an event; then commands wait for the next. */
#define MAX_MARKS 64u

/* The driver is asked for errors once in so many looks at the words; asking costs 0.5 us. */
#define LOOKS_PER_QUERY 256u

/* Commands with times under way; each needs two events. */
#define MAX_TIMED 512u

/* The times of events come as a float of milliseconds from a base: exact to 0.1 us for this long.
 */
#define CLOCK_NS UINT64_C(1000000000)

/* Words for the marks, lists of ranges (copy.c), printing (print.c). */
#define PINNED_BYTES ((size_t)5 << 20)

#define WAITER_STACK_BYTES ((size_t)256 << 10)

/* Of the lanes for transfers: what gathers small ones is a kernel, which is not to wait for room
 * behind one of the application's. CUDA takes the nearest that there is. */
#define TRANSFER_PRIORITY INT_MIN
#define USUAL_PRIORITY 0

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

/* An unbinding. */
struct removal {
    uint64_t number;
    struct sp_cuda_point point;
    int error;
};

struct lane {
    CUstream stream;
    struct pending commands[SP_MAX_IN_FLIGHT];
    uint64_t first, next; /* count up; at % SP_MAX_IN_FLIGHT */
    bool is_dirty;        /* something was enqueued, or is held back, that no mark is behind yet */
    uint64_t enqueued;    /* counts what was enqueued but for marks */
    uint64_t marked;      /* marks enqueued */
    volatile uint64_t *done; /* the word: the last mark that came */
    CUevent events[MAX_MARKS];
    uint64_t with_event[MAX_MARKS]; /* the mark that was recorded there */
    CUevent order;                  /* for other lanes to wait for */
    /* Of the other lanes: as much as was enqueued there comes before */
    uint64_t seen[SP_CUDA_LANES];
    struct {
        pthread_mutex_t lock;
        pthread_cond_t moved;
        CUevent event;
        bool is_waiting; /* for `event` */
    } waiter;
};

static struct {
    struct lane lanes[SP_CUDA_LANES];
    struct removal removals[SP_MAX_IN_FLIGHT];
    uint64_t first_removal, next_removal;
    CUstream clock, zero;
    CUevent zeroed;
    /* The command that is being enqueued. */
    const struct sp_command *command;
    enum sp_cuda_lane open;
    struct timing *timing;
    uint64_t open_number;          /* its number; 0: none is open */
    int failure;                   /* of something of its that was held back */
    uint64_t opened_ns, opened_at; /* when, and what was enqueued in its lane then */
    bool is_behind;                /* something of other lanes that has not ended */
    unsigned looks;
    bool is_broken; /* by a fault: nothing runs any more */
    struct timing timings[MAX_TIMED];
    struct timing *free_timings;
    CUevent base;
    uint64_t base_ns;
    unsigned char *pinned;
    size_t pinned_used;
} stream;

/* --- Errors --------------------------------------------------------------------------------------
 */

/* The first command under way that runs a program's code, which alone can go wrong on the device;
 * else the first of any. */
static uint64_t suspect(void)
{
    uint64_t any = 0;
    for (unsigned l = 0; l < SP_CUDA_LANES; l++) {
        const struct lane *lane = &stream.lanes[l];
        for (uint64_t i = lane->first; i < lane->next; i++) {
            const struct pending *pending = &lane->commands[i % SP_MAX_IN_FLIGHT];
            if (pending->is_kernel)
                return pending->number;
            if (!any)
                any = pending->number;
        }
    }
    return any;
}

static void take_ended(void);

_Noreturn static void fault(CUresult result)
{
    char text[SP_FAULT_REASON_BYTES];
    stream.is_broken = true;
    take_ended();
    sp_process_fault(suspect(), sp_cuda_error_text(result, text, sizeof text));
}

_Thread_local struct sp_cuda_failure sp_cuda_last_failure;

int sp_cuda_check_call(CUresult result, const char *call)
{
    CUstream main = stream.lanes[SP_CUDA_MAIN].stream;
    if (result == CUDA_SUCCESS)
        return 0;
    sp_cuda_last_failure = (struct sp_cuda_failure){result, call};
    CUresult state = main ? sp_cuda.StreamQuery(main) : CUDA_SUCCESS;
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

static void *wait_for_events(void *argument)
{
    struct lane *lane = argument;
    sp_cuda.CtxSetCurrent(sp_cuda_device.context);
    pthread_mutex_lock(&lane->waiter.lock);
    for (;;) {
        while (!lane->waiter.is_waiting)
            pthread_cond_wait(&lane->waiter.moved, &lane->waiter.lock);
        pthread_mutex_unlock(&lane->waiter.lock);
        sp_cuda.EventSynchronize(lane->waiter.event); /* an error is found by progress */
        pthread_mutex_lock(&lane->waiter.lock);
        lane->waiter.is_waiting = false;
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

static CUresult make_lane(struct lane *lane, int priority)
{
    CUresult result =
        sp_cuda.StreamCreateWithPriority(&lane->stream, CU_STREAM_NON_BLOCKING, priority);
    for (unsigned i = 0; i < MAX_MARKS && !result; i++)
        result =
            sp_cuda.EventCreate(&lane->events[i], CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = sp_cuda.EventCreate(&lane->order, CU_EVENT_DISABLE_TIMING);
    return result;
}

static int start_waiter(struct lane *lane)
{
    lane->done = sp_cuda_pinned(sizeof *lane->done);
    pthread_mutex_init(&lane->waiter.lock, NULL);
    pthread_cond_init(&lane->waiter.moved, NULL);
    return sp_thread_start_detached(wait_for_events, lane, WAITER_STACK_BYTES);
}

int sp_cuda_stream_init(void)
{
    CUresult result = CUDA_SUCCESS;
    int error = 0;
    for (unsigned l = 0; l < SP_CUDA_LANES && !result; l++)
        result =
            make_lane(&stream.lanes[l], l == SP_CUDA_MAIN ? USUAL_PRIORITY : TRANSFER_PRIORITY);
    if (!result)
        result = sp_cuda.StreamCreate(&stream.clock, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = sp_cuda.StreamCreate(&stream.zero, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = sp_cuda.EventCreate(&stream.base, CU_EVENT_DEFAULT);
    if (!result)
        result = sp_cuda.EventCreate(&stream.zeroed, CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = sp_cuda.MemHostAlloc((void **)&stream.pinned, PINNED_BYTES,
                                      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return sp_cuda_check(result);
    memset(stream.pinned, 0, PINNED_BYTES);
    for (unsigned l = 0; l < SP_CUDA_LANES && !error; l++)
        error = start_waiter(&stream.lanes[l]);
    return error;
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

/* --- Marks ---------------------------------------------------------------------------------------
 */

static bool has_passed(const struct lane *lane, uint64_t mark)
{
    /* Acquire: what the GPU did before is seen by what we do after. */
    return __atomic_load_n(lane->done, __ATOMIC_ACQUIRE) >= mark;
}

/* The mark behind all that was enqueued in the lane. */
static uint64_t last_mark(const struct lane *lane)
{
    return lane->marked + lane->is_dirty;
}

uint64_t sp_cuda_lane_mark(enum sp_cuda_lane lane)
{
    return last_mark(&stream.lanes[lane]);
}

bool sp_cuda_lane_has_passed(enum sp_cuda_lane lane, uint64_t mark)
{
    return has_passed(&stream.lanes[lane], mark);
}

bool sp_cuda_lane_is_idle(enum sp_cuda_lane lane)
{
    return has_passed(&stream.lanes[lane], last_mark(&stream.lanes[lane]));
}

void sp_cuda_point_set(struct sp_cuda_point *point)
{
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        point->marks[l] = last_mark(&stream.lanes[l]);
}

bool sp_cuda_point_has_passed(const struct sp_cuda_point *point)
{
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        if (!has_passed(&stream.lanes[l], point->marks[l]))
            return false;
    return true;
}

static void record_event(struct lane *lane, uint64_t mark)
{
    lane->with_event[mark % MAX_MARKS] = mark;
    sp_cuda_check(sp_cuda.EventRecord(lane->events[mark % MAX_MARKS], lane->stream));
}

static bool has_event(const struct lane *lane, uint64_t mark)
{
    return lane->with_event[mark % MAX_MARKS] == mark;
}

static void write_mark(struct lane *lane)
{
    sp_cuda_copy_flush((enum sp_cuda_lane)(lane - stream.lanes));
    uint64_t mark = ++lane->marked;
    lane->is_dirty = false;
    int error = sp_cuda_check(
        sp_cuda.StreamWriteValue64(lane->stream, (CUdeviceptr)(uintptr_t)lane->done, mark, 0));
    if (error)
        sp_process_fault(0, "a mark could not be enqueued");
    /* Behind others it is not waited for just now, and will have successors. */
    if (!has_passed(lane, mark - 1))
        record_event(lane, mark);
}

/* --- Lanes ---------------------------------------------------------------------------------------
 */

void sp_cuda_lane_touch(enum sp_cuda_lane lane)
{
    stream.lanes[lane].is_dirty = true;
    stream.lanes[lane].enqueued++;
}

CUstream sp_cuda_lane(enum sp_cuda_lane lane)
{
    sp_cuda_copy_flush(lane);
    sp_cuda_lane_touch(lane);
    return stream.lanes[lane].stream;
}

CUstream sp_cuda_stream(void)
{
    return sp_cuda_lane(SP_CUDA_MAIN);
}

int sp_cuda_stream_read(void *to, CUdeviceptr from, size_t bytes)
{
    int error = sp_cuda_check(sp_cuda.MemcpyDtoHAsync(to, from, bytes, stream.clock));
    return error ? error : sp_cuda_check(sp_cuda.StreamSynchronize(stream.clock));
}

int sp_cuda_stream_zero(CUdeviceptr start, size_t bytes)
{
    CUresult result = sp_cuda.MemsetD8Async(start, 0, bytes, stream.zero);
    if (!result)
        result = sp_cuda.EventRecord(stream.zeroed, stream.zero);
    for (unsigned l = 0; l < SP_CUDA_LANES && !result; l++)
        result = sp_cuda.StreamWaitEvent(stream.lanes[l].stream, stream.zeroed, 0);
    if (result) /* the memory is given up, and nothing may be under way there */
        sp_cuda.StreamSynchronize(stream.zero);
    sp_cuda_lane_touch(SP_CUDA_MAIN); /* so that it has ended when the binding has */
    return sp_cuda_check(result);
}

/* What is enqueued in the lane from now on comes after all that was enqueued in the other one. */
static void come_after(struct lane *lane, enum sp_cuda_lane index)
{
    struct lane *other = &stream.lanes[index];
    if (has_passed(other, last_mark(other)))
        return;
    stream.is_behind = true;
    sp_cuda_copy_flush(index);
    if (lane->seen[index] == other->enqueued)
        return;
    lane->seen[index] = other->enqueued;
    int error = sp_cuda_check(sp_cuda.EventRecord(other->order, other->stream));
    if (!error)
        error = sp_cuda_check(sp_cuda.StreamWaitEvent(lane->stream, other->order, 0));
    if (error)
        sp_process_fault(0, "an order of commands could not be enqueued");
}

static enum sp_cuda_lane lane_of(const struct sp_command *command)
{
    if (command->kind != SP_COMMAND_TRANSFER)
        return SP_CUDA_MAIN;
    return command->range.destination == SP_PLACE_HOST ? SP_CUDA_OUT : SP_CUDA_IN;
}

/* What is bound changes as the command is enqueued. */
static bool is_binding(const struct sp_command *command)
{
    return command->kind == SP_COMMAND_BIND_PRIVATE || command->kind == SP_COMMAND_BIND_HOME ||
           command->kind == SP_COMMAND_BIND_PEER || command->kind == SP_COMMAND_UNBIND;
}

static void keep_order(struct lane *lane, const struct sp_command *command)
{
    static const uint16_t beside[SP_CUDA_LANES] = {[SP_CUDA_MAIN] = SP_COMMAND_BESIDE_WORKS,
                                                   [SP_CUDA_IN] = SP_COMMAND_BESIDE_ARRIVALS,
                                                   [SP_CUDA_OUT] = SP_COMMAND_BESIDE_DEPARTURES};
    stream.is_behind = false;
    if (is_binding(command))
        return;
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        if (&stream.lanes[l] != lane && !(command->flags & beside[l]))
            come_after(lane, l);
}

bool sp_cuda_stream_is_behind(void)
{
    return stream.is_behind;
}

/* --- Commands ------------------------------------------------------------------------------------
 */

void sp_cuda_stream_open(const struct sp_command *command)
{
    stream.command = command;
    stream.open = lane_of(command);
    stream.open_number = command->number;
    stream.failure = 0;
    struct lane *lane = &stream.lanes[stream.open];
    if (!lane->is_dirty && lane->marked && !has_event(lane, lane->marked) &&
        !has_passed(lane, lane->marked))
        record_event(lane, lane->marked);
    keep_order(lane, command);
    stream.timing = NULL;
    stream.opened_ns = 0;
    stream.opened_at = lane->enqueued;
    if ((command->flags & SP_COMMAND_TIMED) && command->kind != SP_COMMAND_UNBIND) {
        uint64_t now = sp_time_ns();
        if (now - stream.base_ns > CLOCK_NS) {
            set_clock();
            now = sp_time_ns();
        }
        stream.opened_ns = now;
        stream.timing = take_timing();
        if (stream.timing)
            sp_cuda_check(sp_cuda.EventRecord(stream.timing->start, sp_cuda_lane(stream.open)));
    }
}

void sp_cuda_stream_fail(enum sp_cuda_lane index, uint64_t number, int error)
{
    struct lane *lane = &stream.lanes[index];
    sp_process_failed(number);
    if (number == stream.open_number)
        stream.failure = error;
    for (uint64_t i = lane->first; i < lane->next; i++)
        if (lane->commands[i % SP_MAX_IN_FLIGHT].number == number)
            lane->commands[i % SP_MAX_IN_FLIGHT].error = error;
}

static void tell_end(struct pending *pending)
{
    uint64_t start_ns = 0, end_ns = 0;
    if (pending->flags & SP_COMMAND_TIMED)
        get_times(pending, &start_ns, &end_ns);
    sp_process_ended(pending->number, pending->error, start_ns, end_ns);
}

/* An unbinding has ended when all that was enqueued before it has, in whatever lane. */
static void close_removal(int error)
{
    struct removal *removal = &stream.removals[stream.next_removal % SP_MAX_IN_FLIGHT];
    *removal = (struct removal){.number = stream.command->number, .error = error};
    sp_cuda_point_set(&removal->point);
    stream.next_removal++;
}

void sp_cuda_stream_close(int error)
{
    struct lane *lane = &stream.lanes[stream.open];
    if (!error)
        error = stream.failure;
    if (error && (error == -ECANCELED || sp_command_is_relied_on(stream.command)))
        sp_process_failed(stream.command->number);
    stream.open_number = 0;
    if (stream.command->kind == SP_COMMAND_UNBIND) {
        close_removal(error);
        return;
    }
    if (stream.timing)
        sp_cuda_check(sp_cuda.EventRecord(stream.timing->end, sp_cuda_lane(stream.open)));
    struct pending pending = {.number = stream.command->number,
                              .flags = stream.command->flags,
                              .is_kernel = stream.command->kind == SP_COMMAND_KERNEL,
                              .opened_ns = stream.opened_ns,
                              .timing = stream.timing,
                              .error = error,
                              .mark = last_mark(lane)};
    if (lane->enqueued == stream.opened_at && lane->first == lane->next)
        tell_end(&pending);
    else
        lane->commands[lane->next++ % SP_MAX_IN_FLIGHT] = pending;
}

static bool has_ended(const struct lane *lane, uint64_t done)
{
    return lane->first < lane->next && lane->commands[lane->first % SP_MAX_IN_FLIGHT].mark <= done;
}

/* Tells the end of what has ended. */
static void take_ended(void)
{
    uint64_t done[SP_CUDA_LANES];
    bool is_any = false;
    /* Looked at once: what ends from here on has its end told, and its printing done, the next
     * time. */
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        done[l] = __atomic_load_n(stream.lanes[l].done, __ATOMIC_ACQUIRE);
    if (has_ended(&stream.lanes[SP_CUDA_MAIN], done[SP_CUDA_MAIN]) && sp_cuda_print_has_any()) {
        /* Before the application hears of the kernel's end. A later kernel may be about to print.
         */
        if (!stream.is_broken)
            sp_cuda_lane_drain(SP_CUDA_MAIN);
        sp_cuda_print_take();
    }
    for (unsigned l = 0; l < SP_CUDA_LANES; l++) {
        struct lane *lane = &stream.lanes[l];
        while (has_ended(lane, done[l])) {
            is_any = true;
            tell_end(&lane->commands[lane->first++ % SP_MAX_IN_FLIGHT]);
        }
    }
    while (stream.first_removal < stream.next_removal && !stream.is_broken) {
        const struct removal *removal = &stream.removals[stream.first_removal % SP_MAX_IN_FLIGHT];
        if (!sp_cuda_point_has_passed(&removal->point))
            break;
        sp_cuda_memory_reap(); /* the end says that it is done */
        is_any = true;
        stream.first_removal++;
        sp_process_ended(removal->number, removal->error, 0, 0);
    }
    if (is_any)
        stream.looks = 0;
}

void sp_cuda_lane_drain(enum sp_cuda_lane index)
{
    struct lane *lane = &stream.lanes[index];
    if (lane->is_dirty)
        write_mark(lane); /* so that what waits for a mark finds it passed */
    record_event(lane, lane->marked);
    CUresult result = sp_cuda.EventSynchronize(lane->events[lane->marked % MAX_MARKS]);
    if (!result) /* the event may have come before the word */
        result = sp_cuda.StreamSynchronize(lane->stream);
    if (result)
        fault(result);
}

void sp_cuda_stream_drain(void)
{
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        sp_cuda_lane_drain(l);
}

/* --- Progress ------------------------------------------------------------------------------------
 */

/* Whether a mark should wait for more commands, of which the next is there already. */
static bool may_share_mark(const struct lane *lane)
{
    uint64_t count = 0;
    while (count < COMMANDS_PER_MARK && lane->next - count > lane->first &&
           lane->commands[(lane->next - count - 1) % SP_MAX_IN_FLIGHT].mark > lane->marked)
        count++;
    return count < COMMANDS_PER_MARK;
}

static void mark_what_needs_it(bool has_more)
{
    for (unsigned l = 0; l < SP_CUDA_LANES; l++) {
        struct lane *lane = &stream.lanes[l];
        if (!lane->is_dirty || sp_cuda_copy_may_wait(l, has_more))
            continue;
        /* A transfer is waited for while kernels are enqueued, without an end. */
        if (has_more && l == SP_CUDA_MAIN && may_share_mark(lane))
            continue;
        if (lane->marked - __atomic_load_n(lane->done, __ATOMIC_RELAXED) < MAX_MARKS - 1)
            write_mark(lane);
    }
}

static bool has_pending(void)
{
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        if (stream.lanes[l].first < stream.lanes[l].next)
            return true;
    return stream.first_removal < stream.next_removal;
}

bool sp_cuda_stream_progress(bool has_more)
{
    if (!has_pending())
        return !has_more && sp_cuda_memory_is_untidy(); /* what rest will see to */
    mark_what_needs_it(has_more);
    take_ended();
    sp_cuda_memory_reap();
    sp_cuda_peers_reap();
    if (!has_pending())
        return false;
    if (++stream.looks % LOOKS_PER_QUERY == 0) {
        CUresult result = sp_cuda.StreamQuery(stream.lanes[SP_CUDA_MAIN].stream);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
            fault(result);
    }
    return true;
}

static void rest_for(struct lane *lane)
{
    struct pending *oldest = &lane->commands[lane->first % SP_MAX_IN_FLIGHT];
    if ((oldest->flags & SP_COMMAND_TELL_START) && !oldest->is_told) {
        struct sp_command command = {.number = oldest->number, .flags = oldest->flags};
        oldest->is_told = true;
        sp_process_began(&command, false);
    }
    uint64_t mark = oldest->mark;
    if (mark > lane->marked)
        write_mark(lane);
    if (!has_event(lane, mark))
        record_event(lane, mark); /* it is the last one: else open would have recorded it */
    pthread_mutex_lock(&lane->waiter.lock);
    if (!lane->waiter.is_waiting) {
        lane->waiter.event = lane->events[mark % MAX_MARKS];
        lane->waiter.is_waiting = true;
        pthread_cond_signal(&lane->waiter.moved);
    }
    pthread_mutex_unlock(&lane->waiter.lock);
}

void sp_cuda_stream_rest(void)
{
    if (!has_pending()) {
        /* Nothing has come for a while: the 3 ms that a piece may take will hardly be missed. */
        sp_cuda_memory_tidy();
        sp_process_wake();
        return;
    }
    /* An error shows itself by ending the waiters' sleep; then progress must find it. */
    stream.looks = LOOKS_PER_QUERY - 1;
    bool is_any = false;
    for (unsigned l = 0; l < SP_CUDA_LANES; l++)
        if (stream.lanes[l].first < stream.lanes[l].next) {
            rest_for(&stream.lanes[l]);
            is_any = true;
        }
    if (!is_any)
        sp_process_wake(); /* an unbinding alone has nothing to wait for but a mark on its way */
}
