/* The cuda backend's own seam: one NVIDIA GPU, through the driver API (docs/cuda-backend.md).
 *
 * cuda_api.c  the driver's entry points
 * cuda.c      starts; what each command does
 * describe.c  what the device is
 * stream.c    the order of commands, their ends and times; faults
 * memory.c    what is bound where, and host pages registered for transfers
 * populate.c  makes host pages
 * peers.c     the memory of other devices
 * copy.c      copies, fills, rectangles, transfers
 * launch.c    code and kernels
 * print.c     what kernels print
 * unit.c      atomic operations that the host carries out
 *
 * All run on the loop thread, but for what launch.c and peers.c say of the control thread.
 */
#ifndef SP_DEVICE_PROCESS_CUDA_H
#define SP_DEVICE_PROCESS_CUDA_H

#include "device/process/backend.h"
#include "device/process/cuda/cuda_api.h"

/* What the backend works with: set by start, read-only afterwards. */
struct sp_cuda_device {
    CUdevice device;
    int ordinal;
    CUcontext context;
    int num_devices; /* that this process sees */
    uint32_t max_local_bytes;
    uint32_t num_units; /* multiprocessors */
    struct sp_backend_setup setup;
};

extern struct sp_cuda_device sp_cuda_device;

/* 0, or what a failed call means for the command that needed it: -ENOMEM, -EINVAL, -EIO. Does not
 * return where the device can do nothing more. */
#define sp_cuda_check(call) sp_cuda_check_call(call, #call)
int sp_cuda_check_call(CUresult result, const char *call);

/* The last one that failed so in this thread, and the words of the program that called it;
 * CUDA_SUCCESS: none. */
struct sp_cuda_failure {
    CUresult result;
    const char *call;
};
extern _Thread_local struct sp_cuda_failure sp_cuda_last_failure;

/* What a start returns where CUDA failed at something: `error`, refused (backend.h) in CUDA's words
 * and with what can be done about it. `what`: "CUDA does not start". */
int sp_cuda_refuse(int error, const char *what, CUresult result);

/* describe.c */

/* 0 or a negative errno, refused: -ENOTSUP for a GPU that lacks what the backend needs. */
int sp_cuda_describe(struct sp_device_description *description);

/* stream.c */

/* What is enqueued in one lane is done in that order. */
enum sp_cuda_lane {
    SP_CUDA_MAIN, /* kernels, copies and fills of the device's own */
    SP_CUDA_IN,   /* transfers to the device */
    SP_CUDA_OUT,  /* transfers to the host */
    SP_CUDA_LANES,
};

/* Everything that was enqueued until some moment: a mark of each lane. */
struct sp_cuda_point {
    uint64_t marks[SP_CUDA_LANES];
};

int sp_cuda_stream_init(void);

/* A lane's stream, for enqueueing something now, behind all that was held back for that lane
 * (copy.c). */
CUstream sp_cuda_lane(enum sp_cuda_lane lane);

/* That of SP_CUDA_MAIN. */
CUstream sp_cuda_stream(void);

/* Something is held back that is as good as enqueued there. */
void sp_cuda_lane_touch(enum sp_cuda_lane lane);

/* Copies from device memory at once, past what is under way. 0 or a negative errno. */
int sp_cuda_stream_read(void *to, CUdeviceptr from, size_t bytes);

/* Zeroes memory that nothing under way uses; whatever is enqueued from now on comes after. While a
 * BIND is open. 0 or a negative errno. */
int sp_cuda_stream_zero(CUdeviceptr start, size_t bytes);

/* Opens the next command, behind what it has to come after; what is enqueued until close belongs to
 * it. It stays until then. */
void sp_cuda_stream_open(const struct sp_command *command);

/* A transfer of the lane, which is open or has not been told as ended, has failed: something of its
 * that was held back could not be enqueued. */
void sp_cuda_stream_fail(enum sp_cuda_lane lane, uint64_t number, int error);

/* Ends it: it is told as ended, with `error`, when all that was enqueued in its lane until now has
 * ended; an unbinding, when all has. */
void sp_cuda_stream_close(int error);

/* The open command has to come after something of another lane that may not have ended. */
bool sp_cuda_stream_is_behind(void);

/* The mark that will say that all that was enqueued in the lane until now has ended; and whether
 * one has come; and whether nothing is under way there. */
uint64_t sp_cuda_lane_mark(enum sp_cuda_lane lane);
bool sp_cuda_lane_has_passed(enum sp_cuda_lane lane, uint64_t mark);
bool sp_cuda_lane_is_idle(enum sp_cuda_lane lane);

/* The same of all lanes. */
void sp_cuda_point_set(struct sp_cuda_point *point);
bool sp_cuda_point_has_passed(const struct sp_cuda_point *point);

/* Waits for all that was enqueued in the lane; in all of them. */
void sp_cuda_lane_drain(enum sp_cuda_lane lane);
void sp_cuda_stream_drain(void);

bool sp_cuda_stream_progress(bool has_more);
void sp_cuda_stream_rest(void);

/* Host memory that the device reaches at the same address, zeroed; it stays. NULL: none left. */
void *sp_cuda_pinned(size_t bytes);

/* memory.c */

int sp_cuda_memory_init(void);

