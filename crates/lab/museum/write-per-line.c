/* Each line of the head is a write of its own. Nagle's algorithm holds the second small write back until the peer has
   acknowledged the first, and the peer delays its acknowledgement by up to 40 ms. */
#include "museum.h"

#ifdef CORRECTED
#define LINE_FLAGS MSG_MORE
#else
#define LINE_FLAGS 0
#endif

static int send_line(int fd, const char *line) {
    return send_all(fd, line, strlen(line), LINE_FLAGS);
}

static void serve(int fd) {
    char request[4096], length[64];
    snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", size);
    while (receive(fd, request)) {
        int good = send_line(fd, "HTTP/1.1 200 OK\r\n") && send_line(fd, "Server: museum\r\n") &&
                   send_line(fd, "Content-Type: application/octet-stream\r\n") && send_line(fd, length) &&
                   send_all(fd, body, size, 0);
        if (!good || strstr(request, "Connection: close"))
            break;
    }
}

int main(int argc, char **argv) {
    serve_each(begin(argc, argv), serve);
}
