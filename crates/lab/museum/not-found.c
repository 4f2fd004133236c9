/* The server closes the connection after a response with a file, but not after an error: then only a timer of 500 ms
   closes it. A client that reads to the end of the connection waits for the timer. */
#include "museum.h"

static void serve(int fd) {
    char request[4096];
    while (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 500) > 0 && receive(fd, request)) {
        if (strncmp(request, "GET /no-such-file ", 18) != 0) {
            answer(fd);
            break;
        }
        send_head(fd, "404 Not Found", 0);
#ifdef CORRECTED
        break;
#endif
    }
}

int main(int argc, char **argv) {
    serve_each(begin(argc, argv), serve);
}
