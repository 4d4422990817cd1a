/* See check_report.h. Findings are put in a list by whoever finds; a thread of its own takes them
 * out and puts them into words; the callback thread then calls the application. Each is told once:
 * the same kind from the same place in the program.
 *
 * Who touched waits until the words are written: so the code at fault is still loaded when its name
 * is looked up, and where the program is to stop, it stops there. That thread may hold any lock of
 * the application's and of the C library's: so text is written with write and not with stdio, the
 * application's callback comes only after the wait, and the wait is limited.
 *
 * Lock: of the list, taken last.
 */
#include "runtime/check_report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compiler/cpu_abi.h"
#include "runtime/callback.h"
#include "runtime/context.h"
#include "runtime/listeners.h"
#include "svm/check.h"
#include "util/alloc.h"
#include "util/symbol.h"
#include "util/thread.h"

/* Findings that wait, and places that were told of: more would be read by nobody. */
#define MAX_WAITING 64u
#define MAX_TOLD 512u

#define TEXT_BYTES 2048u
#define PLACE_BYTES 512u

/* How long who touched waits for the words, the end of the process for what was found just before,
 * and a stop for the application's callback, which may need a lock that the stopped thread holds.
 */
#define LAST_SECONDS 3

struct waiting {
    struct waiting *next;
    struct sp_finding finding;
};

/* What makes two findings the same. */
struct key {
    uintptr_t kind, first, second;
};

