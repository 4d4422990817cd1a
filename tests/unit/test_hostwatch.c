/* Host watching with the method that SAMEPAGE_HOSTWATCH asks for; ctest runs this program once for
 * each. Exits with 77 (skipped) where that method does not work. Times are printed, not checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "svm/hostwatch.h"
#include "util/alloc.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define EXIT_SKIPPED 77 /* SKIP_RETURN_CODE in CMakeLists.txt */

static enum sp_hostwatch_method method;

/* Pages of a file that others could map, as the window's, or of nobody else's. */
struct range {
    unsigned char *start;
    size_t pages;
    int file;
};

static struct range map_file(size_t pages)
{
    struct range range = {.pages = pages, .file = memfd_create("test", MFD_CLOEXEC)};
    assert_true(range.file >= 0);
    assert_int_equal(ftruncate(range.file, (off_t)(pages * PAGE)), 0);
    range.start = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, range.file, 0);
    assert_ptr_not_equal(range.start, MAP_FAILED);
    return range;
}

static struct range map_anonymous(size_t pages)
{
    struct range range = {.pages = pages, .file = -1};
    range.start =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(range.start, MAP_FAILED);
    return range;
}

static void unmap(struct range *range)
{
    munmap(range->start, range->pages * PAGE);
    if (range->file >= 0)
        close(range->file);
}

/* What was collected: one byte for each page, and how many calls it took. */
struct found {
    unsigned char *pages;
    size_t num_pages, runs;
    uint64_t last_end;
};

/* Callback. Neighbouring runs are one run. */
static void note(void *data, uint64_t first, uint64_t end)
{
    struct found *found = data;
    assert_true(first < end && end <= found->num_pages * PAGE);
    assert_true(found->runs == 0 || first > found->last_end);
    assert_true(first % PAGE == 0 && end % PAGE == 0);
    for (uint64_t page = first / PAGE; page < end / PAGE; page++)
        found->pages[page] = 1;
    found->runs++;
    found->last_end = end;
}

static struct sp_hostwatch *arm(const struct range *range)
{
    struct sp_hostwatch *watch = NULL;
    assert_int_equal(sp_hostwatch_arm(range->start, range->pages * PAGE, &watch), 0);
    assert_non_null(watch);
    return watch;
}

static struct found collect(struct sp_hostwatch *watch, const struct range *range)
{
    struct found found = {.pages = calloc(range->pages, 1), .num_pages = range->pages};
    assert_non_null(found.pages);
    sp_hostwatch_collect(watch, note, &found);
    return found;
}

/* Collects, and checks that it is exactly the pages listed, in ascending order. */
static void expect_pages(struct sp_hostwatch *watch, const struct range *range, const size_t *pages,
                         size_t count)
{
    struct found found = collect(watch, range);
    for (size_t page = 0, next = 0; page < range->pages; page++) {
        int is_listed = next < count && pages[next] == page;
        if (found.pages[page] != is_listed)
            print_error("page %zu\n", page);
        assert_int_equal(found.pages[page], is_listed);
        next += (size_t)is_listed;
    }
    free(found.pages);
}

