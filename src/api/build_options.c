/* See build_options.h. A table says which options exist, where each is allowed, and who is told of
 * it; the rest is cutting a string into words as a shell would.
 *
 * Words are divided by blanks. Double quotes keep blanks together and go away; a backslash makes a
 * quote, a backslash or a blank an ordinary character. Called by program_build.c; no state.
 *
 * Sources: OpenCL 3.0 API, sections "Compiler Options" and "Linker Options"; -cl-std=CL1.0 from
 * OpenCL 1.0; -cl-strict-aliasing, deprecated since 1.1, and -g are accepted.
 */
#include "api/build_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"

enum {
    FOR_COMPILE = 1, /* allowed when compiling; a word for the compiler */
    FOR_LINK = 2,    /* allowed when linking */
    TO_LINK = 4,     /* a word for linking and code generation, wherever it was given */
    QUIET = 8,       /* no word for the compiler: clang does not know it, or warns of it */
};

static const struct known_option {
    const char *word;
    unsigned flags;
} known_options[] = {
    {"-cl-single-precision-constant", FOR_COMPILE},
    {"-cl-denorms-are-zero", FOR_COMPILE | FOR_LINK | TO_LINK | QUIET},
    {"-cl-fp32-correctly-rounded-divide-sqrt", FOR_COMPILE | TO_LINK},
    {"-cl-opt-disable", FOR_COMPILE | TO_LINK},
    {"-cl-strict-aliasing", FOR_COMPILE | QUIET},
    {"-cl-uniform-work-group-size", FOR_COMPILE | TO_LINK},
    {"-cl-no-subgroup-ifp", FOR_COMPILE | FOR_LINK | QUIET},
    {"-cl-mad-enable", FOR_COMPILE | TO_LINK},
    {"-cl-no-signed-zeros", FOR_COMPILE | FOR_LINK | TO_LINK},
    {"-cl-unsafe-math-optimizations", FOR_COMPILE | FOR_LINK | TO_LINK},
    {"-cl-finite-math-only", FOR_COMPILE | FOR_LINK | TO_LINK},
    {"-cl-fast-relaxed-math", FOR_COMPILE | FOR_LINK | TO_LINK},
    {"-cl-kernel-arg-info", FOR_COMPILE},
    {"-w", FOR_COMPILE},
    {"-Werror", FOR_COMPILE},
    {"-g", FOR_COMPILE},
    {"-create-library", FOR_LINK | QUIET},
    {"-enable-link-options", FOR_LINK | QUIET},
};

static const struct language {
    const char *name;
    unsigned version;
} languages[] = {
    {"CL1.0", 100}, {"CL1.1", 110}, {"CL1.2", 120}, {"CL2.0", 200}, {"CL3.0", 300},
};

#define LANGUAGE_OPTION "-cl-std="

/* The highest of OpenCL C 1.x, where no -cl-std is given (OpenCL 3.0 API). */
#define PRESET_LANGUAGE 2

struct parser {
    struct sp_build_options *options;
    enum sp_build_options_use use;
    const char *rest;
    const struct language *language;
    bool enable_link_options;
};

/* --- Words --------------------------------------------------------------------------------- */

static cl_int invalid(enum sp_build_options_use use)
{
    switch (use) {
    case SP_OPTIONS_COMPILE:
        return CL_INVALID_COMPILER_OPTIONS;
    case SP_OPTIONS_LINK:
        return CL_INVALID_LINKER_OPTIONS;
    default:
        return CL_INVALID_BUILD_OPTIONS;
    }
}

static bool is_blank(char character)
{
    return isspace((unsigned char)character);
}

/* The next word, fresh; *word NULL at the end. */
static cl_int next_word(struct parser *parser, char **word)
{
    const char *from = parser->rest;
    *word = NULL;
    while (is_blank(*from))
        from++;
    parser->rest = from;
    if (!*from)
        return CL_SUCCESS;
    /* No word is longer than what is left. */
    char *to = *word = sp_alloc(strlen(from) + 1);
    if (!to)
        return CL_OUT_OF_HOST_MEMORY;
    bool is_quoted = false;
    for (; *from && (is_quoted || !is_blank(*from)); from++) {
        if (*from == '"') {
            is_quoted = !is_quoted;
            continue;
        }
        if (*from == '\\' && (from[1] == '"' || from[1] == '\\' || is_blank(from[1])))
            from++;
        *to++ = *from;
    }
    parser->rest = from;
    if (!is_quoted)
        return CL_SUCCESS;
    free(*word);
    *word = NULL;
    parser->options->wrong =
        sp_strdup("A double quote in the options is not closed; close it, or write \\\" for a "
                  "quote that is meant.");
    return invalid(parser->use);
}

/* Moves `word` (or, if NULL, reports the lack of memory) to the end of a list. */
static cl_int append(char ***words, uint32_t *count, char *word)
{
    char **larger = word ? sp_realloc(*words, (*count + 1) * sizeof(**words)) : NULL;
    if (!larger) {
        free(word);
        return CL_OUT_OF_HOST_MEMORY;
    }
    *words = larger;
    larger[(*count)++] = word;
    return CL_SUCCESS;
}

static cl_int add_compile_word(struct sp_build_options *options, char *word)
{
    return append(&options->compile_words, &options->num_compile_words, word);
}

static cl_int add_link_word(struct sp_build_options *options, char *word)
{
    return append(&options->link_words, &options->num_link_words, word);
}

/* --- Options with a value ------------------------------------------------------------------ */

