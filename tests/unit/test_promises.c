/* svm/coherence: commands that begin ahead of what they come after (docs/ahead.md). The devices are
 * fakes that do nothing by themselves: a test says when one runs what it has, as far as fences let
 * it, and when it tells of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_fences.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "svm/region.h"

enum { DEVICES = 3, MAX_WORKS = 64, BYTES = 5000 };

struct fake {
    struct sp_device device; /* first */
    unsigned char *memory;   /* byte n: of the window */
    struct sp_work *waiting[MAX_WORKS], *run[MAX_WORKS];
    int errors[MAX_WORKS]; /* of those in `run` */
    unsigned num_waiting, num_run, transfers;
};

static struct fake fakes[DEVICES + 1]; /* by agent */
static uintptr_t window_start;
static size_t window_bytes;

static enum { NOT_YET, WELL, BADLY } fences[MAX_FENCES];
static void fake_submit(struct sp_device *device, struct sp_work *work)
{
    struct fake *fake = (struct fake *)device;
    assert_true(fake->num_waiting < MAX_WORKS);
    fake->transfers += work->kind == SP_WORK_TRANSFER;
    fake->waiting[fake->num_waiting++] = work;
}

static const struct sp_device_ops fake_ops = {.submit = fake_submit,
                                              .take_fence = fake_take_fence,
                                              .keep_fence = fake_keep_fence,
                                              .drop_fence = fake_drop_fence};

static unsigned char *memory_of(uint32_t agent, uintptr_t address)
{
    return agent == SP_AGENT_HOST ? (unsigned char *)address
                                  : fakes[agent].memory + (address - window_start);
}

/* --- Commands ------------------------------------------------------------------------------------
 */

struct command {
    struct sp_coherence coherence; /* first */
    struct sp_work work;
    unsigned char *start;
    size_t bytes;
    enum sp_access access;
    unsigned char seen, value; /* what it read, and what it writes */
    int fails;                 /* its work does nothing, and ends with this */
    bool is_ready, is_over;
    int error;
};

static int transfer_fails; /* the next one, with this */

static int run_work(uint32_t agent, struct sp_work *work)
{
    for (uint32_t i = 0; i < work->num_after; i++)
        if (fences[work->after[i]] == BADLY)
            return -ECANCELED;
    if (work->life && work->life != fakes[agent].device.life)
        return -EIO;
    if (work->kind == SP_WORK_TRANSFER) {
        int error = transfer_fails;
        transfer_fails = 0;
        if (error)
            return error;
        if (work->range.source_life &&
            work->range.source_life != fakes[work->range.source].device.life)
            return -EIO;
        const struct sp_piece all = {work->range.start, work->range.bytes};
        const struct sp_piece *pieces = work->range.pieces ? work->range.pieces : &all;
        for (size_t i = 0; i < (work->range.pieces ? work->range.num_pieces : 1); i++)
            memcpy(memory_of(work->range.destination, pieces[i].start),
                   memory_of(work->range.source, pieces[i].start), pieces[i].bytes);
    } else if (work->kind == SP_WORK_KERNEL) {
        struct command *command = (struct command *)((char *)work - offsetof(struct command, work));
        if (command->fails)
            return command->fails;
        unsigned char *at = memory_of(agent, (uintptr_t)command->start);
        command->seen = at[0];
        for (size_t i = 0; i < command->bytes; i++)
            assert_true(command->access == SP_ACCESS_DISCARD || at[i] == command->seen);
        if (command->access != SP_ACCESS_READ)
            memset(at, command->value, command->bytes);
    }
    return 0;
}

static bool is_held_back(const struct sp_work *work)
{
    for (uint32_t i = 0; i < work->num_after; i++)
        if (fences[work->after[i]] == NOT_YET)
            return true;
    return false;
}

