/* See steps.h. Puts requests together, asks the cache, asks samepage-cc, and takes answers apart.
 *
 * The key of an entry is the digest of the request's body (all but its limits), of the kind, and of
 * the machine: versions, the processor's features, SAMEPAGE_CPU, and which samepage-cc and builtin
 * library there are. The machine is looked at once a process, at the first request: should
 * samepage-cc be replaced while we run, then what the old one made is kept under the old one's key.
 *
 * An entry holds what the answer depended on, then the answer. For a source with #include these are
 * the files that were read, each with its digest, which must still be true when the entry is used.
 * (A new file that would be found earlier in the search path is not noticed; compilers' caches
 * share that limit.) A file that changed while we compiled makes the answer unfit for keeping.
 *
 * No state but the machine's digest, no lock.
 */
#include "compiler/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "compiler/cache.h"
#include "compiler/client.h"
#include "compiler/cpu_abi.h"
#include "compiler/gpu_abi.h"
#include "compiler/protocol.h"
#include "util/alloc.h"
#include "util/wire.h"

/* Bytes of a body before what the answer depends on: u32 seconds, u64 memory. */
#define LIMITS_BYTES 12u

/* Included files above this size, together or alone, make a result not worth a cache entry. */
#define MAX_INCLUDED_BYTES (UINT64_C(256) << 20)
#define MAX_DEPENDENCIES 65536u

/* The builtin libraries, beside samepage-cc. */
static const char *const libraries[] = {"cpu.bc", "nvptx.bc"};

#define SEED_MACHINE 2u
#define SEED_BODY 3u
#define SEED_FILE 4u

/* --- The machine --------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* The leaves that say what instructions there are. The first word of leaf 1's EBX is the number of
 * the processor that we happen to run on, so EBX is left out there. */
static void put_processor(struct sp_wire_writer *writer)
{
    static const struct {
        unsigned leaf, subleaf;
    } leaves[] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}};
    for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        __get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &a, &b, &c, &d);
        sp_wire_put_u32(writer, a);
        sp_wire_put_u32(writer, leaves[i].leaf == 1 ? 0 : b);
        sp_wire_put_u32(writer, c);
        sp_wire_put_u32(writer, d);
    }
}
#else
static void put_processor(struct sp_wire_writer *writer)
{
    sp_wire_put_u64(writer, getauxval(AT_HWCAP));
    sp_wire_put_u64(writer, getauxval(AT_HWCAP2));
}
#endif

/* Which file it is, without reading it. */
static void put_file(struct sp_wire_writer *writer, const char *path)
{
    struct stat status = {0};
    if (stat(path, &status) < 0)
        status = (struct stat){0};
    sp_wire_put_u64(writer, (uint64_t)status.st_size);
    sp_wire_put_u64(writer, (uint64_t)status.st_ino);
    sp_wire_put_u64(writer, (uint64_t)status.st_dev);
    sp_wire_put_u64(writer, (uint64_t)status.st_mtim.tv_sec);
    sp_wire_put_u64(writer, (uint64_t)status.st_mtim.tv_nsec);
}

static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static struct sp_digest machine;
static bool machine_is_known;

static void look_at_machine(void)
{
    struct sp_wire_writer writer;
    sp_wire_writer_init(&writer);
    const char *compiler = sp_compiler_path();
    const char *slash = compiler ? strrchr(compiler, '/') : NULL;
    sp_wire_put_string(&writer, SP_VERSION);
    sp_wire_put_u32(&writer, SP_CPU_ABI_VERSION);
    sp_wire_put_u32(&writer, SP_GPU_ABI_VERSION);
    sp_wire_put_u32(&writer, SP_CC_VERSION);
    put_processor(&writer);
    const char *level = getenv("SAMEPAGE_CPU"); /* the processor that code is made for */
    sp_wire_put_string(&writer, level ? level : "");
    if (compiler)
        put_file(&writer, compiler);
    bool is_known = slash != NULL;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && is_known; i++) {
        char *path = sp_format("%.*s/%s", (int)(slash - compiler), compiler, libraries[i]);
        if (path)
            put_file(&writer, path);
        is_known = path != NULL;
        free(path);
    }
    machine = sp_digest(writer.bytes, writer.size, SEED_MACHINE);
    machine_is_known = is_known && !writer.error;
    sp_wire_writer_finish(&writer);
}

