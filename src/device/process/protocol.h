/* How the application and a device process talk (docs/device-process.md).
 *
 * What is rare goes over a socket (SOCK_SEQPACKET; the process finds it as SP_SPAWN_CONTROL_FD):
 * messages of one fixed form, with file descriptors. What is frequent goes through two rings in one
 * shared memory file: commands to the process, completions back. Each byte of a ring is written by
 * one side and read by the other. Data never passes through either: it lies in the memory files.
 *
 * The process takes what the application says for true. The application takes everything that the
 * process says, in messages and in shared memory, for foreign input.
 */
#ifndef SP_DEVICE_PROCESS_PROTOCOL_H
#define SP_DEVICE_PROCESS_PROTOCOL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "compiler/gpu_abi.h"
#include "device/driver.h"
#include "device/selection.h"

#define SP_DEVICE_MAGIC 0x56445053u /* "SPDV" */
#define SP_DEVICE_VERSION 9u

/* --- Messages ------------------------------------------------------------------------------------
 */

enum sp_message_kind {
    /* The first, each way. To the process: slot (its index), memory_bytes, threads, ordinal,
     * spin_us, atomic_; files SP_HELLO_. Back: error, with words that say why, or description,
     * and the device's memory file where there is one. */
    SP_MESSAGE_HELLO = 1,
    /* To the process: another device has a process: slot (its index), generation; its memory file,
     * if it has one for all of its memory; else unexports, which it had so far. */
    SP_MESSAGE_PEER = 2,
    /* To the process: code. slot, generation (which load this is), info_bytes of sp_program_info
     * and kernels in wire format, then bytes of shared object, in the file that comes along. Back:
     * slot, generation, error; bytes of text for people, where the device's compiler said
     * something, in a file that cannot shrink. */
    SP_MESSAGE_LOAD = 3,
    SP_MESSAGE_UNLOAD = 4, /* to the process: slot */
    /* To the process: the process of another device has ended: slot, generation. */
    SP_MESSAGE_PEER_GONE = 5,

    /* Devices whose memory is not one file export it in parts, one for each binding. A process
     * fetches a part when it first needs it, and is told when it is gone.
     *
     * From the process: a part, fetched or not, is no more: start, bytes, unexports (how many there
     * were with this one). To the processes of all other devices, with slot and generation. */
    SP_MESSAGE_UNEXPORT = 6,
    SP_MESSAGE_PEER_PART_GONE = 7,
    /* From the process: the part of device slot, generation, in which start lies. To the process of
     * that device: start, and who wants it: reader, reader_generation. */
    SP_MESSAGE_FETCH = 8,
    /* The answer: start and bytes of the part, with its file; or 0 bytes and no file, where there
     * is none; reader, reader_generation. To that process: with slot and generation. */
    SP_MESSAGE_EXPORT = 9,
    SP_MESSAGE_PEER_PART = 10,

    /* From the process: words of what went wrong with a command. Up to SP_MAX_COMPLAINTS. */
    SP_MESSAGE_COMPLAINT = 11,
};

/* Who has got so many from one process has got the idea. */
#define SP_MAX_COMPLAINTS 16u

/* What a device is, where only its process can know (driver.h has the meanings). Strings end with a
 * zero. The application checks and copies it; it is also kept on disk, so its layout is part of
 * SP_DEVICE_VERSION. */
struct sp_device_description {
    char name[64], vendor[64], driver_version[32], code_target[32];
    uint32_t vendor_id;
    uint32_t compute_units, clock_mhz;
    uint32_t max_work_group_size, max_item_sizes[3];
    uint32_t preferred_multiple;
    uint32_t cache_line_bytes;
    uint32_t svm_levels; /* SP_SVM_ */
    uint64_t global_memory_bytes, max_alloc_bytes, local_memory_bytes, cache_bytes;
    uint32_t has_fp64, has_error_correction; /* 0 or 1 */
    uint32_t has_pci, pci_domain, pci_bus, pci_device, pci_function;
    uint32_t has_uuid;
    unsigned char uuid[16];
    uint32_t peers;              /* bit n: it copies directly from device n of its kind */
    uint32_t has_failed_atomics; /* 0 or 1: the atomic unit was tried, and cannot be relied on */
};

