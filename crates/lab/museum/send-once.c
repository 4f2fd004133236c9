/* A nonblocking send stops with EAGAIN when the socket's buffer is full. A server that does not resume closes the
   connection in the middle of the file. */
#include "museum.h"

static void serve(int fd) {
    char request[4096];
    off_t offset = 0;
    if (receive(fd, request) && send_head(fd, "200 OK", size)) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        while ((size_t)offset < size && (sendfile(fd, file, &offset, size - (size_t)offset) > 0 || errno == EAGAIN)) {
#ifdef CORRECTED
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
#else
            if (errno == EAGAIN)
                break;
#endif
        }
    }
}

int main(int argc, char **argv) {
    serve_each(begin(argc, argv), serve);
}