/* The key of a request, or false where it cannot be known. */
static bool request_key(enum sp_cc_kind kind, const struct sp_wire_writer *request,
                        struct sp_digest *key)
{
    pthread_once(&machine_once, look_at_machine);
    if (!machine_is_known)
        return false;
    struct {
        struct sp_digest machine, body;
        uint64_t kind;
    } parts = {machine,
               sp_digest(request->bytes + LIMITS_BYTES, request->size - LIMITS_BYTES, SEED_BODY),
               kind};
    *key = sp_digest(&parts, sizeof(parts), SEED_MACHINE);
    return true;
}

/* --- Included files ------------------------------------------------------------------------ */

/* Digest and size of a file's content. `before` not 0: false as well where the file may have
 * changed since that time (seconds since the epoch). */
static bool digest_file(const char *path, time_t before, struct sp_digest *digest, uint64_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_known = false;
    char *content = NULL;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size > MAX_INCLUDED_BYTES ||
        (before && status.st_mtim.tv_sec >= before))
        goto end;
    size_t expected = (size_t)status.st_size, have = 0;
    content = sp_alloc(expected);
    if (!content)
        goto end;
    while (have < expected) {
        ssize_t got = read(fd, content + have, expected - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            goto end;
        have += (size_t)got;
    }
    *digest = sp_digest(content, expected, SEED_FILE);
    *size = expected;
    is_known = true;
end:
    free(content);
    close(fd);
    return is_known;
}

/* Reads an entry's list of files and compares each with what is there. */
static bool dependencies_hold(struct sp_wire_reader *reader)
{
    uint32_t count = sp_wire_get_u32(reader);
    for (uint32_t i = 0; i < count; i++) {
        char *path = sp_wire_get_string(reader);
        uint64_t size = sp_wire_get_u64(reader), now_size;
        struct sp_digest digest = {0}, now;
        digest.low = sp_wire_get_u64(reader);
        digest.high = sp_wire_get_u64(reader);
        bool holds = path && !reader->failed && digest_file(path, 0, &now, &now_size) &&
                     size == now_size && digest.low == now.low && digest.high == now.high;
        free(path);
        if (!holds)
            return false;
    }
    return !reader->failed;
}

/* Writes the list of files that the COMPILE answer names; `started` is when the compilation began.
 */
static bool put_dependencies(struct sp_wire_writer *writer, const struct sp_compiler_reply *reply,
                             time_t started)
{
    struct sp_wire_reader reader;
    size_t ignored;
    sp_wire_reader_init(&reader, reply->body + reply->rest, reply->body_bytes - reply->rest);
    sp_wire_get_bytes(&reader, &ignored);
    uint32_t count = sp_wire_get_u32(&reader);
    if (reader.failed || count > MAX_DEPENDENCIES)
        return false;
    sp_wire_put_u32(writer, count);
    for (uint32_t i = 0; i < count; i++) {
        struct sp_digest digest;
        uint64_t size;
        char *path = sp_wire_get_string(&reader);
        bool is_known = path && *path == '/' && digest_file(path, started, &digest, &size);
        if (is_known) {
            sp_wire_put_string(writer, path);
            sp_wire_put_u64(writer, size);
            sp_wire_put_u64(writer, digest.low);
            sp_wire_put_u64(writer, digest.high);
        }
        free(path);
        if (!is_known)
            return false;
    }
    return true;
}

/* --- Asking -------------------------------------------------------------------------------- */

/* An answer from the cache: its body becomes the reply's. */
static bool load_reply(struct sp_cache *cache, struct sp_digest key,
                       struct sp_compiler_reply *reply)
{
    void *entry;
    size_t size, body_bytes;
    struct sp_wire_reader reader;
    if (sp_cache_load(cache, key, &entry, &size))
        return false;
    sp_wire_reader_init(&reader, entry, size);
    const unsigned char *body = NULL;
    if (dependencies_hold(&reader))
        body = sp_wire_get_bytes(&reader, &body_bytes);
    if (body) {
        /* In place: the body is the entry's last part. */
        memmove(entry, body, body_bytes);
        *reply = (struct sp_compiler_reply){.body = entry, .body_bytes = body_bytes};
        if (sp_compiler_reply_open(reply) == 0 && reply->status == SP_CC_OK)
            return true;
        sp_compiler_reply_finish(reply);
    } else {
        free(entry);
    }
    return false;
}

static void store_reply(struct sp_cache *cache, struct sp_digest key, enum sp_cc_kind kind,
                        const struct sp_compiler_reply *reply, time_t started)
{
    struct sp_wire_writer writer;
    sp_wire_writer_init(&writer);
    bool is_fit = true;
    if (kind == SP_CC_COMPILE)
        is_fit = put_dependencies(&writer, reply, started);
    else
        sp_wire_put_u32(&writer, 0);
    sp_wire_put_bytes(&writer, reply->body, reply->body_bytes);
    if (is_fit && !writer.error)
        sp_cache_store(cache, key, writer.bytes, writer.size);
    sp_wire_writer_finish(&writer);
}

