/* The cuda backend on a stand-in for CUDA (fake_cuda/): what a device is, memory, transfers,
 * kernels, faults, and what is kept from one start to the next. What only hardware can show,
 * tests/gpu does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "device/client/cuda.h"
#include "gpu_folder.h"
#include "svm/atomic_part.h"
#include "unit/unit.h"

static struct sp_device *first, *second, *other;

static const char code_text[] =
    ".entry sp_kernel_add .entry sp_kernel_fault .entry sp_kernel_local .entry sp_kernel_groups "
    ".entry sp_kernel_print .entry sp_kernel_unit .entry sp_globals_init .entry sp_pair_groups";

static struct sp_arg_info add_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_VALUE, .size = 4, .align = 4, .offset = 8},
};
static struct sp_arg_info local_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_LOCAL, .size = 8, .align = 8, .offset = 8},
    {.kind = SP_ARG_LOCAL, .size = 8, .align = 8, .offset = 16},
};
static struct sp_arg_info unit_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_VALUE, .size = 20, .align = 4, .offset = 8},
};
static struct sp_kernel_info kernels[] = {
    {.name = "add", .attributes = "", .num_args = 2, .args = add_args, .args_bytes = 12},
    {.name = "fault", .attributes = "", .num_args = 0, .args_bytes = 0},
    {.name = "groups", .attributes = "", .num_args = 1, .args = add_args, .args_bytes = 8},
    {.name = "local", .attributes = "", .num_args = 3, .args = local_args, .args_bytes = 24},
    {.name = "print", .attributes = "", .num_args = 0, .args_bytes = 0},
    {.name = "unit",
     .attributes = "",
     .num_args = 2,
     .args = unit_args,
     .args_bytes = 28,
     .has_shared_atomics = true},
};
#define NUM_KERNELS (sizeof kernels / sizeof kernels[0])
static struct sp_program_info program = {
    .num_kernels = NUM_KERNELS, .kernels = kernels, .globals_bytes = 4};
static struct sp_kernel_code codes[] = {{.name = "add"},   {.name = "fault"}, {.name = "groups"},
                                        {.name = "local"}, {.name = "print"}, {.name = "unit"}};
static struct sp_code *code;

/* Two GPUs that are told apart. */
static void set_up_folder(void)
{
    char cache[FOLDER_PATH_BYTES];
    make_folder();
    show_gpus(".", 2);
    tell_of_gpus(".", 2);
    use_machine(".");
    make_folder_in("cache");
    make_path(cache, "cache");
    setenv("SAMEPAGE_CACHE_DIR", cache, 1);
}

static void tells_what_devices_are(void **state)
{
    (void)state;
    assert_int_equal(num_devices, 3);
    const struct sp_device_info *info = &second->info;
    assert_string_equal(info->name, "Fake GPU 1");
    assert_string_equal(info->vendor, "NVIDIA Corporation");
    assert_string_equal(info->driver_name, "cuda");
    assert_true(info->is_gpu && !info->is_cpu && info->own_memory && info->fp64);
    assert_int_equal(info->preferred_multiple, 32);
    assert_int_equal(info->max_item_sizes[2], 64);
    assert_int_equal(info->pci_device, 7);
    assert_int_equal(info->uuid[3], 0x11);
    assert_int_equal(info->svm_levels, SP_SVM_COARSE | SP_SVM_FINE | SP_SVM_ATOMICS);
    assert_int_equal(info->global_memory_bytes % GRANULE, 0);
    assert_int_equal(second->agent, 2);
    assert_true(second->ops->distance(second, 1) < second->ops->distance(second, 0));
    assert_true(second->ops->distance(second, 0) < second->ops->distance(second, 3));
    assert_true(second->ops->distance(second, 3) < UINT32_MAX);
    assert_string_equal(other->info.driver_name, "virtual");
    assert_string_equal(other->info.name, "Virtual device 0");
    assert_true(other->ops->distance(other, 1) == UINT32_MAX);
}

/* What a process says is foreign input, and what the application was told once does not change;
 * test_cuda_recall.c shows what does. */
static void nonsense_is_refused(void **state)
{
    (void)state;
    struct sp_device_description said, known;
    assert_int_equal(sp_cuda_recall(0, &known), SP_CUDA_KNOWN);
    assert_int_equal(sp_client_describe(client_of(first), &known), 0);
#define IS_NONSENSE(change)                                                                        \
    said = known;                                                                                  \
    change;                                                                                        \
    assert_int_equal(sp_client_describe(client_of(first), &said), -EBADMSG)
    IS_NONSENSE(memset(said.name, 'x', sizeof said.name));
    IS_NONSENSE(memset(said.vendor, 'x', sizeof said.vendor));
    IS_NONSENSE(memset(said.code_target, 'x', sizeof said.code_target));
    IS_NONSENSE(memset(said.driver_version, 'x', sizeof said.driver_version));
    IS_NONSENSE(said.compute_units = 0);
    IS_NONSENSE(said.max_work_group_size = 0);
    IS_NONSENSE(said.max_work_group_size = UINT32_MAX);
    IS_NONSENSE(said.max_item_sizes[2] = 0);
    IS_NONSENSE(said.preferred_multiple = 0);
    IS_NONSENSE(said.preferred_multiple = said.max_work_group_size + 1);
    IS_NONSENSE(said.global_memory_bytes = 0);
    IS_NONSENSE(said.max_alloc_bytes = said.global_memory_bytes + 1);
    said = known;
    said.compute_units++;
    assert_int_equal(sp_client_describe(client_of(first), &said), 0);
    assert_true(first->info.compute_units == known.compute_units);
    assert_null(first->ops->notice(first)); /* which nobody relies on */
    known.peers = 1 << 1;
    assert_int_equal(sp_client_describe(client_of(first), &known), 0);
}

