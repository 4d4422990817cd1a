/* See command_line.h. */
#include "compiler/cc/command_line.h"

#include "compiler/cc/code.h"
#include "compiler/cc/front.h"
#include "compiler/cc/link.h"
#include "compiler/cc/target.h"
#include "compiler/cc/tools.h"
#include "compiler/kernel_info.h"

#include <inttypes.h>
#include <llvm/Config/llvm-config.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "samepage-cc: the compiler process of Samepage. Started by the library; by hand:\n"
    "\n"
    "  samepage-cc --compile FILE.cl -o FILE.bc [option...]     OpenCL C to bitcode\n"
    "  samepage-cc --link FILE.bc... -o FILE.ir [option...]     bitcode to a program; prints its "
    "kernels\n"
    "  samepage-cc --code FILE.ir -o FILE.so --kernel NAME... [--local X,Y,Z]\n"
    "              [--target nvptx64:sm_90] [option...]         a program to a shared object, or "
    "to PTX\n"
    "  samepage-cc --make-library FILE.bc... -o FILE.bc         bitcode to a library for --link\n"
    "  samepage-cc --help | --version\n"
    "\n"
    "Options are those of clBuildProgram; -D and -I take their value in the same word or in the "
    "next.\nWith --link, -create-library makes a library of "
    "sources.\n"
    "Environment: SAMEPAGE_CLANG, SAMEPAGE_LLD, SAMEPAGE_BUILTINS, "
    "SAMEPAGE_BUILTINS_NVPTX, SAMEPAGE_CC_DUMP (a folder for "
    "IR),\nSAMEPAGE_CPU (x86-64-v2, -v3 or -v4: code for such a processor instead of this one).\n";

struct arguments {
    const char *action;
    const char *output;
    struct sp_cc_strings inputs;
    struct sp_cc_strings options;
    struct sp_cc_strings kernels;
    uint64_t local_size[3];
    const char *target;
};

static int wrong(const char *what, const char *word)
{
    fprintf(stderr, "samepage-cc: %s%s; see --help\n", what, word);
    return 2;
}

/* Whether the action takes more than one file. */
static bool takes_inputs(const char *action)
{
    return !strcmp(action, "--link") || !strcmp(action, "--make-library");
}

/* -D and -I: the value may be the next word, as in clBuildProgram's options (api/build_options.c);
 * the compiler gets one word. */
static bool has_value_behind(const char *word)
{
    return !strcmp(word, "-D") || !strcmp(word, "-I");
}

static int read_arguments(int argc, char **argv, struct arguments *arguments)
{
    arguments->action = argv[1];
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(word, "-o") || !strcmp(word, "--kernel") || !strcmp(word, "--local") ||
            !strcmp(word, "--target") || has_value_behind(word)) {
            if (!next)
                return wrong("a value is missing after ", word);
            i++;
            if (has_value_behind(word))
                sp_cc_strings_format(&arguments->options, "%s%s", word, next);
            else if (word[1] == 'o')
                arguments->output = next;
            else if (word[2] == 'k')
                sp_cc_strings_add(&arguments->kernels, next);
            else if (word[2] == 't')
                arguments->target = next;
            else if (sscanf(next, "%" SCNu64 ",%" SCNu64 ",%" SCNu64, &arguments->local_size[0],
                            &arguments->local_size[1], &arguments->local_size[2]) != 3)
                return wrong("three numbers are needed, not ", next);
        } else if (word[0] == '-' && word[1]) {
            sp_cc_strings_add(&arguments->options, word);
        } else {
            sp_cc_strings_add(&arguments->inputs, word);
        }
    }
    if (!arguments->output)
        return wrong("-o is missing", "");
    if (!arguments->inputs.count)
        return wrong("no input is given", "");
    if (arguments->inputs.count > 1 && !takes_inputs(arguments->action))
        return wrong("one input is enough, what to do with ", arguments->inputs.items[1]);
    return 0;
}

static int read_input(const char *path, struct sp_cc_text *bytes)
{
    int error = sp_cc_read_file(path, bytes);
    if (error)
        fprintf(stderr, "samepage-cc: %s: %s\n", path, strerror(-error));
    return error;
}

static int write_output(const char *path, const struct sp_cc_text *bytes)
{
    int error = sp_cc_write_file(path, bytes->bytes, bytes->size);
    if (error)
        fprintf(stderr, "samepage-cc: %s: %s\n", path, strerror(-error));
    return error ? 1 : 0;
}

static int compile(const struct arguments *arguments, struct sp_cc_text *log)
{
    struct sp_cc_source source = {.options = arguments->options};
    struct sp_cc_text text = {0}, bitcode = {0};
    struct sp_cc_strings dependencies = {0};
    int result = 1;
    if (!read_input(arguments->inputs.items[0], &text)) {
        source.text = text.bytes;
        source.size = text.size;
        if (sp_cc_compile(&source, &bitcode, &dependencies, log) == SP_CC_OK)
            result = write_output(arguments->output, &bitcode);
    }
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&bitcode);
    sp_cc_strings_finish(&dependencies);
    return result;
}

