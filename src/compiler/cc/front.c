/* See front.h. The source goes to clang's standard input, so that no path of ours shows in a
 * diagnostic; clang's name for it, <stdin>, becomes <source>. Given headers lie in a fresh folder
 * which is searched first and whose path is taken out of the log.
 *
 * The IR is made for spir64 with clang's own passes off: it is then the same on every processor,
 * and still carries what -O2 knows (lifetimes, type-based aliasing). docs/compiler-contract.md says
 * why. */
#include "compiler/cc/front.h"

#include "compiler/cc/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LANGUAGE_DEFAULT "-cl-std=CL1.2" /* clBuildProgram: without -cl-std, OpenCL C 1.2 */

/* What the devices offer, for all languages and versions (OpenCL C 3.0, 6.2.1; extension
 * specification). clang defines the macros of exactly these. */
static const char features[] =
    "-cl-ext=-all,+cl_khr_fp64,+__opencl_c_fp64,+cl_khr_byte_addressable_store,"
    "+cl_khr_global_int32_base_atomics,+cl_khr_global_int32_extended_atomics,"
    "+cl_khr_local_int32_base_atomics,+cl_khr_local_int32_extended_atomics,"
    "+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics,+__opencl_c_int64,"
    "+__opencl_c_generic_address_space,+__opencl_c_program_scope_global_variables,"
    "+__opencl_c_work_group_collective_functions,+__opencl_c_atomic_order_acq_rel,"
    "+__opencl_c_atomic_order_seq_cst,+__opencl_c_atomic_scope_device,"
    "+__opencl_c_atomic_scope_all_devices";

/* clang's own header defines macros of many extensions and features for every program for spir64,
 * whether the devices have them or not. So it is told that this is another target, and gets what
 * the devices do have of those from here: the extensions, and features of OpenCL C 3.0. */
static const char *const header_extensions[] = {"-U__SPIR__", "-Dcl_khr_extended_bit_ops=1"};
static const char *const header_features[] = {
    "-D__opencl_c_work_group_collective_functions=1", "-D__opencl_c_atomic_order_seq_cst=1",
    "-D__opencl_c_atomic_scope_device=1", "-D__opencl_c_atomic_scope_all_devices=1"};

/* Whether a value of -cl-std has feature macros. */
static bool has_features(const char *language)
{
    return !strcasecmp(language, "CL3.0") || !strcasecmp(language, "CLC++2021");
}

static void add_words(struct sp_cc_strings *words, const char *const *added, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sp_cc_strings_add(words, added[i]);
}

#define ADD_WORDS(words, array) add_words(words, array, sizeof(array) / sizeof((array)[0]))

/* Options of clBuildProgram that clang does not know or that mean nothing to the front half. */
static bool is_for_others(const char *option)
{
    static const char *const others[] = {
        "-create-library",
        "-enable-link-options",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcmp(option, others[i]))
            return true;
    return false;
}

/* `resources`: the folder of Clang's own headers, which a program finds from where it lies: NULL.
 */
static void command(const struct sp_cc_source *source, const char *resources, const char *headers,
                    const char *dependencies, struct sp_cc_strings *words)
{
    static const char *const fixed[] = {
        "-x",
        "cl",
        "-target",
        "spir64-unknown-unknown",
        "-emit-llvm",
        "-c",
        "-O2",
        "-Xclang",
        "-disable-llvm-passes",
        "-cl-kernel-arg-info",
        "-fno-builtin-printf", /* or LLVM turns it into puts */
        "-fno-color-diagnostics",
        "-U__IMAGE_SUPPORT__",
        "-D__OPENCL_VERSION__=300",
        "-Xclang",
        features,
    };
    if (resources) {
        sp_cc_strings_add(words, "-resource-dir");
        sp_cc_strings_add(words, resources);
    }
    ADD_WORDS(words, fixed);
    ADD_WORDS(words, header_extensions);
    const char *language = NULL; /* the last one counts */
    for (size_t i = 0; i < source->options.count; i++)
        if (!strncmp(source->options.items[i], "-cl-std=", 8))
            language = source->options.items[i] + 8;
    if (!language)
        sp_cc_strings_add(words, LANGUAGE_DEFAULT);
    else if (has_features(language))
        ADD_WORDS(words, header_features);
    sp_cc_strings_add(words, "-I");
    sp_cc_strings_add(words, headers);
    for (size_t i = 0; i < source->options.count; i++)
        if (!is_for_others(source->options.items[i]))
            sp_cc_strings_add(words, source->options.items[i]);
    const char *const last[] = {"-MMD", "-MT", "source", "-MF", dependencies, "-o", "-", "-"};
    ADD_WORDS(words, last);
}

/* Adds `said` with every `from` replaced. */
static void add_replaced(struct sp_cc_text *log, const char *said, const char *from, const char *to)
{
    for (const char *found; (found = strstr(said, from)); said = found + strlen(from)) {
        sp_cc_text_add(log, said, (size_t)(found - said));
        sp_cc_text_add(log, to, strlen(to));
    }
    sp_cc_text_add(log, said, strlen(said));
}

static void add_log(struct sp_cc_text *log, const struct sp_cc_text *said, const char *folder)
{
    if (!said->size)
        return;
    struct sp_cc_text named = {0}, prefix = {0};
    sp_cc_text_format(&prefix, "%s/", folder);
    add_replaced(&named, said->bytes, "<stdin>", "<source>");
    add_replaced(log, named.bytes, prefix.bytes, "");
    sp_cc_text_finish(&named);
    sp_cc_text_finish(&prefix);
}

