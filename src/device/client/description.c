/* What a GPU says that it is: judged, compared with what the program was told, and taken.
 *
 * A program is told once what a GPU is: by the GPU's first process, or, so that nobody waits for
 * that, by what an earlier program kept. OpenCL lets none of that change, and applications rely on
 * it; so `description` and `info` stay what they were. Every process that starts says it again, and
 * where it says something else, the GPU is still used, as what it is (docs/cuda-backend.md):
 *
 *   peers            are those of the newest answer, always; they are neither told nor kept, since
 *                    they depend on which other GPUs a program has
 *   memory           is what there is: sp_device.lacking_bytes
 *   code_target      is what code is made for from then on
 *   atomics          that are not there any more: kernels that need them fail
 *   other limits     what goes beyond them fails in the process
 *
 * Where that is less than was told, whoever has the GPU in a context hears of it. What is more, or
 * only for people, waits for the next program.
 *
 * Lock: the device's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/client/client.h"
#include "device/client/cuda.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* How long GPUs may take, all together, to say what they are: CUDA's start takes 0.3 to 1 s each
 * where many start. */
#define DESCRIBE_SECONDS 30

/* A notice: a few shortfalls. */
#define NOTICE_BYTES 640u

static bool is_text(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

/* What the library relies on. */
static bool is_sane(const struct sp_device_description *said)
{
    enum { MAX_ITEMS = 1 << 20 };
    if (!is_text(said->name, sizeof said->name) || !is_text(said->vendor, sizeof said->vendor) ||
        !is_text(said->driver_version, sizeof said->driver_version) ||
        !is_text(said->code_target, sizeof said->code_target))
        return false;
    for (unsigned d = 0; d < 3; d++)
        if (!said->max_item_sizes[d] || said->max_item_sizes[d] > MAX_ITEMS)
            return false;
    return said->compute_units && said->max_work_group_size &&
           said->max_work_group_size <= MAX_ITEMS && said->preferred_multiple &&
           said->preferred_multiple <= said->max_work_group_size &&
           said->global_memory_bytes >= SP_GRANULE_BYTES &&
           said->max_alloc_bytes <= said->global_memory_bytes;
}

/* --- Notices -------------------------------------------------------------------------------------
 */

const char *sp_client_notice(struct sp_device *given)
{
    struct client_device *device = client_of(given);
    pthread_mutex_lock(&device->lock);
    const char *notice = device->notice;
    pthread_mutex_unlock(&device->lock);
    return notice;
}

struct kept_text {
    struct kept_text *next;
    char text[];
};

/* The text for good: one of those that are kept, each once; NULL: no memory. With the lock held, or
 * before anybody else has the device. */
static const char *keep_text(struct client_device *device, const char *text)
{
    struct kept_text *kept = device->kept_texts;
    while (kept && strcmp(kept->text, text) != 0)
        kept = kept->next;
    if (kept)
        return kept->text;
    kept = sp_alloc(sizeof *kept + strlen(text) + 1);
    if (!kept)
        return NULL;
    strcpy(kept->text, text);
    kept->next = device->kept_texts;
    device->kept_texts = kept;
    return kept->text;
}

/* With the lock held; whether it is new. */
static bool set_notice(struct client_device *device, const char *text)
{
    const char *notice = keep_text(device, text);
    bool is_new = notice && notice != device->notice;
    if (is_new) /* else it is said, or there is no memory to say it */
        device->notice = notice;
    return is_new;
}

/* --- Answers -------------------------------------------------------------------------------------
 */

/* What is less than was told, as a list. */
struct shortfall {
    char text[NOTICE_BYTES / 2];
    size_t length;
};

static __attribute__((format(printf, 2, 3))) void append(struct shortfall *list, const char *format,
                                                         ...)
{
    va_list arguments;
    size_t room = sizeof list->text - list->length;
    va_start(arguments, format);
    int length = snprintf(list->text + list->length, room, "%s", list->length ? "; " : "");
    if (length >= 0 && (size_t)length < room) {
        list->length += (size_t)length;
        room -= (size_t)length;
        length = vsnprintf(list->text + list->length, room, format, arguments);
        if (length > 0)
            list->length += (size_t)length < room ? (size_t)length : room - 1;
    }
    va_end(arguments);
}

static void find_shortfall(const struct sp_device_description *told,
                           const struct sp_device_description *said, struct shortfall *list)
{
    uint32_t levels = told->svm_levels & ~said->svm_levels;
    if (told->has_uuid && said->has_uuid && memcmp(told->uuid, said->uuid, sizeof told->uuid) != 0)
        append(list, "it is another GPU, %s, by its UUID", said->name);
    if (strcmp(told->code_target, said->code_target) != 0)
        append(list, "code for %s, not %s", said->code_target, told->code_target);
    if (said->global_memory_bytes < told->global_memory_bytes)
        append(list, "%" PRIu64 " MiB of memory, not %" PRIu64, said->global_memory_bytes >> 20,
               told->global_memory_bytes >> 20);
    if (levels & SP_SVM_FINE)
        append(list, "no fine-grained shared memory");
    if (levels & SP_SVM_ATOMICS)
        append(list, "no atomics of all devices%s",
               said->has_failed_atomics ? ", whose self-test failed" : "");
    bool is_smaller = said->max_work_group_size < told->max_work_group_size;
    for (unsigned d = 0; d < 3; d++)
        is_smaller |= said->max_item_sizes[d] < told->max_item_sizes[d];
    if (is_smaller)
        append(list, "work-groups of %" PRIu32 " work-items at most, not %" PRIu32,
               said->max_work_group_size, told->max_work_group_size);
    if (said->local_memory_bytes < told->local_memory_bytes)
        append(list, "%" PRIu64 " KiB of local memory, not %" PRIu64,
               said->local_memory_bytes >> 10, told->local_memory_bytes >> 10);
    if (said->has_fp64 < told->has_fp64)
        append(list, "no double");
}

/* With the lock held, or before anybody else has the device. */
static void set_code_target(struct client_device *device, const char *target)
{
    const char *copy = keep_text(device, target);
    if (copy) /* release: who reads it reads its letters */
        atomic_store_explicit(&device->device.code_target, copy, memory_order_release);
}

/* With the lock held: what can change. */
static void take(struct client_device *device, const struct sp_device_description *said)
{
    uint64_t told_bytes = device->description.global_memory_bytes;
    uint64_t bytes = said->global_memory_bytes;
    uint32_t levels = device->description.svm_levels & ~said->svm_levels;
    atomic_store_explicit(&device->peers, said->peers, memory_order_relaxed);
    atomic_store_explicit(&device->device.lacking_bytes,
                          bytes < told_bytes ? told_bytes - bytes : 0, memory_order_relaxed);
    device->lacks_atomics = levels & SP_SVM_ATOMICS;
    set_code_target(device, said->code_target);
}

int sp_client_describe(struct client_device *device, struct sp_device_description *said)
{
    struct shortfall shortfall = {.length = 0};
    bool is_gpu = device->device.info.is_gpu, is_news = false;
    if (is_gpu && !is_sane(said))
        return -EBADMSG;
    if (is_gpu)
        sp_cuda_remember(device->ordinal, said);
    pthread_mutex_lock(&device->lock);
    if (is_gpu && !device->is_described)
        device->description = *said;
    else if (is_gpu)
        find_shortfall(&device->description, said, &shortfall);
    if (is_gpu)
        take(device, said);
    if (shortfall.length) {
        char text[NOTICE_BYTES];
        snprintf(text, sizeof text,
                 "is not what this program was told of it: %s. What needs more fails here; a "
                 "program that starts now is told what is there",
                 shortfall.text);
        is_news = set_notice(device, text);
    } else {
        device->notice = NULL; /* true again; who was given it may still read it */
    }
    device->is_described = device->is_answered = true;
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->lock);
    void (*noticed)(struct sp_device *, const char *) = device->device.noticed;
    if (is_news && noticed)
        noticed(&device->device, device->notice);
    return 0;
}