static void is_remembered(void **state)
{
    (void)state;
    struct sp_device_description known;
    assert_int_equal(sp_cuda_recall(1, &known), SP_CUDA_KNOWN);
    assert_string_equal(known.name, "Fake GPU 1");
    assert_false(sp_cuda_recall(2, &known));
    write_file("gpus/0000:00:07.0/information", "GPU UUID: number 1\nIRQ: 99\nModel: Fake\n");
    assert_int_equal(sp_cuda_recall(1, &known),
                     SP_CUDA_KNOWN); /* an interrupt's number says nothing */
    write_file("version", "NVRM version: 1.2.4\n");
    assert_false(sp_cuda_recall(1, &known));
    write_file("version", "NVRM version: 1.2.3\n");
    write_file("gpus/0000:00:07.0/information", "GPU UUID: other\nIRQ: 18\nModel: Fake\n");
    assert_false(sp_cuda_recall(1, &known));
    write_file("gpus/0000:00:07.0/information", "GPU UUID: number 1\nIRQ: 18\nModel: Fake\n");
}

static void suggests_local_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t global[3], local[3];
    } cases[] = {
        {{1 << 20, 1, 1}, {256, 1, 1}}, {{96, 1, 1}, {96, 1, 1}},     {{640, 1, 1}, {160, 1, 1}},
        {{48, 32, 1}, {24, 8, 1}},      {{7919, 1, 1}, {1, 1, 1}},    {{2, 2, 512}, {2, 2, 64}},
        {{300, 1, 1}, {150, 1, 1}},     {{1024, 768, 1}, {32, 8, 1}}, {{64, 64, 64}, {32, 8, 1}},
        {{16, 64, 1}, {16, 16, 1}},     {{1024, 3, 1}, {64, 3, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sp_ndrange range = {.work_dim = 3};
        memcpy(range.global_size, cases[i].global, sizeof range.global_size);
        first->ops->suggest_local_size(first, NULL, &range, range.local_size);
        assert_memory_equal(range.local_size, cases[i].local, sizeof range.local_size);
    }
}

static void memories_are_separate(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    memset(at, 1, GRANULE);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    assert_true(is_all(at, GRANULE, 0)); /* zero at first */
    assert_int_equal(fill(first, at, GRANULE, 2), 0);
    assert_int_equal(fill(second, at, GRANULE, 3), 0);
    assert_true(is_all(at, GRANULE, 0));
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    assert_true(is_all(at, GRANULE, 2));
    assert_int_equal(transfer(second, at + 100, 1000, 2, 0), 0);
    assert_true(is_all(at, 100, 2) && is_all(at + 100, 1000, 3) && is_all(at + 1100, 900, 2));
    memset(at, 4, GRANULE);
    assert_int_equal(transfer(first, at + 4097, 3, 0, 1), 0);
    memset(at, 0, GRANULE);
    assert_int_equal(transfer(second, at, GRANULE, 1, 2), 0); /* from GPU to GPU */
    assert_int_equal(transfer(second, at, GRANULE, 2, 0), 0);
    assert_true(is_all(at, 4097, 2) && is_all(at + 4097, 3, 4) &&
                is_all(at + 4100, GRANULE - 4100, 2));
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), -EFAULT);
    assert_int_equal(unbind(second, at, GRANULE), 0);
}

/* The memory of a device that is no GPU is a file, which the host maps. */
static void gpus_read_other_memory(void **state)
{
    (void)state;
    unsigned char *at = host_pages(70, 2);
    assert_int_equal(bind(first, at, 2 * GRANULE, false), 0);
    assert_int_equal(bind(other, at, 2 * GRANULE, false), 0);
    for (unsigned char i = 1; i < 4; i++) {
        assert_int_equal(fill(other, at, 2 * GRANULE, i), 0);
        assert_int_equal(transfer(first, at + 3, 2 * GRANULE - 5, 3, 1), 0);
        assert_int_equal(transfer(first, at, 2 * GRANULE, 1, 0), 0);
        assert_true(is_all(at + 3, 2 * GRANULE - 5, i) && at[0] == 0 && at[2 * GRANULE - 1] == 0);
    }
    assert_int_equal(unbind(first, at, 2 * GRANULE), 0);
    assert_int_equal(unbind(other, at, 2 * GRANULE), 0);
}