struct keys {
    struct key list[MAX_TOLD];
    unsigned count;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct waiting *first, *last;
    unsigned num_waiting;            /* listed, or being told */
    unsigned num_calling;            /* callbacks that are due or called */
    uint64_t num_noted, num_written; /* ever */
    struct keys noted;
    struct keys told; /* the thread's own */
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* --- Once ------------------------------------------------------------------------------------- */

/* Adds a key: false where it was there. What does not fit any more counts as known. */
static bool add_key(struct keys *keys, struct key key)
{
    for (unsigned i = 0; i < keys->count; i++)
        if (!memcmp(&keys->list[i], &key, sizeof key))
            return false;
    if (keys->count == MAX_TOLD)
        return false;
    keys->list[keys->count++] = key;
    return true;
}

static uintptr_t hash_name(const char *name)
{
    uintptr_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Before names are known. The word on top of the stack tells callers of the C library apart. */
static struct key rough_key(const struct sp_finding *finding)
{
    struct key key = {.kind = (uintptr_t)finding->kind};
    if (finding->actor.what[0]) {
        key.first = (uintptr_t)finding->actor.site ^ hash_name(finding->actor.kernel);
        key.second = finding->kind == SP_FINDING_AT_ONCE ? (uintptr_t)finding->other.site
                                                         : (uintptr_t)finding->region.allocated_at;
    }
    if (finding->instruction) {
        key.first = finding->instruction;
        key.second = finding->num_words ? finding->stack[0] : 0;
    }
    return key;
}

static struct timespec last_moment(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    moment.tv_sec += LAST_SECONDS;
    return moment;
}

/* With the lock held. */
static void wait_until_written(uint64_t number)
{
    struct timespec moment = last_moment();
    while (reports.num_written < number &&
           pthread_cond_timedwait(&reports.moved, &reports.lock, &moment) == 0)
        ;
}

static bool note_finding(const struct sp_finding *finding)
{
    bool is_new = false;
    pthread_mutex_lock(&reports.lock);
    if (reports.num_waiting < MAX_WAITING && add_key(&reports.noted, rough_key(finding))) {
        struct waiting *waiting = sp_alloc(sizeof *waiting);
        if (waiting) {
            waiting->finding = *finding;
            if (reports.last)
                reports.last->next = waiting;
            else
                reports.first = waiting;
            reports.last = waiting;
            reports.num_waiting++;
            is_new = true;
            uint64_t number = ++reports.num_noted;
            pthread_cond_broadcast(&reports.moved);
            if (finding->instruction)
                wait_until_written(number);
        }
    }
    pthread_mutex_unlock(&reports.lock);
    return is_new && sp_check_aborts;
}

/* --- Words ------------------------------------------------------------------------------------ */

struct text {
    char bytes[TEXT_BYTES];
    size_t length;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(text->bytes + text->length, TEXT_BYTES - text->length, format, arguments);
    va_end(arguments);
    if (count > 0)
        text->length += (size_t)count;
    if (text->length >= TEXT_BYTES)
        text->length = TEXT_BYTES - 1;
}

static void add_place(struct text *text, const char *before, const void *address)
{
    char place[PLACE_BYTES];
    if (!address)
        return;
    sp_symbol_describe(address, place, sizeof place);
    add(text, "%s%s", before, place);
}

static bool is_buffer(const struct sp_finding *finding)
{
    return finding->region.flags & SP_REGION_IS_BUFFER;
}

static void add_region(struct text *text, const struct sp_finding *finding)
{
    size_t offset = finding->address - finding->region.start;
    add(text, "\n    where: ");
    if (finding->kind == SP_FINDING_AT_ONCE)
        add(text, "from byte %zu of", offset);
    else if (offset < finding->region.bytes)
        add(text, "address %#zx, byte %zu of", (size_t)finding->address, offset);
    else
        add(text, "address %#zx, %zu bytes behind the end of", (size_t)finding->address,
            offset - finding->region.bytes);
    add(text, " the %s of %zu bytes at %#zx", is_buffer(finding) ? "buffer" : "SVM allocation",
        finding->region.bytes, (size_t)finding->region.start);
    add_place(text, is_buffer(finding) ? ", created in " : ", allocated in ",
              finding->region.allocated_at);
    add_place(text, ", freed in ", finding->region.freed_at);
}

static void add_actor(struct text *text, const struct sp_finding_actor *actor)
{
    if (actor->kernel[0])
        add(text, "kernel '%s'", actor->kernel);
    else
        add(text, "a %s", actor->what);
    if (actor->device[0])
        add(text, " on %s", actor->device);
    add_place(text, ", enqueued in ", actor->site);
}

/* Each the whole advice in one sentence. */
static const char *fix_for(const struct sp_finding *finding)
{
    bool buffer = is_buffer(finding);
    switch (finding->kind) {
    case SP_FINDING_UNMAPPED:
        if (finding->is_write)
            return buffer
                       ? "map the buffer with clEnqueueMapBuffer and CL_MAP_WRITE before writing, "
                         "and unmap it before a command uses it"
                       : "map the memory with clEnqueueSVMMap and CL_MAP_WRITE before writing, and "
                         "unmap it before a command uses it";
        return buffer
                   ? "map the buffer with clEnqueueMapBuffer and CL_MAP_READ, and wait for that, "
                     "before reading"
                   : "map the memory with clEnqueueSVMMap and CL_MAP_READ, and wait for that, "
                     "before reading";
    case SP_FINDING_READ_ONLY:
        return "add CL_MAP_WRITE to the flags of the map";
    case SP_FINDING_FREED:
        return buffer ? "release the buffer after its last use"
                      : "free the memory after its last use: clSVMFree waits for nothing";
    case SP_FINDING_FREED_AGAIN:
        return "free the memory once";
    case SP_FINDING_AT_ONCE:
        return finding->is_other_map
                   ? "unmap the memory before the command, or let the command wait for the unmap's "
                     "event"
                   : "let one command wait for the other's event";
    case SP_FINDING_UNDECLARED:
        return "name the memory with clSetKernelExecInfo and CL_KERNEL_EXEC_INFO_SVM_PTRS before "
               "the "
               "kernel is enqueued";
    }
    return "";
}

static void add_headline(struct text *text, const struct sp_finding *finding)
{
    const char *did = finding->is_write ? "wrote to" : "read";
    bool is_kernel = finding->actor.what[0];
    switch (finding->kind) {
    case SP_FINDING_UNMAPPED:
        add(text, "the host %s memory that is not mapped", did);
        break;
    case SP_FINDING_READ_ONLY:
        add(text, "the host wrote to memory that is mapped for reading only");
        break;
    case SP_FINDING_FREED:
        if (is_kernel)
            add_actor(text, &finding->actor);
        else
            add(text, "the host");
        add(text, " %s memory that was freed", is_kernel ? "used" : did);
        break;
    case SP_FINDING_FREED_AGAIN:
        add(text, "the host freed memory that was freed");
        break;
    case SP_FINDING_AT_ONCE:
        add(text, "memory is used twice at once: by ");
        add_actor(text, &finding->actor);
        add(text, ", which %s it, and by ", finding->is_write ? "writes" : "reads");
        if (finding->is_other_map)
            add(text, "the host, which has it mapped");
        else
            add_actor(text, &finding->other);
        break;
    case SP_FINDING_UNDECLARED:
        add_actor(text, &finding->actor);
        add(text, " followed a pointer to memory that was not declared");
        break;
    }
}

/* --- Telling ---------------------------------------------------------------------------------- */

/* What touched was a kernel on the CPU device: then it is no matter of the host's. */
static void blame_kernel(struct sp_finding *finding, const void *culprit)
{
    static const char prefix[] = SP_CPU_KERNEL_SYMBOL_PREFIX;
    char name[SP_CHECK_NAME_BYTES];
    sp_symbol_name(culprit, name, sizeof name);
    const char *kernel = strncmp(name, prefix, sizeof prefix - 1) ? name : name + sizeof prefix - 1;
    if (strcmp(finding->actor.kernel, kernel)) /* another one was under way, too */
        finding->actor = (struct sp_finding_actor){0};
    snprintf(finding->actor.what, sizeof finding->actor.what, "kernel");
    snprintf(finding->actor.kernel, sizeof finding->actor.kernel, "%s", kernel);
    if (finding->kind != SP_FINDING_FREED)
        finding->kind = SP_FINDING_UNDECLARED;
}

static void write_all(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(STDERR_FILENO, bytes, count);
        if (written <= 0)
            return;
        bytes += written;
        count -= (size_t)written;
    }
}

/* A message on its way to a context. */
struct notice {
    struct sp_callback_job job;
    uint64_t listener; /* the context's number */
    char message[TEXT_BYTES];
};

static void call_back(cl_context context, void *data)
{
    const struct notice *notice = data;
    /* An application that has let go of the context may have let go of what its callback needs. */
    if (sp_object_handles(&context->object) > 0)
        sp_context_report(context, notice->message);
}

static void deliver(struct sp_callback_job *job)
{
    struct notice *notice = (struct notice *)((char *)job - offsetof(struct notice, job));
    sp_listeners_visit(notice->listener, call_back, notice);
    free(notice);
    pthread_mutex_lock(&reports.lock);
    reports.num_calling--;
    pthread_cond_broadcast(&reports.moved);
    pthread_mutex_unlock(&reports.lock);
}

/* On the callback thread, so that a callback which takes its time delays no report. */
static void notify(const struct sp_finding *finding, const char *message)
{
    struct notice *notice = sp_alloc(sizeof *notice);
    if (!notice)
        return; /* standard error has it */
    notice->listener = sp_listener_of(finding->region.arena);
    snprintf(notice->message, sizeof notice->message, "%s", message);
    notice->job.run = deliver;
    pthread_mutex_lock(&reports.lock);
    reports.num_calling++;
    pthread_mutex_unlock(&reports.lock);
    sp_callback_post(&notice->job);
}

/* After the callback. Where a thread waits in a touch, it gets the signal, so that a debugger and a
 * core file show the place. */
static void stop(const struct sp_finding *finding)
{
    struct timespec moment = last_moment();
    pthread_mutex_lock(&reports.lock);
    while (reports.num_calling &&
           pthread_cond_timedwait(&reports.moved, &reports.lock, &moment) == 0)
        ;
    pthread_mutex_unlock(&reports.lock);
    if (finding->thread && !syscall(SYS_tgkill, getpid(), finding->thread, SIGABRT)) {
        moment = last_moment();
        pthread_mutex_lock(&reports.lock);
        while (pthread_cond_timedwait(&reports.moved, &reports.lock, &moment) == 0)
            ;
        pthread_mutex_unlock(&reports.lock);
    }
    abort();
}

/* Writes the words; false where the same was told of before. */
static bool write_finding(struct sp_finding *finding, struct text *text)
{
    const void *culprit = NULL;
    if (finding->instruction)
        culprit = sp_symbol_culprit(finding->instruction, finding->stack, finding->num_words);
    if (culprit && sp_symbol_owner(culprit) == SP_SYMBOL_KERNEL)
        blame_kernel(finding, culprit);
    else if (finding->instruction)
        finding->actor = (struct sp_finding_actor){0};
    if (finding->actor.what[0])
        finding->instruction = 0; /* a kernel's reading and its writing are one matter */
    struct key key = rough_key(finding);
    if (finding->instruction && culprit) {
        key.first = (uintptr_t)culprit;
        key.second = 0;
    }
    if (!add_key(&reports.told, key))
        return false;
    text->length = 0;
    add(text, "samepage check: ");
    add_headline(text, finding);
    if (!finding->actor.what[0])
        add_place(text, ", in ", culprit ? culprit : (const void *)finding->instruction);
    add_region(text, finding);
    add(text, "\n    fix: %s\n", fix_for(finding));
    write_all(text->bytes, text->length);
    text->bytes[text->length - 1] = 0; /* the callback gets no end of line */
    return true;
}

static void tell(struct sp_finding *finding)
{
    static struct text text; /* the thread's own */
    bool is_new = write_finding(finding, &text);
    pthread_mutex_lock(&reports.lock);
    reports.num_written++;
    pthread_cond_broadcast(&reports.moved);
    pthread_mutex_unlock(&reports.lock);
    if (is_new)
        notify(finding, text.bytes);
    if (is_new && sp_check_aborts)
        stop(finding);
}

static void *tell_findings(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&reports.lock);
    for (;;) {
        while (!reports.first)
            pthread_cond_wait(&reports.moved, &reports.lock);
        struct waiting *waiting = reports.first;
        reports.first = waiting->next;
        if (!reports.first)
            reports.last = NULL;
        pthread_mutex_unlock(&reports.lock);
        tell(&waiting->finding);
        free(waiting);
        pthread_mutex_lock(&reports.lock);
        reports.num_waiting--;
        pthread_cond_broadcast(&reports.moved);
    }
    return NULL;
}

void sp_check_report_flush(void)
{
    struct timespec moment = last_moment();
    /* Off, or a forked child, whose parent has the threads; or one of those. */
    if (!sp_check_is_on || sp_callback_is_this_thread())
        return;
    pthread_mutex_lock(&reports.lock);
    while ((reports.num_waiting || reports.num_calling) &&
           pthread_cond_timedwait(&reports.moved, &reports.lock, &moment) == 0)
        ;
    pthread_mutex_unlock(&reports.lock);
}

void sp_check_report_start(void)
{
    if (!sp_check_is_on || sp_thread_start_detached(tell_findings, NULL, 0))
        return;
    atexit(sp_check_report_flush);
    sp_check_found = note_finding;
}
