/* runtime and svm: what becomes of commands whose device cancels their works, because something in
 * front of them failed (docs/device-process.md). The device is a fake that does nothing: a test
 * ends its works one by one, and counts failures when it likes, as the driver may. */
#include <errno.h>
#include <string.h>

#include "kept_works.h"
#include "runtime/command.h"
#include "runtime/context.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "unit.h"
#include "util/alloc.h"

enum { BYTES = 4096 };

/* Called once, instead of a thread of the device, while the directory is asked for a copy. */
static void (*on_distance)(void);

static uint32_t fake_distance(struct sp_device *device, uint32_t source)
{
    (void)device;
    (void)source;
    void (*meanwhile)(void) = on_distance;
    on_distance = NULL;
    if (meanwhile)
        meanwhile();
    return 0;
}

static const struct sp_device_ops fake_ops = {
    .submit = fake_submit, .wait = fake_wait, .distance = fake_distance};
static struct sp_device fake = {.ops = &fake_ops,
                                .root = &fake,
                                .agent = 1,
                                .life = 1,
                                .failures = 1,
                                .failures_coming = 1,
                                .info = {.name = "fake",
                                         .is_gpu = true,
                                         .own_memory = true,
                                         .global_memory_bytes = (uint64_t)64 << 20}};
static struct _cl_device_id device = {.device = &fake};
static cl_context context;
static cl_command_queue queue, other_queue;
static unsigned char *region;

static int set_up(void **state)
{
    (void)state;
    cl_device_id devices[] = {&device};
    if (sp_window_init())
        return -1;
    sp_object_init(&device.object, SP_OBJECT_DEVICE, NULL);
    sp_coherence_add_agent(&fake);
    return sp_context_create(1, devices, NULL, 0, NULL, NULL, &context) ||
           sp_queue_create(context, &device, 0, NULL, &queue) ||
           sp_queue_create(context, &device, 0, NULL, &other_queue);
}

/* A region of its own granule, which only the host has. */
static int new_region(void **state)
{
    (void)state;
    num_works = 0;
    region = sp_arena_alloc(context->arena, (size_t)3 << 20, 0, 0, SP_PATH_PRIVATE);
    sp_region_written(context->arena, region, BYTES);
    return region ? 0 : -1;
}

/* Ends the works that nobody looks at. */
static int end_region(void **state)
{
    (void)state;
    sp_arena_free(context->arena, region);
    for (unsigned i = 0; i < num_works; i++)
        if (works[i])
            works[i]->finished(works[i], 0);
    return 0;
}

/* A command that uses the region, to be enqueued. */
static struct sp_command *new_command(cl_command_queue to, enum sp_access access, cl_uint count)
{
    struct sp_command *command = sp_command_create(to, CL_COMMAND_NDRANGE_KERNEL, count, 0, 0);
    assert_non_null(command);
    command->has_work = true;
    command->work.kind = SP_WORK_KERNEL;
    sp_command_touch(command, region, BYTES, access);
    return command;
}

static cl_event enqueue_to(cl_command_queue to, enum sp_access access, cl_uint count,
                           const cl_event *events)
{
    cl_event event = NULL;
    struct sp_command *command = new_command(to, access, count);
    assert_int_equal(sp_command_enqueue(command, count, events, false, &event), CL_SUCCESS);
    return event;
}

static cl_event enqueue(void)
{
    return enqueue_to(queue, SP_ACCESS_READ_WRITE, 0, NULL);
}

static struct sp_work *work_of(cl_event event)
{
    return &((struct sp_command *)event)->work;
}

/* The place of the last such work that has not ended; num_works: there is none. */
static unsigned find(enum sp_work_kind kind)
{
    unsigned i = num_works;
    while (i-- > 0)
        if (works[i] && works[i]->kind == kind)
            return i;
    return num_works;
}

static bool has(enum sp_work_kind kind)
{
    return find(kind) < num_works;
}

