/* A small server, only for comparison: the HTTP server of libevent (evhttp) in several threads, each with an event
   base, which accept from one listening socket.

   usage: peer_evhttp PORT FOLDER [THREADS]

   Serves the files directly in FOLDER on 127.0.0.1, with keep-alive. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static int listener;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The only safety check: a name without a slash and without a leading dot. */
static int open_asked(const char *path, struct stat *facts)
{
    char name[4096];
    if (path == NULL || path[0] != '/' || path[1] == '.' || strchr(path + 1, '/') != NULL)
        return -1;
    if (snprintf(name, sizeof name, "%s%s", folder, path) >= (int)sizeof name)
        return -1;
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 && (fstat(file, facts) < 0 || !S_ISREG(facts->st_mode))) {
        close(file);
        return -1;
    }
    return file;
}

static void answer(struct evhttp_request *request, void *nothing)
{
    (void)nothing;
    struct stat facts;
    int file = open_asked(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request)), &facts);
    if (file < 0) {
        evhttp_send_error(request, HTTP_NOTFOUND, NULL);
        return;
    }
    struct evbuffer *body = evhttp_request_get_output_buffer(request);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/html");
    if (facts.st_size == 0)
        close(file);
    else if (evbuffer_add_file(body, file, 0, facts.st_size) < 0) {
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
        return;
    }
    evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

static void *serve(void *nothing)
{
    struct event_base *base = event_base_new();
    struct evhttp *http = base == NULL ? NULL : evhttp_new(base);
    if (http == NULL || evhttp_accept_socket(http, listener) < 0)
        die("evhttp");
    evhttp_set_gencb(http, answer, NULL);
    event_base_dispatch(base);
    return nothing;
}

int main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "usage: peer_evhttp PORT FOLDER [THREADS]\n");
        return 2;
    }
    folder = words[2];
    int threads = count > 3 ? atoi(words[3]) : 1, on = 1;
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        die("socket");
    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 4096) < 0)
        die("listen");
    for (int number = 1; number < threads; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, NULL) != 0)
            die("pthread_create");
    }
    serve(NULL);
    return 0;
}
