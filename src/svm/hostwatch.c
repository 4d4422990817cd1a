/* Host watching: the choice of the method, and what all methods have in common.
 *
 * Methods are tried in the order of their cost: each one has to find exactly the pages that a trial
 * wrote into a few pages of a shared file, by the program and by the kernel. So a kernel that lacks
 * something, or a sandbox that forbids it, is noticed here, and not when data is lost. The choice
 * never changes afterwards.
 *
 * A forked child inherits the descriptors, which still stand for the parent's memory, but neither
 * protected pages nor threads. So in the child no method is called: nothing is armed, and what was
 * armed counts as written. Which process this is says a page that the kernel clears in a child
 * (MADV_WIPEONFORK), however it was forked.
 *
 * No lock here: the choice is made under pthread_once and only read later.
 */
#include "svm/hostwatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "svm/hostwatch_method.h"
#include "util/alloc.h"

static const struct {
    const struct sp_hostwatch_ops *ops;
    const char *name;   /* shown */
    const char *wanted; /* as SAMEPAGE_HOSTWATCH says it */
} methods[] = {
    [SP_HOSTWATCH_NONE] = {NULL, "none", "none"},
    [SP_HOSTWATCH_PAGEMAP] = {&sp_hostwatch_pagemap_ops, "PAGEMAP_SCAN", "pagemap"},
    [SP_HOSTWATCH_UFFD] = {&sp_hostwatch_uffd_ops, "userfaultfd", "userfaultfd"},
    [SP_HOSTWATCH_COMPARE] = {&sp_hostwatch_compare_ops, "compare", "compare"},
};

/* What the kernel maps with the page that was touched, where those pages exist: the default of
 * /sys/kernel/debug/fault_around_bytes (mm/memory.c). */
#define FAULT_AROUND_BYTES ((size_t)1 << 16)

#define NUM_METHODS (sizeof methods / sizeof methods[0])

static struct {
    pthread_once_t once;
    enum sp_hostwatch_method method;
    size_t page_bytes;
    volatile unsigned char *is_here; /* 1; 0 in a forked child. NULL: could not be made */
} hostwatch = {.once = PTHREAD_ONCE_INIT};

size_t sp_hostwatch_page_bytes(void)
{
    return hostwatch.page_bytes;
}

static void tell(const struct sp_hostwatch_runs *runs)
{
    if (runs->first < runs->end)
        runs->written(runs->data, runs->first, runs->end);
}

void sp_hostwatch_runs_add(struct sp_hostwatch_runs *runs, uint64_t first, uint64_t end)
{
    if (first != runs->end) {
        tell(runs);
        runs->first = first;
    }
    runs->end = end;
}

static bool is_forked_child(void)
{
    return !hostwatch.is_here || !*hostwatch.is_here;
}

static void mark_process(void)
{
    unsigned char *page = mmap(NULL, hostwatch.page_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, hostwatch.page_bytes, MADV_WIPEONFORK)) {
        munmap(page, hostwatch.page_bytes);
        return;
    }
    *page = 1;
    hostwatch.is_here = page;
}

/* The trial: a few pages, of which the first are in memory before it starts. */
enum {
    TRIAL_PAGES = 64,
    TRIAL_TOUCHED = 16,
    TRIAL_READ = 5,      /* only read */
    TRIAL_READ_NEW = 40, /* only read, and not in memory before */
    TRIAL_WRITTEN = 3,
    TRIAL_WRITTEN_NEW = 50,
    TRIAL_DROPPED = 7,   /* written, then taken out of this mapping, as when memory is short */
    TRIAL_BY_KERNEL = 9, /* written by a system call */
    TRIAL_BY_KERNEL_NEW = 60,
};

/* Callback: one bit for each page. */
static void note_pages(void *data, uint64_t first, uint64_t end)
{
    uint64_t *pages = data;
    for (uint64_t at = first; at < end; at += hostwatch.page_bytes)
        *pages |= UINT64_C(1) << (at / hostwatch.page_bytes);
}

/* uname: the one system call that always has something to write. */
static int write_by_kernel(unsigned char *page)
{
    return uname((struct utsname *)(void *)page) ? -errno : 0;
}

static int end_trial(const struct sp_hostwatch_ops *ops, struct sp_hostwatch *watch,
                     uint64_t expected)
{
    uint64_t pages = 0;
    struct sp_hostwatch_runs runs = {.written = note_pages, .data = &pages};
    ops->collect(watch, &runs);
    tell(&runs);
    ops->forget(watch);
    return pages == expected ? 0 : -ENOTSUP;
}

/* The second time finds what the first one has left: pages that are still protected, and pages that
 * are not. */
static int try_twice(const struct sp_hostwatch_ops *ops, struct sp_hostwatch *watch)
{
    size_t page_bytes = hostwatch.page_bytes;
    volatile unsigned char *start = watch->start;
    for (size_t i = 0; i < TRIAL_TOUCHED; i++)
        start[i * page_bytes] = 1;

    int error = ops->arm(watch);
    if (error)
        return error;
    (void)start[TRIAL_READ * page_bytes];
    (void)start[TRIAL_READ_NEW * page_bytes];
    start[TRIAL_WRITTEN * page_bytes] = 2;
    start[TRIAL_WRITTEN_NEW * page_bytes] = 2;
    start[TRIAL_DROPPED * page_bytes] = 2;
    madvise(watch->start + TRIAL_DROPPED * page_bytes, page_bytes, MADV_DONTNEED);
    error = write_by_kernel(watch->start + TRIAL_BY_KERNEL * page_bytes);
    int late = write_by_kernel(watch->start + TRIAL_BY_KERNEL_NEW * page_bytes);
    int wrong = end_trial(ops, watch,
                          UINT64_C(1) << TRIAL_WRITTEN | UINT64_C(1) << TRIAL_WRITTEN_NEW |
                              UINT64_C(1) << TRIAL_DROPPED | UINT64_C(1) << TRIAL_BY_KERNEL |
                              UINT64_C(1) << TRIAL_BY_KERNEL_NEW);
    if (error || late || wrong)
        return error ? error : late ? late : wrong;

    error = ops->arm(watch);
    if (error)
        return error;
    start[TRIAL_READ * page_bytes] = 3;
    (void)start[TRIAL_DROPPED * page_bytes];
    return end_trial(ops, watch, UINT64_C(1) << TRIAL_READ);
}