#define EXPECT_PAGES(watch, range, ...)                                                            \
    expect_pages(watch, range, (const size_t[]){__VA_ARGS__},                                      \
                 sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define EXPECT_NOTHING(watch, range) expect_pages(watch, range, NULL, 0)

static void touch(const struct range *range, size_t page)
{
    range->start[page * PAGE + page % PAGE]++;
}

static void touch_all(const struct range *range)
{
    for (size_t page = 0; page < range->pages; page++)
        touch(range, page);
}

static void nothing_written_is_nothing_found(void **state)
{
    (void)state;
    struct range range = map_file(300);
    EXPECT_NOTHING(arm(&range), &range); /* no page is there yet */
    touch_all(&range);
    EXPECT_NOTHING(arm(&range), &range);
    struct sp_hostwatch *watch = arm(&range);
    unsigned sum = 0;
    for (size_t page = 0; page < range.pages; page++)
        sum += *(volatile unsigned char *)(range.start + page * PAGE);
    assert_true(sum < UINT32_MAX);
    EXPECT_NOTHING(watch, &range);
    unmap(&range);
    sp_hostwatch_collect(NULL, note, NULL);
}

/* Pages that another process put into the file appear here when they are read. */
static void reading_pages_that_are_new_here_is_not_writing(void **state)
{
    (void)state;
    struct range range = map_file(64);
    assert_int_equal(pwrite(range.file, "xy", 2, (off_t)(20 * PAGE)), 2);
    struct sp_hostwatch *watch = arm(&range);
    assert_int_equal(*(volatile unsigned char *)(range.start + 20 * PAGE), 'x');
    assert_int_equal(*(volatile unsigned char *)(range.start + 21 * PAGE), 0);
    range.start[22 * PAGE] = 1;
    EXPECT_PAGES(watch, &range, 22);
    unmap(&range);
}

static void one_page_and_the_first_and_the_last(void **state)
{
    (void)state;
    struct range range = map_file(700);
    for (int is_there = 0; is_there < 2; is_there++) {
        struct sp_hostwatch *watch = arm(&range);
        touch(&range, 123);
        EXPECT_PAGES(watch, &range, 123);
        watch = arm(&range);
        range.start[0] = 7;
        range.start[700 * PAGE - 1] ^= 7;
        range.start[0] ^= 1;
        EXPECT_PAGES(watch, &range, 0, 699);
        touch_all(&range);
    }
    unmap(&range);
}

static void anonymous_memory_is_watched_too(void **state)
{
    (void)state;
    struct range range = map_anonymous(300);
    for (int is_there = 0; is_there < 2; is_there++) {
        struct sp_hostwatch *watch = arm(&range);
        assert_true(*(volatile unsigned char *)(range.start + 5 * PAGE) < 255);
        touch(&range, 0);
        touch(&range, 77);
        touch(&range, 299);
        EXPECT_PAGES(watch, &range, 0, 77, 299);
        touch_all(&range);
    }
    unmap(&range);
}

static void a_thousand_scattered_pages(void **state)
{
    (void)state;
    enum { PAGES = 8192, WRITTEN = 1024 };
    struct range range = map_file(PAGES);
    size_t pages[WRITTEN];
    struct sp_hostwatch *watch = arm(&range);
    for (size_t i = 0; i < WRITTEN; i++)
        pages[i] = i * 8 + i % 7;
    for (size_t i = 0; i < WRITTEN; i++) /* in another order than that of the addresses */
        touch(&range, pages[i * 389 % WRITTEN]);
    expect_pages(watch, &range, pages, WRITTEN);
    unmap(&range);
}

static void all_pages_are_one_run(void **state)
{
    (void)state;
    struct range range = map_file(3000);
    struct sp_hostwatch *watch = arm(&range);
    touch_all(&range);
    struct found found = collect(watch, &range);
    assert_int_equal(found.runs, 1);
    assert_int_equal(found.last_end, 3000 * PAGE);
    free(found.pages);
    unmap(&range);
}

/* Every second page: as many runs as there can be. */
static void more_runs_than_one_call_of_the_system_returns(void **state)
{
    (void)state;
    struct range range = map_file(6000);
    struct sp_hostwatch *watch = arm(&range);
    for (size_t page = 1; page < 6000; page += 2)
        touch(&range, page);
    struct found found = collect(watch, &range);
    assert_int_equal(found.runs, 3000);
    for (size_t page = 0; page < 6000; page++)
        assert_int_equal(found.pages[page], page % 2);
    free(found.pages);
    unmap(&range);
}

enum { WRITERS = 4, PAGES_PER_WRITER = 500 };

struct writer {
    const struct range *range;
    size_t first;
};

static void *write_pages(void *argument)
{
    const struct writer *writer = argument;
    for (size_t i = 0; i < PAGES_PER_WRITER; i++)
        touch(writer->range, writer->first + 2 * WRITERS * i);
    return NULL;
}

static void threads_write(void **state)
{
    (void)state;
    struct range range = map_file(2 * WRITERS * PAGES_PER_WRITER);
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    for (int round = 0; round < 3; round++) {
        struct sp_hostwatch *watch = arm(&range);
        for (size_t i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.range = &range, .first = i};
            assert_int_equal(pthread_create(&threads[i], NULL, write_pages, &writers[i]), 0);
        }
        for (size_t i = 0; i < WRITERS; i++)
            pthread_join(threads[i], NULL);
        struct found found = collect(watch, &range);
        for (size_t page = 0; page < range.pages; page++)
            assert_int_equal(found.pages[page], page % (2 * WRITERS) < WRITERS);
        free(found.pages);
    }
    unmap(&range);
}

