/* compiler/globals: the initial values of a program's variables, on a device that keeps what is
 * submitted until the test ends it. One work at a time writes them, and none where they are there;
 * who is to rely on nothing hears of its end. */
#include <errno.h>
#include <sched.h>

#include "compiler/globals.h"
#include "kept_works.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "unit.h"
#include "util/alloc.h"

enum { BYTES = 100 };

static const struct sp_device_ops fake_ops = {.submit = fake_submit};
static struct sp_device fake = {
    .ops = &fake_ops,
    .root = &fake,
    .agent = 1,
    .life = 1,
    .failures = 1,
    .failures_coming = 1,
    .info = {.name = "fake", .own_memory = true, .global_memory_bytes = (uint64_t)64 << 20}};
static struct sp_arena *arena;
static struct sp_globals globals;

/* --- In place of executable.c: only its references are counted --- */

static int references;

struct sp_executable *sp_executable_reference(struct sp_executable *executable)
{
    references++;
    return executable;
}

void sp_executable_unreference(struct sp_executable *executable)
{
    (void)executable;
    assert_true(references-- > 0);
}

const struct sp_program_info *sp_executable_info(const struct sp_executable *executable)
{
    static const struct sp_program_info info = {.globals_bytes = BYTES};
    (void)executable;
    return &info;
}

/* --- Works --- */

static void end_at(unsigned place, int error)
{
    struct sp_work *work = works[place];
    works[place] = NULL;
    if (error)
        atomic_fetch_add(&fake.failures_coming, 1);
    work->finished(work, error);
    if (error)
        atomic_fetch_add(&fake.failures, 1);
}

/* The only work that writes values and has not ended; NULL: there is none. Bindings and transfers
 * are done before. */
static struct sp_work *values_work(unsigned *place)
{
    struct sp_work *found = NULL;
    for (unsigned i = 0; i < num_works; i++) {
        if (!works[i])
            continue;
        if (works[i]->kind != SP_WORK_INIT_GLOBALS) {
            end_at(i, 0); /* it may let another one be submitted */
            continue;
        }
        assert_null(found);
        found = works[i];
        *place = i;
    }
    return found;
}

static void end_values(int error)
{
    unsigned place;
    assert_non_null(values_work(&place));
    end_at(place, error);
}

static bool is_being_written(void)
{
    unsigned place;
    return values_work(&place);
}

struct wait {
    struct sp_values_wait wait; /* first */
    unsigned count;
    int error;
};

static void given(struct sp_values_wait *wait, int error)
{
    ((struct wait *)wait)->count++;
    ((struct wait *)wait)->error = error;
}

static void ask(struct wait *wait)
{
    *wait = (struct wait){.wait.given = given};
    globals.values.give(&globals.values, &wait->wait);
}

static void expect_given(const struct wait *wait, int error)
{
    assert_int_equal(wait->count, 1);
    assert_int_equal(wait->error, error);
}

/* As for a kernel that is enqueued. */
static void get(void)
{
    unsigned char *address;
    assert_int_equal(sp_globals_get(&globals, NULL, &address), 0);
    assert_non_null(address);
}

static int set_up(void **state)
{
    (void)state;
    if (sp_window_init() || sp_arena_create(true, &arena))
        return -1;
    sp_coherence_add_agent(&fake);
    return 0;
}

static int new_globals(void **state)
{
    (void)state;
    num_works = 0;
    sp_globals_init(&globals, (struct sp_executable *)&globals, arena, &fake);
    return 0;
}

static int end_globals(void **state)
{
    (void)state;
    sp_globals_finish(&globals);
    while (is_being_written())
        end_values(0);
    return references;
}

/* --- Tests --- */

static void they_are_written_once(void **state)
{
    (void)state;
    struct wait wait;
    get();
    get();
    assert_true(is_being_written());
    assert_int_equal(globals.values.life, 1);
    end_values(0);
    get();
    ask(&wait);
    expect_given(&wait, 0);
    assert_false(is_being_written());
    fake.life++;
    fake.lost(&fake, "a test");
    get();
    assert_true(is_being_written());
    end_values(0);
    assert_int_equal(globals.values.life, fake.life);
}

/* Under way is not enough for who is to rely on nothing. */
static void the_end_is_waited_for(void **state)
{
    (void)state;
    struct wait wait;
    get();
    ask(&wait);
    assert_int_equal(wait.count, 0);
    end_values(0);
    expect_given(&wait, 0);
}

/* All ask again who waited for what was cancelled; one writes them, relying on nothing. */
static void what_is_cancelled_is_written_again(void **state)
{
    (void)state;
    struct wait waits[3];
    unsigned place;
    get();
    assert_int_not_equal(values_work(&place)->failures_seen, 0);
    ask(&waits[0]);
    ask(&waits[1]);
    end_values(-ECANCELED);
    assert_int_equal(values_work(&place)->failures_seen, 0);
    ask(&waits[2]);
    get(); /* behind it */
    assert_int_equal(waits[0].count + waits[1].count + waits[2].count, 0);
    end_values(0);
    for (int i = 0; i < 3; i++)
        expect_given(&waits[i], 0);
    assert_false(is_being_written());
}