static struct sp_work *last(enum sp_work_kind kind)
{
    assert_true(has(kind));
    return works[find(kind)];
}

static bool is_submitted(cl_event event)
{
    for (unsigned i = 0; i < num_works; i++)
        if (works[i] == work_of(event))
            return true;
    return false;
}

/* Told of, and not counted yet. */
static void tell(struct sp_work *work, int error)
{
    for (unsigned i = 0; i < num_works; i++)
        if (works[i] == work)
            works[i] = NULL;
    if (error)
        atomic_fetch_add(&fake.failures_coming, 1);
    work->finished(work, error);
}

static void count_failure(void)
{
    atomic_fetch_add(&fake.failures, 1);
}

static void end(struct sp_work *work, int error)
{
    tell(work, error);
    if (error)
        count_failure();
}

static void check_end(cl_event event, cl_int status)
{
    assert_int_equal(sp_event_status(event), status);
    sp_object_release(&event->object);
}

/* Its binding and its copy are there, then it is handed over; it is done. */
static void play_strictly(cl_event event)
{
    assert_false(is_submitted(event));
    if (has(SP_WORK_BIND))
        end(last(SP_WORK_BIND), 0);
    assert_int_equal(last(SP_WORK_TRANSFER)->failures_seen, 0);
    assert_false(is_submitted(event));
    end(last(SP_WORK_TRANSFER), 0);
    assert_true(is_submitted(event));
    assert_int_equal(work_of(event)->failures_seen, 0);
    end(work_of(event), 0);
}

static void what_fails_once_is_made_good(void **state)
{
    (void)state;
    uint32_t seen = fake.failures;
    cl_event event = enqueue();
    assert_true(is_submitted(event));
    assert_int_equal(last(SP_WORK_TRANSFER)->failures_seen, seen);
    assert_int_equal(work_of(event)->failures_seen, seen);
    end(last(SP_WORK_BIND), -ENOMEM);
    end(last(SP_WORK_TRANSFER), -ECANCELED);
    end(work_of(event), -ECANCELED);
    assert_true(has(SP_WORK_UNBIND) && has(SP_WORK_BIND));
    play_strictly(event);
    check_end(event, CL_COMPLETE);
    event = enqueue(); /* it is there now */
    assert_false(has(SP_WORK_BIND) || has(SP_WORK_TRANSFER));
    end(work_of(event), 0);
    check_end(event, CL_COMPLETE);
}

static void a_binding_that_fails_twice_is_an_error(void **state)
{
    (void)state;
    cl_event event = enqueue();
    end(last(SP_WORK_BIND), -ENOMEM);
    end(last(SP_WORK_TRANSFER), -ECANCELED);
    end(work_of(event), -ECANCELED);
    end(last(SP_WORK_BIND), -ENOMEM);
    assert_false(is_submitted(event) || has(SP_WORK_TRANSFER));
    check_end(event, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    event = enqueue();
    assert_true(has(SP_WORK_BIND));
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    end(work_of(event), 0);
    check_end(event, CL_COMPLETE);
}

static void a_copy_that_fails_twice_is_an_error(void **state)
{
    (void)state;
    cl_event event = enqueue();
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), -ENOMEM);
    end(work_of(event), -ECANCELED);
    assert_false(has(SP_WORK_BIND) || is_submitted(event));
    end(last(SP_WORK_TRANSFER), -ENOMEM);
    assert_false(is_submitted(event));
    check_end(event, CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

/* The order of a queue holds, whenever a command was enqueued, and whenever the failure is
 * counted. */
static void the_order_of_the_queue_is_kept(void **state)
{
    (void)state;
    cl_event first = enqueue(), second = enqueue();
    assert_true(is_submitted(first) && is_submitted(second));
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), -ENOMEM);
    tell(work_of(first), -ECANCELED);
    cl_event third = enqueue();
    assert_false(is_submitted(first) || is_submitted(third));
    count_failure();
    cl_event fourth = enqueue();
    end(work_of(second), -ECANCELED);
    assert_false(is_submitted(second) || is_submitted(third) || is_submitted(fourth));
    end(last(SP_WORK_TRANSFER), 0);
    assert_true(is_submitted(first));
    assert_false(is_submitted(second) || is_submitted(third) || is_submitted(fourth));
    end(work_of(first), 0);
    assert_true(is_submitted(second));
    assert_false(is_submitted(third) || is_submitted(fourth));
    end(work_of(second), 0);
    assert_true(is_submitted(third));
    assert_false(is_submitted(fourth)); /* it was enqueued before the second failure was told */
    end(work_of(third), 0);
    assert_true(is_submitted(fourth));
    end(work_of(fourth), 0);
    check_end(first, CL_COMPLETE);
    check_end(second, CL_COMPLETE);
    check_end(third, CL_COMPLETE);
    check_end(fourth, CL_COMPLETE);
}

