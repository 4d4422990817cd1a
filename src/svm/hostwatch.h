/* Host watching: finds the pages that the host wrote.
 *
 * A range of shared host pages (the window's file) is armed when it is mapped for writing; when it
 * is unmapped, the pages written since then are collected, and only they are taken for changed.
 * Writes that the kernel makes on the program's behalf, read(2) into the range, are found as well.
 *
 * Which method is used is decided once: the first one that works on a trial range. No signal
 * handler is ever installed. Thread-safe; ranges of different calls do not overlap.
 */
#ifndef SP_SVM_HOSTWATCH_H
#define SP_SVM_HOSTWATCH_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

enum sp_hostwatch_method {
    SP_HOSTWATCH_NONE = 0, /* nothing works: everything mapped for writing is taken for written */
    SP_HOSTWATCH_PAGEMAP = 1, /* asynchronous write-protect and PAGEMAP_SCAN: Linux 6.7 and later */
    SP_HOSTWATCH_UFFD = 2,    /* userfaultfd write-protect with a thread that resolves it */
    SP_HOSTWATCH_COMPARE = 3, /* a copy that is compared */
};

/* Chooses and starts the method; SAMEPAGE_HOSTWATCH (pagemap, userfaultfd, compare, none) asks for
 * one, and there is none where that one does not work. Called once, later calls give the same
 * answer. Never fails: SP_HOSTWATCH_NONE is an answer. */
enum sp_hostwatch_method sp_hostwatch_init(void);

/* "PAGEMAP_SCAN", "userfaultfd", "compare", "none". */
const char *sp_hostwatch_name(enum sp_hostwatch_method method);

/* A range that is watched. */
struct sp_hostwatch;

/* Starts to watch the whole pages in [start, start + bytes); start is a multiple of the page size.
 * What lies behind the last whole page is not watched: take it for written. -ENOMEM, -ENOTSUP or
 * what the system said: then the range is not watched. In a forked child nothing is. */
int sp_hostwatch_arm(void *start, size_t bytes, struct sp_hostwatch **watch);

/* Takes the pages of a range, which all exist already, into the page table of this process. Once a
 * range has been watched the kernel takes each page on its own when it is first touched, before
 * that sixteen at a time: reading 256 MiB costs 67 to 96 ms in the first case, 12 to 16 ms in the
 * other (docs/host-watching.md). `start` is a multiple of the page size. */
void sp_hostwatch_populate(const void *start, size_t bytes);

/* Ends the watch and calls `written` for each run of pages that were written since it began, in
 * ascending order, in bytes from the range's start. Where that cannot be told any more (the range
 * was mapped anew, or this is a forked child), for everything up to the range's end. Takes NULL
 * (nothing is called). */
void sp_hostwatch_collect(struct sp_hostwatch *watch,
                          void (*written)(void *data, uint64_t first, uint64_t end), void *data);

/* The same, but the range is watched on from here, for the same price; where that is not possible,
 * and with false, the watch has ended. */
bool sp_hostwatch_collect_on(struct sp_hostwatch *watch,
                             void (*written)(void *data, uint64_t first, uint64_t end), void *data);

/* Ends the watch without asking. Takes NULL. */
void sp_hostwatch_drop(struct sp_hostwatch *watch);

#endif
