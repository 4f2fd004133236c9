/* A proxy that adds a round trip to each connection: it holds the bytes of either side for half the time. A handshake
   takes a round trip, so the first bytes of a client wait for it. It has no loss, no slow start, and no limit of rate.
   Usage: delay ADDRESS:PORT SERVER:PORT MILLISECONDS */
#include "museum.h"
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <time.h>

#define CHUNKS 256
#define BYTES 16384
#define SECOND 1000000000LL

/* The sockets of a connection, and the directions that still use them. */
struct pair {
    int client, server;
    atomic_int open;
};

/* A direction. No byte leaves before `earliest`, in nanoseconds. */
struct way {
    struct pair *pair;
    int from, to;
    int64_t earliest;
};

/* Received bytes, and the time to send them. */
struct chunk {
    int64_t due;
    ssize_t count;
    char bytes[BYTES];
};

static struct sockaddr_in server_address;
static int64_t round_trip;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

/* Waits until `from` is readable, or until `due`; 0: without end. A negative descriptor is never readable. */
static int is_readable(int from, int64_t due) {
    struct pollfd wanted = {.fd = from, .events = POLLIN};
    int64_t left = due - now();
    if (due && left < 0)
        left = 0;
    struct timespec wait = {.tv_sec = left / SECOND, .tv_nsec = left % SECOND};
    return ppoll(&wanted, 1, due ? &wait : NULL, NULL) > 0;
}

/* Moves bytes until their sender has ended. */
static int move(const struct way *way, struct chunk *chunks) {
    unsigned first = 0, last = 0;
    for (int ended = 0; !ended || first < last;) {
        struct chunk *oldest = &chunks[first % CHUNKS];
        int has_room = !ended && last - first < CHUNKS;
        if (is_readable(has_room ? way->from : -1, first < last ? oldest->due : 0)) {
            struct chunk *next = &chunks[last % CHUNKS];
            int64_t arrived = now();
            next->count = read(way->from, next->bytes, BYTES);
            next->due = (arrived > way->earliest ? arrived : way->earliest) + round_trip / 2;
            if (next->count < 0)
                return 0;
            ended = next->count == 0;
            last += !ended;
        } else if (first < last && oldest->due <= now()) {
            if (!send_all(way->to, oldest->bytes, (size_t)oldest->count, 0))
                return 0;
            first++;
        }
    }
    return 1;
}

static void *run(void *given) {
    struct way *way = given;
    struct pair *pair = way->pair;
    struct chunk *chunks = malloc(CHUNKS * sizeof *chunks);
    if (chunks && move(way, chunks)) {
        shutdown(way->to, SHUT_WR);
    } else {
        shutdown(pair->client, SHUT_RDWR);
        shutdown(pair->server, SHUT_RDWR);
    }
    free(chunks);
    free(way);
    if (atomic_fetch_sub(&pair->open, 1) == 1) {
        close(pair->client);
        close(pair->server);
        free(pair);
    }
    return NULL;
}

static void begin_way(struct pair *pair, int from, int to, int64_t earliest) {
    struct way *way = malloc(sizeof *way);
    expect(way != NULL, "malloc");
    *way = (struct way){.pair = pair, .from = from, .to = to, .earliest = earliest};
    start(run, way);
}

static void serve(int client) {
    struct pair *pair = malloc(sizeof *pair);
    int64_t accepted = now();
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    expect(pair != NULL, "malloc");
    if (connect(server, (struct sockaddr *)&server_address, sizeof server_address) != 0) {
        free(pair);
        close(server);
        close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *pair = (struct pair){.client = client, .server = server, .open = 2};
    begin_way(pair, client, server, accepted + round_trip);
    begin_way(pair, server, client, 0);
}

int main(int argc, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, client;
    errno = EINVAL;
    expect(argc == 4, "three arguments are needed, ADDRESS:PORT, SERVER:PORT and MILLISECONDS");
    struct sockaddr_in address = parse(argv[1]);
    server_address = parse(argv[2]);
    round_trip = atoi(argv[3]) * (SECOND / 1000);
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    expect(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    expect(listen(listener, 1024) == 0, "listen");
    for (;;) {
        client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve(client);
    }
}
