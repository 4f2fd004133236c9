/* Decodes blocks and encodes fields with libnghttp2, as agreement.rs requests it on standard input. */

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 64
#define MOST_BYTES (1 << 18)

static void fail(const char *what) {
    fprintf(stderr, "nghttp2.c: %s failed\n", what);
    exit(1);
}

static void receive(void *to, size_t length) {
    if (length > 0 && fread(to, 1, length, stdin) != length) fail("fread");
}

static uint32_t number(void) {
    uint32_t value;
    receive(&value, sizeof value);
    return value;
}

static void send_number(uint32_t value) { fwrite(&value, sizeof value, 1, stdout); }

static void send_bytes(const uint8_t *bytes, size_t length) {
    send_number((uint32_t)length);
    fwrite(bytes, 1, length, stdout);
}

static void decode(nghttp2_hd_inflater *inflater) {
    static uint8_t block[MOST_BYTES], output[2 * MOST_BYTES];
    uint32_t length = number(), count = 0;
    size_t used = 0;
    if (length > sizeof block) fail("a long block");
    receive(block, length);
    const uint8_t *rest = block;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t read = nghttp2_hd_inflate_hd2(inflater, &field, &flags, rest, length, 1);
        if (read < 0) fail(nghttp2_strerror((int)read));
        rest += read;
        length -= (uint32_t)read;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            if (used + field.namelen + field.valuelen + 8 > sizeof output) fail("a long list");
            uint32_t lengths[2] = {(uint32_t)field.namelen, (uint32_t)field.valuelen};
            memcpy(output + used, &lengths[0], 4);
            memcpy(output + used + 4, field.name, field.namelen);
            used += 4 + field.namelen;
            memcpy(output + used, &lengths[1], 4);
            memcpy(output + used + 4, field.value, field.valuelen);
            used += 4 + field.valuelen;
            count++;
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    }
    nghttp2_hd_inflate_end_headers(inflater);
    send_number(count);
    fwrite(output, 1, used, stdout);
}

static void encode(nghttp2_hd_deflater *deflater) {
    static uint8_t bytes[MOST_BYTES], block[2 * MOST_BYTES];
    static nghttp2_nv fields[MOST_FIELDS];
    uint32_t count = number();
    size_t used = 0;
    if (count > MOST_FIELDS) fail("a long list");
    for (uint32_t at = 0; at < 2 * count; at++) {
        uint32_t length = number();
        if (used + length > sizeof bytes) fail("a long list");
        receive(bytes + used, length);
        nghttp2_nv *field = &fields[at / 2];
        if (at % 2 == 0) {
            *field = (nghttp2_nv){.name = bytes + used, .namelen = length};
        } else {
            field->value = bytes + used;
            field->valuelen = length;
        }
        used += length;
    }
    ssize_t length = nghttp2_hd_deflate_hd(deflater, block, sizeof block, fields, count);
    if (length < 0) fail("nghttp2_hd_deflate_hd");
    send_bytes(block, (size_t)length);
}

int main(void) {
    nghttp2_hd_deflater *deflater = NULL;
    nghttp2_hd_inflater *inflater = NULL;
    for (int command; (command = getchar()) != EOF;) {
        switch (command) {
        case 'N':
            if (deflater) nghttp2_hd_deflate_del(deflater);
            if (inflater) nghttp2_hd_inflate_del(inflater);
            if (nghttp2_hd_deflate_new(&deflater, 4096) || nghttp2_hd_inflate_new(&inflater)) fail("new");
            break;
        case 'S': {
            uint32_t size = number();
            if (nghttp2_hd_deflate_change_table_size(deflater, size)) fail("change_table_size");
            if (nghttp2_hd_inflate_change_table_size(inflater, size)) fail("change_table_size");
            break;
        }
        case 'D':
            decode(inflater);
            break;
        case 'E':
            encode(deflater);
            break;
        default:
            fail("an unknown command");
        }
    }
    return 0;
}
