/* device/cpu on a machine of several NUMA nodes: what a work fills lies on the nodes whose share it
 * was, and what follows finds it there. Skipped where there is one node; tests/drm/run makes a
 * machine of two. */
#include <numaif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "device/driver.h"
#include "svm/heap.h"
#include "unit.h"
#include "util/futex.h"

enum { BYTES = 96 << 20, PAGE = 4096, SKIPPED = 77 };

static struct sp_device *device;

struct gated {
    struct sp_work work;
    struct sp_gate gate;
    int error;
};

static void finished(struct sp_work *work, int error)
{
    struct gated *gated = (struct gated *)work;
    gated->error = error;
    sp_gate_open(&gated->gate);
}

static void fill(unsigned char *memory, unsigned char value)
{
    struct gated gated = {.work = {.kind = SP_WORK_FILL, .finished = finished}};
    gated.work.fill.dst = memory;
    gated.work.fill.bytes = BYTES;
    gated.work.fill.pattern_bytes = 1;
    gated.work.fill.pattern[0] = value;
    sp_gate_init(&gated.gate);
    device->ops->submit(device, &gated.work);
    /* Not as a helper: the threads of the pool alone, which are bound to their nodes. */
    sp_gate_wait(&gated.gate);
    assert_int_equal(gated.error, 0);
    for (size_t i = 0; i < BYTES; i += 997)
        assert_int_equal(memory[i], value);
    assert_int_equal(memory[BYTES - 1], value);
}

/* How many of the pages lie on the node of the share that they belong to. */
static size_t pages_in_place(unsigned char *memory)
{
    static void *pages[BYTES / PAGE];
    static int nodes[BYTES / PAGE];
    size_t count = BYTES / PAGE, in_place = 0, before = 0;
    unsigned all = device->info.compute_units;
    for (size_t i = 0; i < count; i++)
        pages[i] = memory + i * PAGE;
    assert_int_equal(move_pages(0, count, pages, NULL, nodes, 0), 0);
    for (unsigned node = 0, units = 0; node < sp_cpu_num_nodes(); node++) {
        units += (unsigned)CPU_COUNT(sp_cpu_node_processors(node));
        for (size_t i = before; i < count * units / all; i++)
            in_place += nodes[i] == (int)node;
        before = count * units / all;
    }
    return in_place;
}

static void pages_lie_where_they_are_used(void **state)
{
    (void)state;
    unsigned char *memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    fill(memory, 1);
    size_t in_place = pages_in_place(memory), count = BYTES / PAGE;
    print_message("%zu of %zu pages lie on the node whose share they are\n", in_place, count);
    /* By chance it were one in two; a thread that comes late loses some of its share to the others.
     */
    assert_true(in_place > count / 4 * 3);
    fill(memory, 2);
    munmap(memory, BYTES);
}

int main(void)
{
    struct sp_device **devices;
    unsigned count;
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_lie_where_they_are_used)};
    if (sp_window_init() || sp_cpu_driver.probe(&devices, &count) || count != 1)
        return 1;
    device = devices[0];
    if (sp_cpu_num_nodes() < 2) {
        puts("this machine has one NUMA node");
        return getenv("SAMEPAGE_TEST_MUST_FIND") ? 1 : SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
