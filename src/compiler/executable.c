/* See executable.h. Two things live here: executables, and the pool of threads that generate code.
 *
 * Code is generated in units: some kernels for one device and one local size, one shared object. A
 * unit is WAITING (in the pool's list), RUNNING (one thread has it), READY or FAILED. The pool's
 * lock guards the list and every unit's state; whoever moves a unit to RUNNING owns its other
 * fields until it moves it on. A kernel's slot publishes finished code through an atomic pointer,
 * so that an enqueue takes no lock.
 *
 * Which kernels share a unit depends on the program alone, never on timing, so that the disk cache
 * finds them again.
 *
 * Invariant: an executable is freed when it has no reference and no RUNNING unit, by whoever ends
 * the later of the two; WAITING units are taken out of the list when the last reference goes.
 *
 * Locks: an executable's own (variants), then the pool's; none of them is held while code
 * is generated or loaded. The pool's threads end when the list is empty; there is nothing to join.
 * After fork() the child has no such threads: units that were RUNNING there belong to an older
 * generation and are run again by who needs them.
 */
#include "compiler/executable.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/globals.h"
#include "runtime/context.h"
#include "svm/heap.h"
#include "util/alloc.h"
#include "util/thread.h"

/* Linking one shared object costs about as much as compiling one small kernel (20 ms), so small
 * kernels share one; but who waits for one kernel of a unit waits for all. */
#define UNIT_KERNELS 2u

/* IR above this size per kernel: each kernel is a unit of its own. */
#define LARGE_KERNEL_IR_BYTES (256u << 10)

/* Local sizes for which one kernel may have code of its own; a program that tries out sizes stops
 * there. */
#define MAX_VARIANTS 8u

/* Threads that generate code: mostly they wait for samepage-cc's processes, of which more than
 * processors make no sense. */
#define MAX_THREADS 8u

/* Code for a local size is for a kernel that runs already, and slowly: it does not wait behind
 * kernels that may never be asked for (one with the rounds of a hash takes 2 s), but has as many
 * threads again. */
#define VARIANT_THREADS 2u /* times the threads */
#define THREAD_STACK_BYTES (512u << 10)

enum unit_state { UNIT_WAITING, UNIT_RUNNING, UNIT_READY, UNIT_FAILED };

struct variant;

struct unit {
    struct unit *previous, *next; /* in the pool's list, while WAITING and started */
    bool is_listed;
    enum unit_state state;
    unsigned generation; /* of the pool, when it became RUNNING */
    struct sp_executable *executable;
    unsigned root; /* index into the executable's roots */
    uint32_t first_kernel, num_kernels;
    uint64_t local_size[3];  /* 0 0 0: any */
    struct variant *variant; /* what its code is for, or NULL: the kernels' slots */
    struct sp_code *code;    /* READY; set before any kernel of it is published */
    int error;               /* FAILED: a negative errno */
    char *log;    /* FAILED: why; READY: what the device's compiler said; or NULL. Owned */
    bool is_told; /* FAILED: to the context; from then on it is in the build log */
};

typedef _Atomic(struct sp_code_kernel *) atomic_code;

/* Code of one kernel for one local size. Never removed, so the list is read without a lock. */
struct variant {
    struct variant *next;
    uint64_t local_size[3];
    atomic_code code; /* NULL until ready */
    struct unit unit;
};

/* One kernel on one root device. */
struct slot {
    atomic_code code;            /* NULL until ready. Release/acquire: what it points to is whole */
    struct unit *unit;           /* that makes it */
    uint32_t preferred_multiple; /* written before `code` */
    _Atomic(struct variant *) variants;
    unsigned num_variants; /* under the executable's lock */
};

struct sp_executable {
    atomic_uint references;
    bool is_abandoned;  /* under the pool's lock: no reference is left */
    unsigned running;   /* under the pool's lock: units RUNNING */
    cl_context context; /* a reference is held */
    struct sp_device **roots;
    unsigned num_roots;
    struct sp_step_result program; /* memory, IR, info */
    char **options;
    uint32_t num_options;
    struct unit *units; /* for any local size */
    uint32_t num_units;
    struct slot *slots;         /* num_roots times the number of kernels */
    pthread_mutex_t lock;       /* of the lists of variants */
    struct sp_globals *globals; /* one for each root */
};

