/* runtime/listeners: contexts are reached while they are there, and do not end under a visit. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "runtime/context.h"
#include "runtime/listeners.h"
#include "unit.h"

/* How long something is given that must not happen. */
#define A_WHILE_US 20000

static struct _cl_context contexts[2];
static atomic_uint visited; /* visits begun */
static atomic_bool may_leave, is_removed;

static void add(struct _cl_context *context)
{
    *context = (struct _cl_context){.arena = (struct sp_arena *)context};
    sp_listeners_add(context);
}

static void count(cl_context context, void *data)
{
    assert_ptr_equal(context, data);
    atomic_fetch_add(&visited, 1);
}

static void stay(cl_context context, void *data)
{
    count(context, data);
    while (!atomic_load(&may_leave))
        usleep(100);
}

static void *visit_and_stay(void *context)
{
    sp_listeners_visit(((cl_context)context)->listener, stay, context);
    return NULL;
}

static void *remove_one(void *context)
{
    sp_listeners_remove(context);
    atomic_store(&is_removed, true);
    return NULL;
}

static void who_has_ended_is_not_visited(void **state)
{
    (void)state;
    atomic_store(&visited, 0);
    add(&contexts[0]);
    add(&contexts[1]);
    uint64_t first = contexts[0].listener, second = contexts[1].listener;
    assert_true(first && second && first != second);
    assert_int_equal(sp_listener_of(contexts[0].arena), first);
    sp_listeners_visit(first, count, &contexts[0]);
    assert_int_equal(atomic_load(&visited), 1);
    sp_listeners_remove(&contexts[0]);
    sp_listeners_visit(first, count, &contexts[0]);
    assert_int_equal(atomic_load(&visited), 1);
    assert_int_equal(sp_listener_of(contexts[0].arena), 0);
    /* Nor is another one that is where it was. */
    add(&contexts[0]);
    sp_listeners_visit(first, count, &contexts[0]);
    assert_int_equal(atomic_load(&visited), 1);
    sp_listeners_visit(second, count, &contexts[1]);
    assert_int_equal(atomic_load(&visited), 2);
    sp_listeners_remove(&contexts[0]);
    sp_listeners_remove(&contexts[1]);
    sp_listeners_remove(&contexts[1]); /* nothing */
}

static void an_end_waits_for_visits(void **state)
{
    (void)state;
    pthread_t visitors[2], remover;
    atomic_store(&visited, 0);
    atomic_store(&may_leave, false);
    atomic_store(&is_removed, false);
    add(&contexts[0]);
    add(&contexts[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&visitors[i], NULL, visit_and_stay, &contexts[0]), 0);
    while (atomic_load(&visited) < 2)
        usleep(100);
    sp_listeners_remove(&contexts[1]); /* waits for nobody */
    assert_int_equal(pthread_create(&remover, NULL, remove_one, &contexts[0]), 0);
    usleep(A_WHILE_US);
    assert_false(atomic_load(&is_removed));
    atomic_store(&may_leave, true);
    pthread_join(remover, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(visitors[i], NULL);
    assert_int_equal(contexts[0].visits, 0);
}

static void end_both(cl_context context, void *data)
{
    count(context, data);
    sp_listeners_remove(&contexts[0]);
    sp_listeners_remove(&contexts[1]);
    /* They are freed. */
    memset(contexts, 0xa5, sizeof contexts);
}

static void visit_the_other(cl_context context, void *data)
{
    count(context, data);
    sp_listeners_visit(contexts[1].listener, end_both, &contexts[1]);
}

/* An error callback may release the last reference to its context, and to another. */
static void a_visit_may_end_the_context(void **state)
{
    (void)state;
    atomic_store(&visited, 0);
    add(&contexts[0]);
    add(&contexts[1]);
    sp_listeners_visit(contexts[0].listener, visit_the_other, &contexts[0]);
    assert_int_equal(atomic_load(&visited), 2);
    for (size_t i = 0; i < sizeof contexts; i++)
        assert_int_equal(((unsigned char *)contexts)[i], 0xa5);
    add(&contexts[0]); /* the list is sound */
    sp_listeners_visit(contexts[0].listener, count, &contexts[0]);
    assert_int_equal(atomic_load(&visited), 3);
    sp_listeners_remove(&contexts[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_ended_is_not_visited),
        cmocka_unit_test(an_end_waits_for_visits),
        cmocka_unit_test(a_visit_may_end_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