/* What is at an address now counts, whatever was there before. */
static void peers_see_what_is_bound(void **state)
{
    (void)state;
    for (unsigned char i = 1; i < 5; i++) {
        unsigned char *at = host_pages(60, i);
        assert_int_equal(bind(first, at, i * GRANULE, false), 0);
        assert_int_equal(bind(second, at, i * GRANULE, false), 0);
        assert_int_equal(fill(first, at, i * GRANULE, i), 0);
        assert_int_equal(transfer(second, at + 5, i * GRANULE - 5, 1, 2), 0);
        assert_int_equal(unbind(first, at, i * GRANULE), 0);
        assert_int_equal(transfer(second, at, 16, 1, 2), -ENODEV);
        assert_int_equal(transfer(second, at, i * GRANULE, 2, 0), 0);
        assert_true(is_all(at, 5, 0) && is_all(at + 5, i * GRANULE - 5, i));
        assert_int_equal(unbind(second, at, i * GRANULE), 0);
    }
}

/* The memory of a part that is gone can be had again at once. */
static void peers_share_memory(void **state)
{
    (void)state;
    check_peers_share_memory(first, second);
    size_t granules = first->info.global_memory_bytes / GRANULE;
    unsigned char *at = host_pages(600, granules);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(bind(first, at, granules * GRANULE, false), 0);
        assert_int_equal(bind_peer(second, at, granules * GRANULE, 1), 0);
        assert_int_equal(bind_peer(second, at, granules / 2 * GRANULE, 1), -EINVAL);
        assert_int_equal(unbind(second, at, granules * GRANULE), 0);
        assert_int_equal(unbind(first, at, granules * GRANULE), 0);
        assert_int_equal(bind_peer(second, at, granules * GRANULE, 1), -ENODEV);
    }
    assert_false(first->ops->sees(first, 3) || other->ops->sees(other, 1));
}

static void bound_memory_is_zero(void **state)
{
    (void)state;
    check_bound_memory_is_zero(first);
}

/* The host's pages are given back while nothing is bound there, and what comes next lies in others.
 */
static void host_pages_are_registered_anew(void **state)
{
    (void)state;
    for (int i = 1; i < 4; i++) {
        unsigned char *at = host_pages(40, 40);
        assert_int_equal(bind(first, at, 40 * GRANULE, false), 0);
        memset(at, i, 40 * GRANULE);
        assert_int_equal(transfer(first, at, 40 * GRANULE, 0, 1), 0);
        memset(at, 0, 40 * GRANULE);
        assert_int_equal(transfer(first, at + 1, 40 * GRANULE - 1, 1, 0), 0);
        assert_true(is_all(at + 1, 40 * GRANULE - 1, (unsigned char)i) && at[0] == 0);
        assert_int_equal(unbind(first, at, 40 * GRANULE), 0);
    }
}

