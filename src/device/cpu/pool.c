/* The pool: threads that run works, piece by piece.
 *
 * A work is in the list as long as it has pieces that nobody took. A thread joins a work under the
 * pool's lock, then takes pieces (pieces.c), without the lock, and leaves it under the lock again.
 * The last to leave a work that has no pieces left ends it. A work of a single chunk is taken out
 * of the list when it is joined, so its runner needs no second lock. No work has more threads on it
 * at once than its device has compute units, and threads of the application count among them.
 *
 * At most one idle thread spins for new work, for SPIN_NS, and the others sleep; a thread that
 * waits for a gate spins as long. So a chain of tiny works costs no system call, and an idle
 * process no processor time.
 *
 * Lock: one for the list, held for a few instructions; nothing is called with it held.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "device/cpu/cpu.h"
#include "util/alloc.h"
#include "util/futex.h"
#include "util/thread.h"
#include "util/time.h"

/* Longer than a futex wake-up takes (5 us, measured), short enough to go unnoticed. */
#define SPIN_NS 30000u

/* Clock reads while spinning, one for so many pauses. */
#define PAUSES_PER_CLOCK 32u

/* The application's threads bring their own stacks; ours need room for kernels' private memory. */
#define THREAD_STACK_BYTES ((size_t)8 << 20)

static struct {
    pthread_mutex_t lock;
    struct sp_work *first, *last;
    bool is_started;
    unsigned num_threads;  /* that were to be started; set before the first is */
    atomic_uint listed;    /* works in the list: exact under the lock, a hint without */
    atomic_uint submitted; /* counts works; those that spin wait for it to change */
    /* Sequentially consistent, with the list's lock: a submitter sees the sleeper and changes the
     * word, or the sleeper, which looks at the list once more after it counted itself, sees the
     * work. */
    atomic_uint sleepers;
    atomic_uint wake_word; /* sleepers wait for it to change */
    atomic_uint coming;    /* woken, but not at the list yet; a hint */
    atomic_uint spinners;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static SP_THREAD_LOCAL struct {
    bool is_worker;
    /* Of a worker: its node, and the NUMA sub-device whose processors it is bound to in place of
     * the node's, or NULL. */
    unsigned node;
    const struct cpu_device *placed_for;
    /* While it ends a work: the stream of the works that it may take next, any with is_worker; and
     * whether it has kept one for itself by waking nobody. */
    bool is_ending;
    const void *stream;
    bool has_kept;
} this_thread;

/* With the lock held. */
static void list_work(struct sp_work *work)
{
    work->driver.listed = true;
    work->driver.next = NULL;
    if (pool.last)
        pool.last->driver.next = work;
    else
        pool.first = work;
    pool.last = work;
    atomic_fetch_add_explicit(&pool.listed, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.submitted, 1, memory_order_seq_cst);
}

/* With the lock held. `previous` is the work before it, or NULL. */
static void unlist_work(struct sp_work *previous, struct sp_work *work)
{
    work->driver.listed = false;
    if (previous)
        previous->driver.next = work->driver.next;
    else
        pool.first = work->driver.next;
    if (pool.last == work)
        pool.last = previous;
    atomic_fetch_sub_explicit(&pool.listed, 1, memory_order_relaxed);
}

static bool has_place(struct sp_work *work)
{
    return work->driver.workers < work->driver.device->info.compute_units &&
           sp_cpu_pieces_left(work);
}

static void wake_one_sleeper(void)
{
    if (atomic_load_explicit(&pool.sleepers, memory_order_seq_cst) == 0)
        return;
    atomic_fetch_add_explicit(&pool.wake_word, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&pool.coming, 1, memory_order_relaxed);
    if (sp_futex_wake(&pool.wake_word, 1) != 1)
        atomic_fetch_sub_explicit(&pool.coming, 1, memory_order_relaxed);
}

/* Whether threads that were woken, and will look at the list, are not enough for a work. */
static bool wants_more(const struct sp_work *work)
{
    return work->driver.workers + atomic_load_explicit(&pool.coming, memory_order_relaxed) <
           work->driver.device->info.compute_units;
}

/* Joins the first work that has a place for this thread: of `stream`, or of any where that is NULL.
 * Wakes one more thread where there is more to join. */
static struct sp_work *join_work(const void *stream)
{
    struct sp_work *work = NULL, *previous = NULL;
    bool is_more = false;