struct worker {
    int failures;
};

/* Arms and collects a range of its own again and again, while others do the same. */
static void *watch_own_range(void *argument)
{
    struct worker *worker = argument;
    struct range range = map_file(40);
    for (size_t round = 0; round < 200; round++) {
        struct sp_hostwatch *watch = NULL;
        if (sp_hostwatch_arm(range.start, range.pages * PAGE, &watch)) {
            worker->failures++;
            break;
        }
        touch(&range, round % 40);
        touch(&range, (round + 11) % 40);
        struct found found = {.pages = calloc(40, 1), .num_pages = 40};
        sp_hostwatch_collect(watch, note, &found);
        for (size_t page = 0; page < 40; page++)
            worker->failures +=
                found.pages[page] != (page == round % 40 || page == (round + 11) % 40);
        free(found.pages);
    }
    unmap(&range);
    return NULL;
}

static void threads_watch(void **state)
{
    (void)state;
    struct worker workers[WRITERS] = {{0}};
    pthread_t threads[WRITERS];
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, watch_own_range, &workers[i]), 0);
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
}

static void the_kernel_writes(void **state)
{
    (void)state;
    struct range range = map_file(200);
    struct range source = map_file(4);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    memset(source.start, 0x5a, 4 * PAGE);
    for (int is_there = 0; is_there < 2; is_there++) {
        struct sp_hostwatch *watch = arm(&range);
        /* Across two borders, then within a page, from a file and from a pipe. */
        assert_int_equal(pread(source.file, range.start + 11 * PAGE - 1, PAGE + 2, 0), PAGE + 2);
        assert_int_equal(write(pipes[1], "abc", 3), 3);
        assert_int_equal(read(pipes[0], range.start + 150 * PAGE + 9, 3), 3);
        EXPECT_PAGES(watch, &range, 10, 11, 12, 150);
        assert_memory_equal(range.start + 150 * PAGE + 9, "abc", 3);
        assert_int_equal(range.start[12 * PAGE], 0x5a);
        touch_all(&range);
        memset(range.start, 1, range.pages * PAGE);
    }
    close(pipes[0]);
    close(pipes[1]);
    unmap(&source);
    unmap(&range);
}

static void memcpy_crosses_page_borders(void **state)
{
    (void)state;
    struct range range = map_file(64);
    unsigned char *bytes = malloc(3 * PAGE);
    assert_non_null(bytes);
    memset(bytes, 9, 3 * PAGE);
    struct sp_hostwatch *watch = arm(&range);
    memcpy(range.start + 4 * PAGE - 3, bytes, 6);
    memcpy(range.start + 30 * PAGE - 5, bytes, 2 * PAGE + 6);
    memcpy(range.start + 50 * PAGE, bytes, PAGE);
    EXPECT_PAGES(watch, &range, 3, 4, 29, 30, 31, 32, 50);
    free(bytes);
    unmap(&range);
}

/* Neighbours in one mapping, and armed and collected in different orders. */
static void two_watches_at_once(void **state)
{
    (void)state;
    struct range both = map_file(100);
    struct range low = {.start = both.start, .pages = 50};
    struct range high = {.start = both.start + 50 * PAGE, .pages = 50};
    for (int round = 0; round < 4; round++) {
        struct sp_hostwatch *first = arm(round % 2 ? &high : &low);
        touch(&both, 49);
        struct sp_hostwatch *second = arm(round % 2 ? &low : &high);
        touch(&both, 48);
        touch(&both, 50);
        touch(&both, 99);
        struct sp_hostwatch *watch_low = round % 2 ? second : first;
        struct sp_hostwatch *watch_high = round % 2 ? first : second;
        if (round < 2) {
            if (round % 2)
                EXPECT_PAGES(watch_low, &low, 48);
            else
                EXPECT_PAGES(watch_low, &low, 48, 49);
            touch(&both, 60);
            touch(&both, 3);
            EXPECT_PAGES(watch_high, &high, 0, 10, 49);
        } else {
            EXPECT_PAGES(watch_high, &high, 0, 49);
            touch(&both, 60);
            touch(&both, 3);
            if (round % 2)
                EXPECT_PAGES(watch_low, &low, 3, 48);
            else
                EXPECT_PAGES(watch_low, &low, 3, 48, 49);
        }
    }
    unmap(&both);
}

