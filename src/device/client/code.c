/* Loaded code. It belongs to the device and not to the process: the image is kept, and sent again
 * to each new process before works go there.
 *
 * load waits for the process's answer, so that code which cannot be loaded is an error there and
 * not at the first launch. An image whose loading ends the process is not tried again: it is kept
 * only once it was loaded.
 *
 * A slot is taken and freed under the device's lock. The image is written into a memory file
 * outside of it, by whoever counts as a sender; unload waits for the senders.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/client/client.h"
#include "util/alloc.h"
#include "util/wire.h"

/* How often code is sent while the process dies of something else. */
#define MAX_ATTEMPTS 3

static void destroy_code(struct sp_code *code)
{
    for (uint32_t i = 0; code->kernels && i < code->num_kernels; i++)
        free((char *)code->kernels[i].name);
    free(code->kernels);
    free(code->image);
    free(code->log);
    free(code);
}

static int copy_image(struct sp_code *code, const void *image, size_t bytes,
                      const struct sp_program_info *info, const struct sp_kernel_code *codes)
{
    struct sp_wire_writer writer;
    sp_wire_writer_init(&writer);
    sp_program_info_encode(info, &writer);
    sp_wire_put_u32(&writer, code->num_kernels);
    for (uint32_t i = 0; i < code->num_kernels; i++) {
        sp_wire_put_string(&writer, codes[i].name);
        sp_wire_put_u64(&writer, codes[i].context_fixed_bytes);
        sp_wire_put_u64(&writer, codes[i].context_item_bytes);
        sp_wire_put_u32(&writer, codes[i].preferred_multiple);
    }
    int error = writer.error;
    if (!error) {
        code->info_bytes = writer.size;
        code->image_bytes = writer.size + bytes;
        code->image = sp_alloc(code->image_bytes);
        error = code->image ? 0 : -ENOMEM;
    }
    if (!error) {
        memcpy(code->image, writer.bytes, writer.size);
        memcpy(code->image + writer.size, image, bytes);
    }
    sp_wire_writer_finish(&writer);
    return error;
}

static int create_code(const void *image, size_t bytes, const struct sp_program_info *info,
                       const struct sp_kernel_code *codes, uint32_t num_codes,
                       struct sp_code **created)
{
    struct sp_code *code = sp_alloc(sizeof *code);
    if (!code)
        return -ENOMEM;
    code->num_kernels = num_codes;
    code->kernels = sp_alloc_array(num_codes, sizeof *code->kernels);
    int error = code->kernels ? 0 : -ENOMEM;
    for (uint32_t i = 0; !error && i < num_codes; i++) {
        const struct sp_kernel_info *kernel = sp_program_info_find(info, codes[i].name);
        struct sp_code_kernel *made = &code->kernels[i];
        *made = (struct sp_code_kernel){.code = code, .index = i};
        made->args_bytes = kernel ? kernel->args_bytes : 0;
        made->has_shared_atomics = kernel && kernel->has_shared_atomics;
        made->name = sp_strdup(codes[i].name);
        error = !kernel ? -ENOEXEC : made->name ? 0 : -ENOMEM;
    }
    if (!error)
        error = copy_image(code, image, bytes, info, codes);
    if (error) {
        destroy_code(code);
        return error;
    }
    *created = code;
    return 0;
}

static int take_slot(struct client_device *device, struct sp_code *code)
{
    int error = 0;
    pthread_mutex_lock(&device->lock);
    uint32_t slot = 0;
    while (slot < device->num_slots && device->codes[slot])
        slot++;
    if (slot == SP_MAX_CODE_SLOTS) {
        error = -ENOMEM;
    } else if (slot == device->num_slots) {
        uint32_t larger = slot ? 2 * slot : 16;
        struct sp_code **codes = sp_realloc(device->codes, larger * sizeof *codes);
        if (codes) {
            memset(codes + slot, 0, (larger - slot) * sizeof *codes);
            device->codes = codes;
            device->num_slots = larger;
        } else {
            error = -ENOMEM;
        }
    }
    if (!error) {
        device->codes[slot] = code;
        code->device = device;
        code->slot = slot;
    }
    pthread_mutex_unlock(&device->lock);
    return error;
}

/* The caller counts as a sender, and holds no lock. */
static int send_code(struct sp_code *code, uint32_t generation)
{
    struct sp_device_message message = {.kind = SP_MESSAGE_LOAD,
                                        .slot = code->slot,
                                        .generation = generation,
                                        .bytes = code->image_bytes - code->info_bytes,
                                        .info_bytes = code->info_bytes};
    int error = 0;
    if (sp_alloc_may_fail())
        return -ENOMEM;
    int file = memfd_create("samepage-image", MFD_CLOEXEC);
    if (file < 0)
        return -errno;
    for (size_t written = 0; !error && written < code->image_bytes;) {
        ssize_t n = write(file, code->image + written, code->image_bytes - written);
        if (n > 0)
            written += (size_t)n;
        else if (n == 0 || errno != EINTR)
            error = -ENOMEM;
    }
    if (!error)
        error = sp_client_send(code->device, &message, &file, 1);
    close(file);
    return error;
}

/* With the lock held: sends the code to the process at hand. The lock is given up meanwhile. */
static int send_locked(struct sp_code *code)
{
    struct client_device *device = code->device;
    uint32_t generation = generation_of(device);
    code->state = CODE_LOADING;
    code->generation = generation;
    code->senders++;
    pthread_mutex_unlock(&device->lock);
    int error = send_code(code, generation);
    pthread_mutex_lock(&device->lock);
    code->senders--;
    pthread_cond_broadcast(&device->moved);
    return error;
}

