/* An edge-triggered listener reports a change of its queue once. One accept for each report leaves the other
   connections in the queue until another client connects. If all clients wait, no client connects. Connections
   persist. */
#include "museum.h"

int main(int argc, char **argv) {
    int listener = begin(argc, argv), epoll = epoll_create1(0), client;
    char request[4096];
    fcntl(listener, F_SETFL, O_NONBLOCK);
    watch(epoll, listener, EPOLLIN | EPOLLET);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, -1);
        for (int at = 0; at < count; at++) {
            int fd = events[at].data.fd;
            if (fd != listener) {
                if (!receive(fd, request) || !answer(fd) || strstr(request, "Connection: close"))
                    close(fd);
                continue;
            }
#ifdef CORRECTED
            while ((client = accept(listener, NULL, NULL)) >= 0)
#else
            if ((client = accept(listener, NULL, NULL)) >= 0)
#endif
                watch(epoll, client, EPOLLIN);
        }
    }
}