/* The device does what it can; nobody is told. */
static void run(uint32_t agent)
{
    struct fake *fake = &fakes[agent];
    unsigned kept;
    bool has_run = true;
    while (has_run) {
        has_run = false;
        kept = 0;
        for (unsigned i = 0; i < fake->num_waiting; i++) {
            struct sp_work *work = fake->waiting[i];
            if (is_held_back(work)) {
                fake->waiting[kept++] = work;
                continue;
            }
            has_run = true;
            int error = run_work(agent, work);
            if (work->fence)
                fences[work->fence] = error ? BADLY : WELL;
            fake->errors[fake->num_run] = error;
            fake->run[fake->num_run++] = work;
        }
        fake->num_waiting = kept;
    }
}

/* The application is told of all that the device has done. */
static void tell(uint32_t agent)
{
    struct fake *fake = &fakes[agent];
    for (unsigned i = 0; i < fake->num_run; i++)
        fake->run[i]->finished(fake->run[i], fake->errors[i]);
    fake->num_run = 0;
}

/* Of this one before all others. */
static void tell_of(uint32_t agent, struct sp_work *work)
{
    struct fake *fake = &fakes[agent];
    unsigned kept = 0;
    int error = 0;
    for (unsigned i = 0; i < fake->num_run; i++) {
        if (fake->run[i] == work) {
            error = fake->errors[i];
            continue;
        }
        fake->errors[kept] = fake->errors[i];
        fake->run[kept++] = fake->run[i];
    }
    assert_int_equal(kept + 1, fake->num_run);
    fake->num_run = kept;
    work->finished(work, error);
}

static void run_and_tell(uint32_t agent)
{
    run(agent);
    tell(agent);
}

static void note_ready(struct sp_coherence *coherence)
{
    ((struct command *)coherence)->is_ready = true;
}

static void work_over(struct sp_work *work, int error)
{
    struct command *command = (struct command *)((char *)work - offsetof(struct command, work));
    command->is_over = true;
    command->error = error;
}

/* As command.c does it. */
static void submit(struct command *command)
{
    struct sp_coherence *coherence = &command->coherence;
    assert_true(command->is_ready && !coherence->error);
    command->work.kind = SP_WORK_KERNEL;
    command->work.finished = work_over;
    coherence->is_handed = true;
    fake_submit(&fakes[coherence->agent].device, &command->work);
}

static void begin(struct sp_arena *arena, struct command *command, uint32_t agent,
                  const struct command *follows)
{
    command->coherence.ready = note_ready;
    command->coherence.work = &command->work;
    assert_int_equal(sp_coherence_touch(&command->coherence, arena, command->start, command->bytes,
                                        command->access),
                     0);
    if (follows)
        sp_coherence_follow(&command->coherence, follows->work.fence);
    command->work.fence = agent ? fake_take_fence(NULL) : 0;
    sp_coherence_begin(&command->coherence, arena, agent);
}

static void start(struct sp_arena *arena, struct command *command, uint32_t agent,
                  const struct command *follows)
{
    begin(arena, command, agent, follows);
    submit(command);
}

/* Its end, as the application notes it. */
static int end(struct command *command)
{
    assert_true(command->is_over);
    int error = sp_coherence_outcome(&command->coherence, command->error);
    sp_coherence_end(&command->coherence, !error);
    sp_fences_drop(&command->work);
    return error;
}

/* A whole command that waits for nothing; what it saw. */
static unsigned char do_at_once(struct sp_arena *arena, uint32_t agent, unsigned char *start,
                                size_t bytes, enum sp_access access, unsigned char value)
{
    struct command command = {.start = start, .bytes = bytes, .access = access, .value = value};
    begin(arena, &command, agent, NULL);
    for (uint32_t i = 1; i <= DEVICES; i++)
        run_and_tell(i);
    assert_true(command.is_ready);
    if (agent == SP_AGENT_HOST) {
        command.seen = *start;
        if (access != SP_ACCESS_READ)
            memset(start, value, bytes);
        sp_coherence_end(&command.coherence, true);
        return command.seen;
    }
    submit(&command);
    run_and_tell(agent);
    assert_int_equal(end(&command), 0);
    return command.seen;
}

static unsigned count_transfers(void)
{
    unsigned count = 0;
    for (uint32_t i = 1; i <= DEVICES; i++)
        count += fakes[i].transfers;
    return count;
}

