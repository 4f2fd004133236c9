// The floor of a client on this machine that makes a connection for each request: socket, connect, send, recv, close.
// No parsing, no clock, no check, and no wait for readiness: connections take turns, and an early receive blocks.
// usage: null_client PORT [CONNECTIONS [SECONDS]]
// Prints CPU microseconds for each answer, and answers per second.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "null.h"

enum { MOST = 4096 };
static const char request[] = "GET /1k.html HTTP/1.1\r\nHost: 127.0.0.1:9700\r\nConnection: close\r\n\r\n";
static struct sockaddr_in at = {.sin_family = AF_INET};

static int ask(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) { perror("connect"); exit(1); }
    send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
    return fd;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    int connections = argc > 2 ? atoi(argv[2]) : 64, fds[MOST];
    if (argc < 2 || connections < 1 || connections > MOST) {
        fprintf(stderr, "usage: null_client PORT [CONNECTIONS [SECONDS]], 1 to %d connections\n", MOST);
        return 2;
    }
    at.sin_port = htons(atoi(argv[1]));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    static char in[65536];
    double begin = now(), end = begin + (argc > 3 ? atoi(argv[3]) : 2);
    long answers = 0;
    for (int i = 0; i < connections; i++) fds[i] = ask();
    while (now() < end) {
        for (int i = 0; i < connections; i++) {
            if (recv(fds[i], in, sizeof in, 0) <= 0) { perror("recv"); return 1; }
            close(fds[i]);
            answers++;
            fds[i] = ask();
        }
    }
    double took = now() - begin;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("%.3f %.0f\n", cpu / answers * 1e6, answers / took);
}
