/* The CPU driver's own seam: what its files share.
 *
 * cpu.c       finds the device, describes it, divides it into sub-devices
 * nodes.c     NUMA nodes and places
 * pool.c      threads, the list of works, waiting
 * pieces.c    who takes which piece of a work
 * kernel.c    loads code, runs work-groups
 * copy.c      copies and fills
 * print.c     printf records to text
 */
#ifndef SP_DEVICE_CPU_H
#define SP_DEVICE_CPU_H

#include <sched.h>

#include "compiler/cpu_abi.h"
#include "device/driver.h"

struct cpu_device {
    struct sp_device device; /* first */
    /* NUMA sub-devices: the processors that its works run on; the others: has_processors is false
     * and any processor will do. */
    bool has_processors;
    cpu_set_t processors;
};

static inline struct cpu_device *sp_cpu_device(struct sp_device *device)
{
    return (struct cpu_device *)device;
}

/* nodes.c: set up once with the device, read-only afterwards. */

/* Machines have up to 16 (eight sockets in two clusters each); the rest of a larger one is taken
 * for one node. */
#define SP_CPU_MAX_NODES 32u

/* Above so many processors several neighbours of one node share a place: a work has a counter for
 * each place, to be set up and looked at. */
#define SP_CPU_MAX_PLACES 128u

/* Where a thread runs: a processor, or some of one node. Places of a node are numbered in a row. */
struct sp_cpu_place {
    unsigned processors;
    unsigned first_of_node, end_of_node; /* the places of its node */
};

void sp_cpu_nodes_init(const cpu_set_t *processors);
/* Nodes with processors of the device; at least 1. */
unsigned sp_cpu_num_nodes(void);
const cpu_set_t *sp_cpu_node_processors(unsigned node);
unsigned sp_cpu_num_places(void);
const struct sp_cpu_place *sp_cpu_place(unsigned place);
/* Where this thread runs now. */
unsigned sp_cpu_place_here(void);
/* The node of thread `number` of `count`, so that each node has threads in proportion to its
 * processors. */
unsigned sp_cpu_node_of_thread(unsigned number, unsigned count);

/* pieces.c */

struct sp_cpu_pieces {
    uint64_t first, end;
    bool is_begin; /* nobody took any before */
};

/* After parts, chunk, least and device are set. Never fails: without memory the places have no
 * shares of their own. */
void sp_cpu_pieces_init(struct sp_work *work);
void sp_cpu_pieces_finish(struct sp_work *work);
bool sp_cpu_pieces_left(const struct sp_work *work);
/* The share that a thread at `place` begins with: its place's, or where a thread has begun with
 * that the next one with which none has. */
unsigned sp_cpu_pieces_claim(struct sp_work *work, unsigned place);
/* The next chunk for a thread that began with `share`; false: none is left. */
bool sp_cpu_pieces_take(struct sp_work *work, unsigned share, struct sp_cpu_pieces *taken);

/* pool.c */

/* Adds a work with `parts` pieces, taken `chunk` at a time, towards the end fewer, but at least
 * `least`. These three of `driver` are set by the caller; heavy: worth waking other threads for. */
void sp_cpu_pool_submit(struct sp_device *device, struct sp_work *work, bool is_heavy);
void sp_cpu_pool_wait(struct sp_device *device, struct sp_gate *gate, const void *stream);

/* What the pool calls: runs the pieces [first, end) of a work on this thread. 0 or a negative
 * errno. */
int sp_cpu_work_run(struct sp_work *work, uint64_t first, uint64_t end);

/* Memory of this thread for the work at hand, SP_CPU_SCRATCH_ALIGN aligned, content undefined; NULL
 * when there is none. The next call of the thread may move it. */
void *sp_cpu_scratch(size_t bytes);

/* kernel.c */
int sp_cpu_load(struct sp_device *device, const void *image, size_t bytes,
                const struct sp_program_info *info, const struct sp_kernel_code *codes,
                uint32_t num_codes, char **log, struct sp_code **code);
void sp_cpu_unload(struct sp_code *code);
struct sp_code_kernel *sp_cpu_find(struct sp_code *code, const char *name);
void sp_cpu_init_globals(struct sp_code *code, unsigned char *globals);

/* Sets parts and chunk of a kernel's work and lays out its local memory. Returns whether it is
 * heavy. */
bool sp_cpu_kernel_plan(struct sp_work *work, unsigned threads);
int sp_cpu_kernel_run(struct sp_work *work, uint64_t first, uint64_t end);
void sp_cpu_suggest_local_size(struct sp_device *device, const struct sp_kernel_info *info,
                               const struct sp_ndrange *range, uint64_t local_size[3]);

/* copy.c: the same two for copies, fills and rectangles. */
bool sp_cpu_copy_plan(struct sp_work *work, unsigned threads);
int sp_cpu_copy_run(struct sp_work *work, uint64_t first, uint64_t end);

/* print.c: writes one record to stdout. What printf returns in OpenCL C: 0, or -1. */
int32_t sp_cpu_print(const struct sp_cpu_launch *launch, const char *format, const void *record,
                     uint64_t record_bytes);
/* Likewise, for a record of code that runs elsewhere: string_at gives the text at an address that
 * the record names for %s. */
int32_t sp_cpu_print_record(const char *format, const void *record, uint64_t record_bytes,
                            const char *(*string_at)(uint64_t address));
/* Makes what was printed by a work visible. */
void sp_cpu_print_flush(void);

#endif