/* Words for people in a message, with the zero behind them. */
#define SP_WORDS_BYTES 256u

struct sp_device_message {
    uint32_t magic, version;
    uint32_t kind; /* enum sp_message_kind */
    uint32_t slot;
    uint32_t generation;
    int32_t error;
    uint64_t bytes;
    uint64_t info_bytes;
    uint64_t memory_bytes;
    uint64_t start;
    uint64_t atomic_start,
        atomic_bytes; /* HELLO: the part of the window for atomics of all agents */
    uint32_t unexports;
    uint32_t reader, reader_generation; /* index, and which of its processes */
    uint32_t threads;
    uint32_t ordinal;
    uint32_t spin_us; /* how long the process looks for the end of works before it sleeps */
    struct sp_device_description description; /* zero but in a HELLO to the application */
    char memory[SP_MEMORY_NAME_BYTES]; /* where the memory comes from (selection.h); zero-terminated
                                        */
    /* To the application. HELLO with an error: a clause that follows "NVIDIA GPU 0 cannot be used:
     * ". COMPLAINT: the rest of a sentence that begins with the device's name. */
    char words[SP_WORDS_BYTES];
};

/* The files of a HELLO to the process, in this order. */
enum {
    SP_HELLO_RINGS,       /* struct sp_rings */
    SP_HELLO_WINDOW,      /* byte n is byte n of the window: the host's pages */
    SP_HELLO_COMPLETIONS, /* eventfd: there are completions, and the application sleeps */
    SP_HELLO_FENCES,      /* struct sp_fence_board */
    SP_HELLO_APPLICATION, /* pidfd of the application; may be missing */
    SP_HELLO_FILES,
};

#define SP_MAX_MESSAGE_FILES 5u

/* What an answer to LOAD says at most; the rest is left out. */
#define SP_MAX_LOAD_LOG_BYTES (UINT64_C(64) << 10)

/* Code slots of one device. 65,536 loaded shared objects are more than a process can map. */
#define SP_MAX_CODE_SLOTS 65536u

/* --- Rings ---------------------------------------------------------------------------------------
 */

/* Records are whole cache lines, and none is split at the end of the ring. */
#define SP_RECORD_BYTES 64u

/* Room for 8,000 small kernels; what does not fit waits in the application. */
#define SP_COMMAND_RING_BYTES (UINT64_C(1) << 20)

/* A record is at most half of the ring, so that one always fits into an empty ring. Argument blocks
 * are limited to a fraction of this (CL_DEVICE_MAX_PARAMETER_SIZE). */
#define SP_MAX_COMMAND_BYTES (SP_COMMAND_RING_BYTES / 2)

/* Works in the ring or running. The completion ring holds the two records that each can have, so
 * the process never waits for room. */
#define SP_MAX_IN_FLIGHT 4096u
#define SP_COMPLETION_RECORDS (2u * SP_MAX_IN_FLIGHT)

enum sp_command_kind {
    SP_COMMAND_SKIP = 0, /* nothing: the rest of the ring is too short for the next record */
    SP_COMMAND_KERNEL,
    SP_COMMAND_INIT_GLOBALS,
    SP_COMMAND_COPY,
    SP_COMMAND_RECT,
    SP_COMMAND_FILL,
    SP_COMMAND_BIND_PRIVATE,
    SP_COMMAND_BIND_HOME,
    SP_COMMAND_BIND_PEER, /* range: start, bytes; source, generation, unexports: whose memory it is
                           */
    SP_COMMAND_UNBIND,
    SP_COMMAND_TRANSFER,
    SP_COMMAND_DECLARE, /* range: start, bytes, ticket. A backend that cannot refuses it, and
                           ignores tickets */
};

