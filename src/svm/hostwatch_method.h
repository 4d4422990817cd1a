/* Between host watching (hostwatch.c) and its methods, one file each. Nothing else includes this.
 *
 * A method is a table of functions. Only whole pages reach them, and none is called in a process
 * that was forked from the one that started the method. Return values are 0 or a negative errno.
 */
#ifndef SP_SVM_HOSTWATCH_METHOD_H
#define SP_SVM_HOSTWATCH_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_hostwatch {
    unsigned char *start;
    size_t bytes;       /* whole pages, at least one */
    size_t given_bytes; /* what the caller asked for */
    void *state;        /* the method's own, or NULL */
};

/* What was written, on its way to the caller: runs that touch are joined. */
struct sp_hostwatch_runs {
    void (*written)(void *data, uint64_t first, uint64_t end);
    void *data;
    uint64_t first, end; /* not yet told; empty when equal */
};

/* In bytes from the range's start, not before the end of the run added last. */
void sp_hostwatch_runs_add(struct sp_hostwatch_runs *runs, uint64_t first, uint64_t end);

struct sp_hostwatch_ops {
    /* Opens what all watches share. Called at most once for each method. */
    int (*start)(void);
    /* Undoes `start`: the trial has failed. May be NULL. */
    void (*stop)(void);
    /* With an error nothing is watched, and `state` is NULL again. */
    int (*arm)(struct sp_hostwatch *watch);
    /* Adds the written runs in ascending order, and from where it cannot tell, everything up to the
     * end. */
    void (*collect)(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs);
    /* As collect, and watches on from there; false where it cannot, and then what it added is all
     * the same. NULL: it never can. */
    bool (*collect_on)(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs);
    /* Frees `state`; in a forked process too, so it asks nothing of the system that concerns the
     * parent. */
    void (*forget)(struct sp_hostwatch *watch);
};

extern const struct sp_hostwatch_ops sp_hostwatch_pagemap_ops;
extern const struct sp_hostwatch_ops sp_hostwatch_uffd_ops;
extern const struct sp_hostwatch_ops sp_hostwatch_compare_ops;

/* Never changes after the start of the first method. */
size_t sp_hostwatch_page_bytes(void);

/* A userfaultfd with these features (UFFD_FEATURE_*), close-on-exec; or a negative errno.
 * `for_kernel`: the write of a system call, too, must be able to wait for the one who reads the
 * descriptor. That takes a privilege (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd = 1, or access
 * to /dev/userfaultfd). */
int sp_hostwatch_open_uffd(uint64_t features, bool for_kernel);

/* Lets `uffd` write-protect pages of the watch's range. Cheap where it already may. */
int sp_hostwatch_register(int uffd, const struct sp_hostwatch *watch);

#endif