static void request_begin(struct sp_wire_writer *request)
{
    struct sp_compiler_limits limits = sp_compiler_limits();
    sp_wire_writer_init(request);
    sp_wire_put_u32(request, limits.seconds);
    sp_wire_put_u64(request, limits.memory_bytes);
}

static void put_words(struct sp_wire_writer *request, struct sp_words words)
{
    sp_wire_put_u32(request, words.count);
    for (uint32_t i = 0; i < words.count; i++)
        sp_wire_put_string(request, words.words[i]);
}

/* What a status means to a caller of this module. */
static int status_error(uint32_t status)
{
    switch (status) {
    case SP_CC_OK:
        return 0;
    case SP_CC_SOURCE_ERROR:
        return -EINVAL;
    default:
        return -EIO;
    }
}

static int request_error(int error)
{
    return error == -ENOENT || error == -ENOMEM ? error : -EIO;
}

/* What a person is told of a limit that a request ran into, and can do about it; NULL where it ran
 * into none, or for want of memory. */
static char *explain_limit(uint32_t status)
{
    struct sp_compiler_limits limits = sp_compiler_limits();
    switch (status) {
    case SP_CC_NO_MEMORY:
        if (!limits.memory_bytes)
            return sp_strdup("The machine had no more memory for the build.\n");
        return sp_format("The build needed more than %" PRIu64
                         " MiB; SAMEPAGE_BUILD_MEMORY sets another limit.\n",
                         limits.memory_bytes >> 20);
    case SP_CC_NO_TIME:
        return sp_format("The build needed more than %" PRIu32 " seconds of processor time; "
                         "SAMEPAGE_BUILD_SECONDS sets another limit.\n",
                         limits.seconds);
    case SP_CC_HUNG:
        return sp_format("The build had not ended after %" PRIu64 " seconds, %u times the %" PRIu32
                         " seconds that it may compute; SAMEPAGE_BUILD_SECONDS sets another "
                         "limit.\n",
                         (uint64_t)limits.seconds * SP_CC_WALL_TIMES, SP_CC_WALL_TIMES,
                         limits.seconds);
    default:
        return NULL;
    }
}

/* Adds that to a log of samepage-cc. */
static void add_limit(struct sp_compiler_reply *reply)
{
    char *said = explain_limit(reply->status);
    char *longer = said ? sp_format("%s%s", reply->log, said) : NULL;
    if (longer) {
        free(reply->log);
        reply->log = longer;
    }
    free(said);
}

/* Answers the request: from the cache where it can be, and into the cache. Ends the request. `take`
 * moves what the answer holds into `result`: 0, -EBADMSG, -ENOMEM. */
static int ask(enum sp_cc_kind kind, struct sp_wire_writer *request, struct sp_step_result *result,
               int (*take)(struct sp_compiler_reply *reply, struct sp_step_result *result))
{
    struct sp_compiler_reply reply = {0};
    struct sp_digest key = {0};
    *result = (struct sp_step_result){0};
    int error = request->error;
    if (error)
        goto end;
    struct sp_cache *cache = sp_cache_shared();
    if (cache && !request_key(kind, request, &key))
        cache = NULL;
    if (cache && load_reply(cache, key, &reply)) {
        if (take(&reply, result) == 0)
            goto end;
        sp_step_result_finish(result);
        sp_compiler_reply_finish(&reply);
        sp_cache_remove(cache, key);
    }
    time_t started = time(NULL);
    error = sp_compiler_request(kind, request->bytes, request->size, &reply);
    if (error) {
        error = request_error(error);
    } else {
        error = status_error(reply.status);
        add_limit(&reply);
        if (!error)
            error = take(&reply, result);
        if (!error && cache)
            store_reply(cache, key, kind, &reply, started);
    }
    if (error == -EBADMSG) {
        error = -EIO;
        free(reply.log);
        reply.log =
            sp_strdup("The answer of the compiler was not understood; it must be of the same "
                      "version as the library.\n");
    }
end:
    sp_wire_writer_finish(request);
    result->log = reply.log;
    reply.log = NULL;
    if (!error) {
        result->memory = reply.body;
        reply.body = NULL;
    } else {
        result->code = (struct sp_bytes){0};
    }
    sp_compiler_reply_finish(&reply);
    return error;
}

static void reply_reader(const struct sp_compiler_reply *reply, struct sp_wire_reader *reader)
{
    sp_wire_reader_init(reader, reply->body + reply->rest, reply->body_bytes - reply->rest);
}

