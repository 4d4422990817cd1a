/* The one interface between the runtime and a kind of device.
 *
 * A driver (cpu, and the client of the device processes) finds its devices and runs work on them.
 * The runtime knows nothing of a device but what is written here, and a driver knows nothing of
 * OpenCL objects: it gets struct sp_work, runs it, and says when it is finished.
 *
 * Rules for every function: pointers are never NULL unless said; 0 or a negative errno; callable
 * from any thread; none calls back into the runtime but through sp_work.started and
 * sp_work.finished, and those with no lock of the driver held.
 */
#ifndef SP_DEVICE_DRIVER_H
#define SP_DEVICE_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/kernel_info.h"
#include "util/gate.h"

struct sp_device;
struct sp_code;        /* one shared object, loaded on a device: private to the driver */
struct sp_code_kernel; /* one kernel in it */

/* An NDRange. Unused dimensions: offset 0, sizes 1. */
struct sp_ndrange {
    uint32_t work_dim;
    uint64_t global_offset[3];
    uint64_t global_size[3]; /* none is 0 */
    uint64_t local_size[3];  /* at most global_size; the last groups may be smaller */
};

/* A rectangular copy or its shape: bytes per row, rows per slice, slices; pitches in bytes. */
struct sp_rect {
    size_t width, height, depth;
    size_t dst_row_pitch, dst_slice_pitch;
    size_t src_row_pitch, src_slice_pitch;
};

enum sp_work_kind {
    SP_WORK_KERNEL,
    SP_WORK_COPY, /* the ranges do not overlap */
    SP_WORK_COPY_RECT,
    SP_WORK_FILL,
    SP_WORK_CALL, /* a function of the host on a thread of the device: native kernels */
    /* Only for devices with memory of their own (sp_device_info.own_memory): */
    SP_WORK_BIND,      /* makes a range of the window usable on the device */
    SP_WORK_BIND_PEER, /* the same, with the memory that another device (range.source) has bound
                          there, which this one sees (sp_device_ops.sees) and whose BIND has
                          finished */
    SP_WORK_UNBIND,    /* the range becomes inaccessible there; its private backing is freed */
    SP_WORK_TRANSFER,  /* copies a range of the window from one agent's backing to another's */
    SP_WORK_DECLARE, /* lets the kernel with the ticket reach a range. The checking mode's; a device
                        that keeps nothing from kernels finishes it with an error */
    SP_WORK_INIT_GLOBALS, /* writes the initial values of program-scope variables */
};

#define SP_MAX_PATTERN_BYTES 128u /* the largest fill pattern: long16 */

/* A part of a transfer: addresses of the window. */
struct sp_piece {
    uint64_t start, bytes;
};

/* Of one transfer. Its record in a device's ring takes 16 KiB then, of 1 MiB; and as many small
 * copies are what a GPU carries out together. */
#define SP_MAX_PIECES 1024u

/* Which of the works that were submitted to a device before this one need not have ended when it
 * begins (sp_work.beside). Transfers to one side keep their order among each other in any case, and
 * so do works that are none. */
enum {
    SP_BESIDE_WORKS = 1,      /* kernels, copies, fills: of a transfer */
    SP_BESIDE_ARRIVALS = 2,   /* transfers to the device */
    SP_BESIDE_DEPARTURES = 4, /* transfers from the device to the host */
};

/* The end of a work, in a form in which other works can wait for it on their devices, with nobody
 * in between (docs/ahead.md). It is reached once: well, or badly where the work had an error or was
 * never begun. The driver's; 0: none. */
typedef uint64_t sp_fence;

/* What one work can wait for so. */
#define SP_MAX_AFTER 8u

/* One unit of device work. The runtime fills it in and keeps it alive until `finished` was called;
 * from submit until then it belongs to the driver. */