/* --- The pool ------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a unit became READY or FAILED */
    struct unit *first, *last;
    unsigned num_threads;
    unsigned max_threads; /* 0: not known yet */
    unsigned busy;        /* threads with a unit */
    unsigned demands;     /* units that run in the thread of who needs them */
    unsigned generation;  /* counts forks on the way to this process */
    bool has_atfork;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

static void after_fork_in_child(void)
{
    pool.num_threads = pool.busy = pool.demands = 0;
    pool.generation++;
    pthread_cond_init(&pool.moved, NULL);
    pthread_mutex_unlock(&pool.lock);
}

/* Code for a local size is wanted by what runs now; the other kernels of its program may never be
 * asked for. */
static void list_prepend(struct unit *unit)
{
    unit->previous = NULL;
    unit->next = pool.first;
    *(pool.first ? &pool.first->previous : &pool.last) = unit;
    pool.first = unit;
    unit->is_listed = true;
}

static void list_append(struct unit *unit)
{
    unit->previous = pool.last;
    unit->next = NULL;
    *(pool.last ? &pool.last->next : &pool.first) = unit;
    pool.last = unit;
    unit->is_listed = true;
}

static void list_remove(struct unit *unit)
{
    if (!unit->is_listed)
        return;
    *(unit->previous ? &unit->previous->next : &pool.first) = unit->next;
    *(unit->next ? &unit->next->previous : &pool.last) = unit->previous;
    unit->is_listed = false;
}

/* Whether somebody works on the unit who will move it on: not so when that was before a fork. */
static bool is_in_work(const struct unit *unit)
{
    return unit->state == UNIT_RUNNING && unit->generation == pool.generation;
}

/* With the pool's lock held: the unit is the caller's to run. */
static void claim(struct unit *unit)
{
    list_remove(unit);
    free(unit->log);
    unit->log = NULL;
    unit->is_told = false;
    unit->state = UNIT_RUNNING;
    unit->generation = pool.generation;
    unit->executable->running++;
}

static void executable_destroy(struct sp_executable *executable);

/* Moves a claimed unit on, and frees its executable where nobody else will. */
static void settle(struct unit *unit, int error, char *log)
{
    struct sp_executable *executable = unit->executable;
    pthread_mutex_lock(&pool.lock);
    unit->error = error;
    unit->log = log;
    unit->state = error ? UNIT_FAILED : UNIT_READY;
    executable->running--;
    bool is_last = executable->is_abandoned && !executable->running;
    pthread_cond_broadcast(&pool.moved);
    pthread_mutex_unlock(&pool.lock);
    if (is_last)
        executable_destroy(executable);
}

/* --- Generating ---------------------------------------------------------------------------- */

static uint32_t multiple_of(const struct sp_step_result *result, const char *name)
{
    for (uint32_t i = 0; i < result->num_kernels; i++)
        if (strcmp(result->kernels[i].name, name) == 0)
            return result->kernels[i].preferred_multiple;
    return 0;
}

/* Makes loaded code visible to enqueues: 0, or -EBADMSG where a kernel is missing from it. */
static int publish(struct unit *unit, const struct sp_step_result *result, struct sp_code *code)
{
    struct sp_executable *executable = unit->executable;
    const struct sp_device_ops *ops = executable->roots[unit->root]->ops;
    const struct sp_program_info *info = executable->program.info;
    struct slot *slots = executable->slots + (size_t)unit->root * info->num_kernels;
    for (uint32_t i = 0; i < unit->num_kernels; i++)
        if (!ops->find(code, info->kernels[unit->first_kernel + i].name))
            return -EBADMSG;
    unit->code = code; /* before the first kernel is seen: it initialises globals */
    for (uint32_t i = 0; i < unit->num_kernels; i++) {
        uint32_t kernel = unit->first_kernel + i;
        struct sp_code_kernel *found = ops->find(code, info->kernels[kernel].name);
        if (!unit->variant)
            slots[kernel].preferred_multiple = multiple_of(result, info->kernels[kernel].name);
        /* Release: pairs with the acquire of an enqueue, which then uses what this points to. */
        atomic_store_explicit(unit->variant ? &unit->variant->code : &slots[kernel].code, found,
                              memory_order_release);
    }
    return 0;
}