static void print_kernel(const struct sp_kernel_info *kernel)
{
    printf("kernel %s [%s] args %u bytes, local %" PRIu64 ", private %" PRIu64 "%s%s%s%s\n",
           kernel->name, kernel->attributes, kernel->args_bytes, kernel->local_static_bytes,
           kernel->private_bytes, kernel->has_barrier ? ", barrier" : "",
           kernel->uses_globals ? ", globals" : "",
           kernel->has_shared_atomics ? ", atomics for all devices" : "",
           kernel->writes_followed    ? ", follows pointers and writes there"
           : kernel->follows_pointers ? ", follows pointers"
                                      : "");
    for (uint32_t i = 0; i < kernel->num_args; i++) {
        const struct sp_arg_info *arg = &kernel->args[i];
        static const char *const kinds[] = {"value", "global", "constant", "local"};
        printf("  %s %s: %s, at %u, size %u, align %u%s%s%s\n", arg->type_name, arg->name,
               kinds[arg->kind], arg->offset, arg->size, arg->align,
               arg->effect & SP_EFFECT_READ ? ", read" : "",
               arg->effect & SP_EFFECT_WRITE ? ", written" : "",
               arg->effect & SP_EFFECT_UNKNOWN ? ", escapes" : "");
    }
}

static int link_program(const struct arguments *arguments, struct sp_cc_text *log)
{
    struct sp_cc_link link = {.options = arguments->options, .num_inputs = arguments->inputs.count};
    struct sp_cc_text *files = sp_cc_allocate(link.num_inputs * sizeof(*files));
    struct sp_program_info info = {0};
    struct sp_cc_text ir = {0};
    int result = 0;
    link.inputs = sp_cc_allocate(link.num_inputs * sizeof(*link.inputs));
    for (size_t i = 0; i < link.options.count; i++)
        if (!strcmp(link.options.items[i], "-create-library"))
            link.flags = SP_CC_LINK_LIBRARY;
    for (size_t i = 0; i < link.num_inputs && !result; i++) {
        result = read_input(arguments->inputs.items[i], &files[i]) ? 1 : 0;
        link.inputs[i] = (struct sp_cc_blob){files[i].bytes, files[i].size};
    }
    if (!result)
        result = sp_cc_link(&link, &ir, &info, log) != SP_CC_OK;
    if (!result)
        result = write_output(arguments->output, &ir);
    for (uint32_t i = 0; i < info.num_kernels; i++)
        print_kernel(&info.kernels[i]);
    for (size_t i = 0; i < link.num_inputs; i++)
        sp_cc_text_finish(&files[i]);
    free(files);
    free(link.inputs);
    sp_cc_program_info_finish(&info);
    sp_cc_text_finish(&ir);
    return result;
}

static int generate(const struct arguments *arguments, struct sp_cc_text *log)
{
    struct sp_cc_code code = {
        .kernels = arguments->kernels, .options = arguments->options, .target = arguments->target};
    struct sp_cc_text ir = {0}, object = {0};
    int result = 1;
    if (!code.kernels.count) {
        sp_cc_text_format(log, "error: no kernel is named; add --kernel NAME\n");
        return 1;
    }
    memcpy(code.local_size, arguments->local_size, sizeof(code.local_size));
    struct sp_kernel_code *kernels = sp_cc_allocate(code.kernels.count * sizeof(*kernels));
    if (!read_input(arguments->inputs.items[0], &ir)) {
        code.ir = (struct sp_cc_blob){ir.bytes, ir.size};
        if (sp_cc_code(&code, &object, kernels, log) == SP_CC_OK)
            result = write_output(arguments->output, &object);
    }
    for (size_t i = 0; !result && i < code.kernels.count; i++)
        printf("kernel %s: context %" PRIu64 " + %" PRIu64 " per work-item, multiple of %u\n",
               kernels[i].name, kernels[i].context_fixed_bytes, kernels[i].context_item_bytes,
               kernels[i].preferred_multiple);
    free(kernels);
    sp_cc_text_finish(&ir);
    sp_cc_text_finish(&object);
    return result;
}

int sp_cc_command_line(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct sp_cc_text log = {0};
    int result;
    if (!strcmp(argv[1], "--help")) {
        fputs(help, stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("samepage-cc %s\n", SP_VERSION);
        if (sp_cc_clang().linked)
            printf("Clang and lld %s are part of it\n", LLVM_VERSION_STRING);
        return 0;
    }
    result = read_arguments(argc, argv, &arguments);
    if (result)
        goto end;
    sp_cc_target_warm_up();
    if (!strcmp(arguments.action, "--compile"))
        result = compile(&arguments, &log);
    else if (!strcmp(arguments.action, "--link"))
        result = link_program(&arguments, &log);
    else if (!strcmp(arguments.action, "--code"))
        result = generate(&arguments, &log);
    else if (!strcmp(arguments.action, "--make-library"))
        result = sp_cc_make_library(&arguments.inputs, arguments.output, &log) != SP_CC_OK;
    else
        result = wrong("unknown action ", arguments.action);
    if (log.size)
        fputs(log.bytes, stderr);
end:
    sp_cc_text_finish(&log);
    sp_cc_strings_finish(&arguments.inputs);
    sp_cc_strings_finish(&arguments.options);
    sp_cc_strings_finish(&arguments.kernels);
    return result;
}
