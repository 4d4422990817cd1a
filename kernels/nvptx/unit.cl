/* Atomic operations of all-devices scope on the part of the window that host and GPUs share
 * (unit.h). Kept out of line by samepage-cc: it is long, and its callers take another way most of
 * the time. */
#include <opencl-c-base.h>

#include "unit_device.h"

#include "unit.h"

ulong __attribute__((noinline, convergent))
__sp_unit_perform(ulong unit, uint operation, ulong address, ulong operand, ulong compare)
{
    return unit_perform(unit, operation, address, operand, compare);
}
