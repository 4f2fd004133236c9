/* Every thread gets the address of one variable. The next accept changes the variable before the thread reads it, so
   two threads serve one connection, and no thread serves the other. */
#include "museum.h"

static void *serve(void *given) {
    char request[4096];
#ifdef CORRECTED
    int fd = (int)(intptr_t)given;
#else
    int fd = *(int *)given;
#endif
    if (receive(fd, request))
        answer(fd);
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    int listener = begin(argc, argv), connfd;
    for (;;) {
        connfd = accept(listener, NULL, NULL);
        if (connfd < 0)
            continue;
#ifdef CORRECTED
        start(serve, (void *)(intptr_t)connfd);
#else
        start(serve, &connfd);
#endif
    }
}