/* Why a unit has no code, in words, of which `said` are the compiler's; NULL for want of memory. */
static char *explain_failure(const struct unit *unit, const char *said)
{
    const struct sp_kernel_info *kernels =
        unit->executable->program.info->kernels + unit->first_kernel;
    size_t length = said ? strlen(said) : 0;
    while (length && said[length - 1] == '\n')
        length--;
    if (!length) {
        said = "Memory ran out in this process.";
        length = strlen(said);
    }
    return sp_format("%s %s%s%s cannot run on %s: no code could be made. %.*s",
                     unit->num_kernels > 1 ? "Kernels" : "Kernel", kernels[0].name,
                     unit->num_kernels > 1 ? " and " : "",
                     unit->num_kernels > 1 ? kernels[1].name : "",
                     unit->executable->roots[unit->root]->info.name, (int)length, said);
}

/* Generates and loads the code of a claimed unit, and settles it. */
static void run_unit(struct unit *unit)
{
    struct sp_executable *executable = unit->executable;
    struct sp_device *root = executable->roots[unit->root];
    const struct sp_program_info *info = executable->program.info;
    struct sp_step_result result = {0};
    struct sp_code *code = NULL;
    char *log = NULL;
    int error = -ENOMEM;
    const char **names = sp_alloc_array(unit->num_kernels, sizeof(*names));
    if (!names)
        goto end;
    for (uint32_t i = 0; i < unit->num_kernels; i++)
        names[i] = info->kernels[unit->first_kernel + i].name;
    struct sp_words options = {(const char *const *)executable->options, executable->num_options};
    error = sp_step_generate(
        executable->program.code, atomic_load_explicit(&root->code_target, memory_order_acquire),
        (struct sp_words){names, unit->num_kernels}, unit->local_size, options, &result);
    if (error) {
        log = explain_failure(unit, result.log);
        if (error != -ENOMEM && error != -ENOENT)
            error = -EIO;
        goto end;
    }
    error = root->ops->load(root, result.code.bytes, result.code.size, info, result.kernels,
                            result.num_kernels, &log, &code);
    if (error)
        code = NULL;
    else
        error = publish(unit, &result, code);
    if (error && error != -ENOMEM) {
        char *said = log;
        log =
            sp_format("The generated code of kernel %s cannot be loaded on %s (%s).%s%s", names[0],
                      root->info.name, strerror(-error), said ? "\n" : "", said ? said : "");
        free(said);
        error = -EIO;
    }
    if (error)
        root->ops->unload(code);
end:
    sp_step_result_finish(&result);
    free(names);
    settle(unit, error, log);
}

/* How many threads may have units, that one of them has this. */
static unsigned most_threads(const struct unit *unit)
{
    return unit->variant ? pool.max_threads * VARIANT_THREADS : pool.max_threads;
}

static void *pool_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    while (pool.first) {
        if (pool.busy && pool.busy + pool.demands >= most_threads(pool.first)) {
            /* Who waits for code goes first: it has a thread of its own, and needs a processor. */
            pthread_cond_wait(&pool.moved, &pool.lock);
            continue;
        }
        struct unit *unit = pool.first;
        claim(unit);
        pool.busy++;
        pthread_mutex_unlock(&pool.lock);
        run_unit(unit);
        pthread_mutex_lock(&pool.lock);
        pool.busy--;
    }
    pool.num_threads--;
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* With the pool's lock held. Lists the unit, and sees to a thread for it. Without one it stays in
 * the list for the next, or for who needs it. */
static void submit(struct unit *unit)
{
    if (unit->state != UNIT_WAITING || unit->is_listed)
        return;
    if (!pool.max_threads) {
        cpu_set_t cpus;
        int count = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
        pool.max_threads = count < (int)MAX_THREADS ? (unsigned)count : MAX_THREADS;
    }
    if (!pool.has_atfork)
        pool.has_atfork =
            pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    if (unit->variant) {
        list_prepend(unit);
        pthread_cond_broadcast(&pool.moved); /* a thread that may not take another, may take this */
    } else {
        list_append(unit);
    }
    if (pool.num_threads < most_threads(unit) && !sp_alloc_may_fail() &&
        sp_thread_start_detached(pool_thread, NULL, THREAD_STACK_BYTES) == 0)
        pool.num_threads++;
}

/* Waits until the unit is READY or FAILED, running it here if nobody does. Returns its error; *log
 * is a copy of the unit's log, or NULL. A lack of memory or of a compiler is not held against it:
 * it is tried again. */
