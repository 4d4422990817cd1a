/* util/symbol: the call of the application behind a place in the C library is found in the words of
 * the stack, and what earlier calls left there is not taken for it. The words are those of a true
 * call, with stale ones before them. */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "util/symbol.h"

enum { MAX_FRAMES = 32 };

static void *frames[MAX_FRAMES];
static int num_frames;
static uintptr_t stale[2];

/* Called by the C library, which the application called. */
static int compare(const void *a, const void *b)
{
    if (!num_frames)
        num_frames = backtrace(frames, MAX_FRAMES);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline, noclone)) static void sorts(void)
{
    int numbers[] = {3, 1, 2};
    num_frames = 0;
    qsort(numbers, 3, sizeof *numbers, compare);
}

/* Where calls returned to that have ended: one of the application's own function, and one of the
 * library's. */
__attribute__((noinline, noclone)) static void note(void)
{
    stale[0] = (uintptr_t)__builtin_return_address(0);
}

__attribute__((noinline, noclone)) static void did_other_things(void)
{
    note();
    stale[1] = (uintptr_t)sp_symbol_caller() + 1;
}

static const char *name_of(const void *address)
{
    static char name[128];
    sp_symbol_describe(address, name, sizeof name);
    return name;
}

static void passes_over_what_is_stale(void **state)
{
    (void)state;
    uintptr_t words[MAX_FRAMES + 8] = {0};
    unsigned count = 0;
    did_other_things();
    sorts();
    assert_true(num_frames > 3);
    words[count++] = stale[0];
    words[count++] = stale[1];
    words[count++] = 42;
    int first = 0; /* behind what a sanitizer puts on top of compare, and behind compare */
    while (first < num_frames && sp_symbol_owner(frames[first]) != SP_SYMBOL_APPLICATION)
        first++;
    first++;
    assert_true(first < num_frames);
    assert_int_equal(sp_symbol_owner(frames[first]), SP_SYMBOL_SYSTEM);
    for (int i = first + 1; i < num_frames; i++)
        words[count++] = (uintptr_t)frames[i];
    const void *call = sp_symbol_culprit((uintptr_t)frames[first] - 1, words, count);
    assert_non_null(call);
    if (!strstr(name_of(call), "sorts"))
        fail_msg("%s is not in sorts", name_of(call));
}

/* Where nothing fits, the first call of the application is the best guess. */
static void guesses_where_nothing_fits(void **state)
{
    (void)state;
    did_other_things();
    void *place = dlsym(RTLD_DEFAULT, "strtol");
    assert_non_null(place);
    const void *call = sp_symbol_culprit((uintptr_t)place + 4, stale, 1);
    assert_ptr_equal(call, (const char *)stale[0] - 1);
}

static void is_itself_where_it_is_the_applications(void **state)
{
    (void)state;
    uintptr_t place = (uintptr_t)compare;
    assert_ptr_equal(sp_symbol_culprit(place, stale, 2), (const void *)place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_over_what_is_stale),
        cmocka_unit_test(guesses_where_nothing_fits),
        cmocka_unit_test(is_itself_where_it_is_the_applications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