    pthread_mutex_lock(&pool.lock);
    for (work = pool.first; work; previous = work, work = work->driver.next) {
        if (stream &&
            (work->stream != stream || sp_cpu_device(work->driver.device)->has_processors))
            continue;
        if (!has_place(work))
            continue;
        work->driver.workers++;
        is_more = work->driver.next != NULL;
        if (work->driver.parts <= work->driver.chunk)
            unlist_work(previous, work);
        else if (has_place(work) && wants_more(work))
            is_more = true;
        break;
    }
    pthread_mutex_unlock(&pool.lock);
    if (is_more && atomic_load_explicit(&pool.spinners, memory_order_relaxed) == 0)
        wake_one_sleeper();
    return work;
}

/* Leaves a work. True: this was the last thread and the work is done. */
static bool leave_work(struct sp_work *work)
{
    if (work->driver.parts <= work->driver.chunk)
        return true;
    pthread_mutex_lock(&pool.lock);
    work->driver.workers--;
    bool is_left = sp_cpu_pieces_left(work);
    if (work->driver.listed && !is_left) {
        struct sp_work *previous = NULL;
        for (struct sp_work *w = pool.first; w != work; w = w->driver.next)
            previous = w;
        unlist_work(previous, work);
    }
    bool is_done = work->driver.workers == 0 && !is_left;
    pthread_mutex_unlock(&pool.lock);
    if (is_left)
        wake_one_sleeper(); /* our wait is over, the work is not */
    return is_done;
}

/* Binds a thread of ours to the processors of a NUMA sub-device, or to its own node's again. */
static void place_thread(const struct cpu_device *device)
{
    const struct cpu_device *wanted = device->has_processors ? device : NULL;
    if (!this_thread.is_worker || this_thread.placed_for == wanted)
        return;
    const cpu_set_t *processors =
        wanted ? &wanted->processors : sp_cpu_node_processors(this_thread.node);
    sched_setaffinity(0, sizeof *processors, processors);
    this_thread.placed_for = wanted;
}

/* Takes pieces of a joined work until there are none, or until `gate` (may be NULL) opens. */
static void run_work(struct sp_work *work, struct sp_gate *gate)
{
    struct sp_cpu_pieces pieces = {0};
    place_thread(sp_cpu_device(work->driver.device));
    unsigned share = work->driver.shares ? sp_cpu_pieces_claim(work, sp_cpu_place_here()) : 0;
    /* After the last piece there is nothing to look for; where there are shares there may be. */
    while ((pieces.end < work->driver.parts || work->driver.shares) &&
           sp_cpu_pieces_take(work, share, &pieces)) {
        if (pieces.is_begin) {
            if (work->timed)
                work->start_ns = sp_time_ns();
            if (work->started)
                work->started(work);
        }
        int error = sp_cpu_work_run(work, pieces.first, pieces.end);
        if (error) {
            int none = 0;
            atomic_compare_exchange_strong_explicit(&work->driver.error, &none, error,
                                                    memory_order_relaxed, memory_order_relaxed);
        }
        if (gate && sp_gate_is_open(gate))
            break;
    }
    if (leave_work(work)) {
        sp_cpu_pieces_finish(work);
        if (work->timed)
            work->end_ns = sp_time_ns();
        this_thread.is_ending = true;
        this_thread.has_kept = false;
        work->finished(work, atomic_load_explicit(&work->driver.error, memory_order_relaxed));
        this_thread.is_ending = false;
        if (this_thread.has_kept && gate && sp_gate_is_open(gate))
            wake_one_sleeper();
    }
}

/* Spins until something is submitted; false when it took too long or another thread spins already.
 */
static bool spin_for_work(unsigned seen)
{
    unsigned none = 0;
    if (!atomic_compare_exchange_strong_explicit(&pool.spinners, &none, 1, memory_order_relaxed,
                                                 memory_order_relaxed))
        return false;
    bool is_new = false;
    uint64_t end = sp_time_ns() + SPIN_NS;
    do {
        for (unsigned i = 0; i < PAUSES_PER_CLOCK && !is_new; i++) {
            is_new = atomic_load_explicit(&pool.submitted, memory_order_relaxed) != seen;
            sp_cpu_pause();
        }
    } while (!is_new && sp_time_ns() < end);
    /* Before the last look at the list: a submitter that saw the spinner and woke nobody is then
     * seen. */
    atomic_store_explicit(&pool.spinners, 0, memory_order_seq_cst);
    return is_new;
}

/* Looks once more, then sleeps. A work that was joined, or NULL. */
static struct sp_work *join_or_sleep(void)
{
    unsigned word = atomic_load_explicit(&pool.wake_word, memory_order_seq_cst);
    atomic_fetch_add_explicit(&pool.sleepers, 1, memory_order_seq_cst);
    struct sp_work *work = join_work(NULL);
    if (!work && sp_futex_wait(&pool.wake_word, word))
        atomic_fetch_sub_explicit(&pool.coming, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pool.sleepers, 1, memory_order_seq_cst);
    return work;
}

/* `number`: which of the threads it is. */
static void *worker(void *number)
{
    this_thread.is_worker = true;
    this_thread.node = sp_cpu_node_of_thread((unsigned)(uintptr_t)number, pool.num_threads);
    if (sp_cpu_num_nodes() > 1)
        sched_setaffinity(0, sizeof(cpu_set_t), sp_cpu_node_processors(this_thread.node));
    for (;;) {
        unsigned seen = atomic_load_explicit(&pool.submitted, memory_order_relaxed);
        struct sp_work *work = join_work(NULL);
        if (!work && !spin_for_work(seen))
            work = join_or_sleep();
        if (work)
            run_work(work, NULL);
    }
    return NULL;
}

/* Threads do not survive fork(): the child starts its own, with an empty list. */
static void forget_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pool.first = pool.last = NULL;
    pool.is_started = false;
    atomic_store(&pool.listed, 0);
    atomic_store(&pool.submitted, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.coming, 0);
    atomic_store(&pool.spinners, 0);
}

