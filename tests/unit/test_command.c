/* runtime: commands start when what they wait for has ended, in every kind of queue, and errors go
 * where the specification says. The device is a table of fakes that keeps what is submitted until
 * the test ends it. */
#include <errno.h>
#include <stdlib.h>

#include "kept_works.h"
#include "runtime/command.h"
#include "runtime/context.h"
#include "svm/heap.h"
#include "unit.h"

static const struct sp_device_ops fake_ops = {.submit = fake_submit, .wait = fake_wait};
static struct sp_device fake = {.ops = &fake_ops, .root = &fake};
static struct _cl_device_id device = {.device = &fake};
static cl_context context;

static int set_up_context(void **state)
{
    (void)state;
    cl_device_id devices[] = {&device};
    if (sp_window_init())
        return -1;
    sp_object_init(&device.object, SP_OBJECT_DEVICE, NULL);
    return sp_context_create(1, devices, NULL, 0, NULL, NULL, &context);
}

static cl_command_queue new_queue(cl_command_queue_properties properties)
{
    cl_command_queue queue = NULL;
    num_works = 0;
    assert_int_equal(sp_queue_create(context, &device, properties, NULL, &queue), CL_SUCCESS);
    return queue;
}

/* A command with work, waiting for `count` events. */
static cl_event enqueue(cl_command_queue queue, cl_uint count, const cl_event *events)
{
    cl_event event = NULL;
    struct sp_command *command = sp_command_create(queue, CL_COMMAND_NDRANGE_KERNEL, count, 0, 0);
    assert_non_null(command);
    command->has_work = true;
    assert_int_equal(sp_command_enqueue(command, count, events, false, &event), CL_SUCCESS);
    return event;
}

static cl_event enqueue_marker(cl_command_queue queue, bool is_barrier)
{
    cl_event event = NULL;
    struct sp_command *command =
        sp_command_create(queue, is_barrier ? CL_COMMAND_BARRIER : CL_COMMAND_MARKER, 0, 0, 0);
    assert_non_null(command);
    command->is_barrier = is_barrier;
    assert_int_equal(sp_command_enqueue(command, 0, NULL, false, &event), CL_SUCCESS);
    return event;
}

static void finish_work(cl_event event, int error)
{
    struct sp_work *work = &((struct sp_command *)event)->work;
    work->finished(work, error);
}

static bool is_submitted(cl_event event)
{
    for (unsigned i = 0; i < num_works; i++)
        if (works[i] == &((struct sp_command *)event)->work)
            return true;
    return false;
}

static void release_all(cl_event *events, int count)
{
    for (int i = 0; i < count; i++)
        sp_object_release(&events[i]->object);
}

static void an_in_order_queue_keeps_the_order(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0);
    cl_event e[3];
    for (int i = 0; i < 3; i++)
        e[i] = enqueue(queue, 0, NULL);
    assert_true(is_submitted(e[0]) && !is_submitted(e[1]));
    finish_work(e[0], 0);
    assert_true(is_submitted(e[1]) && !is_submitted(e[2]));
    assert_int_equal(sp_event_status(e[0]), CL_COMPLETE);
    assert_int_equal(sp_event_status(e[2]), CL_QUEUED);
    finish_work(e[1], 0);
    finish_work(e[2], 0);
    assert_int_equal(sp_queue_finish(queue), CL_SUCCESS);
    release_all(e, 3);
    sp_object_release(&queue->object);
}

static void the_order_of_a_queue_passes_no_error_on(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0);
    cl_event e[2] = {enqueue(queue, 0, NULL), enqueue(queue, 0, NULL)};
    finish_work(e[0], -EIO);
    assert_true(sp_event_status(e[0]) < 0);
    assert_true(is_submitted(e[1]));
    finish_work(e[1], 0);
    assert_int_equal(sp_event_status(e[1]), CL_COMPLETE);
    release_all(e, 2);
    sp_object_release(&queue->object);
}

