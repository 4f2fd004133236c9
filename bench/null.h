// Shared by the floor programs: a listening socket, a response, an epoll instance for the socket.
#ifndef TENFOLD_NULL_H
#define TENFOLD_NULL_H
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { MAX_EVENTS = 512 };

// Listens on 127.0.0.1. `type` may contain SOCK_NONBLOCK; connections inherit `nodelay`.
static inline int listen_on(const char *port, int type, int nodelay) {
    int one = 1, fd = socket(AF_INET, type, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof nodelay);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4096)) { perror("listen"); exit(1); }
    return fd;
}

// Returns `copies` contiguous responses with `body` bytes and additional fields; sets `*len` to their length.
static inline char *answers(int copies, int body, const char *fields, int *len) {
    char *all = malloc((512 + (size_t)body) * copies);
    *len = sprintf(all,
                   "HTTP/1.1 200 OK\r\nServer: null\r\nDate: Sat, 21 Nov 2026 08:00:00 GMT\r\nContent-Type: text/html\r\n"
                   "Content-Length: %d\r\nLast-Modified: Sat, 21 Nov 2026 08:00:00 GMT\r\n%s\r\n", body, fields);
    memset(all + *len, 'x', body);
    *len += body;
    for (int i = 1; i < copies; i++) memcpy(all + (size_t)i * *len, all, *len);
    return all;
}

// An epoll instance that reports new connections of `listener`.
static inline int watch(int listener) {
    int ep = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
    return ep;
}
#endif
