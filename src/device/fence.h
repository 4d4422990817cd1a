/* Fences, as all processes see them: one board in shared memory (device/process/protocol.h), which
 * is written here and looked at here. A fence goes from not reached to reached once, and stays so
 * until its slot is taken again, for which the application waits until nobody looks
 * (client/fences.c).
 */
#ifndef SP_DEVICE_FENCE_H
#define SP_DEVICE_FENCE_H

#include "device/process/protocol.h"

enum sp_fence_state { SP_FENCE_NOT_YET, SP_FENCE_WELL, SP_FENCE_BADLY };

/* Any process. Acquire: who sees it reached sees what the work did, and before that everything that
 * whoever reached it had seen. A fence whose slot is another's by now was reached badly, for all
 * that is known. */
enum sp_fence_state sp_fence_look(const struct sp_fence_board *board, sp_fence fence);

/* Reaches a fence, unless it is reached, and wakes the processes that sleep for it. `unexports`: of
 * its device, so far. By that device's process or, where that does not do it, the application. */
void sp_fence_reach(struct sp_fence_board *board, sp_fence fence, bool is_well, uint32_t unexports);

/* Wakes a device's process, if it sleeps. */
void sp_fence_wake(struct sp_fence_line *line);

#endif
