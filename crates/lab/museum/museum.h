/* Shared by the exhibits: a listening socket, a request, a response. Usage: EXHIBIT ADDRESS:PORT FILE */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file that every request gets. */
static int file;
static size_t size;
static const char *body;

static inline void expect(int good, const char *what) {
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* The address in `text`, such as 127.0.0.1:80. */
static inline struct sockaddr_in parse(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";
    errno = EINVAL;
    if (colon && (size_t)(colon - text) < sizeof host)
        memcpy(host, text, (size_t)(colon - text));
    expect(inet_pton(AF_INET, host, &address.sin_addr) == 1, text);
    address.sin_port = htons((uint16_t)atoi(colon + 1));
    return address;
}

/* Opens the file, and listens. */
static inline int begin(int argc, char **argv) {
    struct stat facts;
    int on = 1;
    errno = EINVAL;
    expect(argc == 3, "two arguments are needed, ADDRESS:PORT and FILE");
    signal(SIGPIPE, SIG_IGN);
    file = open(argv[2], O_RDONLY | O_CLOEXEC);
    expect(file >= 0 && fstat(file, &facts) == 0, argv[2]);
    size = (size_t)facts.st_size;
    body = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    expect(body != MAP_FAILED, "mmap");
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = parse(argv[1]);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    expect(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    expect(listen(listener, 1024) == 0, "listen");
    return listener;
}

/* Reads a request. The load generator sends a request in one piece, so one read suffices. */
static inline int receive(int fd, char request[4096]) {
    ssize_t count = read(fd, request, 4095);
    request[count > 0 ? count : 0] = 0;
    return count > 0;
}

/* Sends everything on a blocking socket. */
static inline int send_all(int fd, const char *from, size_t left, int flags) {
    while (left > 0) {
        ssize_t count = send(fd, from, left, flags);
        if (count <= 0)
            return 0;
        from += count;
        left -= (size_t)count;
    }
    return 1;
}

/* Sends the head of a response. MSG_MORE joins it with the body. */
static inline int send_head(int fd, const char *status, size_t length) {
    char head[256];
    int count = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, length);
    return send_all(fd, head, (size_t)count, length ? MSG_MORE : 0);
}

/* Answers with the file. */
static inline int answer(int fd) {
    return send_head(fd, "200 OK", size) && send_all(fd, body, size, 0);
}

/* Starts a detached thread. */
static inline void start(void *(*work)(void *), void *given) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, work, given) == 0, "pthread_create");
    pthread_detach(thread);
}

static void (*serve_connection)(int fd);

static inline void *serve_and_close(void *given) {
    int fd = (int)(intptr_t)given;
    serve_connection(fd);
    close(fd);
    return NULL;
}

/* Serves each connection in a thread of its own, which then closes it. */
static inline void serve_each(int listener, void (*serve)(int fd)) {
    serve_connection = serve;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0)
            start(serve_and_close, (void *)(intptr_t)fd);
    }
}

static inline void watch(int epoll, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}