enum {
    SP_COMMAND_TIMED = 1,      /* the completion tells times */
    SP_COMMAND_TELL_START = 2, /* there is a completion record at the start, too */
    SP_COMMAND_ATOMICS = 4,    /* a kernel that may use the atomic unit, which is served */
    /* SP_BESIDE_: what came before and need not have ended. */
    SP_COMMAND_BESIDE_WORKS = SP_BESIDE_WORKS << 3,
    SP_COMMAND_BESIDE_ARRIVALS = SP_BESIDE_ARRIVALS << 3,
    SP_COMMAND_BESIDE_DEPARTURES = SP_BESIDE_DEPARTURES << 3,
};

/* Text on its way to the application's standard output. */
#define SP_PRINT_RING_BYTES (UINT64_C(1) << 16)

/* Where one end of a transfer lies: another device by its index, or one of these. */
#define SP_PLACE_OWN 0xfffffffeu
#define SP_PLACE_HOST 0xffffffffu

struct sp_command {
    uint32_t bytes;     /* of the record: a multiple of SP_RECORD_BYTES */
    uint16_t kind;      /* enum sp_command_kind */
    uint16_t flags;     /* SP_COMMAND_ */
    uint64_t number;    /* counts works, from 1 */
    sp_fence fence;     /* what its end reaches; 0: none */
    uint32_t num_after; /* it waits for so many fences, which are the last words of the record */
    uint32_t failures_seen; /* not 0, and not what the process has counted: it is cancelled */
    union {
        struct {
            uint32_t slot, index; /* code, and the kernel in it */
            uint32_t args_bytes;
            uint32_t work_dim;
            uint64_t globals; /* address, or 0 */
            uint64_t ticket;  /* not 0: only what was declared under it may be reached */
            uint64_t global_offset[3], global_size[3], local_size[3];
            alignas(8) unsigned char args[];
        } kernel;
        struct {
            uint32_t slot, reserved;
            uint64_t globals;
        } init_globals;
        struct {
            uint64_t dst, src, bytes;
        } copy;
        struct {
            uint64_t dst, src;
            struct sp_rect rect;
        } rect;
        struct {
            uint64_t dst, bytes;
            uint32_t pattern_bytes, reserved;
            unsigned char pattern[];
        } fill;
        struct {
            uint64_t start, bytes;
            uint32_t source, destination; /* transfer: SP_PLACE_, or a device's index; bind peer:
                                             source, an index */
            uint32_t generation;          /* of the other device's memory */
            uint32_t unexports;           /* of that device, which must be known here */
            uint64_t ticket;              /* declare: of the kernel to come */
            uint64_t num_pieces; /* transfer: of the range these alone are copied; 0: all of it */
            struct sp_piece pieces[];
        } range;
    };
};

/* With the zero behind it. */
#define SP_FAULT_REASON_BYTES 160u

enum sp_completion_kind { SP_COMPLETION_STARTED = 1, SP_COMPLETION_FINISHED = 2 };

struct sp_completion {
    uint64_t number;           /* of the command */
    uint32_t kind;             /* enum sp_completion_kind */
    int32_t error;             /* 0, or a negative errno */
    uint64_t start_ns, end_ns; /* of timed works */
    uint32_t unexports;        /* messages UNEXPORT that were sent before */
    uint32_t is_failure;       /* 0 or 1: it is one of those that the process has counted */
    uint64_t undeclared; /* of a kernel: the first address that it touched undeclared; 0: none */
    uint32_t reserved_too[4];
};

_Static_assert(sizeof(struct sp_completion) == SP_RECORD_BYTES, "one cache line");

/* Whether others may rely on the command by their place in the ring alone. */
static inline bool sp_command_is_relied_on(const struct sp_command *command)
{
    return command->kind == SP_COMMAND_BIND_PRIVATE || command->kind == SP_COMMAND_BIND_HOME ||
           command->kind == SP_COMMAND_BIND_PEER || command->kind == SP_COMMAND_TRANSFER ||
           command->kind == SP_COMMAND_INIT_GLOBALS;
}

