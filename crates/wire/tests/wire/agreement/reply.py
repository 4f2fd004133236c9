"""Decodes blocks and encodes fields with python-hpack, as agreement.rs requests it on standard input."""

import struct
import sys

import hpack

source, sink = sys.stdin.buffer, sys.stdout.buffer


def number():
    return struct.unpack("<I", source.read(4))[0]


def string():
    return source.read(number())


def reply(data):
    sink.write(struct.pack("<I", len(data)) + data)


while command := source.read(1):
    if command == b"N":
        encoder, decoder = hpack.Encoder(), hpack.Decoder(max_header_list_size=1 << 24)
    elif command == b"S":
        size = number()
        # The encoder announces each assigned size, so a size is assigned once between two blocks.
        encoder.header_table_size = size
        decoder.max_allowed_table_size = size
    elif command == b"D":
        fields = decoder.decode(string(), raw=True)
        sink.write(struct.pack("<I", len(fields)))
        for name, value in fields:
            reply(name)
            reply(value)
    elif command == b"E":
        fields = [(string(), string()) for _ in range(number())]
        secret = (b"authorization", b"set-cookie")
        reply(encoder.encode([(name, value, name in secret) for name, value in fields]))