static void armed_again_and_again(void **state)
{
    (void)state;
    struct range range = map_file(512);
    for (size_t round = 0; round < 50; round++) {
        struct sp_hostwatch *watch = arm(&range);
        touch(&range, round * 7);
        touch(&range, round * 7 + 100);
        EXPECT_PAGES(watch, &range, round * 7, round * 7 + 100);
        touch(&range, 511 - round); /* between two watches: nobody's business */
    }
    unmap(&range);
}

/* What is asked in between is told once. Methods that cannot go on say so, and have ended. */
static void a_watch_goes_on_after_it_was_asked(void **state)
{
    (void)state;
    enum { PAGES = 700, RUNS = 300 };
    struct range range = map_file(PAGES);
    touch_all(&range);
    struct sp_hostwatch *watch = arm(&range);
    for (unsigned round = 0; round < 4; round++) {
        struct found found = {.pages = calloc(PAGES, 1), .num_pages = PAGES};
        for (size_t i = 0; i < (round == 2 ? RUNS : 1u); i++)
            touch(&range, i * 2 + round);
        bool goes_on = sp_hostwatch_collect_on(watch, note, &found);
        assert_int_equal(found.runs, round == 2 ? RUNS : 1);
        assert_true(found.pages[round]);
        free(found.pages);
        assert_int_equal(goes_on, method == SP_HOSTWATCH_PAGEMAP);
        if (!goes_on)
            watch = arm(&range);
    }
    expect_pages(watch, &range, NULL, 0);
    sp_hostwatch_drop(arm(&range));
    sp_hostwatch_drop(NULL);
    unmap(&range);
}

/* One range, then others that share a part of it. */
static void ranges_change_from_watch_to_watch(void **state)
{
    (void)state;
    struct range all = map_file(100);
    struct range part = {.start = all.start + 30 * PAGE, .pages = 40};
    struct sp_hostwatch *watch = arm(&part);
    touch(&all, 40);
    touch(&all, 10);
    EXPECT_PAGES(watch, &part, 10);
    watch = arm(&all);
    touch(&all, 41);
    touch(&all, 99);
    EXPECT_PAGES(watch, &all, 41, 99);
    watch = arm(&part);
    touch(&all, 69);
    touch(&all, 70);
    EXPECT_PAGES(watch, &part, 39);
    unmap(&all);
}

/* As when memory is short: the page's content is in the file only. */
static void written_pages_that_leave_the_mapping_are_found(void **state)
{
    (void)state;
    enum { PAGES = 4096, WRITTEN = 1500 };
    struct range range = map_file(PAGES);
    struct sp_hostwatch *watch = arm(&range);
    for (size_t page = 0; page < WRITTEN; page++)
        touch(&range, page);
    touch(&range, 3000);
    assert_int_equal(madvise(range.start, PAGES * PAGE, MADV_DONTNEED), 0);
    struct found found = collect(watch, &range);
    for (size_t page = 0; page < PAGES; page++)
        assert_int_equal(found.pages[page], page < WRITTEN || page == 3000);
    free(found.pages);
    unmap(&range);
}

/* A run that reaches the end of the mapping may be told for more than was written, never for less.
 */
static void a_range_that_is_mapped_anew_loses_no_write(void **state)
{
    (void)state;
    struct range range = map_file(64);
    struct sp_hostwatch *watch = arm(&range);
    touch(&range, 3);
    assert_ptr_not_equal(
        mmap(range.start, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, range.file, 0),
        MAP_FAILED);
    touch(&range, 33);
    struct found found = collect(watch, &range);
    assert_true(found.pages[3] && found.pages[33]);
    free(found.pages);
    watch = arm(&range);
    touch(&range, 4);
    EXPECT_PAGES(watch, &range, 4);
    unmap(&range);
}

/* Half of it. */
static void a_part_that_is_mapped_anew_loses_no_write(void **state)
{
    (void)state;
    struct range range = map_file(64);
    struct sp_hostwatch *watch = arm(&range);
    touch(&range, 3);
    assert_ptr_not_equal(mmap(range.start + 32 * PAGE, 32 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, range.file, (off_t)(32 * PAGE)),
                         MAP_FAILED);
    touch(&range, 33);
    struct found found = collect(watch, &range);
    assert_true(found.pages[3] && found.pages[33]);
    free(found.pages);
    unmap(&range);
}