static void expect_there(struct sp_arena *arena, uint32_t agent, unsigned char *start,
                         unsigned char value)
{
    unsigned before = count_transfers();
    assert_int_equal(do_at_once(arena, agent, start, BYTES, SP_ACCESS_READ, 0), value);
    assert_int_equal(count_transfers(), before);
}

static int set_up(void **state)
{
    (void)state;
    if (sp_window_init())
        return -1;
    sp_window_range(&window_start, &window_bytes);
    for (uint32_t i = 1; i <= DEVICES; i++) {
        struct fake *fake = &fakes[i];
        fake->device.ops = &fake_ops;
        fake->device.root = &fake->device;
        fake->device.agent = i;
        fake->device.info.own_memory = true;
        fake->device.info.global_memory_bytes = 64 * SP_GRANULE_BYTES;
        fake->memory = mmap(NULL, window_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fake->memory == MAP_FAILED)
            return -1;
        atomic_init(&fake->device.life, 1);
        sp_coherence_add_agent(&fake->device);
    }
    return sp_coherence_is_ahead_on() ? 0 : -1;
}

struct scene {
    struct sp_arena *arena;
    unsigned char *at;
};

/* A region that the host has written, and perhaps the second device has read. */
static struct scene set_scene(bool is_shared)
{
    struct scene scene = {0};
    assert_int_equal(sp_arena_create(true, &scene.arena), 0);
    scene.at = sp_arena_alloc(scene.arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    assert_non_null(scene.at);
    do_at_once(scene.arena, 0, scene.at, BYTES, SP_ACCESS_DISCARD, 1);
    if (is_shared)
        do_at_once(scene.arena, 2, scene.at, BYTES, SP_ACCESS_READ, 0);
    return scene;
}

static void clear_scene(struct scene *scene)
{
    sp_arena_free(scene->arena, scene->at);
    for (uint32_t i = 1; i <= DEVICES; i++)
        run_and_tell(i);
    sp_arena_destroy(scene->arena);
    for (uint32_t i = 1; i <= DEVICES; i++)
        run_and_tell(i);
    expect_no_references();
}

/* --- Tests ---------------------------------------------------------------------------------------
 */

static void promises_are_kept_in_any_order_of_the_news(void **state)
{
    (void)state;
    for (int order = 0; order < 4; order++) {
        struct scene scene = set_scene(order % 2);
        struct command first = {
            .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 7};
        struct command second = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
        start(scene.arena, &first, 1, NULL);
        unsigned before = fakes[2].transfers;
        start(scene.arena, &second, 2, &first);
        assert_int_equal(fakes[2].transfers, before + 1);
        run(2);
        assert_false(second.is_over);
        if (order < 2) { /* both run before anybody is told */
            run(1);
            run_and_tell(2);
            assert_true(second.is_over);
            tell(1);
            assert_int_equal(end(&first), 0);
        } else { /* the copy is under way when the promise is kept */
            run_and_tell(1);
            assert_int_equal(end(&first), 0);
            run_and_tell(2);
        }
        assert_int_equal(end(&second), 0);
        assert_int_equal(second.seen, 7);
        expect_there(scene.arena, 1, scene.at, 7);
        expect_there(scene.arena, 2, scene.at, 7);
        assert_int_equal(do_at_once(scene.arena, 0, scene.at, BYTES, SP_ACCESS_READ, 0), 7);
        clear_scene(&scene);
    }
}

/* Each changes it, the last one where the first did. */
static void a_chain_goes_to_and_fro(void **state)
{
    (void)state;
    struct scene scene = set_scene(false);
    struct command commands[6] = {{.start = 0}};
    for (int i = 0; i < 6; i++) {
        commands[i] = (struct command){.start = scene.at,
                                       .bytes = BYTES,
                                       .access = SP_ACCESS_READ_WRITE,
                                       .value = (unsigned char)(i + 10)};
        start(scene.arena, &commands[i], 1 + (uint32_t)i % 2, i ? &commands[i - 1] : NULL);
    }
    for (int i = 0; i < 6; i++)
        run(1 + (uint32_t)i % 2);
    tell(2);
    tell(1);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(end(&commands[i]), 0);
        assert_int_equal(commands[i].seen, i ? i + 9 : 1);
    }
    expect_there(scene.arena, 2, scene.at, 15);
    clear_scene(&scene);
}

