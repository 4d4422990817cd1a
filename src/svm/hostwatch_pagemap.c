/* Host watching by asynchronous write-protection and PAGEMAP_SCAN: Linux 6.7 and later.
 *
 * The first write to a protected page only takes the protection off, inside the kernel; nobody is
 * asked or waited for, so it does not matter whether the program or a system call writes.
 * PAGEMAP_SCAN lists the pages without protection, and with PM_SCAN_WP_MATCHING protects them
 * again.
 *
 * Invariant: from arm on, every page of the range is either protected or counts as written. A page
 * that is not in this mapping is protected by a mark in its place (UFFD_FEATURE_WP_UNPOPULATED, and
 * for files UFFD_FEATURE_WP_HUGETLBFS_SHMEM); one without that mark counts as written, so a page
 * that was written and then taken out of memory is found all the same.
 *
 * What collect leaves protected stays so: taking it off costs as much as putting it on
 * (milliseconds for 256 MiB), whereas the next arm has only the written pages to protect. Memory
 * that was watched once is therefore a little slower to write once more, by whomever. Unmapping the
 * range ends everything that there is to it.
 *
 * No lock: the descriptors are only read, and the kernel orders the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "svm/hostwatch_method.h"

/* Names and values from the kernel's include/uapi/linux/userfaultfd.h and include/uapi/linux/fs.h,
 * which older headers lack. The names are ours, so that newer headers do not collide. */
#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13) /* UFFD_FEATURE_WP_UNPOPULATED, Linux 6.4 */
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15)       /* UFFD_FEATURE_WP_ASYNC, Linux 6.7 */
#define CATEGORY_WRITTEN (UINT64_C(1) << 1)        /* PAGE_IS_WRITTEN */
#define SCAN_WP_MATCHING (UINT64_C(1) << 0)        /* PM_SCAN_WP_MATCHING */
#define SCAN_CHECK_WPASYNC                                                                         \
    (UINT64_C(1) << 1) /* PM_SCAN_CHECK_WPASYNC: -EPERM for what is not registered */

struct page_run { /* struct page_region */
    uint64_t start, end, categories;
};

struct scan_arguments { /* struct pm_scan_arg */
    uint64_t size, flags;
    uint64_t start, end;
    uint64_t walk_end; /* out: how far it came */
    uint64_t vec, vec_len;
    uint64_t max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define IOCTL_PAGEMAP_SCAN _IOWR('f', 16, struct scan_arguments) /* PAGEMAP_SCAN */

/* Runs that one call returns, on the stack. */
#define RUNS_PER_SCAN 256u

static int uffd = -1, pagemap = -1;

static int start_pagemap(void)
{
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    /* Nobody ever waits for the descriptor, so the kernel's own writes need no privilege. */
    int opened =
        sp_hostwatch_open_uffd(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
                                   FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC,
                               false);
    if (opened < 0) {
        close(file);
        return opened;
    }
    pagemap = file;
    uffd = opened;
    return 0;
}

static void stop_pagemap(void)
{
    close(uffd);
    close(pagemap);
}

/* Mask and result in exactly this form take the kernel's fast path: 65 us for 256 MiB instead of
 * 170. */
static struct scan_arguments scan_of(const struct sp_hostwatch *watch, uint64_t flags)
{
    return (struct scan_arguments){
        .size = sizeof(struct scan_arguments),
        .flags = flags | SCAN_CHECK_WPASYNC,
        .start = (uintptr_t)watch->start,
        .end = (uintptr_t)watch->start + watch->bytes,
        .category_mask = CATEGORY_WRITTEN,
        .return_mask = CATEGORY_WRITTEN,
    };
}

static int protect_written(const struct sp_hostwatch *watch)
{
    struct scan_arguments scan = scan_of(watch, SCAN_WP_MATCHING);
    if (ioctl(pagemap, IOCTL_PAGEMAP_SCAN, &scan) < 0)
        return -errno;
    return scan.walk_end == scan.end ? 0 : -EAGAIN;
}

static int arm_pagemap(struct sp_hostwatch *watch)
{
    int error = protect_written(watch);
    if (error != -EPERM)
        return error;
    error = sp_hostwatch_register(uffd, watch); /* the first time, or it was mapped anew */
    return error ? error : protect_written(watch);
}

/* With SCAN_WP_MATCHING in `flags` what is found is protected again, in the same pass. False: the
 * mapping is another one. */
static bool scan_written(struct sp_hostwatch *watch, uint64_t flags, struct sp_hostwatch_runs *runs)
{
    struct page_run found[RUNS_PER_SCAN];
    struct scan_arguments scan = scan_of(watch, flags);
    uint64_t base = scan.start;
    scan.vec = (uintptr_t)found;
    scan.vec_len = RUNS_PER_SCAN;
    while (scan.start < scan.end) {
        int count = ioctl(pagemap, IOCTL_PAGEMAP_SCAN, &scan);
        if (count < 0 || scan.walk_end <= scan.start)
            break;
        for (int i = 0; i < count; i++)
            sp_hostwatch_runs_add(runs, found[i].start - base, found[i].end - base);
        scan.start = scan.walk_end;
    }
    if (scan.start == scan.end)
        return true;
    sp_hostwatch_runs_add(runs, scan.start - base, watch->given_bytes);
    return false;
}

static void collect_pagemap(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs)
{
    scan_written(watch, 0, runs);
}

static bool collect_on_pagemap(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs)
{
    return scan_written(watch, SCAN_WP_MATCHING, runs);
}

static void forget_pagemap(struct sp_hostwatch *watch)
{
    (void)watch;
}

const struct sp_hostwatch_ops sp_hostwatch_pagemap_ops = {
    .start = start_pagemap,
    .stop = stop_pagemap,
    .arm = arm_pagemap,
    .collect = collect_pagemap,
    .collect_on = collect_on_pagemap,
    .forget = forget_pagemap,
};
