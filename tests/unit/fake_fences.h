/* For tests with fake devices: fences of the test (device/driver.h), of which only the references
 * are counted. One that nobody names any more must not be named again. */
#ifndef TEST_FAKE_FENCES_H
#define TEST_FAKE_FENCES_H

#include "device/driver.h"
#include "unit.h"

enum { MAX_FENCES = 1024 };

static int references[MAX_FENCES];
static sp_fence next_fence = 1;
static bool has_no_fences; /* there is none to be had */

/* Called once, instead of a thread that comes just then, before the last reference to the watched
 * fence is dropped; that is not watched any more by then. */
static sp_fence watched;
static void (*on_drop)(void);

static sp_fence fake_take_fence(struct sp_device *device)
{
    (void)device;
    if (has_no_fences)
        return 0;
    assert_true(next_fence < MAX_FENCES);
    references[next_fence] = 1;
    return next_fence++;
}

static void fake_keep_fence(sp_fence fence)
{
    assert_true(references[fence]++ > 0);
}

static void fake_drop_fence(sp_fence fence)
{
    if (watched && fence == watched && references[fence] == 1) {
        watched = 0;
        on_drop();
    }
    assert_true(references[fence]-- > 0);
}

static void expect_no_references(void)
{
    for (sp_fence fence = 1; fence < next_fence; fence++)
        assert_int_equal(references[fence], 0);
}

#endif
