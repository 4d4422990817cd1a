/* See ptx.h. */
#include "ptx.h"

#include "compiler/cc/code.h"
#include "compiler/cc/target.h"
#include "compiler/cc/tools.h"

#include <stdlib.h>
#include <unistd.h>

const char *const version_3[] = {"-cl-std=CL3.0", NULL};

const char *find_ptxas(void)
{
    /* Where CUDA's installer and packages put it. */
    static const char *const places[] = {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (!access(places[i], X_OK))
            return places[i];
    return NULL;
}

/* The architecture that the text is for. */
static unsigned target_of(const char *ptx)
{
    unsigned target = 0;
    const char *line = strstr(ptx, "\n.target sm_");
    assert_true(line && sscanf(line, "\n.target sm_%u", &target) == 1);
    return target;
}

static void assemble(const char *ptx)
{
    /* Newer toolkits have given up older architectures. */
    enum { FIRST_OF_ALL_TOOLKITS = 75 };
    unsigned target = target_of(ptx);
    const char *ptxas = find_ptxas();
    struct sp_cc_folder folder;
    struct sp_cc_strings words = {0};
    struct sp_cc_text said = {0};
    if (!ptxas || target < FIRST_OF_ALL_TOOLKITS)
        return;
    assert_int_equal(sp_cc_folder_create(&folder), 0);
    sp_cc_strings_format(&words, "-arch=sm_%u", target);
    sp_cc_strings_add(&words, "-O0");
    sp_cc_strings_format(&words, "%s/k.ptx", folder.path);
    sp_cc_strings_add(&words, "-o");
    sp_cc_strings_format(&words, "%s/k.cubin", folder.path);
    assert_int_equal(sp_cc_write_file(words.items[2], ptx, strlen(ptx)), 0);
    if (sp_cc_run_tool(&(struct sp_cc_tool){.name = ptxas}, &words, NULL, 0, &said, &said))
        fail_msg("ptxas: %.4000s", said.bytes ? said.bytes : "");
    sp_cc_folder_destroy(&folder);
    sp_cc_strings_finish(&words);
    sp_cc_text_finish(&said);
}

enum sp_cc_status try_ptx(const struct program *program, const char *target,
                          const uint64_t local[3], const char *const *options,
                          struct sp_cc_text *ptx, struct sp_cc_text *log)
{
    struct sp_cc_code code = {.ir = {program->ir.bytes, program->ir.size}, .target = target};
    setenv("SAMEPAGE_BUILTINS_NVPTX", SP_TEST_NVPTX, 0);
    for (uint32_t i = 0; i < program->info.num_kernels; i++)
        sp_cc_strings_add(&code.kernels, program->info.kernels[i].name);
    for (; options && *options; options++)
        if (strncmp(*options, "-cl-std", 7))
            sp_cc_strings_add(&code.options, *options);
    if (local)
        memcpy(code.local_size, local, sizeof(code.local_size));
    struct sp_kernel_code *codes = sp_cc_allocate(code.kernels.count * sizeof(*codes));
    enum sp_cc_status status = sp_cc_code(&code, ptx, codes, log);
    for (size_t i = 0; i < code.kernels.count && status == SP_CC_OK; i++) {
        assert_string_equal(codes[i].name, code.kernels.items[i]);
        assert_int_equal(codes[i].preferred_multiple, 32);
    }
    free(codes);
    sp_cc_strings_finish(&code.kernels);
    sp_cc_strings_finish(&code.options);
    return status;
}

/* Calls but those of the atomic unit. */
static unsigned other_calls(const char *ptx)
{
    return count(ptx, "call") - count(ptx, "callseq") - count(ptx, "\t__sp_unit_perform, ");
}

char *ptx_of(const struct program *program, const uint64_t local[3], const char *const *options)
{
    return ptx_for(program, TARGET, local, options);
}

char *ptx_for(const struct program *program, const char *target, const uint64_t local[3],
              const char *const *options)
{
    struct sp_cc_text ptx = {0}, log = {0};
    if (try_ptx(program, target, local, options, &ptx, &log) != SP_CC_OK)
        fail_msg("%.4000s", log.bytes ? log.bytes : "no log");
    assert_int_equal(ptx.bytes[ptx.size - 1], 0);
    assert_int_equal(strlen(ptx.bytes), ptx.size - 1);
    assert_null(strstr(ptx.bytes, ".extern .func"));
    assert_int_equal(other_calls(ptx.bytes), 0);
    assemble(ptx.bytes);
    sp_cc_text_finish(&log);
    return ptx.bytes;
}

char *compile_with(const char *source, const uint64_t local[3], const char *const *options)
{
    struct program program;
    program_init(&program, source, options);
    char *ptx = ptx_of(&program, local, options);
    program_finish(&program);
    return ptx;
}

char *compile(const char *source)
{
    return compile_with(source, NULL, version_3);
}

unsigned count(const char *text, const char *word)
{
    unsigned found = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        found++;
    return found;
}