/* Nobody is sent behind a command that has been cancelled. */
static void the_next_one_waits(void **state)
{
    (void)state;
    cl_event first = enqueue();
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), -ENOMEM);
    end(work_of(first), -ECANCELED);
    cl_event next = enqueue_to(queue, SP_ACCESS_DISCARD, 0, NULL);
    assert_false(is_submitted(first) || is_submitted(next));
    end(last(SP_WORK_TRANSFER), 0);
    assert_true(is_submitted(first) && is_submitted(next));
    assert_int_equal(work_of(next)->failures_seen, fake.failures);
    end(work_of(first), 0);
    end(work_of(next), 0);
    check_end(first, CL_COMPLETE);
    check_end(next, CL_COMPLETE);
}

/* What a work says of failures is of when its command was enqueued. */
static void the_count_is_taken_down_first(void **state)
{
    (void)state;
    uint32_t seen = fake.failures;
    cl_event gate = NULL, ready = enqueue();
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    end(work_of(ready), 0);
    check_end(ready, CL_COMPLETE);
    assert_int_equal(sp_user_event_create(context, &gate), CL_SUCCESS);
    cl_event event = enqueue_to(queue, SP_ACCESS_READ, 1, &gate);
    count_failure(); /* as if it had been told of long ago */
    assert_int_equal(sp_user_event_end(gate, CL_COMPLETE), CL_SUCCESS);
    assert_true(is_submitted(event));
    assert_int_equal(work_of(event)->failures_seen, seen);
    atomic_fetch_add(&fake.failures_coming, 1);
    end(work_of(event), -ECANCELED);
    assert_true(is_submitted(event));
    assert_int_equal(work_of(event)->failures_seen, 0);
    end(work_of(event), 0);
    check_end(event, CL_COMPLETE);
    sp_object_release(&gate->object);
}

/* A command that is going to be cancelled takes nothing from the directory, and tells it nothing:
 * it begins again before it is handed over. */
static void who_will_be_cancelled_copies_nothing(void **state)
{
    (void)state;
    cl_event gate = NULL;
    assert_int_equal(sp_user_event_create(context, &gate), CL_SUCCESS);
    cl_event event = enqueue_to(queue, SP_ACCESS_READ_WRITE, 1, &gate);
    if (has(SP_WORK_BIND))
        end(last(SP_WORK_BIND), 0);
    if (has(SP_WORK_TRANSFER)) /* a prefetch: the host changes it afterwards */
        end(last(SP_WORK_TRANSFER), 0);
    sp_region_written(context->arena, region, BYTES);
    atomic_fetch_add(&fake.failures_coming, 1);
    assert_int_equal(sp_user_event_end(gate, CL_COMPLETE), CL_SUCCESS);
    assert_false(is_submitted(event));
    if (has(SP_WORK_BIND)) /* there was no prefetch */
        end(last(SP_WORK_BIND), 0);
    assert_int_equal(last(SP_WORK_TRANSFER)->failures_seen, 0);
    count_failure();
    play_strictly(event);
    check_end(event, CL_COMPLETE);
    sp_object_release(&gate->object);
}