struct sp_work {
    enum sp_work_kind kind;
    bool timed;         /* fill in start_ns and end_ns */
    const void *stream; /* works of one queue share it; see sp_device_ops.wait */
    uint32_t beside; /* own memory only: SP_BESIDE_, which the device may make use of; 0: it comes
                        after all that was submitted before */
    uint32_t life;   /* own memory only: the life of the device (sp_device.life) that it is for, in
                        another of which it   fails; 0: any */
    /* Own memory only, of a device with take_fence: what its end reaches; and what must be reached
     * before it begins. It is held back until then, and what was submitted later goes on; where one
     * is reached badly, it ends with -ECANCELED, without having touched anything. It comes after
     * what was submitted to its device before only as far as that was begun by then, or waits for
     * nothing that this one does not wait for. All of these are fences of works that were submitted
     * earlier. Each named here is one reference, of whoever submits the work, who keeps it until
     * the work has finished; the driver reads them. */
    sp_fence fence;
    sp_fence after[SP_MAX_AFTER];
    uint32_t num_after;
    /* Own memory only: sp_device.failures as it was before the caller looked at anything that this
     * work relies on and that other works were to have done by then. Where one that was submitted
     * before has failed since, the device does not begin this one: it ends with -ECANCELED, without
     * having touched anything. 0: it relies on nothing that is under way, and is always done. */
    uint32_t failures_seen;
    union {
        struct {
            struct sp_code_kernel *kernel;
            struct sp_ndrange range;
            unsigned char *args;    /* argument block, sp_kernel_info.args_bytes; a local pointer is
                                       given as its size in bytes (8 bytes). The driver may change
                                       it */
            unsigned char *globals; /* the program's program-scope variables, or NULL */
            uint64_t ticket;        /* not 0: it may reach only what was declared under it */
            uint64_t undeclared; /* out, with a ticket: an address that it touched all the same; 0:
                                    none */
        } kernel;
        struct {
            void *dst;
            const void *src;
            size_t bytes;
        } copy;
        struct {
            void *dst;
            const void *src;
            struct sp_rect rect;
        } rect;
        struct {
            void *dst;
            size_t bytes;         /* a multiple of pattern_bytes */
            size_t pattern_bytes; /* a power of two, at most SP_MAX_PATTERN_BYTES */
            unsigned char pattern[SP_MAX_PATTERN_BYTES];
        } fill;
        struct {
            void (*function)(void *argument);
            void *argument;
        } call;
        struct {
            struct sp_code *code;   /* of the program; used until submit has returned */
            unsigned char *globals; /* zeroed: sp_program_info.globals_bytes */
        } init;
        struct {
            uintptr_t
                start; /* bind, unbind: whole granules (SP_GRANULE_BYTES). transfer: any bytes */
            size_t bytes;
            bool is_home; /* bind: to the host's pages, which all agents see; else to zeroed memory
                             of the device */
            uint32_t source, destination; /* transfer: agents; this device is one of them, and
                                             bound there, to its own memory, where it is */
            uint32_t source_life; /* transfer: of the source, in which it has what is copied; in a
                                     later one the work fails. 0: any */
            uint64_t ticket;      /* declare: of the kernel */
            /* transfer: what of the range is copied, in order of address, up to
             * SP_MAX_PIECES; NULL: all of it. They stay until `finished`. */
            const struct sp_piece *pieces;
            size_t num_pieces;
        } range;
    };

    /* Called when the device begins; may be NULL. Once, before `finished`; perhaps not where the
     * work is cancelled. */
    void (*started)(struct sp_work *work);
    /* Called exactly once, on a thread of the driver or inside sp_device_ops.wait: 0, or a negative
     * errno when the work could not be done. The work may be gone when it returns. */
    void (*finished)(struct sp_work *work, int error);
    uint64_t start_ns, end_ns; /* sp_time_ns clock; set before `finished` when `timed` */

    /* The driver's own, from submit until finished. */
    struct {
        struct sp_work *next;
        struct sp_device *device;
        bool listed;                  /* in the list of works that have pieces left */
        unsigned workers;             /* threads on it now */
        uint64_t parts;               /* how many pieces it divides into */
        uint64_t chunk;               /* pieces taken at a time */
        uint64_t least;               /* pieces taken at a time towards the end, at most `chunk` */
        _Atomic uint64_t next_part;   /* the first piece that nobody took */
        struct sp_cpu_shares *shares; /* NULL, or in place of next_part: one for each processor */
        atomic_int error;             /* 0, or the first error */
    } driver;
};

enum sp_svm_level {
    SP_SVM_COARSE = 1,
    SP_SVM_FINE = 2,
    SP_SVM_SYSTEM = 4,
    SP_SVM_ATOMICS = 8,
};

/* What a device is. Filled in by its driver, read-only afterwards. Strings live as long as the
 * device. */
