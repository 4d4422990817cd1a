/* The server's side of the atomic unit (docs/atomic-unit.md): requests out of a ring, done with the
 * processor's own atomics. Used by the application for each GPU, and by a GPU's process for its
 * self-test.
 *
 * A ring has one server at a time. What is in it is foreign input: requests are copied, then
 * judged.
 */
#ifndef SP_DEVICE_UNIT_H
#define SP_DEVICE_UNIT_H

#include <stdbool.h>

#include "compiler/gpu_abi.h"

struct sp_unit_request {
    uint64_t address, operand, compare;
    uint32_t operation; /* enum sp_unit_operation, with SP_UNIT_WIDE */
};

/* Request `number` of the ring, which has come as a whole: true. */
bool sp_unit_take(const struct sp_unit_slot *slots, uint64_t number,
                  struct sp_unit_request *request);

/* There is such an operation, and the address is aligned for it. */
bool sp_unit_is_sane(const struct sp_unit_request *request);

/* Does a sane request on the word at its address, sequentially consistent, and answers it. */
void sp_unit_serve(struct sp_unit_slot *slots, uint64_t number,
                   const struct sp_unit_request *request);

#endif