/* With the lock held: loads the code into a process that runs. -EAGAIN: that one died meanwhile. */
static int load_locked(struct sp_code *code)
{
    struct client_device *device = code->device;
    while (device->state == CLIENT_STARTING || device->state == CLIENT_LOSING)
        pthread_cond_wait(&device->moved, &device->lock);
    if (device->state == CLIENT_DEAD)
        return -EIO;
    int error = send_locked(code);
    if (error == -EPIPE)
        code->state = CODE_LOADING; /* as if there were no answer */
    else if (error)
        return error;
    while (code->state == CODE_LOADING && device->state == CLIENT_RUNNING &&
           code->generation == generation_of(device))
        pthread_cond_wait(&device->moved, &device->lock);
    if (code->state == CODE_FAILED)
        return code->error;
    /* Loaded into a process that has had a successor since is not loaded. */
    bool is_current = code->generation == generation_of(device);
    return code->state == CODE_LOADED && is_current ? 0 : -EAGAIN;
}

int sp_client_load(struct sp_device *given, const void *image, size_t bytes,
                   const struct sp_program_info *info, const struct sp_kernel_code *codes,
                   uint32_t num_codes, char **log, struct sp_code **loaded)
{
    struct client_device *device = client_of(given);
    struct sp_code *code;
    *log = NULL;
    int error = create_code(image, bytes, info, codes, num_codes, &code);
    if (error)
        return error;
    error = take_slot(device, code);
    if (error) {
        destroy_code(code);
        return error;
    }
    pthread_mutex_lock(&device->lock);
    error = -EAGAIN;
    for (int attempt = 0; error == -EAGAIN && attempt < MAX_ATTEMPTS; attempt++)
        error = load_locked(code);
    code->is_wanted = !error;
    *log = code->log;
    code->log = NULL;
    pthread_mutex_unlock(&device->lock);
    if (error) {
        sp_client_unload(code);
        return error == -EAGAIN ? -EIO : error;
    }
    *loaded = code;
    return 0;
}

void sp_client_unload(struct sp_code *code)
{
    if (!code)
        return;
    struct client_device *device = code->device;
    struct sp_device_message message = {.kind = SP_MESSAGE_UNLOAD, .slot = code->slot};
    pthread_mutex_lock(&device->lock);
    code->is_wanted = false;
    while (code->senders)
        pthread_cond_wait(&device->moved, &device->lock);
    pthread_mutex_unlock(&device->lock);
    /* Before the slot is free, so that a LOAD of the next code comes after it. A process that is
     * gone needs none. */
    sp_client_send(device, &message, NULL, 0);
    pthread_mutex_lock(&device->lock);
    device->codes[code->slot] = NULL;
    pthread_mutex_unlock(&device->lock);
    destroy_code(code);
}

int sp_client_reload(struct client_device *device)
{
    int result = 0;
    pthread_mutex_lock(&device->lock);
    uint32_t generation = generation_of(device);
    for (uint32_t i = 0; i < device->num_slots && result >= 0; i++) {
        struct sp_code *code = device->codes[i];
        if (!code || !code->is_wanted)
            continue;
        if (code->generation != generation) {
            int error = send_locked(code);
            result = error ? error : 1;
            break; /* one at a time: the list may have changed meanwhile */
        }
        if (code->state == CODE_LOADING)
            result = 1;
    }
    pthread_mutex_unlock(&device->lock);
    return result;
}

/* The text that came with an answer, made fit to print; NULL: none that can be had. Only what is a
 * file of memory has seals, so reading it never waits. */
static char *read_log(int file, uint64_t bytes)
{
    int seals = file >= 0 ? fcntl(file, F_GET_SEALS) : -1;
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || !bytes || bytes > SP_MAX_LOAD_LOG_BYTES)
        return NULL;
    char *log = sp_alloc(bytes + 1);
    if (log && pread(file, log, bytes, 0) != (ssize_t)bytes) {
        free(log);
        return NULL;
    }
    for (uint64_t i = 0; log && i < bytes; i++)
        if (log[i] != '\n' && log[i] != '\t' && !((unsigned char)log[i] >= ' ' && log[i] != 0x7f))
            log[i] = '?';
    return log;
}

void sp_client_loaded(struct client_device *device, const struct sp_device_message *answer,
                      int log_file)
{
    char *log = read_log(log_file, answer->bytes);
    pthread_mutex_lock(&device->lock);
    struct sp_code *code = answer->slot < device->num_slots ? device->codes[answer->slot] : NULL;
    if (code && code->state == CODE_LOADING && code->generation == answer->generation) {
        code->error = answer->error < 0 && answer->error > -4096 ? answer->error : -ENOEXEC;
        code->state = answer->error ? CODE_FAILED : CODE_LOADED;
        if (!code->is_wanted && !code->log) { /* else it is loaded once more, into a new process */
            code->log = log;
            log = NULL;
        }
        pthread_cond_broadcast(&device->moved);
    }
    pthread_mutex_unlock(&device->lock);
    free(log);
}

struct sp_code_kernel *sp_client_find(struct sp_code *code, const char *name)
{
    for (uint32_t i = 0; i < code->num_kernels; i++)
        if (!strcmp(code->kernels[i].name, name))
            return &code->kernels[i];
    return NULL;
}