struct sp_device_info {
    const char *name;
    const char *vendor;
    const char *driver_name;    /* "cpu", "virtual", "cuda", "amdgpu" */
    const char *vendor_version; /* of the vendor's own driver beneath; NULL: there is none */
    uint32_t vendor_id;
    bool is_cpu, is_gpu;
    bool own_memory; /* false: works in the host's memory */
    uint32_t compute_units;
    uint32_t clock_mhz; /* 0: not known */
    uint32_t max_work_group_size;
    uint32_t max_item_sizes[3];   /* in each dimension of a work-group */
    uint32_t preferred_multiple;  /* good work-group sizes are multiples of this */
    uint32_t native_vector_bytes; /* width of a vector register; 0: scalars only */
    uint64_t global_memory_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_memory_bytes;
    uint64_t cache_bytes;
    uint32_t cache_line_bytes;
    /* Regions up to this size that go to and fro are cheaper in the host's memory than copied; own
     * memory only. 0: none, UINT64_MAX: all */
    uint64_t home_near_bytes;
    uint32_t svm_levels;     /* SP_SVM_ bits that are true of it */
    bool has_failed_atomics; /* SP_SVM_ATOMICS is not among them because its self-test failed */
    uint32_t numa_nodes;     /* nodes with processors of this device; at least 1 */
    uint32_t
        max_args_bytes; /* of an argument block; with more a kernel is not built for it. 0: any */
    uint32_t timer_ns;  /* steps of sp_work.start_ns and end_ns; 0: of 1 */
    bool fp64;
    bool compiles_code; /* further, when it is loaded: what that says belongs into the build log */
    bool corrects_errors;   /* its memory has ECC, and it is on */
    bool has_pci, has_uuid; /* what follows is known */
    uint32_t pci_domain, pci_bus, pci_device, pci_function;
    unsigned char uuid[16];
};

/* How a device is divided (clCreateSubDevices). */
enum sp_partition_kind { SP_PARTITION_UNITS, SP_PARTITION_NUMA };

struct sp_device_ops {
    /* Hands `work` over. Never fails, never blocks for long: errors reach work->finished. A device
     * in the host's memory may run works at once and in any order; a device with own memory runs
     * them in the order in which they were submitted, as far as they do not say that they may run
     * beside one another (sp_work.beside). */
    void (*submit)(struct sp_device *device, struct sp_work *work);

    /* How far the memory of agent `source` is from the device: less is nearer, UINT32_MAX is out of
     * reach, as far as is known: a way may be found, or not be there any more, when the device's
     * process has started. The host's is always in reach. Own memory only; NULL: all are as near.
     */
    uint32_t (*distance)(struct sp_device *device, uint32_t source);

    /* Whether the device can use the memory of agent `source` where it is (SP_WORK_BIND_PEER). May
     * wait until the device's process has started, so no lock may be held that its loss takes. Own
     * memory only; NULL: of no other. */
    bool (*sees)(struct sp_device *device, uint32_t source);

    /* What is to be said of the device to whoever has it in a context, as the rest of a sentence
     * that begins with its name; it stays. NULL: nothing. Own memory only, may be NULL. */
    const char *(*notice)(struct sp_device *device);

    /* A fence for one work that is about to be submitted to the device, with a reference; 0: there
     * is none just now, or the device is not ready. Own memory only; NULL: the device knows no
     * fences. */
    sp_fence (*take_fence)(struct sp_device *device);

    /* One reference more or less, of a fence of any device of the driver. NULL as take_fence. */
    void (*keep_fence)(sp_fence fence);
    void (*drop_fence)(sp_fence fence);

    /* Waits until the device takes work: NULL; or until it is known that it never will: why, a
     * clause without an end, which lives as long as the device. May wait for as long as its process
     * needs to start. Own memory only; NULL: the device is ready. */
    const char *(*await_ready)(struct sp_device *device);

    /* Waits until `gate` is open. Meanwhile the thread may run submitted works of `stream`, and
     * only of it: a wait must not be prolonged by work that it does not depend on. */
    void (*wait)(struct sp_device *device, struct sp_gate *gate, const void *stream);

    /* Loads what samepage-cc made; `codes` are the kernels in it. The image is copied. *log, also
     * of an error: what whoever compiles or links it there said, for people, the caller's to free;
     * NULL: nothing. */
    int (*load)(struct sp_device *device, const void *image, size_t bytes,
                const struct sp_program_info *info, const struct sp_kernel_code *codes,
                uint32_t num_codes, char **log, struct sp_code **code);
    /* No work that uses it is left. Takes NULL. */
    void (*unload)(struct sp_code *code);
    /* The kernel of that name in `code`, or NULL. Lives as long as `code`. */
    struct sp_code_kernel *(*find)(struct sp_code *code, const char *name);
    /* Only of a device in the host's memory, others do SP_WORK_INIT_GLOBALS: writes the initial
     * values of program-scope variables into `globals` (zeroed memory of
     * sp_program_info.globals_bytes). */
    void (*init_globals)(struct sp_code *code, unsigned char *globals);

