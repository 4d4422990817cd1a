/* The device process's own seam: what its files share.
 *
 * main.c   starts: window, hello, threads; then serves messages
 * loop.c   takes commands from the ring, and writes completions
 * drm/       the kernel's graphics devices, as a source of memory
 * buffers.c  memory for a device that exports each binding alone
 * park.c   commands that wait for the end of others, here or on other devices
 * peers.c  what this device exports, and what is known of the memory of others
 * prints.c what kernels print
 * fault.c  what happens when the application ends, or this process crashes
 */
#ifndef SP_DEVICE_PROCESS_PROCESS_H
#define SP_DEVICE_PROCESS_PROCESS_H

#include "device/process/backend.h"

/* loop.c */

/* Set up by main before any thread runs. spin_us: see protocol.h. */
void sp_loop_init(const struct sp_backend *backend, struct sp_rings *rings, int completions,
                  uint32_t spin_us);

/* Runs for ever. */
void *sp_loop_run(void *unused);

/* Tells the application to look at the rings, if it sleeps. Any thread. */
void sp_loop_wake_application(void);

/* Publishes code under a slot, or takes it out (NULL); what was there. The control thread. */
void *sp_loop_set_code(uint32_t slot, void *code);

/* buffers.c */

/* Each buffer is a memory file. */
extern const struct sp_buffers sp_memory_file_buffers;

/* drm/ */

/* Buffers from a DRM device: `name` is its driver, or the path of one of its nodes. 0, or a
 * negative errno, of which stderr says why. */
int sp_drm_choose(const char *name, const struct sp_buffers **chosen);

/* Prints what DRM devices there are; the process's exit status. */
int sp_drm_print_nodes(void);

/* park.c: all but init on the loop thread */

/* Set up by main before any thread runs. `index`: this device's line of the board. */
void sp_park_init(struct sp_fence_board *board, uint32_t index);

/* Of this device. Any thread. */
struct sp_fence_line *sp_park_line(void);

/* A command comes from the ring: 0 where it can begin; 1 where it is held back, and was copied;
 * -ENOMEM where there is no memory for that. */
int sp_park_take(const struct sp_command *command);

/* The next command that is held back no more, or NULL. *error: 0, or -ECANCELED where it must not
 * begin. To be dropped afterwards. */
const struct sp_command *sp_park_next(int *error);
void sp_park_drop(const struct sp_command *command);

/* Whether any is held back; and whether there may be a next one by now. */
bool sp_park_is_waiting(void);
bool sp_park_has_moved(void);

/* From now on who reaches a fence that is waited for wakes this process. */
void sp_park_rest(void);

/* A command has ended: before the application is told. */
void sp_park_ended(uint64_t number, int error);

/* peers.c */

/* Set up by main before any thread runs. */
void sp_peers_init(const struct sp_backend *backend, int socket);

/* Serves a message of those that concern peers; false: it is none. Takes over files[0] by setting
 * it to -1. The control thread. */
bool sp_peers_serve(const struct sp_device_message *message, int *files);

/* How many ends of exports were sent. The loop thread. */
uint32_t sp_peers_unexports(void);

/* prints.c */

/* From now on what is printed here comes out of the application. */
void sp_prints_init(struct sp_rings *rings);

/* fault.c */

/* From now on: ends the process at once when the application ends, whatever other threads do.
 * `application`: a pidfd, or -1. 0 or a negative errno. */
int sp_fault_watch(int socket, int application);

/* From now on a crash leaves its signal and address in `rings`; unless `reveal` (may be NULL)
 * undoes it. */
void sp_fault_report_to(struct sp_rings *rings, bool (*reveal)(uint64_t address));

/* Lets this thread report crashes as well: no signal of a crash is blocked, and the handler has a
 * stack. */
void sp_fault_prepare_thread(void);

#endif
