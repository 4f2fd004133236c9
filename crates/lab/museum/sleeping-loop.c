/* An event loop that polls without waiting, and then sleeps for 10 ms. Every request waits for the end of the sleep. */
#include "museum.h"

int main(int argc, char **argv) {
    int listener = begin(argc, argv), epoll = epoll_create1(0), client;
    char request[4096];
    fcntl(listener, F_SETFL, O_NONBLOCK);
    watch(epoll, listener, EPOLLIN);
    for (;;) {
        struct epoll_event events[64];
#ifdef CORRECTED
        int count = epoll_wait(epoll, events, 64, -1);
#else
        int count = usleep(10000) == 0 ? epoll_wait(epoll, events, 64, 0) : 0;
#endif
        for (int at = 0; at < count; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                while ((client = accept(listener, NULL, NULL)) >= 0)
                    watch(epoll, client, EPOLLIN);
                continue;
            }
            if (receive(fd, request))
                answer(fd);
            close(fd);
        }
    }
}
