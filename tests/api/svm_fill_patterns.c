/* clEnqueueSVMMemFill with every pattern size, in SVM and in ordinary memory, and every error. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    enum { BYTES = 1 << 20 };
    unsigned char *svm = clSVMAlloc(setup.context, 0, BYTES, 0);
    unsigned char *ordinary = aligned_alloc(128, BYTES);
    REQUIRE(svm && ordinary);
    unsigned char pattern[256];
    for (int i = 0; i < 256; i++)
        pattern[i] = (unsigned char)(255 - i);
    unsigned char *memory[] = {svm, ordinary};
    for (int m = 0; m < 2; m++) {
        for (size_t size = 1; size <= 128; size *= 2) {
            const size_t counts[] = {0, 1, 5, 1000, BYTES / size - 2};
            for (size_t k = 0; k < 5; k++) {
                size_t bytes = counts[k] * size;
                if (bytes + 2 * size > BYTES)
                    continue;
                memset(memory[m], 0, BYTES);
                CHECK_CL(clEnqueueSVMMemFill(setup.queue, memory[m] + size, pattern, size, bytes, 0,
                                             NULL, NULL),
                         CL_SUCCESS);
                CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
                size_t wrong = 0;
                for (size_t i = 0; i < BYTES; i++) {
                    bool inside = i >= size && i < size + bytes;
                    wrong += memory[m][i] != (inside ? pattern[(i - size) % size] : 0);
                }
                CHECK(wrong == 0);
            }
        }
    }
    const struct {
        void *p;
        const void *pattern;
        size_t pattern_size, size;
    } wrong[] = {
        {NULL, pattern, 4, 16},    {svm, NULL, 4, 16},     {svm, pattern, 0, 16},
        {svm, pattern, 3, 18},     {svm, pattern, 24, 48}, {svm, pattern, 256, 256},
        {svm + 2, pattern, 4, 16}, {svm, pattern, 4, 18},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_CL(clEnqueueSVMMemFill(setup.queue, wrong[i].p, wrong[i].pattern,
                                     wrong[i].pattern_size, wrong[i].size, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    clSVMFree(setup.context, svm);
    free(ordinary);
    check_finish(&setup);
    return check_result();
}