static void fail_meanwhile(void)
{
    atomic_fetch_add(&fake.failures_coming, 1);
    count_failure();
}

/* A copy for a command is as stale as the command: also where something fails between the look
 * whether the command is going to be cancelled and the copy. */
static void a_copy_knows_no_more_than_its_command(void **state)
{
    (void)state;
    uint32_t seen = fake.failures;
    on_distance = fail_meanwhile;
    cl_event event = enqueue();
    assert_null(on_distance);
    assert_int_equal(fake.failures, seen + 1);
    assert_int_equal(work_of(event)->failures_seen, seen);
    assert_int_equal(last(SP_WORK_TRANSFER)->failures_seen, seen);
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), -ECANCELED);
    end(work_of(event), -ECANCELED);
    play_strictly(event);
    check_end(event, CL_COMPLETE);
}

/* Who begins again finds a binding under way that somebody asked for before: one that has failed,
 * of which nobody was told yet. That is not its error; it binds anew, and of that it is. */
static void what_failed_before_is_nobodys_error(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        sp_region_written(context->arena, region, BYTES);
        cl_event first = enqueue();
        struct sp_work *bind = last(SP_WORK_BIND);
        atomic_fetch_add(&fake.failures_coming, 1); /* it is being told of */
        cl_event second = enqueue_to(other_queue, SP_ACCESS_READ, 0, NULL);
        assert_false(is_submitted(second));
        assert_ptr_equal(last(SP_WORK_BIND), bind);
        for (unsigned i = 0; i < num_works; i++)
            works[i] = works[i] == bind ? NULL : works[i];
        bind->finished(bind, -ENOMEM);
        count_failure();
        assert_int_equal(sp_event_status(second), CL_SUBMITTED); /* `first` keeps the old one */
        end(last(SP_WORK_TRANSFER), -ECANCELED);
        end(work_of(first), -ECANCELED);
        assert_false(is_submitted(first) || is_submitted(second));
        end(last(SP_WORK_BIND), fails ? -ENOMEM : 0);
        if (fails) /* asked for by the one, before the other began again */
            end(last(SP_WORK_BIND), 0);
        end(last(SP_WORK_TRANSFER), 0);
        assert_int_equal(is_submitted(second), !fails);
        if (!fails)
            end(work_of(second), 0);
        end(work_of(first), 0);
        check_end(first, CL_COMPLETE);
        check_end(second, fails ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_COMPLETE);
        end_region(NULL);
        new_region(NULL);
    }
}

/* A region of its own, which only the host has, and a command of that queue which uses it. */
static cl_event enqueue_other(cl_command_queue to, unsigned char **other)
{
    *other = region = sp_arena_alloc(context->arena, (size_t)3 << 20, 0, 0, SP_PATH_PRIVATE);
    assert_non_null(region);
    sp_region_written(context->arena, region, BYTES);
    return enqueue_to(to, SP_ACCESS_READ_WRITE, 0, NULL);
}

/* Who begins again waits for room, and finds a binding that was asked for meanwhile, for nobody who
 * would have had room made: that failure is not its error either. */
