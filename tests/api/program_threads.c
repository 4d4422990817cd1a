/* Many threads build, create, launch and release at once. */
#include "check_program.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 6

static struct check_setup setup;
static cl_program shared;

static void *work(void *argument)
{
    int number = *(int *)argument;
    cl_int error;
    struct check_setup own = setup;
    own.queue = clCreateCommandQueue(setup.context, setup.device, 0, &error);
    REQUIRE_CL(error);
    for (int i = 0; i < ROUNDS; i++) {
        char options[64];
        /* Some options are new to the cache, some are not. */
        snprintf(options, sizeof options, "-DVALUE=%d", 100 + (number + i) % 5);
        cl_program program = build(setup.context,
                                   "__kernel void k(__global int *p) { p[0] = VALUE; }\n"
                                   "__kernel void l(__global int *p) { p[0] = -VALUE; }\n",
                                   options);
        CHECK(run_for_int(&own, program, i % 2 ? "k" : "l") ==
              (i % 2 ? 1 : -1) * (100 + (number + i) % 5));
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
        CHECK(run_for_int(&own, shared, "s") == 77);
    }
    CHECK_CL(clReleaseCommandQueue(own.queue), CL_SUCCESS);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    check_setup(&setup);
    shared = build(setup.context, "__kernel void s(__global int *p) { p[0] = 77; }", NULL);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        REQUIRE(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_CL(clReleaseProgram(shared), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