static void add_dependency(const char *path, const char *folder, struct sp_cc_strings *dependencies)
{
    char *absolute = realpath(path, NULL);
    char *given = realpath(folder, NULL);
    size_t length = given ? strlen(given) : 0;
    if (absolute && given && !(!strncmp(absolute, given, length) && absolute[length] == '/'))
        sp_cc_strings_add(dependencies, absolute);
    free(absolute);
    free(given);
}

/* Reads what -MMD wrote, a make rule: blanks in names behind a backslash, '$' doubled. */
static void read_dependencies(const char *rule, const char *folder,
                              struct sp_cc_strings *dependencies)
{
    rule = strchr(rule, ':');
    struct sp_cc_text name = {0};
    for (const char *at = rule ? rule + 1 : ""; *at || name.size; at++) {
        if (at[0] == '\\' && (at[1] == ' ' || at[1] == '#')) {
            sp_cc_text_add(&name, ++at, 1);
        } else if (at[0] == '\\' && at[1] == '\n') {
            at++;
        } else if (at[0] == '$' && at[1] == '$') {
            sp_cc_text_add(&name, ++at, 1);
        } else if (*at && *at != ' ' && *at != '\n') {
            sp_cc_text_add(&name, at, 1);
        } else if (name.size) {
            if (strcmp(name.bytes, "<stdin>") && strcmp(name.bytes, "-"))
                add_dependency(name.bytes, folder, dependencies);
            sp_cc_text_finish(&name);
            if (!*at)
                break;
        }
    }
    sp_cc_text_finish(&name);
}

/* What clang writes after the last words of its own when it dies: nothing for whoever wrote the
 * source. */
static const char crash_report[] = "PLEASE submit a bug report";

/* Whether clang could not write what it writes besides bitcode: the names of included files. */
static bool lacks_room(const struct sp_cc_text *said)
{
    static const int errors[] = {ENOSPC, EFBIG, EDQUOT};
    bool lacks = false;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && said->size && !lacks; i++)
        lacks = strstr(said->bytes, strerror(errors[i]));
    return lacks;
}

/* Clang's failure: an error of the source, or its own end. In the second case what it said is cut
 * down to the last words. */
static enum sp_cc_status judge_failure(int exit_status, struct sp_cc_text *said,
                                       struct sp_cc_text *log)
{
    char *report = said->size ? strstr(said->bytes, crash_report) : NULL;
    if (lacks_room(said)) {
        sp_cc_say_no_room(ENOSPC, log);
        return SP_CC_INTERNAL;
    }
    if (exit_status == 1 && !report)
        return SP_CC_SOURCE_ERROR;
    if (report) {
        *report = 0;
        said->size = (size_t)(report - said->bytes);
    }
    if (sp_cc_says_no_memory(said))
        return SP_CC_NO_MEMORY;
    sp_cc_text_format(log, "error: clang crashed (status %d)\n", exit_status);
    return SP_CC_INTERNAL;
}

enum sp_cc_status sp_cc_compile(const struct sp_cc_source *source, struct sp_cc_text *bitcode,
                                struct sp_cc_strings *dependencies, struct sp_cc_text *log)
{
    struct sp_cc_folder files = {0}, headers = {0};
    struct sp_cc_text rule_path = {0}, rule = {0}, said = {0};
    struct sp_cc_strings words = {0};
    char *resources = NULL;
    enum sp_cc_status status = SP_CC_INTERNAL;
    int error = sp_cc_folder_create(&files);
    if (!error)
        error = sp_cc_folder_create(&headers);
    if (error) {
        sp_cc_say_no_room(-error, log);
        goto end;
    }
    for (size_t i = 0; i < source->header_names.count; i++) {
        const char *text = source->header_texts.items[i];
        error = sp_cc_folder_write(&headers, source->header_names.items[i], text, strlen(text));
        if (error == -EINVAL) {
            sp_cc_text_format(log, "error: header name '%s' is not a relative path without '..'\n",
                              source->header_names.items[i]);
            status = SP_CC_SOURCE_ERROR;
        } else if (error) {
            sp_cc_say_no_room(-error, log);
        }
        if (error)
            goto end;
    }
    sp_cc_text_format(&rule_path, "%s/out.d", files.path);
    struct sp_cc_tool clang = sp_cc_clang();
    if (clang.linked)
        resources = sp_cc_clang_resources();
    if (clang.linked && !resources) {
        sp_cc_text_format(log,
                          "error: Clang's headers for OpenCL are not in %s, nor in a bundle beside "
                          "samepage-cc: install libclang-common-19-dev, or name a Clang 19 with "
                          "SAMEPAGE_CLANG\n",
                          SP_CLANG_RESOURCES);
        goto end;
    }
    command(source, resources, headers.path, rule_path.bytes, &words);
    int exit_status = sp_cc_run_tool(&clang, &words, source->text, source->size, bitcode, &said);
    if (exit_status < 0 || exit_status == 127) {
        add_log(log, &said, headers.path);
        sp_cc_text_format(log, "error: clang cannot be run as %s\n", clang.name);
        goto end;
    }
    if (exit_status)
        status = judge_failure(exit_status, &said, log);
    add_log(log, &said, headers.path);
    if (exit_status)
        goto end;
    if (!sp_cc_read_file(rule_path.bytes, &rule) && rule.size)
        read_dependencies(rule.bytes, headers.path, dependencies);
    status = SP_CC_OK;
end:
    free(resources);
    sp_cc_folder_destroy(&files);
    sp_cc_folder_destroy(&headers);
    sp_cc_text_finish(&rule_path);
    sp_cc_text_finish(&rule);
    sp_cc_text_finish(&said);
    sp_cc_strings_finish(&words);
    return status;
}