    /* A good local size for `range` (its local_size is ignored) where the application gave none.
     * `kernel` may be NULL where it is not compiled yet; `info` says what is required. */
    void (*suggest_local_size)(struct sp_device *device, const struct sp_kernel_info *info,
                               const struct sp_ndrange *range, uint64_t local_size[3]);

    /* A sub-device of `count` compute units starting at `first` of `device`, or all units of NUMA
     * node `first`. The result shares code with its root device and is ended with destroy. */
    int (*partition)(struct sp_device *device, enum sp_partition_kind kind, uint32_t first,
                     uint32_t count, struct sp_device **sub_device);
    /* Only for sub-devices. */
    void (*destroy)(struct sp_device *sub_device);
    /* How many compute units NUMA node `node` gives to this device. */
    uint32_t (*numa_units)(struct sp_device *device, uint32_t node);
};

/* A longer name is cut. */
#define SP_FAULT_NAME_BYTES 96u

struct sp_device {
    const struct sp_device_ops *ops;
    struct sp_device_info info;
    struct sp_device *root; /* itself, or the device that it is a part of */
    uint32_t agent;         /* whose memory it works in: 0 the host's, else its own */
    /* What samepage-cc makes code for (protocol.h, CODE); NULL: this processor. Another string
     * where the device turned out to be another one than `info` says; each stays. */
    const char *_Atomic code_target;
    /* Own memory only: how much of info.global_memory_bytes is not there, as turned out when its
     * process started. Relaxed: an estimate of room; what there is no room for fails to be bound.
     */
    _Atomic uint64_t lacking_bytes;
    /* Own memory only: which life it is in, from 1. It changes with a death, before `lost` is
     * called; a driver that never loses a device leaves it at 0. */
    atomic_uint life;
    /* Own memory only: counts, in this life and from 1, the works that later ones may have relied
     * on and that were not done: bindings, transfers and initial values that failed, and whatever
     * was cancelled because of that. It counts one when `finished` has returned, so who reads it
     * knows all that can be known of those (docs/device-process.md). Acquire. 0: the driver's works
     * do not fail while it lives.
     * failures_coming counts one before `finished` is called: a work that says less is going to be
     * cancelled. */
    atomic_uint failures, failures_coming;
    /* Own memory only, set by the runtime before it reads `life` for the first time, and that
     * before the first work: called once each time that the device's process has died, before any
     * of its works is finished with -EIO. Works for the new life are accepted from then on; in it
     * nothing is bound, and all memory of it is gone. Sequentially consistent, as the change of
     * `life` is: either a death finds it set, or who set it finds the new life. */
    void (*_Atomic lost)(struct sp_device *device, const char *reason);
    /* Own memory only, set by the runtime, or NULL: called, with no lock held, when there is
     * something else to be said of the device: the rest of a sentence that begins with its name.
     * What is still to be said later says sp_device_ops.notice. */
    void (*_Atomic noticed)(struct sp_device *device, const char *text);
    /* Own memory only: there will be no further life, all works fail, and
     * sp_device_ops.await_ready says why. Set before `lost` of the last one. Release. */
    atomic_bool is_given_up;
    /* Set before `lost` where a kernel's access was the reason: the address (else 0), and the
     * kernel's name. */
    struct {
        uint64_t address;
        char kernel[SP_FAULT_NAME_BYTES];
    } fault;
};

/* How much can be bound to memory of the device's own. */
static inline uint64_t sp_device_memory(const struct sp_device *device)
{
    uint64_t all = device->info.global_memory_bytes;
    uint64_t lacking = atomic_load_explicit(&device->lacking_bytes, memory_order_relaxed);
    return all > lacking ? all - lacking : 0;
}

/* A driver finds its devices once. They live as long as the process. */
struct sp_driver {
    const char *name;
    /* *devices: a static array of *count pointers. -ENODEV where there is none. */
    int (*probe)(struct sp_device ***devices, unsigned *count);
    /* After probe: devices that there should be, but that cannot be used, and so are not among
     * those: the one of that index, whose ops->await_ready says why; NULL: there are no more. NULL:
     * there are none. */
    struct sp_device *(*missing)(unsigned index);
};

extern const struct sp_driver sp_cpu_driver;

/* The devices that live in processes of their own, as SAMEPAGE_DEVICES names them. */
extern const struct sp_driver sp_client_driver;

#endif