/* Who waits asks because something failed: that one failure, of whose count it may not know yet
 * (its writing is still under way then), is not its error. It hears of those of a try of its own.
 */
static void what_fails_is_written_again(void **state)
{
    (void)state;
    struct wait waits[2];
    unsigned place;
    get();
    ask(&waits[0]);
    ask(&waits[1]);
    end_values(-ENOMEM);
    assert_int_equal(globals.values.life, 0);
    assert_int_equal(waits[0].count + waits[1].count, 0);
    assert_int_equal(values_work(&place)->failures_seen, 0);
    end_values(0);
    expect_given(&waits[0], 0);
    expect_given(&waits[1], 0);
    assert_int_equal(globals.values.life, fake.life);
}

/* What fails although it relied on nothing is not written again for who it was written for, but for
 * who comes later. */
static void what_stays_so_is_said(void **state)
{
    (void)state;
    struct wait wait, later;
    get();
    end_values(-ENOMEM);
    ask(&wait);
    end_values(-ENOMEM);
    expect_given(&wait, -ENOSPC);
    assert_false(is_being_written());
    ask(&later);
    end_values(0);
    expect_given(&later, 0);
    assert_int_equal(globals.values.life, fake.life);
}

/* Who asks while they are being written by one that relies on nothing may do so because that one
 * has failed, of which nobody was told yet: they are written once more, for all of these. */
static void a_try_for_others_is_nobodys_error(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct wait first, waits[2];
        get();
        end_values(-ENOMEM);
        ask(&first);
        ask(&waits[0]);
        ask(&waits[1]);
        end_values(-ENOMEM);
        expect_given(&first, -ENOSPC);
        assert_int_equal(waits[0].count + waits[1].count, 0);
        end_values(fails ? -ENOMEM : 0);
        expect_given(&waits[0], fails ? -ENOSPC : 0);
        expect_given(&waits[1], fails ? -ENOSPC : 0);
        assert_false(is_being_written());
        fake.life++;
        fake.lost(&fake, "a test");
    }
}

/* Without memory to try again those hear of that who asked, and the next one tries. */
static void memory_may_be_short(void **state)
{
    (void)state;
    struct wait waits[2], later;
    unsigned n = 0;
    for (bool is_short = true; is_short;) {
        get();
        ask(&waits[0]);
        ask(&waits[1]);
        sp_alloc_fail_at(++n);
        end_values(-ENOMEM);
        sp_alloc_fail_at(0);
        is_short = !is_being_written();
        if (is_short) {
            expect_given(&waits[0], -ENOMEM);
            expect_given(&waits[1], -ENOMEM);
            ask(&later);
        }
        end_values(0);
        expect_given(is_short ? &later : &waits[0], 0);
        fake.life++;
        fake.lost(&fake, "a test");
    }
    assert_true(n > 2);
}

static void *get_on_thread(void *unused)
{
    (void)unused;
    get();
    return NULL;
}

/* Who enqueues a kernel while they are written for a command waits, and finds them. */
static void who_enqueues_waits_for_the_turn(void **state)
{
    (void)state;
    struct wait wait;
    pthread_t thread;
    get();
    end_values(-ENOMEM);
    ask(&wait);
    assert_int_equal(pthread_create(&thread, NULL, get_on_thread, NULL), 0);
    while (!pthread_mutex_trylock(&globals.lock)) { /* until it is there, and found none */
        pthread_mutex_unlock(&globals.lock);
        sched_yield();
    }
    end_values(0);
    pthread_join(thread, NULL);
    expect_given(&wait, 0);
    assert_false(is_being_written());
}

/* A device that cancels what relies on nothing is not asked for ever. */
static void nobody_asks_for_ever(void **state)
{
    (void)state;
    struct wait wait;
    get();
    ask(&wait);
    end_values(-ECANCELED);
    end_values(-ECANCELED);
    expect_given(&wait, -EIO);
    assert_false(is_being_written());
}

int main(void)
{
#define WITH_GLOBALS(test) cmocka_unit_test_setup_teardown(test, new_globals, end_globals)
    const struct CMUnitTest tests[] = {
        WITH_GLOBALS(they_are_written_once),
        WITH_GLOBALS(the_end_is_waited_for),
        WITH_GLOBALS(what_is_cancelled_is_written_again),
        WITH_GLOBALS(what_fails_is_written_again),
        WITH_GLOBALS(what_stays_so_is_said),
        WITH_GLOBALS(a_try_for_others_is_nobodys_error),
        WITH_GLOBALS(memory_may_be_short),
        WITH_GLOBALS(who_enqueues_waits_for_the_turn),
        WITH_GLOBALS(nobody_asks_for_ever),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