/* With the lock held. As many threads as can be had; none at all is an error. */
static int start_threads(unsigned wanted)
{
    static bool is_registered;
    if (!is_registered)
        is_registered = pthread_atfork(NULL, NULL, forget_in_child) == 0;
    unsigned started = 0;
    pool.num_threads = wanted;
    while (started < wanted && !sp_alloc_may_fail() &&
           !sp_thread_start_detached(worker, (void *)(uintptr_t)started, THREAD_STACK_BYTES))
        started++;
    pool.is_started = started > 0;
    return started ? 0 : -ENOMEM;
}

/* Whether this thread, which is about to look for a work, may keep this one: it may take it, and
 * has kept none. */
static bool may_keep(const struct sp_work *work)
{
    return this_thread.is_ending && !this_thread.has_kept &&
           (this_thread.is_worker || (work->stream == this_thread.stream &&
                                      !sp_cpu_device(work->driver.device)->has_processors));
}

void sp_cpu_pool_submit(struct sp_device *device, struct sp_work *work, bool is_heavy)
{
    work->driver.device = device;
    work->driver.workers = 0;
    atomic_init(&work->driver.error, 0);

    int error = 0;
    if (work->driver.parts == 0) {
        work->finished(work, 0);
        return;
    }
    sp_cpu_pieces_init(work);
    bool is_for_this_thread = may_keep(work);
    pthread_mutex_lock(&pool.lock);
    if (!pool.is_started)
        error = start_threads(device->root->info.compute_units);
    if (!error)
        list_work(work);
    pthread_mutex_unlock(&pool.lock);
    if (error) {
        sp_cpu_pieces_finish(work);
        work->finished(work, error);
        return;
    }
    /* In the list it is anybody's, and may be gone by now. A spinning thread will find it, or this
     * one; a heavy work is worth a second one. */
    if (is_heavy)
        wake_one_sleeper();
    else if (atomic_load_explicit(&pool.spinners, memory_order_seq_cst) > 0)
        return;
    else if (is_for_this_thread)
        this_thread.has_kept = true;
    else
        wake_one_sleeper();
}

void sp_cpu_pool_wait(struct sp_device *device, struct sp_gate *gate, const void *stream)
{
    (void)device;
    uint64_t end = 0;
    this_thread.stream = stream;
    for (;;) {
        if (sp_gate_is_open(gate))
            return;
        struct sp_work *work = NULL;
        if (atomic_load_explicit(&pool.listed, memory_order_relaxed) > 0)
            work = join_work(stream);
        if (work) {
            run_work(work, gate);
            end = 0;
            continue;
        }
        uint64_t now = sp_time_ns();
        if (end == 0)
            end = now + SPIN_NS;
        else if (now >= end)
            break;
        for (unsigned i = 0; i < PAUSES_PER_CLOCK && !sp_gate_is_open(gate); i++)
            sp_cpu_pause();
    }
    sp_gate_wait(gate);
}

/* One block a thread, freed with the thread. */
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static int scratch_error;

struct scratch {
    void *memory;
    size_t bytes;
};

static void free_scratch(void *value)
{
    struct scratch *scratch = value;
    free(scratch->memory);
    free(scratch);
}

static void create_scratch_key(void)
{
    scratch_error = pthread_key_create(&scratch_key, free_scratch);
}

void *sp_cpu_scratch(size_t bytes)
{
    pthread_once(&scratch_once, create_scratch_key);
    if (scratch_error)
        return NULL;
    struct scratch *scratch = pthread_getspecific(scratch_key);
    if (!scratch) {
        scratch = sp_alloc(sizeof *scratch);
        if (!scratch || pthread_setspecific(scratch_key, scratch)) {
            free(scratch);
            return NULL;
        }
    }
    /* None at all is wanted by most kernels; what is returned is NULL only when out of memory. */
    if (bytes > scratch->bytes || !scratch->memory) {
        if (sp_alloc_may_fail())
            return NULL;
        size_t rounded =
            (bytes + SP_CPU_SCRATCH_ALIGN) & ~(size_t)(SP_CPU_SCRATCH_ALIGN - 1); /* never 0 */
        void *memory = aligned_alloc(SP_CPU_SCRATCH_ALIGN, rounded);
        if (!memory)
            return NULL;
        free(scratch->memory);
        scratch->memory = memory;
        scratch->bytes = rounded;
    }
    return scratch->memory;
}
