/* runtime/loss_report: what contexts hear of devices that die, which may be several at once. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/context.h"
#include "runtime/loss_report.h"
#include "svm/heap.h"
#include "svm/region.h"
#include "unit.h"

/* Each range is so many bytes. */
enum { BYTES = 10, MAX_HEARD = 128 };

static const struct sp_device_ops no_ops;
static struct sp_device memories[2] = {
    {.ops = &no_ops, .agent = 1, .info = {.name = "First", .own_memory = true}},
    {.ops = &no_ops, .agent = 2, .info = {.name = "Second", .own_memory = true}}};
static struct _cl_device_id devices[2] = {{.device = &memories[0]}, {.device = &memories[1]}};

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t told;
    char messages[MAX_HEARD][400];
    unsigned count;
};

struct scene {
    cl_context context;
    struct sp_region *region;
    struct heard heard;
};

static void CL_CALLBACK hear(const char *message, const void *info, size_t size, void *user_data)
{
    struct heard *heard = user_data;
    (void)info;
    (void)size;
    pthread_mutex_lock(&heard->lock);
    if (heard->count < MAX_HEARD)
        snprintf(heard->messages[heard->count], sizeof heard->messages[0], "%s", message);
    heard->count++;
    pthread_cond_signal(&heard->told);
    pthread_mutex_unlock(&heard->lock);
}

static void await(struct scene *scene, unsigned count)
{
    struct heard *heard = &scene->heard;
    pthread_mutex_lock(&heard->lock);
    while (heard->count < count)
        pthread_cond_wait(&heard->told, &heard->lock);
    assert_int_equal(heard->count, count);
    pthread_mutex_unlock(&heard->lock);
}

/* How many messages hold both. */
static unsigned count_with(struct scene *scene, const char *one, const char *other)
{
    unsigned count = 0;
    for (unsigned i = 0; i < scene->heard.count; i++)
        count += strstr(scene->heard.messages[i], one) && strstr(scene->heard.messages[i], other);
    return count;
}

static void set_scene(struct scene *scene, unsigned num_devices)
{
    cl_device_id all[] = {&devices[0], &devices[1]};
    memset(scene, 0, sizeof *scene);
    pthread_mutex_init(&scene->heard.lock, NULL);
    pthread_cond_init(&scene->heard.told, NULL);
    assert_int_equal(
        sp_context_create(num_devices, all, NULL, 0, hear, &scene->heard, &scene->context),
        CL_SUCCESS);
    void *at = sp_arena_alloc(scene->context->arena, 4096, 0, 0, SP_PATH_PRIVATE);
    assert_non_null(at);
    scene->region = sp_arena_use(scene->context->arena, at);
    assert_non_null(scene->region);
}

static void clear_scene(struct scene *scene)
{
    sp_arena_end_use(scene->region);
    sp_arena_free(scene->context->arena, scene->region->start);
    sp_object_release(&scene->context->object);
}

static void lose(struct scene *scene, int device, unsigned ranges)
{
    for (unsigned i = 0; i < ranges; i++)
        sp_loss_report.range(scene->region, 2 * i * BYTES, (2 * i + 1) * BYTES, &memories[device]);
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        memories[i].root = &memories[i];
        sp_object_init(&devices[i].object, SP_OBJECT_DEVICE, NULL);
    }
    return sp_window_init();
}

static void what_does_not_fit_is_summed_up(void **state)
{
    (void)state;
    struct scene scene;
    set_scene(&scene, 2);
    for (unsigned death = 1; death < 3; death++) {
        sp_loss_report.begin(&memories[0], "a test");
        lose(&scene, 0, 20);
        sp_loss_report.end(&memories[0]);
        await(&scene, death * 18);
        assert_int_equal(count_with(&scene, "First was lost: a test.", ""), death);
        assert_int_equal(count_with(&scene, "were lost with First, which alone", ""), death * 16);
        assert_int_equal(count_with(&scene, "4 more ranges, 40 bytes, were lost with First", ""),
                         death);
    }
    clear_scene(&scene);
}

/* Each device tells of its own on its own thread. */
static void deaths_at_once_are_told_apart(void **state)
{
    (void)state;
    struct scene scene, other;
    set_scene(&scene, 2);
    set_scene(&other, 1);
    sp_loss_report.begin(&memories[0], "a test");
    lose(&scene, 0, 20);
    sp_loss_report.begin(&memories[1], "another");
    lose(&scene, 1, 3);
    lose(&other, 0, 17);
    sp_loss_report.end(&memories[1]);
    await(&scene, 4); /* who hears of the second may use it at once */
    lose(&scene, 0, 1);
    sp_loss_report.end(&memories[0]);
    await(&scene, 4 + 18);
    await(&other, 18);
    assert_int_equal(count_with(&scene, "Second was lost: another.", ""), 1);
    assert_int_equal(count_with(&scene, "were lost with Second, which alone", ""), 3);
    assert_int_equal(count_with(&scene, "more ranges", "Second"), 0);
    assert_int_equal(count_with(&scene, "First was lost: a test.", ""), 1);
    assert_int_equal(count_with(&scene, "were lost with First, which alone", ""), 16);
    assert_int_equal(count_with(&scene, "5 more ranges, 50 bytes, were lost with First", ""), 1);
    assert_int_equal(count_with(&other, "1 more ranges, 10 bytes, were lost with First", ""), 1);
    assert_int_equal(count_with(&other, "Second", ""), 0);
    clear_scene(&scene);
    clear_scene(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_summed_up),
        cmocka_unit_test(deaths_at_once_are_told_apart),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
