/* SPDX-License-Identifier: Apache-2.0 */
/* loader.c: the lock around the dynamic loader (loader.h). */
#include "core/base/loader.h"

#include <pthread.h>

static const pthread_mutex_t unlocked = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void byi_loader_lock(void)
{
    pthread_mutex_lock(&lock);
}

void byi_loader_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void byi_loader_reset_in_child(void)
{
    lock = unlocked;
}