static int wait_for_unit(struct unit *unit, char **log)
{
    bool ran_here = false;
    *log = NULL;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        bool may_run = unit->state == UNIT_WAITING ||
                       (unit->state == UNIT_RUNNING && !is_in_work(unit)) ||
                       (unit->state == UNIT_FAILED && !ran_here && unit->error != -EIO);
        if (may_run) {
            claim(unit);
            pool.demands++;
            pthread_mutex_unlock(&pool.lock);
            run_unit(unit);
            ran_here = true;
            pthread_mutex_lock(&pool.lock);
            pool.demands--;
            pthread_cond_broadcast(&pool.moved);
        } else if (unit->state == UNIT_RUNNING) {
            pthread_cond_wait(&pool.moved, &pool.lock);
        } else {
            break;
        }
    }
    int error = unit->state == UNIT_FAILED ? unit->error : 0;
    if (unit->log)
        *log = sp_strdup(unit->log);
    pthread_mutex_unlock(&pool.lock);
    return error;
}

/* --- Executables --------------------------------------------------------------------------- */

static uint32_t kernels_per_unit(const struct sp_executable *executable)
{
    uint32_t kernels = executable->program.info->num_kernels;
    return executable->program.code.size / kernels > LARGE_KERNEL_IR_BYTES ? 1 : UNIT_KERNELS;
}

/* Divides the kernels among units, for each root. */
static int make_units(struct sp_executable *executable)
{
    uint32_t kernels = executable->program.info->num_kernels;
    executable->slots =
        sp_alloc_array((size_t)executable->num_roots * kernels, sizeof(*executable->slots));
    if (!executable->slots)
        return -ENOMEM;
    if (!kernels)
        return 0;
    uint32_t each = kernels_per_unit(executable);
    uint32_t per_root = (kernels + each - 1) / each;
    executable->units =
        sp_alloc_array((size_t)executable->num_roots * per_root, sizeof(*executable->units));
    if (!executable->units)
        return -ENOMEM;
    executable->num_units = executable->num_roots * per_root;
    for (uint32_t i = 0; i < executable->num_units; i++) {
        struct unit *unit = &executable->units[i];
        unit->executable = executable;
        unit->root = i / per_root;
        unit->first_kernel = i % per_root * each;
        unit->num_kernels =
            kernels - unit->first_kernel < each ? kernels - unit->first_kernel : each;
        struct slot *slots = executable->slots + (size_t)unit->root * kernels;
        for (uint32_t k = 0; k < unit->num_kernels; k++)
            slots[unit->first_kernel + k].unit = unit;
    }
    return 0;
}

static int copy_options(struct sp_executable *executable, struct sp_words options)
{
    executable->options = sp_alloc_array(options.count, sizeof(*executable->options));
    if (!executable->options)
        return -ENOMEM;
    for (uint32_t i = 0; i < options.count; i++) {
        executable->options[i] = sp_strdup(options.words[i]);
        if (!executable->options[i])
            return -ENOMEM;
        executable->num_options = i + 1;
    }
    return 0;
}

int sp_executable_create(cl_context context, struct sp_device *const *roots, unsigned num_roots,
                         struct sp_step_result *program, struct sp_words options,
                         struct sp_executable **executable)
{
    struct sp_executable *created = sp_alloc(sizeof(*created));
    if (!created)
        return -ENOMEM;
    pthread_mutex_init(&created->lock, NULL);
    atomic_init(&created->references, 1);
    created->context = context;
    sp_object_reference(&context->object);
    created->program = *program;
    created->num_roots = num_roots;
    created->roots = sp_alloc_array(num_roots, sizeof(struct sp_device *));
    created->globals = sp_alloc_array(num_roots, sizeof(*created->globals));
    if (!created->roots || !created->globals)
        goto err;
    memcpy(created->roots, roots, num_roots * sizeof(struct sp_device *));
    for (unsigned i = 0; i < num_roots; i++)
        sp_globals_init(&created->globals[i], created, context->arena, roots[i]);
    if (copy_options(created, options) || make_units(created))
        goto err;
    *program = (struct sp_step_result){0};
    *executable = created;
    return 0;
err:
    created->program = (struct sp_step_result){0};
    executable_destroy(created);
    return -ENOMEM;
}

void sp_executable_start(struct sp_executable *executable)
{
    pthread_mutex_lock(&pool.lock);
    for (uint32_t i = 0; i < executable->num_units; i++)
        submit(&executable->units[i]);
    pthread_mutex_unlock(&pool.lock);
}

struct sp_executable *sp_executable_reference(struct sp_executable *executable)
{
    /* Relaxed: who passes a reference on holds one. */
    atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
    return executable;
}