static void what_others_asked_for_meanwhile_is_nobodys_error(void **state)
{
    (void)state;
    enum { MUCH = 40 << 20 };
    unsigned char *unused = region,
                  *large = sp_arena_alloc(context->arena, MUCH, 0, 0, SP_PATH_PRIVATE),
                  *larger = sp_arena_alloc(context->arena, MUCH, 0, 0, SP_PATH_PRIVATE);
    unsigned char *small = sp_arena_alloc(context->arena, (size_t)3 << 20, 0, 0, SP_PATH_PRIVATE);
    cl_event gate = NULL, event = NULL, other, in_the_way, waiting;
    assert_true(large < small); /* so it is bound before */
    sp_region_written(context->arena, small, BYTES);
    region = small;
    struct sp_command *command = new_command(queue, SP_ACCESS_READ_WRITE, 0);
    sp_command_touch(command, large, BYTES, SP_ACCESS_READ);
    assert_int_equal(sp_command_enqueue(command, 0, NULL, false, &event), CL_SUCCESS);
    while (has(SP_WORK_BIND))
        end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    region = large; /* is used last */
    other = enqueue_to(other_queue, SP_ACCESS_READ, 0, NULL);
    end(work_of(other), 0);
    check_end(other, CL_COMPLETE);
    region = larger;
    in_the_way = enqueue_to(other_queue, SP_ACCESS_DISCARD, 0, NULL);
    assert_true(is_submitted(event) && !is_submitted(in_the_way));
    end(work_of(event), -ECANCELED); /* lets go of all, so that the other one begins */
    end(last(SP_WORK_BIND), 0);
    assert_true(!is_submitted(event) && is_submitted(in_the_way) && !has(SP_WORK_BIND));
    region = small;
    assert_int_equal(sp_user_event_create(context, &gate), CL_SUCCESS);
    waiting = enqueue_to(other_queue, SP_ACCESS_READ, 1, &gate);
    struct sp_work *bind = last(SP_WORK_BIND); /* a prefetch */
    end(work_of(in_the_way), 0);
    check_end(in_the_way, CL_COMPLETE);
    assert_ptr_not_equal(last(SP_WORK_BIND), bind); /* of what is large */
    end(last(SP_WORK_BIND), 0);
    assert_ptr_equal(last(SP_WORK_BIND), bind);
    end(bind, -ENOMEM);
    play_strictly(event);
    check_end(event, CL_COMPLETE);
    assert_int_equal(sp_user_event_end(gate, CL_COMPLETE), CL_SUCCESS);
    end(work_of(waiting), 0);
    check_end(waiting, CL_COMPLETE);
    sp_object_release(&gate->object);
    sp_arena_free(context->arena, large);
    sp_arena_free(context->arena, larger);
    sp_arena_free(context->arena, unused);
}

/* Two bindings find no memory at the same time. Neither counts for the other as what is there: each
 * command in turn has what nobody uses leave room. */
static void two_are_short_of_memory(void **state)
{
    (void)state;
    enum { TWO = 2 };
    unsigned char *idle = region, *regions[TWO];
    cl_event event = enqueue(), events[TWO];
    struct sp_work *binds[TWO], *copies[TWO];
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    end(work_of(event), 0);
    check_end(event, CL_COMPLETE);
    for (int i = 0; i < TWO; i++) {
        events[i] = enqueue_other(i ? other_queue : queue, &regions[i]);
        binds[i] = last(SP_WORK_BIND);
        copies[i] = last(SP_WORK_TRANSFER);
    }
    for (int i = 0; i < TWO; i++)
        end(binds[i], -ENOMEM);
    for (int i = 0; i < TWO; i++)
        end(copies[i], -ECANCELED);
    for (int i = 0; i < TWO; i++)
        end(work_of(events[i]), -ECANCELED);
    for (int i = 0; i < TWO; i++) { /* what was there goes to the host */
        assert_int_equal(last(SP_WORK_TRANSFER)->range.destination, SP_AGENT_HOST);
        end(last(SP_WORK_TRANSFER), 0);
        while (has(SP_WORK_UNBIND))
            end(last(SP_WORK_UNBIND), 0);
        play_strictly(events[i]);
        assert_int_equal(has(SP_WORK_BIND), i + 1 < TWO);
        check_end(events[i], CL_COMPLETE);
    }
    sp_arena_free(context->arena, regions[0]);
    sp_arena_free(context->arena, idle);
}

