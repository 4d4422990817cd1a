/* Option strings, taken apart. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/build_options.h"

/* The compile words of `text` are those of `expected`, separated by '|'. */
static void expect_words(const char *text, const char *expected)
{
    struct sp_build_options options;
    char joined[1024] = "";
    assert_int_equal(sp_build_options_parse(SP_OPTIONS_BUILD, text, &options), CL_SUCCESS);
    for (uint32_t i = 0; i < options.num_compile_words; i++) {
        strcat(joined, i ? "|" : "");
        strcat(joined, options.compile_words[i]);
    }
    assert_string_equal(joined, expected);
    sp_build_options_finish(&options);
}

static void expect_error(enum sp_build_options_use use, const char *text, cl_int expected)
{
    struct sp_build_options options;
    assert_int_equal(sp_build_options_parse(use, text, &options), expected);
    assert_non_null(options.wrong);
    sp_build_options_finish(&options);
}

static void no_options_give_the_preset_language(void **state)
{
    (void)state;
    expect_words(NULL, "-cl-std=CL1.2");
    expect_words("", "-cl-std=CL1.2");
    expect_words(" \t\n ", "-cl-std=CL1.2");
}

static void words_are_cut_as_a_shell_would(void **state)
{
    (void)state;
    expect_words("-DA -D B -D  C=1 -DD=\"x y\"", "-DA|-DB|-DC=1|-DD=x y|-cl-std=CL1.2");
    expect_words("-D \"NAME(a)=a b\"", "-DNAME(a)=a b|-cl-std=CL1.2");
    expect_words("-DS=\\\"text\\\"", "-DS=\"text\"|-cl-std=CL1.2");
    expect_words("-DS=a\\ b -w", "-DS=a b|-w|-cl-std=CL1.2");
    expect_words("-DS=a\\\\b -DT='c'", "-DS=a\\b|-DT='c'|-cl-std=CL1.2");
    expect_words("-DS=\"\" -D_x1", "-DS=|-D_x1|-cl-std=CL1.2");
}

static void a_definition_ends_at_a_newline(void **state)
{
    (void)state;
    expect_words("-D \"A=1\n2\" -g", "-DA=1|-g|-cl-std=CL1.2");
}

static void folders_become_absolute(void **state)
{
    (void)state;
    assert_int_equal(chdir("/usr"), 0);
    expect_words("-I/a/b -I \"c d\" -I e", "-I/a/b|-I/usr/c d|-I/usr/e|-cl-std=CL1.2");
    struct sp_build_options options;
    assert_int_equal(sp_build_options_parse(SP_OPTIONS_COMPILE, "-I x", &options), CL_SUCCESS);
    assert_true(options.has_folders);
    assert_true(sp_build_options_search_here(&options));
    assert_string_equal(options.compile_words[options.num_compile_words - 1], "-I/usr");
    sp_build_options_finish(&options);
}

static void flags_and_languages_are_noted(void **state)
{
    (void)state;
    struct sp_build_options options;
    assert_int_equal(sp_build_options_parse(SP_OPTIONS_BUILD,
                                            "-cl-std=CL2.0 -cl-uniform-work-group-size "
                                            "-cl-kernel-arg-info -cl-fast-relaxed-math "
                                            "-cl-std=CL3.0 -cl-denorms-are-zero",
                                            &options),
                     CL_SUCCESS);
    assert_int_equal(options.language, 300);
    assert_true(options.uniform_groups && options.kernel_arg_info);
    assert_false(options.create_library || options.has_folders);
    assert_int_equal(options.num_link_words, 3);
    assert_string_equal(options.link_words[0], "-cl-uniform-work-group-size");
    assert_string_equal(options.link_words[1], "-cl-fast-relaxed-math");
    assert_string_equal(options.link_words[2], "-cl-denorms-are-zero");
    assert_string_equal(options.compile_words[options.num_compile_words - 1], "-cl-std=CL3.0");
    sp_build_options_finish(&options);

    assert_int_equal(sp_build_options_parse(SP_OPTIONS_LINK,
                                            "-create-library -enable-link-options "
                                            "-cl-no-signed-zeros",
                                            &options),
                     CL_SUCCESS);
    assert_true(options.create_library);
    assert_int_equal(options.num_link_words, 1);
    assert_int_equal(options.num_compile_words, 0);
    sp_build_options_finish(&options);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "x",     "-",      "-x",   "-cl-std=",        "-cl-std=CL5",      "-D",
        "-D 1A", "-D=",    "-I",   "-I \"\"",         "-DA \"",           "-W",
        "-cl-",  "--help", "-o x", "-create-library", "-cl-opt-disable=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        expect_error(SP_OPTIONS_BUILD, wrong[i], CL_INVALID_BUILD_OPTIONS);
        expect_error(SP_OPTIONS_COMPILE, wrong[i], CL_INVALID_COMPILER_OPTIONS);
    }
    static const char *const wrong_link[] = {
        "-DA", "-I /", "-w", "-cl-std=CL2.0", "-enable-link-options", "-cl-mad-enable"};
    for (size_t i = 0; i < sizeof wrong_link / sizeof wrong_link[0]; i++)
        expect_error(SP_OPTIONS_LINK, wrong_link[i], CL_INVALID_LINKER_OPTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_options_give_the_preset_language),
        cmocka_unit_test(words_are_cut_as_a_shell_would),
        cmocka_unit_test(a_definition_ends_at_a_newline),
        cmocka_unit_test(folders_become_absolute),
        cmocka_unit_test(flags_and_languages_are_noted),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
