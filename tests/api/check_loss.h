/* What a context's error callback is told of the deaths of its devices. */
#ifndef CHECK_LOSS_H
#define CHECK_LOSS_H

#include <pthread.h>

#include "check.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t told;
    unsigned deaths, losses;    /* devices that died; ranges that were lost with them */
    char death[512], loss[512]; /* the last message of each */
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};

/* The callback; its user data is &heard. */
__attribute__((unused)) static void CL_CALLBACK hear(const char *message, const void *info,
                                                     size_t size, void *user_data)
{
    (void)info;
    (void)size;
    CHECK(user_data == &heard);
    pthread_mutex_lock(&heard.lock);
    if (strstr(message, " was lost: ")) {
        heard.deaths++;
        snprintf(heard.death, sizeof heard.death, "%s", message);
    } else if (strstr(message, " were lost with ")) {
        heard.losses++;
        snprintf(heard.loss, sizeof heard.loss, "%s", message);
    }
    pthread_cond_signal(&heard.told);
    pthread_mutex_unlock(&heard.lock);
}

/* Wait until as many were told of. */
__attribute__((unused)) static void wait_for_deaths(unsigned deaths)
{
    pthread_mutex_lock(&heard.lock);
    while (heard.deaths < deaths)
        pthread_cond_wait(&heard.told, &heard.lock);
    pthread_mutex_unlock(&heard.lock);
}

__attribute__((unused)) static void wait_for_losses(unsigned losses)
{
    pthread_mutex_lock(&heard.lock);
    while (heard.losses < losses)
        pthread_cond_wait(&heard.told, &heard.lock);
    pthread_mutex_unlock(&heard.lock);
}

#endif