/* They are held back and carried out together, in order with everything else. */
static void small_transfers_come_together(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static struct gated works[2 * COUNT];
    unsigned char *at = host_pages(90, 16);
    assert_int_equal(bind(first, at, 16 * GRANULE, false), 0);
    for (int i = 0; i < COUNT; i++)
        memset(at + i * 8192, i % 250 + 1, 4096);
    assert_int_equal(transfer(first, at, 16 * GRANULE, 0, 1), 0); /* registers the pages */
    for (int i = 0; i < COUNT; i++)
        memset(at + i * 8192, i % 250 + 2, 4096);
    for (int i = 0; i < 2 * COUNT; i++) {
        works[i] = (struct gated){.work = {.kind = SP_WORK_TRANSFER}};
        works[i].work.range.start = (uintptr_t)at + (unsigned)(i % COUNT) * 8192u;
        works[i].work.range.bytes = 4096;
        works[i].work.range.source = i < COUNT ? 0 : 1;
        works[i].work.range.destination = i < COUNT ? 1 : 0;
        submit(first, &works[i]);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        assert_int_equal(await(first, &works[i]), 0);
    memset(at, 0, 16 * GRANULE);
    assert_int_equal(transfer(first, at, 16 * GRANULE, 1, 0), 0);
    for (int i = 0; i < COUNT; i++)
        assert_true(is_all(at + i * 8192, 4096, (unsigned char)(i % 250 + 2)) &&
                    is_all(at + i * 8192 + 4096, 4096, 0));
    assert_int_equal(unbind(first, at, 16 * GRANULE), 0);
}

/* Of a range only its pieces: to the GPU, to the host, and from GPU to GPU. */
static void pieces_are_copied_alone(void **state)
{
    (void)state;
    enum { COUNT = 1000, STEP = 4096 };
    static struct sp_piece pieces[COUNT];
    static const struct {
        int device;
        uint32_t source, destination;
    } ways[] = {{0, 0, 1}, {0, 1, 0}, {1, 1, 2}, {1, 2, 0}};
    unsigned char *at = host_pages(90, 2);
    assert_int_equal(bind(first, at, 2 * GRANULE, false), 0);
    assert_int_equal(bind(second, at, 2 * GRANULE, false), 0);
    for (unsigned i = 0; i < COUNT; i++)
        pieces[i] = (struct sp_piece){(uintptr_t)at + i * STEP, i % 7 ? 100 + i : 2 * STEP / 3};
    memset(at, 3, 2 * GRANULE);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct sp_device *device = ways[w].device ? second : first;
        struct gated gated = {.work = {.kind = SP_WORK_TRANSFER}};
        gated.work.range.start = pieces[0].start;
        gated.work.range.bytes =
            pieces[COUNT - 1].start + pieces[COUNT - 1].bytes - pieces[0].start;
        gated.work.range.source = ways[w].source;
        gated.work.range.destination = ways[w].destination;
        gated.work.range.pieces = pieces;
        gated.work.range.num_pieces = COUNT;
        if (ways[w].destination == 0)
            memset(at, 4, 2 * GRANULE);
        assert_int_equal(run_work(device, &gated), 0);
        if (ways[w].destination == 0)
            for (unsigned i = 0; i < COUNT; i++) {
                const unsigned char *piece = at + i * STEP;
                assert_true(is_all(piece, pieces[i].bytes, 3) &&
                            is_all(piece + pieces[i].bytes, STEP - pieces[i].bytes, 4));
            }
    }
    assert_int_equal(transfer(second, at, 2 * GRANULE, 2, 0), 0);
    assert_true(is_all(at, 100 + 0, 3) && at[pieces[1].bytes + STEP] == 0);
    pieces[COUNT / 2].start = (uintptr_t)at + 4 * GRANULE;
    struct gated outside = {.work = {.kind = SP_WORK_TRANSFER}};
    outside.work.range.start = (uintptr_t)at;
    outside.work.range.bytes = 2 * GRANULE;
    outside.work.range.destination = 1;
    outside.work.range.pieces = pieces;
    outside.work.range.num_pieces = COUNT;
    assert_int_equal(run_work(first, &outside), -EFAULT);
    assert_int_equal(unbind(first, at, 2 * GRANULE), 0);
    assert_int_equal(unbind(second, at, 2 * GRANULE), 0);
}

static void home_is_seen_by_all(void **state)
{
    (void)state;
    unsigned char *at = host_pages(30, 1), *own = host_pages(32, 1);
    assert_int_equal(bind(first, at, GRANULE, true), 0);
    assert_int_equal(bind(second, at, GRANULE, true), 0);
    assert_int_equal(bind(first, own, GRANULE, false), 0);
    assert_int_equal(fill(first, at, 4096, 5), 0);
    assert_int_equal(copy(second, at + 8192, at, 5000), 0);
    assert_true(is_all(at, 4096, 5) && is_all(at + 4096, 4096, 0) && is_all(at + 8192, 4096, 5));
    assert_int_equal(copy(first, own, at, 4096), 0);
    assert_int_equal(copy(first, own + 4096, own, 4096), 0);
    assert_int_equal(copy(first, at + 20000, own + 4096, 4096), 0);
    assert_true(is_all(at + 20000, 4096, 5));
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), -EFAULT);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
    assert_int_equal(copy(first, own, at, 16), -EFAULT);
    /* The same addresses with memory of the device. */
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(fill(first, at, GRANULE, 6), 0);
    assert_true(is_all(at, 4096, 5));
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(first, own, GRANULE), 0);
}

static void bindings_are_whole(void **state)
{
    (void)state;
    unsigned char *at = host_pages(110, 4);
    assert_int_equal(bind(first, at, 4 * GRANULE, false), 0);
    assert_int_equal(unbind(first, at, GRANULE), -EINVAL);
    assert_int_equal(bind(first, at + GRANULE, GRANULE, false), -EINVAL);
    assert_int_equal(fill(first, at, 4 * GRANULE, 1), 0);
    assert_int_equal(unbind(first, at + 1, GRANULE), -EINVAL);
    assert_int_equal(unbind(first, at - GRANULE, 6 * GRANULE), 0);
    assert_int_equal(fill(first, at, 1, 1), -EFAULT);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    size_t granules = first->info.global_memory_bytes / GRANULE;
    unsigned char *at = host_pages(600, granules + 2);
    assert_int_equal(bind(first, at, (granules + 1) * GRANULE, false), -ENOMEM);
    assert_int_equal(bind(first, at, granules * GRANULE, false), 0);
    assert_int_equal(bind(first, at + granules * GRANULE, GRANULE, false), -ENOMEM);
    assert_int_equal(unbind(first, at, granules * GRANULE), 0);
    /* Spare memory is given back where memory of another size is needed. */
    assert_int_equal(bind(first, at, granules / 2 * GRANULE, false), 0);
    assert_int_equal(bind(first, at + granules / 2 * GRANULE, granules / 2 * GRANULE, false), 0);
    assert_int_equal(unbind(first, at, granules * GRANULE), 0);
}

