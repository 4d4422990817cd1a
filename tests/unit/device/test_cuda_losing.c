/* A GPU whose atomics with the host lose additions (the stand-in's FAKE_CUDA_LOSES): it has none of
 * all-devices scope, says so, and is a device like any other. */
#include <stdlib.h>

#include "client_device.h"
#include "gpu_folder.h"
#include "unit/unit.h"

static void has_no_atomics(void **state)
{
    (void)state;
    const struct sp_device_info *info = &devices[0]->info;
    assert_int_equal(info->svm_levels, SP_SVM_COARSE | SP_SVM_FINE);
    assert_true(info->has_failed_atomics);
}

static void works(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    assert_int_equal(bind(devices[0], at, GRANULE, true), 0);
    assert_int_equal(fill(devices[0], at, GRANULE, 3), 0);
    assert_true(is_all(at, GRANULE, 3));
    assert_int_equal(unbind(devices[0], at, GRANULE), 0);
}

static int set_up(void **state)
{
    (void)state;
    set_up_devices("cuda:0");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder();
}

int main(void)
{
    setenv("FAKE_CUDA_LOSES", "1", 1);
    make_folder();
    show_gpus(".", 1);
    use_machine(".");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_no_atomics),
        cmocka_unit_test(works),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