static void unit_finish(struct sp_executable *executable, struct unit *unit)
{
    free(unit->log);
    executable->roots[unit->root]->ops->unload(unit->code);
}

/* Nothing uses it, and none of its units is RUNNING or listed. */
static void executable_destroy(struct sp_executable *executable)
{
    uint32_t kernels = executable->program.info ? executable->program.info->num_kernels : 0;
    for (size_t i = 0; executable->slots && i < (size_t)executable->num_roots * kernels; i++) {
        struct variant *variant =
            atomic_load_explicit(&executable->slots[i].variants, memory_order_relaxed);
        while (variant) {
            struct variant *next = variant->next;
            unit_finish(executable, &variant->unit);
            free(variant);
            variant = next;
        }
    }
    for (uint32_t i = 0; i < executable->num_units; i++)
        unit_finish(executable, &executable->units[i]);
    for (unsigned i = 0; executable->globals && i < executable->num_roots; i++)
        sp_globals_finish(&executable->globals[i]);
    for (uint32_t i = 0; i < executable->num_options; i++)
        free(executable->options[i]);
    free(executable->options);
    free(executable->units);
    free(executable->slots);
    free(executable->globals);
    free(executable->roots);
    sp_step_result_finish(&executable->program);
    pthread_mutex_destroy(&executable->lock);
    sp_object_unreference(&executable->context->object);
    free(executable);
}

void sp_executable_unreference(struct sp_executable *executable)
{
    /* Acquire and release: what other threads did with it comes before its end. */
    if (!executable ||
        atomic_fetch_sub_explicit(&executable->references, 1, memory_order_acq_rel) != 1)
        return;
    uint32_t kernels = executable->program.info->num_kernels;
    pthread_mutex_lock(&pool.lock);
    executable->is_abandoned = true;
    for (uint32_t i = 0; i < executable->num_units; i++)
        list_remove(&executable->units[i]);
    for (size_t i = 0; i < (size_t)executable->num_roots * kernels; i++)
        for (struct variant *variant =
                 atomic_load_explicit(&executable->slots[i].variants, memory_order_relaxed);
             variant; variant = variant->next)
            list_remove(&variant->unit);
    bool is_last = !executable->running;
    pthread_mutex_unlock(&pool.lock);
    if (is_last)
        executable_destroy(executable);
}

const struct sp_program_info *sp_executable_info(const struct sp_executable *executable)
{
    return executable->program.info;
}

struct sp_bytes sp_executable_ir(const struct sp_executable *executable)
{
    return executable->program.code;
}

/* --- For enqueues -------------------------------------------------------------------------- */

static bool find_root(const struct sp_executable *executable, const struct sp_device *root,
                      unsigned *index)
{
    for (unsigned i = 0; i < executable->num_roots; i++)
        if (executable->roots[i] == root) {
            *index = i;
            return true;
        }
    return false;
}

