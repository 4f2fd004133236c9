// The floor of HTTP/2 on this machine: recv, read frame headers, then one send of fixed HEADERS and DATA.
// No header compression, no files, no logging. usage: null_h2 PORT [BODY_BYTES [CERTIFICATE KEY]]
// In plaintext by prior knowledge, or with TLS 1.3 and ALPN h2. All responses to a recv leave in one send, with TLS in
// full records. It counts a HEADERS frame with END_STREAM as a request, respects the windows of the client, and answers
// SETTINGS and PING. It ignores all other frames, so requests have no content.
#define _GNU_SOURCE
#include <errno.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#include "null.h"

// RFC 9113 §6
enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4, MAX_CONCURRENT_STREAMS = 3, INITIAL_WINDOW_SIZE = 4 };
enum { FRAME_HEAD = 9, MAX_FRAME = 16384, FIRST_WINDOW = 65535, MAX_STREAMS = 128, MAX_FDS = 65536 };
// A send has at most TURN bytes of responses, a frame more, and replies to the control frames of one receive.
enum { RECEIVE = 65536, TURN = 128 * 1024, SEND = TURN + 2 * MAX_FRAME + 2 * RECEIVE, WIRE = SEND + SEND / 8 };
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

struct stream { uint32_t id; int begun; int64_t window, left; };
struct connection {
    SSL *tls;
    int readable, begun, streams; // whether a receive may find bytes; whether the preface came
    int64_t window, stream_window;
    struct stream open[MAX_STREAMS];
    char *rest, *unsent; // an incomplete frame; sealed bytes that the socket did not take
    size_t rest_bytes, unsent_from, unsent_to;
};
struct bytes { char *at; size_t len; };

static struct connection *connections[MAX_FDS];
static struct bytes out, wire, raw; // plaintext to send; records to send; received records
static char in[FRAME_HEAD + MAX_FRAME + RECEIVE + MAX_FRAME], received[RECEIVE], body[MAX_FRAME];
static uint8_t head[256];
static int head_bytes, body_bytes = 1024;
static SSL_CTX *context;
static BIO *memory;

static uint32_t number(const uint8_t *at, int count) {
    uint32_t value = 0;
    while (count--) value = value << 8 | *at++;
    return value;
}

static void append(struct bytes *to, const void *bytes, size_t count) {
    memcpy(to->at + to->len, bytes, count);
    to->len += count;
}

static void frame(uint32_t count, uint8_t type, uint8_t flags, uint32_t stream, const void *payload) {
    uint8_t start[FRAME_HEAD] = {count >> 16, count >> 8, count, type, flags, stream >> 24, stream >> 16, stream >> 8, stream};
    append(&out, start, sizeof start);
    append(&out, payload, count);
}

// A field with a name of the static table, never indexed (RFC 7541 §6.2.2).
static void field(int name, const char *value) {
    uint8_t start[] = {0x0f, name - 15, strlen(value)};
    memcpy(head + head_bytes, start, sizeof start);
    memcpy(head + head_bytes + sizeof start, value, start[2]);
    head_bytes += sizeof start + start[2];
}

static void make_answer(void) {
    char length[16];
    sprintf(length, "%d", body_bytes);
    head[head_bytes++] = 0x20; // no dynamic table, which every client accepts
    head[head_bytes++] = 0x88; // :status 200
    field(54, "null");         // server
    field(33, "Sat, 21 Nov 2026 08:00:00 GMT");
    field(31, "text/html");
    field(28, length);
    field(44, "Sat, 21 Nov 2026 08:00:00 GMT");
    field(34, "\"65f-400\"");
    field(18, "bytes"); // accept-ranges
    memset(body, 'x', sizeof body);
}

static void end(int fd) {
    struct connection *c = connections[fd];
    connections[fd] = 0;
    SSL_free(c->tls);
    free(c->rest);
    free(c->unsent);
    free(c);
    close(fd);
    out.len = wire.len = 0;
}

static struct stream *find(struct connection *c, uint32_t id) {
    for (int i = 0; i < c->streams; i++) if (c->open[i].id == id) return &c->open[i];
    return 0;
}