/* One in the middle does not touch it: what it comes after counts all the same. */
static void what_lies_further_back_is_seen(void **state)
{
    (void)state;
    struct scene scene = set_scene(true);
    unsigned char *other = sp_arena_alloc(scene.arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    do_at_once(scene.arena, 0, other, BYTES, SP_ACCESS_DISCARD, 2);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .value = 7};
    struct command middle = {.start = other, .bytes = BYTES, .access = SP_ACCESS_READ};
    struct command last = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
    start(scene.arena, &first, 1, NULL);
    start(scene.arena, &middle, 3, &first);
    start(scene.arena, &last, 2, &middle);
    run(3); /* first the copy that it needs, and then it is held back */
    run(2);
    run(1);
    run(3);
    run(2);
    tell(2);
    tell(3);
    tell(1);
    assert_int_equal(end(&first), 0);
    assert_int_equal(end(&middle), 0);
    assert_int_equal(end(&last), 0);
    assert_int_equal(middle.seen, 2);
    assert_int_equal(last.seen, 7);
    sp_arena_free(scene.arena, other);
    clear_scene(&scene);
}

static void readers_share_a_promise(void **state)
{
    (void)state;
    struct scene scene = set_scene(false);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .value = 7};
    struct command readers[3];
    start(scene.arena, &first, 1, NULL);
    unsigned before = fakes[2].transfers;
    for (int i = 0; i < 3; i++) {
        readers[i] =
            (struct command){.start = scene.at, .bytes = i ? 100 : BYTES, .access = SP_ACCESS_READ};
        start(scene.arena, &readers[i], 2, &first);
    }
    assert_int_equal(fakes[2].transfers, before + 1);
    run(1);
    run_and_tell(2);
    tell(1);
    assert_int_equal(end(&first), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(end(&readers[i]), 0);
        assert_int_equal(readers[i].seen, 7);
    }
    clear_scene(&scene);
}

/* Who needs more than what one other changes waits, as does who can have no fence. */
static void what_cannot_be_promised_is_waited_for(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene scene = set_scene(false);
        struct command first = {.start = scene.at,
                                .bytes = i ? BYTES : BYTES / 2,
                                .access = SP_ACCESS_DISCARD,
                                .value = 1};
        struct command second = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
        start(scene.arena, &first, 1, NULL);
        has_no_fences = i;
        begin(scene.arena, &second, 2, &first);
        has_no_fences = false;
        assert_false(second.is_ready);
        run_and_tell(1);
        assert_int_equal(end(&first), 0);
        for (int round = 0; round < 3; round++)
            run_and_tell(2);
        assert_true(second.is_ready);
        submit(&second);
        run_and_tell(2);
        assert_int_equal(end(&second), 0);
        assert_int_equal(second.seen, 1);
        clear_scene(&scene);
    }
}

/* The command fails whose change was promised: what was there before is still good. */
static void a_dropped_promise_leaves_what_was_there(void **state)
{
    (void)state;
    struct scene scene = set_scene(true);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .fails = -ENOMEM};
    struct command second = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 8};
    start(scene.arena, &first, 1, NULL);
    start(scene.arena, &second, 2, &first);
    run(1);
    run(2);
    tell(1);
    tell(2);
    assert_int_equal(second.error, -ECANCELED);
    assert_int_equal(end(&first), -ENOMEM);
    /* It is done again, as if nothing had been. */
    assert_int_equal(sp_coherence_restart(&second.coherence), 0);
    assert_true(!second.work.fence && !second.work.num_after);
    second.is_ready = second.is_over = false;
    second.work.fence = fake_take_fence(NULL);
    unsigned before = count_transfers();
    sp_coherence_begin(&second.coherence, scene.arena, 2);
    submit(&second);
    run_and_tell(2);
    assert_int_equal(end(&second), 0);
    assert_int_equal(second.seen, 1);
    assert_int_equal(count_transfers(), before);
    clear_scene(&scene);
}

/* As before, but what is followed is a command that came behind that one on its device, in order,
 * and ended well: so its fence says nothing of the change. */