/* A command that only moves something waits for it from the start. */
static void a_migration_begins_again(void **state)
{
    (void)state;
    for (int fails = 1; fails <= 2; fails++) {
        cl_event event = NULL;
        sp_region_written(context->arena, region, BYTES);
        struct sp_command *command = sp_command_create(queue, CL_COMMAND_SVM_MIGRATE_MEM, 0, 0, 0);
        assert_non_null(command);
        sp_command_touch(command, region, BYTES, SP_ACCESS_READ);
        assert_int_equal(sp_command_enqueue(command, 0, NULL, false, &event), CL_SUCCESS);
        if (has(SP_WORK_BIND))
            end(last(SP_WORK_BIND), 0);
        for (int i = 0; i < fails; i++)
            end(last(SP_WORK_TRANSFER), -ENOMEM);
        if (fails == 1)
            end(last(SP_WORK_TRANSFER), 0);
        assert_false(has(SP_WORK_TRANSFER));
        check_end(event, fails == 1 ? CL_COMPLETE : CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
}

/* One who wants to read what a cancelled command overwrites: that has let go of it. */
static void who_is_cancelled_holds_nothing(void **state)
{
    (void)state;
    cl_event before = enqueue(), over = enqueue_to(queue, SP_ACCESS_DISCARD, 0, NULL);
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), -ENOMEM);
    end(work_of(over), -ECANCELED); /* of another lane: it waits for `before` */
    end(work_of(before), -ECANCELED);
    play_strictly(before);
    assert_true(is_submitted(over));
    end(work_of(over), 0);
    check_end(before, CL_COMPLETE);
    check_end(over, CL_COMPLETE);
}

/* One who wants to read what a command was to overwrite that found no memory in the middle of its
 * begin, whichever allocation it was: that has let go of it, too, though it ends last. */
static void who_fails_holds_nothing(void **state)
{
    (void)state;
    unsigned char *other = region + ((size_t)1 << 20); /* acquired when the first part is listed */
    bool is_short = true;
    for (unsigned n = 1; is_short; n++) {
        cl_event event = NULL;
        sp_region_written(context->arena, region, BYTES);
        sp_region_written(context->arena, other, BYTES);
        cl_event before = enqueue();
        struct sp_work *copy = last(SP_WORK_TRANSFER);
        struct sp_command *over = new_command(queue, SP_ACCESS_DISCARD, 0);
        sp_command_touch(over, other, BYTES, SP_ACCESS_READ_WRITE);
        sp_alloc_fail_at(n);
        assert_int_equal(sp_command_enqueue(over, 0, NULL, false, &event), CL_SUCCESS);
        sp_alloc_fail_at(0);
        is_short = !is_submitted(event);
        while (has(SP_WORK_BIND))
            end(last(SP_WORK_BIND), 0);
        end(copy, -ENOMEM);
        end(work_of(before), -ECANCELED);
        if (!is_short) {
            end(last(SP_WORK_TRANSFER), -ECANCELED);
            end(work_of(event), -ECANCELED);
        }
        assert_true(has(SP_WORK_TRANSFER));
        play_strictly(before);
        check_end(before, CL_COMPLETE);
        if (is_short) {
            check_end(event, CL_OUT_OF_HOST_MEMORY);
            continue;
        }
        play_strictly(event);
        check_end(event, CL_COMPLETE);
        assert_true(n > 2); /* of both parts */
    }
}

/* The values of a program's variables: given when the test says so. */
static struct sp_values_wait *asking;

static void hold(struct sp_values *values, struct sp_values_wait *wait)
{
    (void)values;
    assert_null(asking);
    asking = wait;
}

static void answer(int error)
{
    struct sp_values_wait *wait = asking;
    assert_non_null(wait);
    asking = NULL;
    wait->given(wait, error);
}

/* Of a kernel whose values failed before it began: they are given, and then it begins, as it does
 * where its device cancels it; or it has that error, or finds that they are of another life. */
