/* From OpenCL C to PTX in a test. Where ptxas of the CUDA toolkit is at hand, it has to take
 * everything that is made here; nothing else needs more than LLVM. */
#ifndef SP_TEST_COMPILER_PTX_H
#define SP_TEST_COMPILER_PTX_H

#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TARGET "nvptx64:sm_90"

extern const char *const version_3[]; /* -cl-std=CL3.0 */

/* All kernels of the program as PTX, or a message in the log. `local`: their local size, or NULL.
 */
enum sp_cc_status try_ptx(const struct program *program, const char *target,
                          const uint64_t local[3], const char *const *options,
                          struct sp_cc_text *ptx, struct sp_cc_text *log);

/* The same where it must succeed, assembled as well; to be freed. */
char *ptx_for(const struct program *program, const char *target, const uint64_t local[3],
              const char *const *options);
/* For TARGET. */
char *ptx_of(const struct program *program, const uint64_t local[3], const char *const *options);

/* The same from source. */
char *compile_with(const char *source, const uint64_t local[3], const char *const *options);
char *compile(const char *source);

/* Where the atomic unit's definition starts. */
#define UNIT "__sp_unit_perform(\n"

/* The assembler of the CUDA toolkit, or NULL. */
const char *find_ptxas(void);

/* How often `word` stands in the text. */
unsigned count(const char *text, const char *word);

#define assert_has(text, word)                                                                     \
    do {                                                                                           \
        if (!strstr(text, word))                                                                   \
            fail_msg("no '%s' in\n%.8000s", word, text);                                           \
    } while (0)
#define assert_has_not(text, word)                                                                 \
    do {                                                                                           \
        if (strstr(text, word))                                                                    \
            fail_msg("'%s' in\n%.8000s", word, text);                                              \
    } while (0)

#endif