static void a_promise_waits_for_who_makes_it_true(void **state)
{
    (void)state;
    struct scene scene = set_scene(false);
    unsigned char *other = sp_arena_alloc(scene.arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    do_at_once(scene.arena, 0, other, BYTES, SP_ACCESS_DISCARD, 2);
    do_at_once(scene.arena, 1, other, BYTES, SP_ACCESS_READ, 0);
    do_at_once(scene.arena, 2, scene.at, BYTES, SP_ACCESS_READ_WRITE, 3); /* nobody else has it */
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .fails = -ENOMEM};
    struct command behind = {.start = other, .bytes = BYTES, .access = SP_ACCESS_READ};
    struct command last = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 8};
    start(scene.arena, &first, 1, NULL);
    start(scene.arena, &behind, 1, NULL);
    start(scene.arena, &last, 2, &behind);
    run(1);
    run(2);
    tell(1);
    tell(2);
    assert_int_equal(end(&first), -ENOMEM);
    assert_int_equal(end(&behind), 0);
    assert_int_equal(last.error, -ECANCELED);
    assert_int_equal(sp_coherence_restart(&last.coherence), 0);
    last.is_ready = last.is_over = false;
    sp_coherence_begin(&last.coherence, scene.arena, 2);
    submit(&last);
    run_and_tell(2);
    assert_int_equal(end(&last), 0);
    assert_int_equal(last.seen, 3);
    sp_arena_free(scene.arena, other);
    clear_scene(&scene);
}

static struct scene begun_meanwhile;
static struct command third, unrelated;

static void begin_meanwhile(void)
{
    start(begun_meanwhile.arena, &third, 3, &unrelated);
}

/* Who begins while a command undoes its begin finds no change of it: not one without a fence. */
static void what_begins_again_has_nothing_listed(void **state)
{
    (void)state;
    struct scene scene = set_scene(true);
    unsigned char *other = sp_arena_alloc(scene.arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .fails = -ENOMEM};
    struct command second = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 8};
    begun_meanwhile = scene;
    unrelated = (struct command){.start = other, .bytes = BYTES, .access = SP_ACCESS_DISCARD};
    third = (struct command){.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
    start(scene.arena, &first, 1, NULL);
    start(scene.arena, &unrelated, 1, NULL);
    start(scene.arena, &second, 2, &first);
    run(1);
    run(2);
    tell_of(1, &first.work); /* not of the other one */
    tell(2);
    assert_int_equal(end(&first), -ENOMEM);
    assert_int_equal(second.error, -ECANCELED);
    watched = second.work.fence;
    on_drop = begin_meanwhile;
    assert_int_equal(sp_coherence_restart(&second.coherence), 0);
    assert_int_equal(watched, 0);
    run_and_tell(3);
    assert_int_equal(third.seen, 1);
    tell(1);
    assert_int_equal(end(&unrelated), 0);
    assert_int_equal(end(&third), 0);
    sp_coherence_end(&second.coherence, false);
    sp_arena_free(scene.arena, other);
    clear_scene(&scene);
}

/* The first device dies, and the copy was made before anybody heard of the end of what made it. */
static void a_copy_of_what_failed_is_not_trusted(void **state)
{
    (void)state;
    for (int is_told = 0; is_told < 2; is_told++) {
        struct scene scene = set_scene(true);
        struct command first = {
            .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .value = 7};
        struct command second = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
        start(scene.arena, &first, 1, NULL);
        start(scene.arena, &second, 2, &first);
        run(1);
        run(2);
        if (is_told)
            tell(2);
        fakes[1].device.life++;
        fakes[1].device.lost(&fakes[1].device, "a test");
        for (unsigned i = 0; i < fakes[1].num_run; i++)
            fakes[1].errors[i] = -EIO;
        tell(1);
        assert_int_equal(end(&first), -EIO);
        if (!is_told)
            tell(2);
        assert_int_equal(end(&second), 0);
        unsigned before = fakes[2].transfers;
        assert_int_equal(do_at_once(scene.arena, 2, scene.at, BYTES, SP_ACCESS_READ, 0), 1);
        assert_int_equal(fakes[2].transfers, before + 1);
        clear_scene(&scene);
    }
}

