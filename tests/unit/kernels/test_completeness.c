/* Every builtin that clang declares for what our devices offer is defined in cpu.bc.
 *
 * clang's own header, opencl-c.h, is preprocessed for a version of OpenCL C; each declaration in it
 * becomes a function that calls it; what the compiled calls leave undefined must be in the library.
 * That compares mangled names, so a definition with a wrong signature shows as well. */
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What the devices offer; and images, without which the header does not compile for 3.0. */
#define EXTENSIONS                                                                                 \
    "-Xclang -cl-ext=-all,+cl_khr_fp64,+__opencl_c_fp64,+cl_khr_byte_addressable_store,"           \
    "+cl_khr_global_int32_base_atomics,+cl_khr_global_int32_extended_atomics,"                     \
    "+cl_khr_local_int32_base_atomics,+cl_khr_local_int32_extended_atomics,"                       \
    "+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics,+__opencl_c_int64,"                 \
    "+__opencl_c_program_scope_global_variables,+__opencl_c_work_group_collective_functions,"      \
    "+__opencl_c_atomic_order_acq_rel,+__opencl_c_atomic_order_seq_cst,"                           \
    "+__opencl_c_atomic_scope_device,+__opencl_c_atomic_scope_all_devices,"                        \
    "+__opencl_c_images,+__opencl_c_read_write_images,+__opencl_c_3d_image_writes,"                \
    "+cl_khr_3d_image_writes"
#define CLANG SP_TEST_CLANG " -target spir64-unknown-unknown -x cl -w -ferror-limit=0 -cl-no-stdinc"
#define DECLARATIONS SP_TEST_FOLDER "/declarations.i"
#define CALLS SP_TEST_FOLDER "/calls.cl"
#define CALLS_BITCODE SP_TEST_FOLDER "/calls.bc"

/* Not ours: images, pipes, sub-groups, device queues, clocks; printf is samepage-cc's. */
static const char *const excluded[] = {
    "image",
    "sub_group",
    "pipe",
    "clock_read",
    "amd_",
    "printf",
    "ndrange_",
    "_event",
    "event_",
    "enqueue_marker",
    "get_default_queue",
    "reserve_id",
    "sampler",
};

static bool is_excluded(const char *name)
{
    if (!strncmp(name, "wait_group_events", 17))
        return false;
    for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++)
        if (strstr(name, excluded[i]))
            return true;
    return false;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

/* Takes out __attribute__((...)) and turns newlines into spaces. */
static void simplify(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        if (!strncmp(from, "__attribute__((", 15)) {
            from = strstr(from, "))") + 2;
            continue;
        }
        *to++ = *from == '\n' ? ' ' : *from;
        from++;
    }
    *to = 0;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A few parameters of the header have names, which must make place for ours. */
static void drop_parameter_name(char *parameter)
{
    static const char *const names[] = {"predicate", "local_id", "ptr"};
    char *end = parameter + strlen(parameter);
    while (end > parameter && end[-1] == ' ')
        *--end = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if ((size_t)(end - parameter) > length && !strcmp(end - length, names[i]) &&
            !is_name(end[-(ptrdiff_t)length - 1]))
            end[-(ptrdiff_t)length] = 0;
    }
}

/* From "float4 sin(float4)" to a function that calls it. Returns whether it was one of ours. */
static bool write_call(FILE *out, char *declaration, unsigned number)
{
    char *open = strchr(declaration, '(');
    char *close = strrchr(declaration, ')');
    if (!open || !close || strchr(open + 1, '('))
        return false;
    *close = 0;
    char *end = open;
    while (end > declaration && end[-1] == ' ')
        end--;
    *end = 0;
    char *name = end;
    while (name > declaration && is_name(name[-1]))
        name--;
    if (is_excluded(name))
        return false;
    char *parameters = open + 1;
    bool none = !*parameters || !strcmp(parameters, "void");
    bool returns_nothing = strstr(declaration, "void ") != NULL;
    char list[1024] = "", call[256] = "";
    unsigned count = 0;
    if (!none) {
        for (char *save = NULL, *p = strtok_r(parameters, ",", &save); p;
             p = strtok_r(NULL, ",", &save)) {
            drop_parameter_name(p);
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s a%u", count ? ", " : "", p, count);
            used = strlen(call);
            snprintf(call + used, sizeof(call) - used, "%sa%u", count ? ", " : "", count);
            count++;
        }
    }
    char *type = declaration;
    fprintf(out, "%.*s __attribute__((overloadable)) call%u(%s) { %s%s(%s); }\n",
            (int)(name - type), type, number, list, returns_nothing ? "" : "return ", name, call);
    return true;
}