static void settings(struct connection *c, const uint8_t *at, uint32_t count) {
    for (; count >= 6; at += 6, count -= 6) {
        if (number(at, 2) != INITIAL_WINDOW_SIZE) continue;
        int64_t window = number(at + 2, 4);
        for (int i = 0; i < c->streams; i++) c->open[i].window += window - c->stream_window;
        c->stream_window = window;
    }
    frame(0, SETTINGS, ACK, 0, "");
}

static int take(struct connection *c, const uint8_t *at, uint32_t count) { // 0: too many streams
    uint8_t type = at[3], flags = at[4];
    uint32_t id = number(at + 5, 4) & 0x7fffffff;
    struct stream *s;
    at += FRAME_HEAD;
    if (type == HEADERS && (flags & END_STREAM)) {
        if (c->streams == MAX_STREAMS) return 0;
        c->open[c->streams++] = (struct stream){.id = id, .window = c->stream_window, .left = body_bytes};
    } else if (type == SETTINGS && !(flags & ACK)) {
        settings(c, at, count);
    } else if (type == PING && !(flags & ACK) && count == 8) {
        frame(8, PING, ACK, 0, at);
    } else if (type == WINDOW_UPDATE && count == 4) {
        if (id == 0) c->window += number(at, 4);
        else if ((s = find(c, id))) s->window += number(at, 4);
    } else if (type == RST_STREAM && (s = find(c, id))) {
        s->left = 0;
        s->begun = 1;
    }
    return 1;
}

static int parse(struct connection *c, size_t len) { // 0: not HTTP/2
    size_t at = 0;
    if (!c->begun && len >= strlen(PREFACE)) {
        static const uint8_t bound[] = {0, MAX_CONCURRENT_STREAMS, 0, 0, 0, MAX_STREAMS};
        if (memcmp(in, PREFACE, strlen(PREFACE))) return 0;
        at = strlen(PREFACE);
        c->begun = 1;
        frame(sizeof bound, SETTINGS, 0, 0, bound);
    }
    while (c->begun && len - at >= FRAME_HEAD) {
        uint32_t count = number((uint8_t *)in + at, 3);
        if (count > MAX_FRAME) return 0;
        if (len - at < FRAME_HEAD + count) break;
        if (!take(c, (uint8_t *)in + at, count)) return 0;
        at += FRAME_HEAD + count;
    }
    c->rest_bytes = len - at;
    if (c->rest_bytes) memcpy(c->rest = malloc(c->rest_bytes), in + at, c->rest_bytes);
    return 1;
}

static int receive(int fd, struct connection *c) { // 0: the connection ended
    size_t len = c->rest_bytes;
    if (len) memcpy(in, c->rest, len);
    free(c->rest);
    c->rest = 0;
    ssize_t got = recv(fd, c->tls ? received : in + len, RECEIVE, 0);
    c->readable = got == RECEIVE;
    if (got <= 0) {
        c->rest_bytes = 0;
        return got < 0 && errno == EAGAIN && parse(c, len);
    }
    if (!c->tls) return parse(c, len + got);
    raw = (struct bytes){received, got};
    int more;
    while ((more = SSL_read(c->tls, in + len, sizeof in - len)) > 0) len += more;
    return SSL_get_error(c->tls, more) == SSL_ERROR_WANT_READ && parse(c, len);
}

static void answer(struct connection *c) {
    int kept = 0;
    for (int i = 0; i < c->streams; i++) {
        struct stream *s = &c->open[i];
        if (!s->begun && out.len < TURN) {
            frame(head_bytes, HEADERS, END_HEADERS, s->id, head);
            s->begun = 1;
        }
        while (s->begun && out.len < TURN) {
            int64_t count = s->left < MAX_FRAME ? s->left : MAX_FRAME;
            if (count > s->window) count = s->window;
            if (count > c->window) count = c->window;
            if (count <= 0) break;
            s->left -= count, s->window -= count, c->window -= count;
            frame(count, DATA, s->left ? 0 : END_STREAM, s->id, body);
        }
        if (s->left) c->open[kept++] = *s;
    }
    c->streams = kept;
}