/* The first device dies when the change is known, and before the copy was made: its content is lost
 * with it, and who was to read it does nothing, and has the copy's error. */
static void a_copy_that_fails_takes_its_reader_along(void **state)
{
    (void)state;
    struct scene scene = set_scene(true);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .value = 7};
    struct command second = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 8};
    start(scene.arena, &first, 1, NULL);
    start(scene.arena, &second, 2, &first);
    run_and_tell(1);
    assert_int_equal(end(&first), 0);
    fakes[1].device.life++;
    fakes[1].device.lost(&fakes[1].device, "a test");
    run_and_tell(2);
    assert_int_equal(second.error, -ECANCELED);
    assert_int_equal(sp_coherence_restart(&second.coherence), -EIO);
    sp_coherence_end(&second.coherence, false);
    clear_scene(&scene);
}

/* The copy fails while the devices live, since there was no memory for it or for where it was to
 * go: what was changed is still there, and who was to read it copies it anew. */
static void a_copy_that_fails_is_made_again(void **state)
{
    (void)state;
    static const int errors[] = {-ENOMEM, -EFAULT, -ECANCELED};
    for (int i = 0; i < 6; i++) {
        struct scene scene = set_scene(true);
        struct command first = {
            .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_DISCARD, .value = 7};
        struct command second = {
            .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 8};
        start(scene.arena, &first, 1, NULL);
        start(scene.arena, &second, 2, &first);
        run(1);
        transfer_fails = errors[i / 2];
        if (i % 2) { /* told before the change is known */
            run_and_tell(2);
            tell(1);
        } else {
            tell(1);
            run_and_tell(2);
        }
        assert_int_equal(transfer_fails, 0);
        assert_int_equal(end(&first), 0);
        assert_int_equal(second.error, -ECANCELED);
        assert_int_equal(sp_coherence_restart(&second.coherence), 0);
        second.is_ready = second.is_over = false;
        second.coherence.is_strict = true;
        sp_coherence_begin(&second.coherence, scene.arena, 2);
        run_and_tell(2);
        assert_true(second.is_ready);
        submit(&second);
        run_and_tell(2);
        assert_int_equal(end(&second), 0);
        assert_int_equal(second.seen, 7);
        clear_scene(&scene);
    }
}

/* Something else wants what was there before, in the same memory. */
static void an_older_copy_does_not_overtake(void **state)
{
    (void)state;
    struct scene scene = set_scene(false);
    struct command first = {
        .start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ_WRITE, .value = 7};
    struct command second = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
    struct command other = {.start = scene.at, .bytes = BYTES, .access = SP_ACCESS_READ};
    start(scene.arena, &first, 3, NULL);
    start(scene.arena, &second, 2, &first);
    begin(scene.arena, &other, 2, NULL);
    assert_false(other.is_ready);
    run(3);
    run_and_tell(2);
    assert_true(second.is_over);
    for (int i = 0; i < 3; i++)
        run_and_tell(2);
    assert_true(other.is_ready);
    submit(&other);
    run_and_tell(2);
    tell(3);
    assert_int_equal(end(&first), 0);
    assert_int_equal(end(&second), 0);
    assert_int_equal(end(&other), 0);
    clear_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_are_kept_in_any_order_of_the_news),
        cmocka_unit_test(a_chain_goes_to_and_fro),
        cmocka_unit_test(what_lies_further_back_is_seen),
        cmocka_unit_test(readers_share_a_promise),
        cmocka_unit_test(what_cannot_be_promised_is_waited_for),
        cmocka_unit_test(a_dropped_promise_leaves_what_was_there),
        cmocka_unit_test(a_promise_waits_for_who_makes_it_true),
        cmocka_unit_test(what_begins_again_has_nothing_listed),
        cmocka_unit_test(a_copy_of_what_failed_is_not_trusted),
        cmocka_unit_test(a_copy_that_fails_takes_its_reader_along),
        cmocka_unit_test(a_copy_that_fails_is_made_again),
        cmocka_unit_test(an_older_copy_does_not_overtake),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