static void a_wait_list_passes_errors_on(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event e[3];
    e[0] = enqueue(queue, 0, NULL);
    e[1] = enqueue(queue, 1, &e[0]);
    e[2] = enqueue(queue, 1, &e[1]);
    finish_work(e[0], -ENOMEM);
    assert_int_equal(sp_event_status(e[0]), CL_OUT_OF_HOST_MEMORY);
    assert_int_equal(sp_event_status(e[1]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert_int_equal(sp_event_status(e[2]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert_int_equal(num_works, 1);
    release_all(e, 3);
    sp_object_release(&queue->object);
}

static void out_of_order_commands_start_at_once(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event e[3];
    for (int i = 0; i < 3; i++)
        e[i] = enqueue(queue, 0, NULL);
    assert_int_equal(num_works, 3);
    for (int i = 2; i >= 0; i--)
        finish_work(e[i], 0);
    release_all(e, 3);
    sp_object_release(&queue->object);
}

static void a_barrier_parts_an_out_of_order_queue(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event e[5];
    e[0] = enqueue(queue, 0, NULL);
    e[1] = enqueue(queue, 0, NULL);
    e[2] = enqueue_marker(queue, true);
    e[3] = enqueue(queue, 0, NULL);
    e[4] = enqueue_marker(queue, false);
    assert_false(is_submitted(e[3]));
    finish_work(e[1], 0);
    assert_int_equal(sp_event_status(e[2]), CL_QUEUED);
    finish_work(e[0], 0);
    assert_int_equal(sp_event_status(e[2]), CL_COMPLETE);
    assert_true(is_submitted(e[3]));
    assert_int_equal(sp_event_status(e[4]), CL_QUEUED);
    finish_work(e[3], 0);
    assert_int_equal(sp_event_status(e[4]), CL_COMPLETE);
    release_all(e, 5);
    sp_object_release(&queue->object);
}

static void a_marker_holds_nobody_up(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event e[4];
    e[0] = enqueue(queue, 0, NULL);
    e[1] = enqueue_marker(queue, false);
    e[2] = enqueue(queue, 0, NULL);
    e[3] = enqueue_marker(queue, false);
    assert_true(is_submitted(e[2]));
    finish_work(e[2], 0);
    assert_int_equal(sp_event_status(e[1]), CL_QUEUED);
    assert_int_equal(sp_event_status(e[3]), CL_QUEUED);
    finish_work(e[0], 0);
    assert_int_equal(sp_event_status(e[1]), CL_COMPLETE);
    assert_int_equal(sp_event_status(e[3]), CL_COMPLETE);
    release_all(e, 4);
    sp_object_release(&queue->object);
}

static void a_user_event_holds_only_what_waits_for_it(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0), other = new_queue(0);
    cl_event user = NULL, e[2];
    assert_int_equal(sp_user_event_create(context, &user), CL_SUCCESS);
    e[0] = enqueue(queue, 1, &user);
    e[1] = enqueue(other, 0, NULL);
    assert_true(!is_submitted(e[0]) && is_submitted(e[1]));
    finish_work(e[1], 0);
    assert_int_equal(sp_user_event_end(user, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(sp_user_event_end(user, CL_COMPLETE), CL_INVALID_OPERATION);
    assert_true(is_submitted(e[0]));
    finish_work(e[0], 0);
    release_all(e, 2);
    sp_object_release(&user->object);
    sp_object_release(&queue->object);
    sp_object_release(&other->object);
}

/* A hundred thousand markers behind one user event: ended in a loop, or the stack would not last.
 */
static void long_chains_end(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0);
    cl_event user = NULL, last = NULL;
    assert_int_equal(sp_user_event_create(context, &user), CL_SUCCESS);
    struct sp_command *first = sp_command_create(queue, CL_COMMAND_MARKER, 1, 0, 0);
    assert_int_equal(sp_command_enqueue(first, 1, &user, false, NULL), CL_SUCCESS);
    for (int i = 0; i < 100000; i++) {
        if (last)
            sp_object_release(&last->object);
        last = enqueue_marker(queue, false);
    }
    assert_int_equal(sp_event_status(last), CL_QUEUED);
    sp_user_event_end(user, CL_COMPLETE);
    assert_int_equal(sp_event_status(last), CL_COMPLETE);
    sp_object_release(&last->object);
    sp_object_release(&user->object);
    sp_object_release(&queue->object);
}

struct told {
    struct sp_gate gate;
    cl_int status;
};

static void CL_CALLBACK tell(cl_event event, cl_int status, void *user_data)
{
    (void)event;
    struct told *told = user_data;
    told->status = status;
    sp_gate_open(&told->gate);
}

static void callbacks_come_once_their_status_is_reached(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0);
    struct told complete = {0}, late = {0}, failed = {0};
    cl_event e[2] = {enqueue(queue, 0, NULL), enqueue(queue, 0, NULL)};
    assert_int_equal(sp_event_add_callback(e[0], CL_COMPLETE, tell, &complete), CL_SUCCESS);
    assert_int_equal(sp_event_add_callback(e[1], CL_COMPLETE, tell, &failed), CL_SUCCESS);
    assert_false(sp_gate_is_open(&complete.gate));
    finish_work(e[0], 0);
    sp_gate_wait(&complete.gate);
    assert_int_equal(complete.status, CL_COMPLETE);
    assert_int_equal(sp_event_add_callback(e[0], CL_COMPLETE, tell, &late), CL_SUCCESS);
    sp_gate_wait(&late.gate);
    assert_int_equal(late.status, CL_COMPLETE);
    finish_work(e[1], -EIO);
    sp_gate_wait(&failed.gate);
    assert_true(failed.status < 0);
    release_all(e, 2);
    sp_object_release(&queue->object);
}

static unsigned num_destroyed;

static void count_destroyed(struct sp_object *object)
{
    (void)object;
    num_destroyed++;
}

static void what_a_command_uses_lives_until_its_end(void **state)
{
    (void)state;
    cl_command_queue queue = new_queue(0);
    struct sp_object object;
    num_destroyed = 0;
    sp_object_init(&object, SP_OBJECT_MEM, count_destroyed);
    struct sp_command *command = sp_command_create(queue, CL_COMMAND_FILL_BUFFER, 0, 1, 256);
    assert_int_equal((uintptr_t)command->extra % 128, 0);
    command->has_work = true;
    sp_command_use(command, &object);
    cl_event event;
    assert_int_equal(sp_command_enqueue(command, 0, NULL, false, &event), CL_SUCCESS);
    sp_object_release(&object);
    assert_int_equal(num_destroyed, 0);
    finish_work(event, 0);
    assert_int_equal(num_destroyed, 1);
    sp_object_release(&event->object);

    sp_object_init(&object, SP_OBJECT_MEM, count_destroyed);
    command = sp_command_create(queue, CL_COMMAND_FILL_BUFFER, 0, 1, 0);
    sp_command_use(command, &object);
    sp_object_release(&object);
    sp_command_discard(command);
    assert_int_equal(num_destroyed, 2);
    sp_command_discard(NULL);
    sp_object_release(&queue->object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_in_order_queue_keeps_the_order),
        cmocka_unit_test(the_order_of_a_queue_passes_no_error_on),
        cmocka_unit_test(a_wait_list_passes_errors_on),
        cmocka_unit_test(out_of_order_commands_start_at_once),
        cmocka_unit_test(a_barrier_parts_an_out_of_order_queue),
        cmocka_unit_test(a_marker_holds_nobody_up),
        cmocka_unit_test(a_user_event_holds_only_what_waits_for_it),
        cmocka_unit_test(long_chains_end),
        cmocka_unit_test(callbacks_come_once_their_status_is_reached),
        cmocka_unit_test(what_a_command_uses_lives_until_its_end),
    };
    return cmocka_run_group_tests(tests, set_up_context, NULL);
}