static void only_whole_pages_are_watched(void **state)
{
    (void)state;
    struct range range = map_file(4);
    struct sp_hostwatch *watch = NULL;
    assert_int_equal(sp_hostwatch_arm(range.start, 2 * PAGE + 17, &watch), 0);
    touch_all(&range);
    struct found found = collect(watch, &range);
    assert_int_equal(found.runs, 1);
    assert_int_equal(found.last_end, 2 * PAGE);
    free(found.pages);
    assert_int_equal(sp_hostwatch_arm(range.start, 17, &watch), 0);
    touch_all(&range);
    EXPECT_NOTHING(watch, &range);
    unmap(&range);
}

enum { CHILD_OK = 0, CHILD_ARMED = 1, CHILD_TOLD_LESS = 2, CHILD_SECONDS = 300 };

/* In the child: nothing hangs, nothing is watched, and a watch of the parent says that all was
 * written. */
static int use_in_child(const struct range *range, struct sp_hostwatch *watch)
{
    alarm(CHILD_SECONDS); /* ends a child that hangs */
    touch_all(range);
    struct sp_hostwatch *own = NULL;
    if (sp_hostwatch_arm(range->start, range->pages * PAGE, &own) == 0)
        return CHILD_ARMED;
    struct found found = {.pages = calloc(range->pages, 1), .num_pages = range->pages};
    sp_hostwatch_collect(watch, note, &found);
    int is_whole = found.runs == 1 && found.last_end == range->pages * PAGE;
    free(found.pages);
    return is_whole ? CHILD_OK : CHILD_TOLD_LESS;
}

static void fork_while_watched(struct range range)
{
    for (int round = 0; round < 2; round++) {
        struct sp_hostwatch *watch = arm(&range);
        touch(&range, 2);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(use_in_child(&range, watch));
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), CHILD_OK);
        range.start[9 * PAGE + 100] ^= 1;
        struct found found = collect(watch, &range);
        int is_shared_compare = range.file >= 0 && method == SP_HOSTWATCH_COMPARE;
        for (size_t page = 0; page < range.pages; page++)
            if (page == 2 || page == 9)
                assert_true(found.pages[page]);
            else if (!is_shared_compare)
                assert_false(found.pages[page]);
        free(found.pages);
        touch_all(&range);
    }
    unmap(&range);
}

static void a_forked_child_neither_hangs_nor_is_watched(void **state)
{
    (void)state;
    fork_while_watched(map_file(100));
    fork_while_watched(map_anonymous(100));
}

/* A child that outlives the watch, and writes pages that the parent protects meanwhile. */
static void a_child_writes_while_the_parent_arms(void **state)
{
    (void)state;
    struct range range = map_file(100);
    int go[2];
    char byte = 0;
    assert_int_equal(pipe(go), 0);
    touch_all(&range);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        touch_all(&range);
        _exit(0);
    }
    struct sp_hostwatch *watch = arm(&range);
    assert_int_equal(write(go[1], "x", 1), 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    touch(&range, 5);
    struct found found = collect(watch, &range);
    assert_true(found.pages[5]);
    free(found.pages);
    close(go[0]);
    close(go[1]);
    unmap(&range);
}

