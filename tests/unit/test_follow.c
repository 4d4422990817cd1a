/* runtime: commands that follow others on other devices (docs/ahead.md), and how long the fences
 * are theirs. The devices are fakes that keep what is submitted until the test ends it. */
#include <errno.h>
#include <pthread.h>

#include "fake_fences.h"
#include "runtime/command.h"
#include "runtime/context.h"
#include "svm/heap.h"

enum { DEVICES = 2 };

static struct sp_device memories[DEVICES];
static struct _cl_device_id devices[DEVICES];
static cl_context context;
static cl_command_queue queues[DEVICES];

static unsigned submissions; /* of all works */
/* --- Devices -------------------------------------------------------------------------------------
 */

static void fake_submit(struct sp_device *device, struct sp_work *work)
{
    (void)device;
    submissions++;
    assert_true(!work->fence || references[work->fence] > 0);
    for (uint32_t i = 0; i < work->num_after; i++)
        assert_true(references[work->after[i]] > 0);
}

static void fake_wait(struct sp_device *device, struct sp_gate *gate, const void *stream)
{
    (void)device;
    (void)stream;
    sp_gate_wait(gate);
}

static const struct sp_device_ops fake_ops = {.submit = fake_submit,
                                              .wait = fake_wait,
                                              .take_fence = fake_take_fence,
                                              .keep_fence = fake_keep_fence,
                                              .drop_fence = fake_drop_fence};

static int set_up(void **state)
{
    cl_device_id all[DEVICES];
    (void)state;
    if (sp_window_init())
        return -1;
    for (uint32_t i = 0; i < DEVICES; i++) {
        memories[i].ops = &fake_ops;
        memories[i].root = &memories[i];
        memories[i].agent = i + 1;
        memories[i].info.name = "fake";
        memories[i].info.own_memory = true;
        memories[i].info.global_memory_bytes = 64 * SP_GRANULE_BYTES;
        atomic_init(&memories[i].life, 1);
        sp_coherence_add_agent(&memories[i]);
        devices[i].device = &memories[i];
        sp_object_init(&devices[i].object, SP_OBJECT_DEVICE, NULL);
        all[i] = &devices[i];
    }
    if (sp_context_create(DEVICES, all, NULL, 0, NULL, NULL, &context))
        return -1;
    for (int i = 0; i < DEVICES; i++)
        if (sp_queue_create(context, &devices[i], 0, NULL, &queues[i]))
            return -1;
    return sp_coherence_is_ahead_on() ? 0 : -1;
}

/* --- Commands ------------------------------------------------------------------------------------
 */

static cl_event enqueue(int device, cl_uint count, const cl_event *events)
{
    cl_event event = NULL;
    struct sp_command *command =
        sp_command_create(queues[device], CL_COMMAND_NDRANGE_KERNEL, count, 0, 0);
    assert_non_null(command);
    command->has_work = true;
    command->work.kind = SP_WORK_KERNEL;
    assert_int_equal(sp_command_enqueue(command, count, events, false, &event), CL_SUCCESS);
    return event;
}

static struct sp_work *work_of(cl_event event)
{
    return &((struct sp_command *)event)->work;
}

/* The device has done it. */
static void end(cl_event event, int error)
{
    work_of(event)->finished(work_of(event), error);
}

static void expect_after(cl_event event, sp_fence fence)
{
    assert_int_equal(work_of(event)->num_after, fence ? 1 : 0);
    if (fence)
        assert_int_equal(work_of(event)->after[0], fence);
}

static void release(cl_event event, cl_int status)
{
    assert_int_equal(sp_event_wait(event), status);
    sp_object_release(&event->object);
}

/* --- Tests ---------------------------------------------------------------------------------------
 */

/* The fence of one that has ended stays for who waits for it, and for who waits with that one. */
static void fences_stay_until_nobody_names_them(void **state)
{
    (void)state;
    cl_event first = enqueue(0, 0, NULL);
    sp_fence fence = work_of(first)->fence;
    assert_true(fence);
    cl_event second = enqueue(1, 1, &first), behind = enqueue(1, 0, NULL);
    expect_after(second, fence);
    expect_after(behind, fence);
    assert_int_equal(references[fence], 3);
    end(first, 0);
    release(first, CL_COMPLETE);
    assert_int_equal(references[fence], 2);
    end(second, 0);
    release(second, CL_COMPLETE);
    assert_int_equal(references[fence], 1);
    end(behind, 0);
    release(behind, CL_COMPLETE);
    expect_no_references();
}

static cl_event first, followed, follower;

static void *follow(void *unused)
{
    (void)unused;
    follower = enqueue(0, 1, &followed);
    return NULL;
}

/* On another thread, as another application's thread would. */
static void follow_meanwhile(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, follow, NULL), 0);
    pthread_join(thread, NULL);
}

/* While a command undoes its begin, nobody follows it: whichever of its fences is dropped just
 * then.
 */
static void who_begins_again_is_followed_later(void **state)
{
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        first = enqueue(0, 0, NULL);
        cl_event held = enqueue(1, 1, &first);
        followed = enqueue(1, 0, NULL);
        sp_fence fence = work_of(followed)->fence;
        expect_after(followed, work_of(first)->fence);
        end(first, -EIO);
        end(held, -ECANCELED);
        watched = drop ? work_of(followed)->after[0] : fence;
        on_drop = follow_meanwhile;
        follower = NULL;
        unsigned before = submissions;
        end(followed, -ECANCELED);
        assert_non_null(follower);
        assert_int_equal(watched, 0);
        /* It was submitted again, with a fence of its own, and the follower behind that. */
        assert_int_equal(submissions, before + 2);
        assert_true(work_of(followed)->fence && work_of(followed)->fence != fence);
        expect_after(followed, 0);
        expect_after(follower, work_of(followed)->fence);
        release(first, CL_OUT_OF_RESOURCES);
        release(held, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        end(followed, 0);
        end(follower, 0);
        release(followed, CL_COMPLETE);
        release(follower, CL_COMPLETE);
        expect_no_references();
    }
}

static void *follow_the_end(void *unused)
{
    (void)unused;
    follower = enqueue(1, 1, &first);
    return NULL;
}

static void follow_what_has_ended(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, follow_the_end, NULL), 0);
    pthread_join(thread, NULL);
}

/* A command drops its fences when it has ended: who comes then does not look at them. */
static void who_has_ended_is_not_followed(void **state)
{
    (void)state;
    first = enqueue(0, 0, NULL);
    watched = work_of(first)->fence;
    on_drop = follow_what_has_ended;
    end(first, 0);
    assert_non_null(follower);
    expect_after(follower, 0);
    release(first, CL_COMPLETE);
    end(follower, 0);
    release(follower, CL_COMPLETE);
    expect_no_references();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fences_stay_until_nobody_names_them),
        cmocka_unit_test(who_begins_again_is_followed_later),
        cmocka_unit_test(who_has_ended_is_not_followed),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