void sp_client_recall(struct client_device *device, const struct sp_device_description *known)
{
    if (!is_sane(known))
        return;
    device->description = *known;
    device->is_described = true;
    set_code_target(device, known->code_target);
}

/* --- Waiting -------------------------------------------------------------------------------------
 */

/* The one moment until which answers are waited for. */
static struct timespec deadline;

void sp_client_set_deadline(void)
{
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DESCRIBE_SECONDS;
}

const struct timespec *sp_client_deadline(void)
{
    return &deadline;
}

/* Until *is_there (under the lock), or it is not going to be; whether it is. */
static bool await(struct client_device *device, const bool *is_there)
{
    pthread_mutex_lock(&device->lock);
    while (!*is_there && !device->device.is_given_up && device->state != CLIENT_DEAD &&
           pthread_cond_timedwait(&device->moved, &device->lock, &deadline) == 0)
        ;
    bool is_known = *is_there;
    pthread_mutex_unlock(&device->lock);
    return is_known;
}

bool sp_client_await_description(struct client_device *device)
{
    return await(device, &device->is_described);
}

bool sp_client_await_answer(struct client_device *device)
{
    return await(device, &device->is_answered);
}

bool sp_client_has_peer(const struct client_device *device, const struct client_device *other)
{
    return atomic_load_explicit(&device->peers, memory_order_relaxed) >> other->ordinal & 1;
}

/* What it is told of changes no more, so no lock is needed. */
void sp_client_use_description(struct client_device *device)
{
    const struct sp_device_description *said = &device->description;
    struct sp_device_info *info = &device->device.info;
    info->name = said->name;
    info->vendor = said->vendor;
    info->vendor_version = said->driver_version;
    info->vendor_id = said->vendor_id;
    info->compute_units = said->compute_units;
    info->clock_mhz = said->clock_mhz;
    info->max_work_group_size = said->max_work_group_size;
    memcpy(info->max_item_sizes, said->max_item_sizes, sizeof info->max_item_sizes);
    info->preferred_multiple = said->preferred_multiple;
    info->global_memory_bytes = said->global_memory_bytes & ~(SP_GRANULE_BYTES - 1);
    info->max_alloc_bytes = said->max_alloc_bytes;
    info->local_memory_bytes = said->local_memory_bytes;
    info->cache_bytes = said->cache_bytes;
    info->cache_line_bytes = said->cache_line_bytes;
    info->svm_levels = said->svm_levels & (SP_SVM_COARSE | SP_SVM_FINE | SP_SVM_ATOMICS);
    info->has_failed_atomics = said->has_failed_atomics != 0;
    info->fp64 = said->has_fp64 != 0;
    info->corrects_errors = said->has_error_correction != 0;
    info->has_pci = said->has_pci != 0;
    info->pci_domain = said->pci_domain;
    info->pci_bus = said->pci_bus;
    info->pci_device = said->pci_device;
    info->pci_function = said->pci_function;
    info->has_uuid = said->has_uuid != 0;
    memcpy(info->uuid, said->uuid, sizeof info->uuid);
}
