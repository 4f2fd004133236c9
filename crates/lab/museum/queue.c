/* A loop passes ready descriptors to workers through a queue. A descriptor stays ready until a worker has read from it,
   so the loop queues it twice. The second worker then closes a descriptor that already belongs to the next connection. */
#include "museum.h"

#define WORKERS 4
#define PLACES 1024

static int queue[PLACES];
static unsigned first, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void push(int fd) {
    pthread_mutex_lock(&lock);
    while (last - first == PLACES)
        pthread_cond_wait(&changed, &lock);
    queue[last++ % PLACES] = fd;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int pop(void) {
    pthread_mutex_lock(&lock);
    while (last == first)
        pthread_cond_wait(&changed, &lock);
    int fd = queue[first++ % PLACES];
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return fd;
}

static void *work(void *given) {
    char request[4096];
    (void)given;
    for (;;) {
        int fd = pop();
        if (receive(fd, request))
            answer(fd);
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int listener = begin(argc, argv), epoll = epoll_create1(0), client;
    fcntl(listener, F_SETFL, O_NONBLOCK);
    watch(epoll, listener, EPOLLIN);
    for (int at = 0; at < WORKERS; at++)
        start(work, NULL);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, -1);
        for (int at = 0; at < count; at++) {
            if (events[at].data.fd != listener) {
                push(events[at].data.fd);
                continue;
            }
            while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
#ifdef CORRECTED
                watch(epoll, client, EPOLLIN | EPOLLONESHOT);
#else
                watch(epoll, client, EPOLLIN);
#endif
        }
    }
}
