/* The cuda backend on a stand-in for CUDA (fake_cuda/): what a device is, memory, transfers,
 * kernels, faults, and what is kept from one start to the next. What only hardware can show,
 * tests/gpu does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "device/client/cuda.h"
#include "unit/unit.h"

static struct sp_device *first, *second, *other;
static char folder[] = "/tmp/samepage-cuda-XXXXXX";

static const char code_text[] =
    ".entry sp_kernel_add .entry sp_kernel_fault .entry sp_kernel_local .entry sp_kernel_groups "
    ".entry sp_kernel_print .entry sp_globals_init";

static struct sp_arg_info add_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_VALUE, .size = 4, .align = 4, .offset = 8},
};
static struct sp_arg_info local_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_LOCAL, .size = 8, .align = 8, .offset = 8},
    {.kind = SP_ARG_LOCAL, .size = 8, .align = 8, .offset = 16},
};
static struct sp_kernel_info kernels[] = {
    {.name = "add", .attributes = "", .num_args = 2, .args = add_args, .args_bytes = 12},
    {.name = "fault", .attributes = "", .num_args = 0, .args_bytes = 0},
    {.name = "groups", .attributes = "", .num_args = 1, .args = add_args, .args_bytes = 8},
    {.name = "local", .attributes = "", .num_args = 3, .args = local_args, .args_bytes = 24},
    {.name = "print", .attributes = "", .num_args = 0, .args_bytes = 0},
};
#define NUM_KERNELS (sizeof kernels / sizeof kernels[0])
static struct sp_program_info program = {
    .num_kernels = NUM_KERNELS, .kernels = kernels, .globals_bytes = 4};
static struct sp_kernel_code codes[] = {
    {.name = "add"}, {.name = "fault"}, {.name = "groups"}, {.name = "local"}, {.name = "print"}};
static struct sp_code *code;

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        abort();
}

static void make_folder(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (mkdir(path, 0700))
        abort();
}

/* What NVIDIA's kernel driver shows of two GPUs. */
static void set_up_folder(void)
{
    if (!mkdtemp(folder))
        abort();
    make_folder("gpus");
    make_folder("gpus/0000:00:07.0");
    make_folder("gpus/0000:00:06.0");
    make_folder("cache");
    write_file("version", "NVRM version: 1.2.3\n");
    write_file("gpus/0000:00:06.0/information", "GPU UUID: first\nIRQ: 17\nModel: Fake\n");
    write_file("gpus/0000:00:07.0/information", "GPU UUID: second\nIRQ: 18\nModel: Fake\n");
    setenv("SAMEPAGE_CUDA_FOLDER", folder, 1);
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache", folder);
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
    assert_int_equal(info->svm_levels, SP_SVM_COARSE | SP_SVM_FINE);
    assert_int_equal(info->global_memory_bytes % GRANULE, 0);
    assert_int_equal(second->agent, 2);
    assert_true(second->ops->distance(second, 1) < second->ops->distance(second, 0));
    assert_true(second->ops->distance(second, 0) < second->ops->distance(second, 3));
    assert_true(second->ops->distance(second, 3) < UINT32_MAX);
    assert_string_equal(other->info.driver_name, "virtual");
    assert_string_equal(other->info.name, "Virtual device 0");
    assert_true(other->ops->distance(other, 1) == UINT32_MAX);
}

/* What a process says is foreign input, and what the application was told once does not change. */
static void nonsense_is_refused(void **state)
{
    (void)state;
    struct sp_device_description said, known;
    assert_true(sp_cuda_recall(0, &known));
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
    assert_int_equal(sp_client_describe(client_of(first), &said), -ENODEV);
    assert_true(first->info.compute_units == known.compute_units);
    assert_int_equal(sp_client_describe(client_of(first), &known), 0);
}

static void is_remembered(void **state)
{
    (void)state;
    struct sp_device_description known;
    assert_true(sp_cuda_recall(1, &known));
    assert_string_equal(known.name, "Fake GPU 1");
    assert_false(sp_cuda_recall(2, &known));
    write_file("gpus/0000:00:07.0/information", "GPU UUID: second\nIRQ: 99\nModel: Fake\n");
    assert_true(sp_cuda_recall(1, &known)); /* an interrupt's number says nothing */
    write_file("version", "NVRM version: 1.2.4\n");
    assert_false(sp_cuda_recall(1, &known));
    write_file("version", "NVRM version: 1.2.3\n");
    write_file("gpus/0000:00:07.0/information", "GPU UUID: other\nIRQ: 18\nModel: Fake\n");
    assert_false(sp_cuda_recall(1, &known));
    write_file("gpus/0000:00:07.0/information", "GPU UUID: second\nIRQ: 18\nModel: Fake\n");
}

static void suggests_local_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t global[3], local[3];
    } cases[] = {
        {{1 << 20, 1, 1}, {256, 1, 1}}, {{96, 1, 1}, {96, 1, 1}},  {{640, 1, 1}, {160, 1, 1}},
        {{48, 32, 1}, {48, 4, 1}},      {{7919, 1, 1}, {1, 1, 1}}, {{2, 2, 512}, {2, 2, 64}},
        {{300, 1, 1}, {150, 1, 1}},
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
    first->ops->init_globals(code, at + 8192);
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

/* Of many kernels under way, too. */
static void prints(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct gated works[COUNT];
    char path[128], text[64] = "";
    int error = 0, right = 0;
    snprintf(path, sizeof path, "%s/output", folder);
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
    assert_int_equal(first->ops->load(first, wrong, sizeof wrong, &program, codes, 1, &loaded),
                     -ENOEXEC);
    assert_int_equal(first->ops->load(first, half, sizeof half, &program, codes, 2, &loaded),
                     -ENOEXEC);
    assert_int_equal(first->ops->load(first, half, sizeof half - 1, &program, codes, 1, &loaded),
                     -ENOEXEC);
    assert_int_equal(losses_of(first), 0);
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

static int set_up(void **state)
{
    (void)state;
    set_up_devices("cuda,virtual,mem=64M");
    first = devices[0];
    second = devices[1];
    other = devices[2];
    return first->ops->load(first, code_text, sizeof code_text, &program, codes, NUM_KERNELS,
                            &code);
}

static int tear_down(void **state)
{
    char command[160];
    (void)state;
    first->ops->unload(code);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
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
        cmocka_unit_test(home_is_seen_by_all),
        cmocka_unit_test(bindings_are_whole),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(fills_with_patterns),
        cmocka_unit_test(copies_rectangles),
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(local_arguments_have_places),
        cmocka_unit_test(large_ranges_are_several_launches),
        cmocka_unit_test(prints),
        cmocka_unit_test(many_works_keep_their_order),
        cmocka_unit_test(wrong_code_is_refused),
        cmocka_unit_test(a_fault_ends_one_device),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
