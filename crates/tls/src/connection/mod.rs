//! The life of one TLS connection: the handshake, then records over buffers of our own.