/* 0; -ENOMEM beyond the device's memory; -EINVAL for what are no whole granules of the window, or
 * cuts through what was bound at once. */
int sp_cuda_memory_bind(uint64_t start, uint64_t bytes, bool is_home);
int sp_cuda_memory_unbind(uint64_t start, uint64_t bytes);

/* Binds to the memory that another GPU has there: the errors of bind, and of sp_cuda_peers_map. */
int sp_cuda_memory_bind_peer(const struct sp_command *command);

/* Sees to what was unbound, once the commands before have ended. */
void sp_cuda_memory_reap(void);

/* There is something that can wait until nothing else is to be done; does a piece of it. */
bool sp_cuda_memory_is_untidy(void);
void sp_cuda_memory_tidy(void);

enum sp_cuda_place {
    SP_CUDA_NOWHERE,
    SP_CUDA_PRIVATE, /* memory of this GPU */
    SP_CUDA_HOME,    /* the host's pages */
    SP_CUDA_PEER,    /* memory of another GPU */
};

/* What lies at `address`, and how many of `bytes` from there on in one binding: no copy or fill of
 * CUDA's may go across two. */
enum sp_cuda_place sp_cuda_memory_place(uint64_t address, uint64_t bytes, uint64_t *count);

/* Whether all of a range is bound; with is_private, to memory of this GPU. */
bool sp_cuda_memory_is_bound(uint64_t address, uint64_t bytes, bool is_private);

/* Host pages of a private binding, for a copy on the stream: how many of `bytes` from `address` on
 * can be copied at once, and where they are mapped. `is_brief`: registering them is not worth its
 * time if they are never copied again. 0, or a negative errno. */
int sp_cuda_memory_host(uint64_t address, uint64_t bytes, bool is_brief, void **host,
                        uint64_t *count, bool *is_registered);

/* populate.c */

/* Makes and maps pages that are about to be registered, if it can; and goes on, while the caller
 * does something else, with those of the `following` bytes behind them, which the next calls are
 * for. Granules. */
void sp_cuda_populate(void *start, size_t bytes, size_t following);

/* Waits until no thread makes pages any more: before what was begun can be unbound. */
void sp_cuda_populate_end(void);

/* peers.c; the first three on the control thread: see backend.h. */

void sp_cuda_peer(uint32_t index, uint32_t generation, int file);
void sp_cuda_peer_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                       int file);
void sp_cuda_peer_part_gone(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes);

/* Copies from another device's memory into this one's, at the same addresses. 0; -EIO where that
 * device has lost that memory; -ENODEV where it cannot be reached. */
int sp_cuda_peers_copy(const struct sp_command *transfer);

/* Maps another GPU's memory at the range's own addresses, of which that GPU has bound exactly these
 * at once. 0, or as sp_cuda_peers_copy. */
int sp_cuda_peers_map(const struct sp_command *command);

/* Sees to parts that are gone. */
void sp_cuda_peers_reap(void);

/* copy.c */

/* own_kernels.cl as PTX, made when this was built. */
extern const char sp_cuda_own_kernels_ptx[];

int sp_cuda_copy_init(void);
int sp_cuda_copy(uint64_t dst, uint64_t src, uint64_t bytes);
int sp_cuda_copy_rect(const struct sp_command *command);
int sp_cuda_fill(const struct sp_command *command);
int sp_cuda_transfer(const struct sp_command *command);

/* Something is held back for the lane, and is better off waiting for more. */
bool sp_cuda_copy_may_wait(enum sp_cuda_lane lane, bool has_more);

/* Enqueues what was held back so far for the lane, to be done together. */
void sp_cuda_copy_flush(enum sp_cuda_lane lane);

/* launch.c; load and unload on the control thread. */

int sp_cuda_load_code(const void *image, size_t bytes, const struct sp_program_info *info,
                      const struct sp_kernel_code *codes, uint32_t num_codes, char **log,
                      void **code);
void sp_cuda_unload(void *code);
int sp_cuda_launch(const struct sp_command *command, void *code);
int sp_cuda_init_globals(const struct sp_command *command, void *code);

/* The function of the backend's own kernels. 0 or a negative errno. */
int sp_cuda_own_function(CUmodule module, const char *name, CUfunction *function);

/* Launches with a parameter block. */
int sp_cuda_launch_block(CUfunction function, const uint32_t grid[3], const uint32_t block[3],
                         uint32_t local_bytes, const void *parameters, size_t bytes,
                         CUstream stream);

/* unit.c */

/* Sets the atomic unit up and tries it out; what came out is in the description. 0, or a negative
 * errno where nothing more can be done with the device. After copy.c. */
int sp_cuda_unit_init(struct sp_device_description *description);

/* Fills in the atomic unit's members, for a kernel with SP_COMMAND_ATOMICS. */
struct sp_gpu_launch;
void sp_cuda_unit_describe(struct sp_gpu_launch *launch);

/* print.c */

int sp_cuda_print_init(void);

/* Device address of the buffer for a kernel that is launched now. */
uint64_t sp_cuda_print_buffer(void);

/* Whether kernels left anything there; and prints it, while no kernel runs or is enqueued. */
bool sp_cuda_print_has_any(void);
void sp_cuda_print_take(void);

#endif