static void every_failing_allocation_leaves_things_as_they_were(void **state)
{
    (void)state;
    struct range range = map_file(64);
    unsigned failing = 0;
    int error;
    do {
        struct sp_hostwatch *watch = NULL;
        sp_alloc_fail_at(++failing);
        error = sp_hostwatch_arm(range.start, range.pages * PAGE, &watch);
        sp_alloc_fail_at(0);
        assert_true(error == 0 || error == -ENOMEM);
        if (error) {
            touch(&range, failing); /* nothing hangs */
            watch = arm(&range);
        }
        touch(&range, 40);
        EXPECT_PAGES(watch, &range, 40);
    } while (error);
    assert_true(failing > 1);
    unmap(&range);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* First with no page there, then with all of them. */
static void a_large_range_with_two_pages_written(void **state)
{
    (void)state;
    enum { ROUNDS = 4 };
    struct range range = map_file(((size_t)256 << 20) / PAGE);
    size_t last = range.pages - 1;
    for (int is_full = 0; is_full < 2; is_full++) {
        double arm_seconds[2] = {0, 1e9}, collect_seconds = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            double started = seconds();
            struct sp_hostwatch *watch = arm(&range);
            double taken = seconds() - started;
            if (round == 0)
                arm_seconds[0] = taken;
            else if (taken < arm_seconds[1])
                arm_seconds[1] = taken;
            touch(&range, 77);
            touch(&range, last - 5);
            struct found found = {.pages = calloc(range.pages, 1), .num_pages = range.pages};
            assert_non_null(found.pages);
            memset(found.pages, 0, range.pages);
            started = seconds();
            sp_hostwatch_collect(watch, note, &found);
            taken = seconds() - started;
            if (taken < collect_seconds)
                collect_seconds = taken;
            assert_int_equal(found.runs, 2);
            assert_true(found.pages[77] && found.pages[last - 5]);
            free(found.pages);
        }
        print_message("256 MiB %s, two pages written, %s: arm first %.0f us, again %.0f us, "
                      "collect %.0f us\n",
                      is_full ? "written before" : "sparse", sp_hostwatch_name(method),
                      arm_seconds[0] * 1e6, arm_seconds[1] * 1e6, collect_seconds * 1e6);
        double started = seconds();
        memset(range.start, 1, range.pages * PAGE);
        double unwatched = seconds() - started;
        if (is_full) {
            struct sp_hostwatch *watch = arm(&range);
            started = seconds();
            memset(range.start, 2, range.pages * PAGE);
            double watched = seconds() - started;
            started = seconds();
            struct found found = collect(watch, &range);
            print_message(
                "256 MiB all written: watched %.0f ms, after a watch %.0f ms, collect %.0f us\n",
                watched * 1e3, unwatched * 1e3, (seconds() - started) * 1e6);
            assert_int_equal(found.runs, 1);
            free(found.pages);
            started = seconds();
            memset(range.start, 3, range.pages * PAGE);
            print_message("256 MiB all written unwatched: %.0f ms\n", (seconds() - started) * 1e3);
        }
    }
    unmap(&range);
}

int main(void)
{
    static const char *const wanted_names[] = {
        [SP_HOSTWATCH_PAGEMAP] = "pagemap",
        [SP_HOSTWATCH_UFFD] = "userfaultfd",
        [SP_HOSTWATCH_COMPARE] = "compare",
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_written_is_nothing_found),
        cmocka_unit_test(reading_pages_that_are_new_here_is_not_writing),
        cmocka_unit_test(one_page_and_the_first_and_the_last),
        cmocka_unit_test(anonymous_memory_is_watched_too),
        cmocka_unit_test(a_thousand_scattered_pages),
        cmocka_unit_test(all_pages_are_one_run),
        cmocka_unit_test(more_runs_than_one_call_of_the_system_returns),
        cmocka_unit_test(threads_write),
        cmocka_unit_test(threads_watch),
        cmocka_unit_test(the_kernel_writes),
        cmocka_unit_test(memcpy_crosses_page_borders),
        cmocka_unit_test(two_watches_at_once),
        cmocka_unit_test(armed_again_and_again),
        cmocka_unit_test(ranges_change_from_watch_to_watch),
        cmocka_unit_test(a_watch_goes_on_after_it_was_asked),
        cmocka_unit_test(written_pages_that_leave_the_mapping_are_found),
        cmocka_unit_test(a_range_that_is_mapped_anew_loses_no_write),
        cmocka_unit_test(a_part_that_is_mapped_anew_loses_no_write),
        cmocka_unit_test(only_whole_pages_are_watched),
        cmocka_unit_test(a_forked_child_neither_hangs_nor_is_watched),
        cmocka_unit_test(a_child_writes_while_the_parent_arms),
        cmocka_unit_test(every_failing_allocation_leaves_things_as_they_were),
        cmocka_unit_test(a_large_range_with_two_pages_written),
    };
    const char *wanted = getenv("SAMEPAGE_HOSTWATCH");
    method = sp_hostwatch_init();
    printf("host watching: %s\n", sp_hostwatch_name(method));
    if (method == SP_HOSTWATCH_NONE) {
        struct sp_hostwatch *watch = NULL;
        return sp_hostwatch_arm(&method, PAGE, &watch) == -ENOTSUP ? EXIT_SKIPPED : 1;
    }
    if (wanted && strcmp(wanted, wanted_names[method]) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