static LLVMModuleRef parse(LLVMContextRef context, const char *path)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef module;
    char *message = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message))
        fail_msg("%s: %s", path, message);
    assert_false(LLVMGetBitcodeModuleInContext2(context, buffer, &module));
    return module;
}

static void run(const char *command)
{
    if (system(command))
        fail_msg("failed: %s", command);
}

/* `minimum`: of builtins found, so that a header read wrongly does not pass for a complete library.
 */
static void check(const char *language, unsigned minimum)
{
    char command[4096];
    snprintf(command, sizeof(command),
             "echo | %s -cl-std=%s -include opencl-c.h -E -P - -o " DECLARATIONS,
             CLANG " " EXTENSIONS, language);
    run(command);
    char *text = read_file(DECLARATIONS);
    /* Preprocessing keeps pragmas, which end with their line. */
    for (char *line = text; line && *line; line = strchr(line, '\n')) {
        while (*line == '\n')
            line++;
        if (*line == '#')
            while (*line && *line != '\n')
                *line++ = ' ';
    }
    FILE *out = fopen(CALLS, "w");
    assert_non_null(out);
    unsigned found = 0;
    for (char *save = NULL, *declaration = strtok_r(text, ";", &save); declaration;
         declaration = strtok_r(NULL, ";", &save)) {
        if (!strstr(declaration, "__attribute__((overloadable))"))
            continue;
        simplify(declaration);
        found += write_call(out, declaration, found);
    }
    fclose(out);
    free(text);
    assert_true(found >= minimum);

    snprintf(
        command, sizeof(command),
        "%s -cl-std=%s -include opencl-c.h -O0 -Xclang -disable-llvm-passes -emit-llvm -c " CALLS
        " -o " CALLS_BITCODE,
        CLANG " " EXTENSIONS, language);
    run(command);
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef library = parse(context, SP_TEST_CPU_BC);
    LLVMModuleRef calls = parse(context, CALLS_BITCODE);
    unsigned missing = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(calls); f; f = LLVMGetNextFunction(f)) {
        const char *name = LLVMGetValueName(f);
        if (!LLVMIsDeclaration(f) || LLVMGetIntrinsicID(f))
            continue;
        LLVMValueRef definition = LLVMGetNamedFunction(library, name);
        if (!definition || LLVMIsDeclaration(definition)) {
            fprintf(stderr, "%s: not defined\n", name);
            missing++;
        }
    }
    LLVMDisposeModule(calls);
    LLVMDisposeModule(library);
    LLVMContextDispose(context);
    assert_int_equal(missing, 0);
}

static void every_builtin_of_opencl_c_1_0(void **state)
{
    (void)state;
    check("CL1.0", 9000);
}

static void every_builtin_of_opencl_c_1_2(void **state)
{
    (void)state;
    check("CL1.2", 9000);
}

static void every_builtin_of_opencl_c_3_0(void **state)
{
    (void)state;
    check("CL3.0 -Xclang -cl-ext=+__opencl_c_generic_address_space", 9000);
}

static void every_builtin_of_opencl_c_3_0_without_the_generic_address_space(void **state)
{
    (void)state;
    check("CL3.0", 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_builtin_of_opencl_c_1_0),
        cmocka_unit_test(every_builtin_of_opencl_c_1_2),
        cmocka_unit_test(every_builtin_of_opencl_c_3_0),
        cmocka_unit_test(every_builtin_of_opencl_c_3_0_without_the_generic_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
