/* A GPU whose atomics with the host lose additions (the stand-in's FAKE_CUDA_LOSES): it has none of
 * all-devices scope, says so, and is a device like any other. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_device.h"
#include "unit/unit.h"

static char folder[] = "/tmp/samepage-losing-XXXXXX", gpus[64], gpu[80];

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
    return rmdir(gpu) || rmdir(gpus) || rmdir(folder);
}

int main(void)
{
    setenv("FAKE_CUDA_LOSES", "1", 1);
    /* One GPU of which the kernel driver tells nothing, so that nothing is remembered. */
    snprintf(gpus, sizeof gpus, "%s/gpus", mkdtemp(folder));
    snprintf(gpu, sizeof gpu, "%s/0000:00:06.0", gpus);
    if (mkdir(gpus, 0700) || mkdir(gpu, 0700))
        return 1;
    setenv("SAMEPAGE_CUDA_FOLDER", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_no_atomics),
        cmocka_unit_test(works),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