static void fills_with_patterns(void **state)
{
    (void)state;
    unsigned char *at = host_pages(130, 1), expected[1024];
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    for (size_t size = 1; size <= 128; size *= 2)
        for (size_t offset = 0; offset <= 128; offset += size < 128 ? 128 - size : 128) {
            struct gated gated = {.work = {.kind = SP_WORK_FILL}};
            size_t bytes = 5 * size;
            gated.work.fill.dst = at + offset;
            gated.work.fill.bytes = bytes;
            gated.work.fill.pattern_bytes = size;
            for (size_t i = 0; i < size; i++)
                gated.work.fill.pattern[i] = (unsigned char)(i + size);
            assert_int_equal(fill(first, at, 1024, 0), 0);
            assert_int_equal(run_work(first, &gated), 0);
            assert_int_equal(transfer(first, at, 1024, 1, 0), 0);
            memset(expected, 0, sizeof expected);
            for (size_t i = 0; i < bytes; i++)
                expected[offset + i] = (unsigned char)(i % size + size);
            assert_memory_equal(at, expected, sizeof expected);
        }
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

static void copies_rectangles(void **state)
{
    (void)state;
    unsigned char *at = host_pages(140, 1);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    for (int i = 0; i < 4096; i++)
        at[i] = (unsigned char)(i % 251);
    assert_int_equal(transfer(first, at, 4096, 0, 1), 0);
    struct gated gated = {.work = {.kind = SP_WORK_COPY_RECT}};
    gated.work.rect.dst = at + 8192;
    gated.work.rect.src = at + 3;
    gated.work.rect.rect = (struct sp_rect){.width = 5,
                                            .height = 3,
                                            .depth = 2,
                                            .dst_row_pitch = 7,
                                            .dst_slice_pitch = 50,
                                            .src_row_pitch = 100,
                                            .src_slice_pitch = 1000};
    assert_int_equal(run_work(first, &gated), 0);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            assert_memory_equal(at + 8192 + z * 50 + y * 7, at + 3 + z * 1000 + y * 100, 5);
    assert_int_equal(at[8192 + 5], 0);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

static void set_launch(const char *name, size_t items, size_t local, void *args,
                       struct gated *gated)
{
    memset(gated, 0, sizeof *gated);
    gated->work.kind = SP_WORK_KERNEL;
    gated->work.kernel.kernel = first->ops->find(code, name);
    assert_non_null(gated->work.kernel.kernel);
    gated->work.kernel.range = (struct sp_ndrange){
        .work_dim = 1, .global_size = {items, 1, 1}, .local_size = {local, 1, 1}};
    gated->work.kernel.args = args;
}

static void kernels_run(void **state)
{
    (void)state;
    unsigned char *at = host_pages(150, 1);
    int *data = (int *)(at + 64);
    struct {
        void *data;
        int value;
    } args = {data, 5};
    struct gated gated;
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    set_launch("add", 1000, 64, &args, &gated);
    gated.work.kernel.range.global_offset[0] = 2;
    gated.work.timed = true;
    assert_int_equal(run_work(first, &gated), 0);
    assert_true(gated.work.start_ns && gated.work.start_ns <= gated.work.end_ns);
    gated.work = (struct sp_work){.kind = SP_WORK_INIT_GLOBALS, .init = {code, at + 8192}};
    assert_int_equal(run_work(first, &gated), 0);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    for (int i = 0; i < 1010; i++)
        assert_int_equal(data[i], i >= 2 && i < 1002 ? 5 : 0);
    assert_int_equal(*(int *)(at + 8192), 41);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

static void local_arguments_have_places(void **state)
{
    (void)state;
    unsigned char *at = host_pages(150, 1);
    uint64_t args[3] = {(uintptr_t)at, 100, 60 << 10}, places[3];
    struct gated gated;
    assert_int_equal(bind(first, at, GRANULE, true), 0);
    set_launch("local", 32, 32, args, &gated);
    assert_int_equal(run_work(first, &gated), 0);
    memcpy(places, at, sizeof places);
    assert_int_equal(places[0], 0);
    assert_int_equal(places[1], 128);
    assert_int_equal(places[2], 128 + (60 << 10));
    args[2] = 227 << 10;
    set_launch("local", 32, 32, args, &gated);
    assert_int_equal(run_work(first, &gated), -ENOMEM);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

/* More groups than a grid may have. */
static void large_ranges_are_several_launches(void **state)
{
    (void)state;
    unsigned char *at = host_pages(150, 1);
    uint64_t args[1] = {(uintptr_t)at};
    const uint64_t *seen = (const uint64_t *)at;
    struct gated gated;
    assert_int_equal(bind(first, at, GRANULE, true), 0);
    set_launch("groups", 1, 1, args, &gated);
    gated.work.kernel.range =
        (struct sp_ndrange){.work_dim = 2, .global_size = {4, 150000, 1}, .local_size = {4, 1, 1}};
    assert_int_equal(run_work(first, &gated), 0);
    assert_int_equal(seen[0], 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(seen[1 + i] >> 32, i * 65535);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

/* Blocks of two groups, where there are many groups, and an even number of them. */
static void pairs_groups(void **state)
{
    (void)state;
    static const struct {
        size_t groups;
        uint64_t seen; /* blocks, or group 0 first */
    } cases[] = {{1024, 512}, {512, 256}, {1025, 0}, {510, 0}, {2, 0}};
    unsigned char *at = host_pages(150, 1);
    uint64_t args[1] = {(uintptr_t)at};
    const uint64_t *seen = (const uint64_t *)at;
    struct gated gated;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(at, 0, 64);
        assert_int_equal(bind(first, at, GRANULE, true), 0);
        set_launch("groups", 4 * cases[i].groups, 4, args, &gated);
        assert_int_equal(run_work(first, &gated), 0);
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], cases[i].seen);
        assert_int_equal(unbind(first, at, GRANULE), 0);
    }
}

/* Of many kernels under way, too. */
static void prints(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct gated works[COUNT];
    char path[FOLDER_PATH_BYTES], text[64] = "";
    int error = 0, right = 0;
    make_path(path, "output");
    fflush(stdout);
    int output = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    int before = fcntl(1, F_DUPFD_CLOEXEC, 10);
    assert_true(output >= 0 && before >= 0 && dup2(output, 1) == 1);
    for (int i = 0; i < COUNT; i++) {
        set_launch("print", 1, 1, NULL, &works[i]);
        submit(first, &works[i]);
    }
    for (int i = 0; i < COUNT; i++)
        error |= await(first, &works[i]);
    dup2(before, 1);
    close(before);
    close(output);
    assert_int_equal(error, 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file))
        right += !strcmp(text, "printed 42 word\n");
    fclose(file);
    assert_int_equal(right, COUNT);
}

static void many_works_keep_their_order(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static struct gated works[COUNT];
    unsigned char *at = host_pages(160, 1);
    struct {
        void *data;
        int value;
    } args = {at, 1};
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    for (int i = 0; i < COUNT; i++) {
        set_launch("add", 1, 1, &args, &works[i]);
        submit(first, &works[i]);
    }
    for (int i = 0; i < COUNT; i++)
        if (await(first, &works[i]))
            fail_msg("work %d: error %d; %s", i, works[i].error, last_reason());
    assert_int_equal(transfer(first, at, 4, 1, 0), 0);
    assert_int_equal(*(int *)at, COUNT);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

static void wrong_code_is_refused(void **state)
{
    (void)state;
    static const char wrong[] = "wrong", half[] = ".entry sp_kernel_add";
    struct sp_code *loaded;
    char *log;
    assert_int_equal(
        first->ops->load(first, wrong, sizeof wrong, &program, codes, 1, &log, &loaded), -ENOEXEC);
    assert_string_equal(log, "a fake error (CUDA error 218):\nfake: this is wrong\n");
    free(log);
    assert_int_equal(first->ops->load(first, half, sizeof half, &program, codes, 2, &log, &loaded),
                     -ENOEXEC);
    assert_null(log);
    assert_int_equal(
        first->ops->load(first, half, sizeof half - 1, &program, codes, 1, &log, &loaded),
        -ENOEXEC);
    assert_null(log);
    assert_int_equal(losses_of(first), 0);
}

static void kernels_have_names_of_any_length(void **state)
{
    (void)state;
    enum { LENGTH = 2000 };
    static char name[LENGTH + 1], text[LENGTH + 64];
    struct sp_kernel_info info = {.name = name, .attributes = "", .args_bytes = 0};
    struct sp_program_info long_program = {.num_kernels = 1, .kernels = &info};
    struct sp_kernel_code long_code = {.name = name};
    struct sp_code *loaded;
    char *log;
    memset(name, 'k', LENGTH);
    snprintf(text, sizeof text, ".entry sp_kernel_%s", name);
    assert_int_equal(first->ops->load(first, text, strlen(text) + 1, &long_program, &long_code, 1,
                                      &log, &loaded),
                     0);
    free(log);
    assert_non_null(first->ops->find(loaded, name));
    first->ops->unload(loaded);
}

static void code_comes_with_what_the_driver_says(void **state)
{
    (void)state;
    static const char advised[] = ".entry sp_kernel_add advised";
    struct sp_code *loaded;
    char *log;
    assert_int_equal(
        first->ops->load(first, advised, sizeof advised, &program, codes, 1, &log, &loaded), 0);
    assert_string_equal(log, "fake: this could be? better\n");
    free(log);
    first->ops->unload(loaded);
}

static void a_fault_ends_one_device(void **state)
{
    (void)state;
    unsigned char *at = host_pages(170, 1);
    struct gated gated;
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    assert_int_equal(fill(second, at, GRANULE, 8), 0);
    set_launch("fault", 1, 1, NULL, &gated);
    assert_int_equal(run_work(first, &gated), -EIO);
    await_losses(first, 1);
    assert_string_equal(last_reason(), "an illegal memory access was encountered (CUDA error 700) "
                                       "while running kernel 'fault'");
    await_next_process(first);
    assert_int_equal(losses_of(second), 0);
    assert_int_equal(transfer(second, at, GRANULE, 2, 0), 0);
    assert_true(is_all(at, GRANULE, 8));
    assert_int_equal(unbind(second, at, GRANULE), 0);
    kernels_run(NULL); /* with the same code, which was loaded again */
}

/* --- The atomic unit -----------------------------------------------------------------------------
 */

struct unit_kernel {
    uint64_t address, operand;
    uint32_t operation, count, mode;
};

enum { USUAL, DIES, WITHOUT_TEST }; /* modes, as fake_cuda.c has them */

/* Host pages in the atomic part, as the heap would hand them out. */
static uint64_t *atomic_pages(size_t index)
{
    uintptr_t window, part;
    size_t window_bytes, part_bytes;
    sp_window_range(&window, &window_bytes);
    sp_atomic_part(&part, &part_bytes);
    return (uint64_t *)host_pages((part - window) / GRANULE + index, 1);
}

static void bind_atomic(struct sp_device *device, uint64_t *at)
{
    assert_int_equal(bind(device, at, GRANULE, true), 0);
    sp_atomic_mark((uintptr_t)at, GRANULE, device->agent);
    sp_atomic_part_count(1);
}

static void unbind_atomic(struct sp_device *device, uint64_t *at)
{
    sp_atomic_unmark((uintptr_t)at, GRANULE, device->agent);
    sp_atomic_part_count(-1);
    assert_int_equal(unbind(device, at, GRANULE), 0);
}

static unsigned kernels_of(struct sp_device *device)
{
    struct client_device *client = client_of(device);
    pthread_mutex_lock(&client->lock);
    unsigned in_flight = client->unit.kernels;
    pthread_mutex_unlock(&client->lock);
    return in_flight;
}

/* Host and GPU, in one word. */
static void host_and_gpu_count_together(void **state)
{
    (void)state;
    enum { ITEMS = 8, COUNT = 500 };
    uint64_t *at = atomic_pages(0), added = 0;
    struct unit_kernel args = {.address = (uintptr_t)&at[3],
                               .operand = 1,
                               .operation = SP_UNIT_ADD | SP_UNIT_WIDE,
                               .count = COUNT};
    struct gated works[3];
    bind_atomic(first, at);
    for (int i = 0; i < 3; i++) {
        set_launch("unit", ITEMS, 1, &args, &works[i]);
        submit(first, &works[i]);
    }
    assert_true(kernels_of(first) <= 3);
    while (__atomic_load_n(&at[3], __ATOMIC_RELAXED) - added < 3 * ITEMS * COUNT)
        for (int i = 0; i < 100; i++, added++)
            __atomic_fetch_add(&at[3], 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(await(first, &works[i]), 0);
    assert_int_equal(__atomic_load_n(&at[3], __ATOMIC_RELAXED), 3 * ITEMS * COUNT + added);
    assert_int_equal(kernels_of(first), 0);
    unbind_atomic(first, at);
}

/* A kernel that cannot have a region in the atomic part runs without the unit. */
static void nothing_is_served_in_vain(void **state)
{
    (void)state;
    unsigned char *at = host_pages(180, 1);
    struct unit_kernel args = {.address = (uintptr_t)at,
                               .operand = 2,
                               .operation = SP_UNIT_ADD | SP_UNIT_WIDE,
                               .count = 1};
    struct gated gated;
    assert_int_equal(bind(first, at, GRANULE, true), 0);
    set_launch("unit", 1, 1, &args, &gated);
    assert_false(sp_client_unit_is_for(client_of(first), gated.work.kernel.kernel));
    assert_int_equal(run_work(first, &gated), 0);
    assert_int_equal(at[0], 2);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    set_launch("add", 1, 1, &args, &gated);
    sp_atomic_part_count(1);
    assert_false(sp_client_unit_is_for(client_of(first), gated.work.kernel.kernel));
    set_launch("unit", 1, 1, &args, &gated);
    assert_true(sp_client_unit_is_for(client_of(first), gated.work.kernel.kernel));
    assert_false(sp_client_unit_is_for(client_of(other), gated.work.kernel.kernel));
    sp_atomic_part_count(-1);
}

/* A request that cannot be one ends the device, and nothing else. */
static void bad_requests_end_the_device(void **state)
{
    (void)state;
    static const struct {
        ptrdiff_t offset; /* from the bound granule */
        uint32_t operation;
    } bad[] = {
        {GRANULE, SP_UNIT_ADD},             /* not bound */
        {-(ptrdiff_t)GRANULE, SP_UNIT_ADD}, /* not in the part at all */
        {4, SP_UNIT_ADD | SP_UNIT_WIDE},    /* not aligned */
        {2, SP_UNIT_ADD},
        {0, 0},
        {0, SP_UNIT_LAST + 1},
        {0, 0xff},
    };
    struct gated gated;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        unsigned losses = losses_of(first);
        char expected[64];
        uint64_t *at = atomic_pages(0);
        bind_atomic(first, at);
        assert_int_equal(bind(second, at, GRANULE, true), 0);
        struct unit_kernel args = {.address = (uintptr_t)at + (uintptr_t)bad[i].offset,
                                   .operand = 1,
                                   .operation = bad[i].operation,
                                   .count = 1,
                                   .mode = WITHOUT_TEST};
        set_launch("unit", 1, 1, &args, &gated);
        assert_int_equal(run_work(first, &gated), -EIO);
        await_losses(first, losses + 1);
        snprintf(expected, sizeof expected, "atomic operation %u at 0x%lx", bad[i].operation,
                 (unsigned long)args.address);
        if (!strstr(last_reason(), expected) || !strstr(last_reason(), "kernel 'unit'"))
            fail_msg("%s: %s", expected, last_reason());
        sp_atomic_unmark((uintptr_t)at, GRANULE, first->agent);
        sp_atomic_part_count(-1);
        await_next_process(first);
        assert_int_equal(at[0], 0);
        assert_int_equal(unbind(second, at, GRANULE), 0);
    }
    assert_int_equal(losses_of(second), 0);
    host_and_gpu_count_together(NULL);
}

/* What is bound on one device is nothing for another. */
static void devices_have_their_own_regions(void **state)
{
    (void)state;
    unsigned losses = losses_of(first);
    uint64_t *at = atomic_pages(4);
    struct unit_kernel args = {.address = (uintptr_t)at,
                               .operand = 1,
                               .operation = SP_UNIT_ADD,
                               .count = 1,
                               .mode = WITHOUT_TEST};
    struct gated gated;
    bind_atomic(second, at);
    set_launch("unit", 1, 1, &args, &gated);
    assert_int_equal(run_work(first, &gated), -EIO);
    await_losses(first, losses + 1);
    assert_int_equal(at[0], 0);
    await_next_process(first);
    unbind_atomic(second, at);
}

/* What was asked for is done once or not at all, and the next process begins anew. */
static void a_death_in_the_middle(void **state)
{
    (void)state;
    enum { ITEMS = 8 };
    unsigned losses = losses_of(first);
    uint64_t *at = atomic_pages(0);
    struct unit_kernel args = {.address = (uintptr_t)at,
                               .operand = 1,
                               .operation = SP_UNIT_ADD,
                               .count = UINT32_MAX,
                               .mode = DIES};
    struct gated gated;
    bind_atomic(first, at);
    set_launch("unit", ITEMS, 1, &args, &gated);
    assert_int_equal(run_work(first, &gated), -EIO);
    await_losses(first, losses + 1);
    uint64_t count = __atomic_load_n(&at[0], __ATOMIC_RELAXED);
    assert_true(count >= 1000);
    assert_int_equal(kernels_of(first), 0);
    sp_atomic_unmark((uintptr_t)at, GRANULE, first->agent);
    sp_atomic_part_count(-1);
    await_next_process(first);
    assert_int_equal(__atomic_load_n(&at[0], __ATOMIC_RELAXED), count);
    host_and_gpu_count_together(NULL);
}

static int set_up(void **state)
{
    (void)state;
    set_up_devices("cuda,virtual,mem=64M");
    first = devices[0];
    second = devices[1];
    other = devices[2];
    char *log;
    int error = first->ops->load(first, code_text, sizeof code_text, &program, codes, NUM_KERNELS,
                                 &log, &code);
    free(log);
    return error;
}

static int tear_down(void **state)
{
    (void)state;
    first->ops->unload(code);
    return remove_folder();
}

int main(void)
{
    set_up_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_devices_are),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(is_remembered),
        cmocka_unit_test(suggests_local_sizes),
        cmocka_unit_test(memories_are_separate),
        cmocka_unit_test(gpus_read_other_memory),
        cmocka_unit_test(peers_see_what_is_bound),
        cmocka_unit_test(peers_share_memory),
        cmocka_unit_test(bound_memory_is_zero),
        cmocka_unit_test(host_pages_are_registered_anew),
        cmocka_unit_test(small_transfers_come_together),
        cmocka_unit_test(pieces_are_copied_alone),
        cmocka_unit_test(home_is_seen_by_all),
        cmocka_unit_test(bindings_are_whole),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(fills_with_patterns),
        cmocka_unit_test(copies_rectangles),
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(local_arguments_have_places),
        cmocka_unit_test(large_ranges_are_several_launches),
        cmocka_unit_test(pairs_groups),
        cmocka_unit_test(prints),
        cmocka_unit_test(many_works_keep_their_order),
        cmocka_unit_test(wrong_code_is_refused),
        cmocka_unit_test(kernels_have_names_of_any_length),
        cmocka_unit_test(code_comes_with_what_the_driver_says),
        cmocka_unit_test(a_fault_ends_one_device),
        cmocka_unit_test(host_and_gpu_count_together),
        cmocka_unit_test(nothing_is_served_in_vain),
        cmocka_unit_test(bad_requests_end_the_device),
        cmocka_unit_test(devices_have_their_own_regions),
        cmocka_unit_test(a_death_in_the_middle),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
