/* The whole file is read into a string that grows by 512 bytes, and the string is sent. */
#include "museum.h"

/* Appends each piece with a reallocation, as a library for strings does. */
static char *read_file(void) {
    char *text = NULL;
    size_t length = 0;
    ssize_t count = 0;
    do {
        text = realloc(text, length + 512);
        expect(text != NULL, "realloc");
        count = pread(file, text + length, 512, (off_t)length);
        length += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    return text;
}

static void serve(int fd) {
    char request[4096];
    if (!receive(fd, request) || !send_head(fd, "200 OK", size))
        return;
#ifdef CORRECTED
    for (off_t offset = 0; (size_t)offset < size && sendfile(fd, file, &offset, size - (size_t)offset) > 0;)
        ;
#else
    char *text = read_file();
    send_all(fd, text, size, 0);
    free(text);
#endif
}

int main(int argc, char **argv) {
    int listener = begin(argc, argv);
    (void)read_file;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        serve(fd);
        close(fd);
    }
}