/* -D name, -Dname, with or without =definition. */
static cl_int take_macro(struct parser *parser, const char *macro)
{
    if (!isalpha((unsigned char)*macro) && *macro != '_') {
        parser->options->wrong =
            sp_format("-D must be followed by the name of a macro, not by \"%s\".", macro);
        return invalid(parser->use);
    }
    /* A definition ends at a newline (OpenCL 3.0 API, Preprocessor Options). */
    return add_compile_word(parser->options,
                            sp_format("-D%.*s", (int)strcspn(macro, "\r\n"), macro));
}

/* A folder's absolute path: the application may change its own while the compiler has another. */
static char *absolute(const char *folder)
{
    if (*folder == '/')
        return sp_strdup(folder);
    char *here = getcwd(NULL, 0);
    char *path = here ? sp_format("%s/%s", here, folder) : sp_strdup(folder);
    free(here);
    return path;
}

static cl_int take_folder(struct parser *parser, const char *folder)
{
    if (!*folder) {
        parser->options->wrong = sp_strdup("-I must be followed by a folder.");
        return invalid(parser->use);
    }
    char *path = absolute(folder);
    if (!path)
        return CL_OUT_OF_HOST_MEMORY;
    parser->options->has_folders = true;
    cl_int error = add_compile_word(parser->options, sp_format("-I%s", path));
    free(path);
    return error;
}

/* -D and -I: the value is in the same word or the next. */
static cl_int take_valued(struct parser *parser, const char *word)
{
    char *next = NULL;
    const char *value = word + 2;
    cl_int error = CL_SUCCESS;
    if (!*value) {
        error = next_word(parser, &next);
        value = next ? next : "";
    }
    if (!error)
        error = word[1] == 'D' ? take_macro(parser, value) : take_folder(parser, value);
    free(next);
    return error;
}

static cl_int take_language(struct parser *parser, const char *name)
{
    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
        if (strcmp(languages[i].name, name) == 0) {
            parser->language = &languages[i];
            return CL_SUCCESS;
        }
    parser->options->wrong = sp_format(
        "-cl-std=%s is not supported; the versions are CL1.0, CL1.1, CL1.2, CL2.0 and CL3.0.",
        name);
    return invalid(parser->use);
}

/* --- The table ----------------------------------------------------------------------------- */

static const struct known_option *find_known(enum sp_build_options_use use, const char *word)
{
    unsigned wanted = use == SP_OPTIONS_LINK ? FOR_LINK : FOR_COMPILE;
    for (size_t i = 0; i < sizeof(known_options) / sizeof(known_options[0]); i++)
        if ((known_options[i].flags & wanted) && strcmp(known_options[i].word, word) == 0)
            return &known_options[i];
    return NULL;
}

static cl_int take_known(struct parser *parser, const struct known_option *known)
{
    struct sp_build_options *options = parser->options;
    options->uniform_groups |= strcmp(known->word, "-cl-uniform-work-group-size") == 0;
    options->kernel_arg_info |= strcmp(known->word, "-cl-kernel-arg-info") == 0;
    options->create_library |= strcmp(known->word, "-create-library") == 0;
    parser->enable_link_options |= strcmp(known->word, "-enable-link-options") == 0;
    cl_int error = CL_SUCCESS;
    if (parser->use != SP_OPTIONS_LINK && !(known->flags & QUIET))
        error = add_compile_word(options, sp_strdup(known->word));
    if (!error && (known->flags & TO_LINK))
        error = add_link_word(options, sp_strdup(known->word));
    return error;
}

static cl_int take_word(struct parser *parser, const char *word)
{
    const struct known_option *known = find_known(parser->use, word);
    if (known)
        return take_known(parser, known);
    if (parser->use != SP_OPTIONS_LINK) {
        if (word[0] == '-' && (word[1] == 'D' || word[1] == 'I'))
            return take_valued(parser, word);
        if (strncmp(word, LANGUAGE_OPTION, strlen(LANGUAGE_OPTION)) == 0)
            return take_language(parser, word + strlen(LANGUAGE_OPTION));
    }
    parser->options->wrong =
        sp_format("Option \"%s\" is not known for %s; see the OpenCL 3.0 API, section \"%s\".",
                  word, parser->use == SP_OPTIONS_LINK ? "linking" : "building",
                  parser->use == SP_OPTIONS_LINK ? "Linker Options" : "Compiler Options");
    return invalid(parser->use);
}

cl_int sp_build_options_parse(enum sp_build_options_use use, const char *text,
                              struct sp_build_options *options)
{
    struct parser parser = {.options = options,
                            .use = use,
                            .rest = text ? text : "",
                            .language = &languages[PRESET_LANGUAGE]};
    *options = (struct sp_build_options){0};
    for (;;) {
        char *word;
        cl_int error = next_word(&parser, &word);
        if (!error && !word)
            break;
        if (!error)
            error = take_word(&parser, word);
        free(word);
        if (error)
            return error;
    }
    if (parser.enable_link_options && !options->create_library) {
        options->wrong =
            sp_strdup("-enable-link-options is for libraries: it needs -create-library.");
        return invalid(use);
    }
    options->language = parser.language->version;
    if (use == SP_OPTIONS_LINK)
        return CL_SUCCESS;
    return add_compile_word(options, sp_format(LANGUAGE_OPTION "%s", parser.language->name));
}

bool sp_build_options_search_here(struct sp_build_options *options)
{
    char *here = getcwd(NULL, 0);
    if (!here)
        return true; /* the folder is gone: nothing to be found there */
    cl_int error = add_compile_word(options, sp_format("-I%s", here));
    free(here);
    return !error;
}

static void free_words(char **words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
}

void sp_build_options_finish(struct sp_build_options *options)
{
    free_words(options->compile_words, options->num_compile_words);
    free_words(options->link_words, options->num_link_words);
    free(options->wrong);
    *options = (struct sp_build_options){0};
}