static void values_are_given_again(void **state)
{
    (void)state;
    static const struct {
        bool is_submitted_first; /* they fail afterwards */
        int error;
        bool is_lost;
        cl_int status;
    } cases[] = {{false, 0, false, CL_COMPLETE},
                 {true, 0, false, CL_COMPLETE},
                 {false, -ENOSPC, false, CL_MEM_OBJECT_ALLOCATION_FAILURE},
                 {true, -EIO, false, CL_OUT_OF_RESOURCES},
                 {false, 0, true, CL_OUT_OF_RESOURCES}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sp_values values = {.give = hold};
        cl_event event = NULL;
        sp_region_written(context->arena, region, BYTES);
        atomic_init(&values.life, cases[i].is_submitted_first);
        struct sp_command *command = new_command(queue, SP_ACCESS_READ_WRITE, 0);
        command->values = &values;
        assert_int_equal(sp_command_enqueue(command, 0, NULL, false, &event), CL_SUCCESS);
        while (has(SP_WORK_BIND))
            end(last(SP_WORK_BIND), 0);
        end(last(SP_WORK_TRANSFER), 0);
        assert_int_equal(is_submitted(event), cases[i].is_submitted_first);
        if (cases[i].is_submitted_first) {
            assert_null(asking);
            atomic_store(&values.life, 0);
            end(work_of(event), -ECANCELED);
        }
        assert_false(is_submitted(event));
        if (!cases[i].error && !cases[i].is_lost)
            atomic_store(&values.life, 1);
        answer(cases[i].error);
        if (cases[i].status == CL_COMPLETE) {
            assert_int_equal(work_of(event)->failures_seen, 0);
            end(work_of(event), 0);
        }
        assert_null(asking);
        check_end(event, cases[i].status);
    }
}

/* Of the works of two queues those of the one have nothing to do with it, and are done again. */
static void another_queue_goes_on(void **state)
{
    (void)state;
    cl_event event = enqueue(), other = enqueue_to(other_queue, SP_ACCESS_READ, 0, NULL);
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    end(work_of(event), 0);
    end(work_of(other), -ECANCELED);
    assert_true(is_submitted(other));
    end(work_of(other), 0);
    check_end(event, CL_COMPLETE);
    check_end(other, CL_COMPLETE);
}

/* A strict one cannot be cancelled; a device that does so all the same is not asked for ever. */
static void nobody_begins_for_ever(void **state)
{
    (void)state;
    cl_event event = enqueue();
    end(last(SP_WORK_BIND), 0);
    end(last(SP_WORK_TRANSFER), 0);
    end(work_of(event), -ECANCELED);
    assert_true(is_submitted(event));
    end(work_of(event), -ECANCELED);
    assert_false(is_submitted(event));
    check_end(event, CL_OUT_OF_RESOURCES);
}

int main(void)
{
#define WITH_REGION(test) cmocka_unit_test_setup_teardown(test, new_region, end_region)
    const struct CMUnitTest tests[] = {
        /* First: while nothing was short of memory. */
        WITH_REGION(what_others_asked_for_meanwhile_is_nobodys_error),
        WITH_REGION(two_are_short_of_memory),
        WITH_REGION(what_fails_once_is_made_good),
        WITH_REGION(a_binding_that_fails_twice_is_an_error),
        WITH_REGION(a_copy_that_fails_twice_is_an_error),
        WITH_REGION(the_order_of_the_queue_is_kept),
        WITH_REGION(the_next_one_waits),
        WITH_REGION(the_count_is_taken_down_first),
        WITH_REGION(who_will_be_cancelled_copies_nothing),
        WITH_REGION(a_copy_knows_no_more_than_its_command),
        WITH_REGION(what_failed_before_is_nobodys_error),
        WITH_REGION(a_migration_begins_again),
        WITH_REGION(who_is_cancelled_holds_nothing),
        WITH_REGION(who_fails_holds_nothing),
        WITH_REGION(values_are_given_again),
        WITH_REGION(another_queue_goes_on),
        WITH_REGION(nobody_begins_for_ever),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
