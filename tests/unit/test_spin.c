/* Spins: their time, what ends one early, and how brief they are then. A second thread that never
 * rests wants the one processor that both may use. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "util/futex.h"
#include "util/spin.h"
#include "util/time.h"

#define LONG_NS UINT64_C(600000000000) /* beyond this test's limit */

static atomic_bool is_over;

static void stay_on_one_processor(void)
{
    cpu_set_t allowed, one;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &allowed))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *work(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        sp_cpu_pause();
    return NULL;
}

static void look_on(struct sp_spin *spin)
{
    do
        for (unsigned i = 0; i < SP_PAUSES_PER_CLOCK; i++)
            sp_cpu_pause();
    while (sp_spin_goes_on(spin));
}

static void test_time(void **state)
{
    (void)state;
    struct sp_spin spin;
    sp_spin_begin(&spin, 0);
    assert_false(sp_spin_goes_on(&spin));
    assert_false(sp_spin_goes_on(&spin));
    sp_spin_begin(&spin, SP_BRIEF_SPIN_NS);
    look_on(&spin);
    assert_true(sp_time_ns() - spin.begin >= SP_BRIEF_SPIN_NS || !spin.end);
}

/* A thread that slept, or was stopped with its machine, lost its processor to nobody. The machine
 * may be busy, so one such spin of many is enough. */
static void test_pause(void **state)
{
    (void)state;
    bool is_long = false;
    for (int i = 0; i < 500 && !is_long; i++) {
        struct sp_spin spin;
        sp_spin_begin(&spin, LONG_NS);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        is_long = sp_spin_goes_on(&spin) && spin.end == spin.begin + LONG_NS;
    }
    assert_true(is_long);
}

static void test_wanted(void **state)
{
    (void)state;
    struct sp_spin spin, next;
    pthread_t other;
    stay_on_one_processor();
    assert_int_equal(pthread_create(&other, NULL, work, NULL), 0);
    do { /* one that lasted a moment before, which is the rule */
        sp_spin_begin(&spin, LONG_NS);
        look_on(&spin);
        assert_int_equal(spin.end, 0);
        assert_false(sp_spin_goes_on(&spin));
        sp_spin_begin(&next, LONG_NS);
    } while (next.end == next.begin + LONG_NS);
    assert_int_equal(next.end, next.begin + SP_BRIEF_SPIN_NS);
    atomic_store(&is_over, true);
    pthread_join(other, NULL);
    do /* long again by and by */
        sp_spin_begin(&next, LONG_NS);
    while (next.end != next.begin + LONG_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
