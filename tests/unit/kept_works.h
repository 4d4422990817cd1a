/* For tests with a fake device: it keeps what is submitted until the test ends it, one by one, and
 * puts NULL in its place if it likes. */
#ifndef TEST_KEPT_WORKS_H
#define TEST_KEPT_WORKS_H

#include "device/driver.h"
#include "unit.h"
#include "util/gate.h"

enum { MAX_WORKS = 64 };

static struct sp_work *works[MAX_WORKS]; /* as they were submitted */
static unsigned num_works;

static inline void fake_submit(struct sp_device *device, struct sp_work *work)
{
    (void)device;
    assert_true(num_works < MAX_WORKS);
    works[num_works++] = work;
}

static inline void fake_wait(struct sp_device *device, struct sp_gate *gate, const void *stream)
{
    (void)device;
    (void)stream;
    sp_gate_wait(gate);
}

#endif
