/* See selection.h. Read once, by whoever asks first; read-only afterwards. */
#include "device/selection.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Less is no device: the window's granules are 2 MiB, and a program wants a few regions. */
#define MIN_MEMORY_BYTES (UINT64_C(4) << 20)
#define MAX_THREADS 1024u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sp_selection selection_of_process;

/* A whole number above 0, all of `text` but for a suffix of `suffixes`, each 1024 times the one
 * before. */
static bool read_number(const char *text, const char *suffixes, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || value == 0)
        return false;
    if (*end) {
        const char *suffix = strchr(suffixes, *end & ~0x20);
        if (!suffix || end[1])
            return false;
        unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
        if (value > UINT64_MAX >> shift)
            return false;
        value <<= shift;
    }
    *number = value;
    return true;
}

static bool add_virtual(struct sp_selection *selection, const char *count)
{
    uint64_t number = 1;
    if (count && !read_number(count, "", &number))
        return false;
    if (number > SP_MAX_CLIENT_DEVICES - selection->num_virtual)
        return false;
    for (uint64_t i = 0; i < number; i++)
        selection->virtuals[selection->num_virtual++] = (struct sp_selected){0};
    return true;
}

static bool add_cuda(struct sp_selection *selection, const char *number)
{
    uint64_t ordinal = 0;
    if (strcmp(number, "0") && !read_number(number, "", &ordinal))
        return false;
    if (ordinal >= SP_MAX_CLIENT_DEVICES || selection->num_cuda == SP_MAX_CLIENT_DEVICES)
        return false;
    for (uint32_t i = 0; i < selection->num_cuda; i++)
        if (selection->cuda[i] == ordinal)
            return true;
    selection->cuda[selection->num_cuda++] = (uint32_t)ordinal;
    return true;
}

static bool set_memory(struct sp_selection *selection, const char *text)
{
    uint64_t bytes;
    if (!selection->num_virtual || !read_number(text, "KMGT", &bytes) || bytes < MIN_MEMORY_BYTES)
        return false;
    for (uint32_t i = 0; i < selection->num_virtual; i++)
        if (!selection->virtuals[i].memory_bytes)
            selection->virtuals[i].memory_bytes = bytes;
    return true;
}

static bool set_threads(struct sp_selection *selection, const char *text)
{
    uint64_t threads;
    if (!selection->num_virtual || !read_number(text, "", &threads) || threads > MAX_THREADS)
        return false;
    for (uint32_t i = 0; i < selection->num_virtual; i++)
        if (!selection->virtuals[i].threads)
            selection->virtuals[i].threads = (uint32_t)threads;
    return true;
}

/* `text` says where the memory comes from: see struct sp_selected. */
static bool set_source(struct sp_selection *selection, const char *text)
{
    if (!selection->num_virtual || strlen(text) >= SP_MEMORY_NAME_BYTES)
        return false;
    for (uint32_t i = 0; i < selection->num_virtual; i++)
        if (!*selection->virtuals[i].memory)
            strcpy(selection->virtuals[i].memory, text);
    return true;
}

static bool read_word(struct sp_selection *selection, const char *word)
{
    if (!strcmp(word, "cpu")) {
        selection->has_cpu = true;
        return true;
    }
    if (!strcmp(word, "cuda")) {
        selection->has_all_cuda = true;
        return true;
    }
    if (!strncmp(word, "cuda:", 5))
        return add_cuda(selection, word + 5);
    if (!strcmp(word, "virtual"))
        return add_virtual(selection, NULL);
    if (!strncmp(word, "virtual:", 8))
        return add_virtual(selection, word + 8);
    if (!strncmp(word, "mem=", 4))
        return set_memory(selection, word + 4);
    if (!strncmp(word, "threads=", 8))
        return set_threads(selection, word + 8);
    if (!strcmp(word, "parts") || (!strncmp(word, "drm=", 4) && word[4]))
        return set_source(selection, word);
    return false;
}

void sp_selection_parse(const char *text, struct sp_selection *selection)
{
    bool is_default = !text || !*text;
    *selection = (struct sp_selection){.has_cpu = is_default, .has_all_cuda = is_default};
    while (text && *text) {
        char word[64];
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word,
                 text);
        if (length && (length >= sizeof word || !read_word(selection, word)))
            fprintf(stderr,
                    "samepage: '%.*s' in SAMEPAGE_DEVICES is not understood and is ignored; it "
                    "takes cpu, cuda, cuda:N, virtual or virtual:N (at most %u in all), and after "
                    "virtual ones mem=N[K|M|G] (at least 4M), threads=N, parts, and drm=DRIVER "
                    "or drm=PATH.\n",
                    (int)length, text, SP_MAX_CLIENT_DEVICES);
        text += length + (text[length] == ',');
    }
}

static void read_environment(void)
{
    sp_selection_parse(getenv("SAMEPAGE_DEVICES"), &selection_of_process);
}

const struct sp_selection *sp_selection(void)
{
    pthread_once(&once, read_environment);
    return &selection_of_process;
}