static void get_code(struct sp_wire_reader *reader, struct sp_step_result *result)
{
    result->code.bytes = sp_wire_get_bytes(reader, &result->code.size);
}

static int take_bitcode(struct sp_compiler_reply *reply, struct sp_step_result *result)
{
    struct sp_wire_reader reader;
    reply_reader(reply, &reader);
    get_code(&reader, result);
    return reader.failed ? -EBADMSG : 0;
}

int sp_step_compile(const char *source, struct sp_words options, const struct sp_header *headers,
                    uint32_t num_headers, struct sp_step_result *result)
{
    struct sp_wire_writer request;
    request_begin(&request);
    sp_wire_put_string(&request, source);
    put_words(&request, options);
    sp_wire_put_u32(&request, num_headers);
    for (uint32_t i = 0; i < num_headers; i++) {
        sp_wire_put_string(&request, headers[i].name);
        sp_wire_put_string(&request, headers[i].text);
    }
    return ask(SP_CC_COMPILE, &request, result, take_bitcode);
}

static int take_program(struct sp_compiler_reply *reply, struct sp_step_result *result)
{
    struct sp_wire_reader reader;
    reply_reader(reply, &reader);
    get_code(&reader, result);
    if (reader.failed)
        return -EBADMSG;
    int error = sp_program_info_decode(&reader, &result->info);
    if (error)
        result->info = NULL;
    return error;
}

static int link_with(uint32_t flags, const struct sp_bytes *inputs, uint32_t num_inputs,
                     struct sp_words options, struct sp_step_result *result)
{
    struct sp_wire_writer request;
    request_begin(&request);
    sp_wire_put_u32(&request, flags);
    put_words(&request, options);
    sp_wire_put_u32(&request, num_inputs);
    for (uint32_t i = 0; i < num_inputs; i++)
        sp_wire_put_bytes(&request, inputs[i].bytes, inputs[i].size);
    return ask(SP_CC_LINK, &request, result,
               flags & SP_CC_LINK_LIBRARY ? take_bitcode : take_program);
}

int sp_step_link(const struct sp_bytes *inputs, uint32_t num_inputs, struct sp_words options,
                 struct sp_step_result *result)
{
    return link_with(0, inputs, num_inputs, options, result);
}

int sp_step_link_library(const struct sp_bytes *inputs, uint32_t num_inputs,
                         struct sp_words options, struct sp_step_result *result)
{
    return link_with(SP_CC_LINK_LIBRARY, inputs, num_inputs, options, result);
}

static int take_object(struct sp_compiler_reply *reply, struct sp_step_result *result)
{
    struct sp_wire_reader reader;
    reply_reader(reply, &reader);
    get_code(&reader, result);
    uint32_t count = sp_wire_get_u32(&reader);
    /* A kernel's description takes at least its lengths: bounds the array by what was received. */
    if (reader.failed || count > reply->body_bytes / 28)
        return -EBADMSG;
    result->kernels = sp_alloc_array(count, sizeof(*result->kernels));
    if (!result->kernels)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct sp_kernel_code *kernel = &result->kernels[i];
        kernel->name = sp_wire_get_string(&reader);
        result->num_kernels = i + 1;
        if (!kernel->name)
            return reader.failed ? -EBADMSG : -ENOMEM;
        kernel->context_fixed_bytes = sp_wire_get_u64(&reader);
        kernel->context_item_bytes = sp_wire_get_u64(&reader);
        kernel->preferred_multiple = sp_wire_get_u32(&reader);
    }
    return sp_wire_reader_done(&reader) ? 0 : -EBADMSG;
}

int sp_step_generate(struct sp_bytes ir, const char *target, struct sp_words kernels,
                     const uint64_t local_size[3], struct sp_words options,
                     struct sp_step_result *result)
{
    struct sp_wire_writer request;
    request_begin(&request);
    sp_wire_put_bytes(&request, ir.bytes, ir.size);
    put_words(&request, kernels);
    for (int i = 0; i < 3; i++)
        sp_wire_put_u64(&request, local_size[i]);
    put_words(&request, options);
    sp_wire_put_string(&request, target ? target : "");
    return ask(SP_CC_CODE, &request, result, take_object);
}

void sp_step_result_finish(struct sp_step_result *result)
{
    for (uint32_t i = 0; i < result->num_kernels; i++)
        free((char *)(uintptr_t)result->kernels[i].name);
    free(result->kernels);
    sp_program_info_destroy(result->info);
    free(result->memory);
    free(result->log);
    *result = (struct sp_step_result){0};
}