static bool size_equal(const uint64_t a[3], const uint64_t b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static struct variant *find_variant(struct slot *slot, const uint64_t local_size[3])
{
    /* Acquire: the variant is whole. */
    struct variant *variant = atomic_load_explicit(&slot->variants, memory_order_acquire);
    while (variant && !size_equal(variant->local_size, local_size))
        variant = variant->next;
    return variant;
}

/* Begins code for this local size in the background. Silent where it cannot: there is code already.
 */
static void begin_variant(struct sp_executable *executable, struct slot *slot, uint32_t kernel,
                          const uint64_t local_size[3])
{
    pthread_mutex_lock(&executable->lock);
    struct variant *variant = NULL;
    if (slot->num_variants < MAX_VARIANTS && !find_variant(slot, local_size))
        variant = sp_alloc(sizeof(*variant));
    if (variant) {
        memcpy(variant->local_size, local_size, sizeof(variant->local_size));
        memcpy(variant->unit.local_size, local_size, sizeof(variant->local_size));
        variant->unit.executable = executable;
        variant->unit.root = slot->unit->root;
        variant->unit.first_kernel = kernel;
        variant->unit.num_kernels = 1;
        variant->unit.variant = variant;
        variant->next = atomic_load_explicit(&slot->variants, memory_order_relaxed);
        slot->num_variants++;
        /* Release: pairs with find_variant. */
        atomic_store_explicit(&slot->variants, variant, memory_order_release);
        pthread_mutex_lock(&pool.lock);
        submit(&variant->unit);
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_mutex_unlock(&executable->lock);
}

/* Whether the caller is the first to tell of the unit's failure: once is enough, however often the
 * kernel is asked for. */
static bool tells_now(struct unit *unit)
{
    pthread_mutex_lock(&pool.lock);
    bool is_first = !unit->is_told;
    unit->is_told = true;
    pthread_mutex_unlock(&pool.lock);
    return is_first;
}

/* The slot with code in it. */
static int get_slot(struct sp_executable *executable, const struct sp_device *root,
                    const struct sp_kernel_info *kernel, struct slot **slot)
{
    const struct sp_program_info *info = executable->program.info;
    unsigned index;
    if (!find_root(executable, root, &index))
        return -ENODEV;
    *slot =
        &executable->slots[(size_t)index * info->num_kernels + (size_t)(kernel - info->kernels)];
    /* Acquire: pairs with publish. */
    if (__builtin_expect(!!atomic_load_explicit(&(*slot)->code, memory_order_acquire), 1))
        return 0;
    char *log;
    int error = wait_for_unit((*slot)->unit, &log);
    if (error && tells_now((*slot)->unit))
        sp_context_tell(executable->context,
                        log ? log : "Memory ran out while code was generated for a kernel.");
    free(log);
    return error == -ENOMEM || !error ? error : -EIO;
}

/* Whether code for one local size is worth having. On the CPU it is for the loops between barriers
 * (special.c); a GPU is spared the test for the NDRange's edges, and computes fewer ids
 * (gpu/builtins.c). */
static bool pays_special_code(const struct sp_device *root, const struct sp_kernel_info *kernel)
{
    return (kernel->has_barrier || root->info.is_gpu) && !kernel->reqd_local_size[0];
}

int sp_executable_code(struct sp_executable *executable, const struct sp_device *root,
                       const struct sp_kernel_info *kernel, const uint64_t local_size[3],
                       struct sp_code_kernel **code, struct sp_globals_place *globals)
{
    struct slot *slot;
    int error = get_slot(executable, root, kernel, &slot);
    if (error)
        return error;
    *code = atomic_load_explicit(&slot->code, memory_order_acquire);
    if (local_size && pays_special_code(root, kernel)) {
        struct variant *variant = find_variant(slot, local_size);
        struct sp_code_kernel *special =
            variant ? atomic_load_explicit(&variant->code, memory_order_acquire) : NULL;
        if (special)
            *code = special;
        else if (!variant)
            begin_variant(executable, slot, (uint32_t)(kernel - executable->program.info->kernels),
                          local_size);
    }
    *globals = (struct sp_globals_place){0};
    struct sp_globals *variables = &executable->globals[slot->unit->root];
    /* A kernel that names none may have been given a pointer to one. */
    if (!kernel->uses_globals && !(kernel->follows_pointers && sp_globals_exist(variables)))
        return 0;
    globals->values = &variables->values;
    return sp_globals_get(variables, slot->unit->code, &globals->address);
}

/* What the unit adds to the build log: a copy, or NULL. */
static char *unit_log(struct unit *unit, bool is_waited_for)
{
    char *log = NULL;
    if (is_waited_for) {
        wait_for_unit(unit, &log);
        return log;
    }
    pthread_mutex_lock(&pool.lock);
    if (unit->state == UNIT_FAILED && unit->is_told && unit->log)
        log = sp_strdup(unit->log);
    pthread_mutex_unlock(&pool.lock);
    return log;
}

char *sp_executable_log(struct sp_executable *executable, const struct sp_device *root)
{
    unsigned index;
    char *all = NULL;
    if (!find_root(executable, root, &index))
        return NULL;
    for (uint32_t i = 0; i < executable->num_units; i++) {
        if (executable->units[i].root != index)
            continue;
        char *log = unit_log(&executable->units[i], root->info.compiles_code), *before = all;
        size_t length = log ? strlen(log) : 0;
        bool is_open = length && log[length - 1] != '\n';
        if (log && (all = sp_format("%s%s%s", before ? before : "", log, is_open ? "\n" : "")))
            free(before);
        else
            all = before;
        free(log);
    }
    return all;
}

uint32_t sp_executable_preferred_multiple(struct sp_executable *executable,
                                          const struct sp_device *root,
                                          const struct sp_kernel_info *kernel)
{
    struct slot *slot;
    return get_slot(executable, root, kernel, &slot) ? 0 : slot->preferred_multiple;
}