static int try_method(const struct sp_hostwatch_ops *ops)
{
    if (is_forked_child() || sp_alloc_may_fail())
        return -ENOMEM;
    int file = memfd_create("samepage-trial", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    size_t bytes = TRIAL_PAGES * hostwatch.page_bytes;
    int error = ops->start();
    if (error)
        goto close_file;
    void *start = MAP_FAILED;
    if (ftruncate(file, (off_t)bytes) == 0)
        start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) {
        error = -errno;
    } else {
        struct sp_hostwatch watch = {.start = start, .bytes = bytes, .given_bytes = bytes};
        error = try_twice(ops, &watch);
        munmap(start, bytes);
    }
    if (error && ops->stop)
        ops->stop();
close_file:
    close(file);
    return error;
}

static void choose(void)
{
    hostwatch.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    mark_process();
    const char *wanted = getenv("SAMEPAGE_HOSTWATCH");
    for (size_t i = 0; wanted && i < NUM_METHODS; i++)
        if (strcmp(wanted, methods[i].wanted) == 0) {
            if (methods[i].ops && try_method(methods[i].ops) == 0)
                hostwatch.method = (enum sp_hostwatch_method)i;
            return;
        }
    if (wanted && *wanted)
        fprintf(
            stderr,
            "samepage: SAMEPAGE_HOSTWATCH is '%s'; it may be 'pagemap', 'userfaultfd', 'compare' "
            "or 'none', or not set\n",
            wanted);
    for (size_t i = SP_HOSTWATCH_PAGEMAP; i < NUM_METHODS; i++)
        if (try_method(methods[i].ops) == 0) {
            hostwatch.method = (enum sp_hostwatch_method)i;
            return;
        }
}

enum sp_hostwatch_method sp_hostwatch_init(void)
{
    pthread_once(&hostwatch.once, choose);
    return hostwatch.method;
}

const char *sp_hostwatch_name(enum sp_hostwatch_method method)
{
    return methods[method].name;
}

/* What else runs may write there: only the touch matters, not what is read. */
__attribute__((no_sanitize("thread", "address"))) void sp_hostwatch_populate(const void *start,
                                                                             size_t bytes)
{
    const volatile unsigned char *bytes_at = start;
    for (size_t at = 0; at < bytes; at += FAULT_AROUND_BYTES)
        (void)bytes_at[at];
}

int sp_hostwatch_arm(void *start, size_t bytes, struct sp_hostwatch **watch)
{
    const struct sp_hostwatch_ops *ops = methods[sp_hostwatch_init()].ops;
    if (!ops || is_forked_child())
        return -ENOTSUP;
    struct sp_hostwatch *created = sp_alloc(sizeof *created);
    if (!created)
        return -ENOMEM;
    created->start = start;
    created->bytes = bytes & ~(hostwatch.page_bytes - 1);
    created->given_bytes = bytes;
    int error = created->bytes ? ops->arm(created) : 0;
    if (error) {
        free(created);
        return error;
    }
    *watch = created;
    return 0;
}

void sp_hostwatch_collect(struct sp_hostwatch *watch,
                          void (*written)(void *data, uint64_t first, uint64_t end), void *data)
{
    if (!watch)
        return;
    const struct sp_hostwatch_ops *ops = methods[hostwatch.method].ops;
    struct sp_hostwatch_runs runs = {.written = written, .data = data};
    if (is_forked_child())
        sp_hostwatch_runs_add(&runs, 0, watch->given_bytes);
    else if (watch->bytes)
        ops->collect(watch, &runs);
    tell(&runs);
    ops->forget(watch);
    free(watch);
}

bool sp_hostwatch_collect_on(struct sp_hostwatch *watch,
                             void (*written)(void *data, uint64_t first, uint64_t end), void *data)
{
    const struct sp_hostwatch_ops *ops = methods[hostwatch.method].ops;
    struct sp_hostwatch_runs runs = {.written = written, .data = data};
    bool may_stay = ops->collect_on && watch->bytes && !is_forked_child();
    if (!may_stay) {
        sp_hostwatch_collect(watch, written, data);
        return false;
    }
    bool stays = ops->collect_on(watch, &runs);
    tell(&runs);
    if (!stays)
        sp_hostwatch_drop(watch);
    return stays;
}

static void ignore(void *data, uint64_t first, uint64_t end)
{
    (void)data, (void)first, (void)end;
}

void sp_hostwatch_drop(struct sp_hostwatch *watch)
{
    if (!watch)
        return;
    if (hostwatch.method ==
        SP_HOSTWATCH_UFFD) { /* it takes the protection off, for which nobody would wait any more */
        sp_hostwatch_collect(watch, ignore, NULL);
        return;
    }
    methods[hostwatch.method].ops->forget(watch);
    free(watch);
}