/* The fences that a command waits for. */
static inline const sp_fence *sp_command_after(const struct sp_command *command)
{
    return (const sp_fence *)((const unsigned char *)command + command->bytes) - command->num_after;
}

/* --- Fences --------------------------------------------------------------------------------------
 *
 * One memory file for all devices. Each has a line that its process writes, and, in its place, the
 * application what a process that is gone, or never got the work, did not write. A slot is taken
 * for one work at a time, with a number that grows; nobody takes it again while somebody may look.
 */

/* Of one device: works that others can wait for. As many commands are held back there at most, and
 * twice that are looked through when a fence is reached. */
#define SP_FENCE_SLOTS 1024u

struct sp_fence_slot {
    _Atomic uint64_t reached; /* the last number in the slot that was: doubled, plus 1: badly */
    atomic_uint unexports;    /* messages UNEXPORT of the device that were sent before; written
                                 first */
    uint32_t reserved;
};

struct sp_fence_line {
    alignas(64) atomic_uint process_sleeps; /* futex: 1 while the process sleeps for commands;
                                               whoever wakes it takes it back to 0 */
    alignas(64) _Atomic uint64_t ends;      /* fences of the device that were reached */
    alignas(64) atomic_uint awaited_by;     /* bit d: device d sleeps, and waits for one of them */
    alignas(64) struct sp_fence_slot slots[SP_FENCE_SLOTS];
};

struct sp_fence_board {
    struct sp_fence_line lines[SP_MAX_CLIENT_DEVICES];
};

/* A fence in one word: 4 bits of device, 12 of slot, 48 of number, from 1. */
static inline sp_fence sp_fence_of(uint32_t device, uint32_t slot, uint64_t number)
{
    return number << 16 | slot << 4 | device;
}

static inline uint32_t sp_fence_device(sp_fence fence)
{
    return fence & 15;
}

static inline uint32_t sp_fence_slot(sp_fence fence)
{
    return fence >> 4 & 0xfff;
}

static inline uint64_t sp_fence_number(sp_fence fence)
{
    return fence >> 16;
}

/* The shared memory file of the rings. Every line of the first page has one writer (but for the
 * word that wakes, which the other side takes back to 0). Positions count up for ever; a place in
 * the ring is a position modulo its size. */
struct sp_rings {
    alignas(64) _Atomic uint64_t command_tail;    /* application: bytes written */
    alignas(64) _Atomic uint64_t command_head;    /* process: bytes that it needs no more */
    alignas(64) _Atomic uint64_t completion_tail; /* process: records written */
    alignas(64) atomic_uint application_sleeps;   /* 1: completions are told through the eventfd */
    /* What the process was about, for a report after its death. */
    alignas(64) _Atomic uint64_t running; /* number of the command; 0: none */
    _Atomic uint64_t fault_address;
    atomic_uint fault_signal;                 /* 0: none */
    char fault_reason[SP_FAULT_REASON_BYTES]; /* where there was no signal; "": not known */
    /* What kernels print: bytes written, and bytes that the application has taken. */
    alignas(64) _Atomic uint64_t print_tail; /* process */
    alignas(64) _Atomic uint64_t print_head; /* application */
    alignas(64) atomic_uint print_waits;     /* futex: 1 while the process waits for room */
    alignas(4096) unsigned char commands[SP_COMMAND_RING_BYTES];
    alignas(4096) struct sp_completion completions[SP_COMPLETION_RECORDS];
    alignas(4096) char prints[SP_PRINT_RING_BYTES];
    /* A GPU's requests, written by its kernels, and the application's replies; its pages appear
     * when they are used. */
    alignas(4096) struct sp_unit_slot unit[SP_UNIT_SLOTS];
};

#endif