static int transmit(int fd, struct connection *c) { // 1: all is sent; 0: the socket is full; -1: the connection ended
    struct bytes *from = c->tls ? &wire : &out;
    if (c->tls && out.len && SSL_write(c->tls, out.at, out.len) <= 0) return -1;
    ssize_t sent = send(fd, from->at, from->len, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return -1;
    size_t len = from->len;
    out.len = wire.len = 0;
    if (sent == (ssize_t)len) return 1;
    c->unsent = from->at, c->unsent_from = sent < 0 ? 0 : sent, c->unsent_to = len;
    from->at = malloc(WIRE);
    return 0;
}

static int resume(int fd, struct connection *c) { // as transmit
    ssize_t sent = send(fd, c->unsent + c->unsent_from, c->unsent_to - c->unsent_from, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? 0 : -1;
    c->unsent_from += sent;
    if (c->unsent_from < c->unsent_to) return 0;
    free(c->unsent);
    c->unsent = 0;
    return 1;
}

static void serve(int fd, uint32_t events) {
    struct connection *c = connections[fd];
    if (events & ~EPOLLOUT) c->readable = 1;
    if (c->unsent && !(events & EPOLLOUT)) return;
    for (int state = c->unsent ? resume(fd, c) : 1; state != 0;) {
        if (state < 0) return end(fd);
        answer(c);
        if (out.len || wire.len) state = transmit(fd, c);
        else if (!c->readable) return;
        else if (!receive(fd, c)) return end(fd);
    }
}

static int read_memory(BIO *bio, char *to, int count) {
    BIO_clear_retry_flags(bio);
    if ((size_t)count > raw.len) count = raw.len;
    if (count == 0) { BIO_set_retry_read(bio); return -1; }
    memcpy(to, raw.at, count);
    raw.at += count, raw.len -= count;
    return count;
}

static int write_memory(BIO *bio, const char *from, int count) {
    (void)bio;
    append(&wire, from, count);
    return count;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int choose(SSL *tls, const uint8_t **chosen, uint8_t *len, const uint8_t *offered, unsigned count, void *none) {
    (void)tls, (void)none;
    int found = SSL_select_next_proto((uint8_t **)chosen, len, (const uint8_t *)"\2h2", 3, offered, count);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int use_tls(const char *certificate, const char *key) {
    context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_alpn_select_cb(context, choose, 0);
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory");
    BIO_meth_set_read(method, read_memory);
    BIO_meth_set_write(method, write_memory);
    BIO_meth_set_ctrl(method, control);
    memory = BIO_new(method);
    BIO_set_init(memory, 1);
    return SSL_CTX_use_certificate_chain_file(context, certificate) == 1 && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
}

static struct connection *new_connection(void) {
    struct connection *c = calloc(1, sizeof *c);
    c->window = c->stream_window = FIRST_WINDOW;
    if (context) {
        c->tls = SSL_new(context);
        BIO_up_ref(memory);
        SSL_set_bio(c->tls, memory, memory);
        SSL_set_accept_state(c->tls);
    }
    return c;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2) body_bytes = atoi(argv[2]);
    if (argc < 2 || argc == 4 || body_bytes < 1) { fprintf(stderr, "usage: null_h2 PORT [BODY_BYTES [CERTIFICATE KEY]]\n"); return 2; }
    if (argc > 4 && !use_tls(argv[3], argv[4])) { fprintf(stderr, "cannot use %s with the key %s\n", argv[3], argv[4]); return 1; }
    make_answer();
    out.at = malloc(WIRE), wire.at = malloc(WIRE);
    int listener = listen_on(argv[1], SOCK_STREAM | SOCK_NONBLOCK, 1), ep = watch(listener);
    struct epoll_event ev, ready[MAX_EVENTS];
    for (;;) {
        int n = epoll_wait(ep, ready, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd, conn;
            if (fd != listener) { serve(fd, ready[i].events); continue; }
            while ((conn = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
                if (conn >= MAX_FDS) { close(conn); continue; }
                connections[conn] = new_connection();
                ev = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.fd = conn};
                epoll_ctl(ep, EPOLL_CTL_ADD, conn, &ev);
            }
        }
    }
}
