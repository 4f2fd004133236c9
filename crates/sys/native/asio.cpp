// The part of Asio that Tenfold uses, as C functions. All are noexcept: calls use the overloads with an error_code, and
// remaining exceptions (out of memory) are caught.
//
// A completion only stores its result for the caller of asio_run: no code of the caller runs below a C++ frame.

#if __has_include(<asio.hpp>)
#define ASIO_STANDALONE
#include <asio.hpp>
using error_code = std::error_code;
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
using error_code = boost::system::error_code;
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <new>

namespace {

// The result of one completion.
struct Result {
    std::uint64_t key;
    std::int64_t value;  // a Kind for a Watched; for an operation a byte count, or a negative error number
};

enum Kind : std::uint8_t { READ = 1, WRITE = 2 };

struct Context {
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> work;
    std::deque<Result> done;

    // One thread runs it; others may begin waits. The hint 1 keeps the locks and avoids signals between running
    // threads.
    Context() : io(1), work(asio::make_work_guard(io)) {}
};

// A watched descriptor. Its owner and each wait in flight hold a reference.
class Watched {
    struct Reference {
        Watched *to;
        explicit Reference(Watched *watched) : to(watched) { to->references.fetch_add(1, std::memory_order_relaxed); }
        Reference(Reference &&other) noexcept : to(other.to) { other.to = nullptr; }
        Reference(const Reference &) = delete;
        ~Reference()
        {
            if (to != nullptr)
                to->drop();
        }
    };

public:
    Watched(Context &of, std::uint64_t named) : context(of), key(named), descriptor(of.io) {}

    error_code assign(int number)
    {
        error_code error;
        descriptor.assign(number, error);
        return error;
    }

    void wait(std::uint64_t named, std::uint8_t kinds)
    {
        key.store(named, std::memory_order_relaxed);
        if (kinds & READ)
            begin(READ, asio::posix::stream_descriptor::wait_read);
        if (kinds & WRITE)
            begin(WRITE, asio::posix::stream_descriptor::wait_write);
    }

    // The caller owns the descriptor again; waits in flight end without a report.
    void give_up()
    {
        descriptor.release();
        drop();
    }

    void drop()
    {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

private:
    void begin(Kind kind, asio::posix::stream_descriptor::wait_type type)
    {
        if (waiting.fetch_or(kind, std::memory_order_acq_rel) & kind)
            return;
        try {
            descriptor.async_wait(type, [self = Reference(this), kind](const error_code &error) {
                self.to->ended(kind);
                if (error != asio::error::operation_aborted)
                    self.to->context.done.push_back({self.to->key.load(std::memory_order_relaxed), kind});
            });
        } catch (...) {
            // Out of memory: the next wait must start again.
            ended(kind);
            throw;
        }
    }

    void ended(Kind kind) { waiting.fetch_and(static_cast<std::uint8_t>(~kind), std::memory_order_acq_rel); }

    Context &context;
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint8_t> waiting{0};
    std::atomic<unsigned> references{1};
    asio::posix::stream_descriptor descriptor;
};

int number_of(const error_code &error) { return error ? -error.value() : 0; }

using Protocol = asio::generic::stream_protocol;

// A connection for reads and writes. It does not own an assigned descriptor; it owns an accepted one until its release.
struct Stream {
    Protocol::socket socket;
    explicit Stream(Context &context) : socket(context.io) {}
};

// A listening socket, owned by the caller.
struct Acceptor {
    asio::basic_socket_acceptor<Protocol> acceptor;
    explicit Acceptor(Context &context) : acceptor(context.io) {}
};

// Stores the result of an operation: a byte count, of which 0 is the end.
struct Put {
    Context &context;
    std::uint64_t key;

    void operator()(const error_code &error, std::size_t count = 0) const
    {
        const bool failed = error && error != asio::error::eof;
        context.done.push_back({key, failed ? number_of(error) : static_cast<std::int64_t>(count)});
    }
};

// Makes a call that reports failures as negative error numbers.
template <typename Call>
long guarded(Call call) noexcept
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (...) {
        return -EIO;
    }
}

}  // namespace

extern "C" {

// A new context, or null if memory or descriptors are missing.
Context *tenfold_asio_new() noexcept
{
    try {
        return new Context;
    } catch (...) {
        return nullptr;
    }
}

// Call it after every registration has been given up.
void tenfold_asio_free(Context *context) noexcept { delete context; }

// Registers a descriptor without waiting for anything yet.
Watched *tenfold_asio_watch(Context *context, int number, std::uint64_t key, int *error) noexcept
{
    Watched *watched = nullptr;
    *error = static_cast<int>(guarded([&]() -> long {
        watched = new Watched(*context, key);
        return number_of(watched->assign(number));
    }));
    if (*error != 0 && watched != nullptr) {
        watched->drop();
        return nullptr;
    }
    return watched;
}

// Waits once until the descriptor is ready for one of these kinds, in addition to existing waits.
int tenfold_asio_wait(Watched *watched, std::uint64_t key, std::uint8_t kinds) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        watched->wait(key, kinds);
        return 0;
    }));
}

void tenfold_asio_forget(Watched *watched) noexcept
{
    guarded([&]() -> long {
        watched->give_up();
        return 0;
    });
}

// Runs one completion, or waits for one at most `milliseconds` (-1: no limit); then returns at most `room` stored
// results.
long tenfold_asio_run(Context *context, long milliseconds, Result *into, long room) noexcept
{
    return guarded([&]() -> long {
        if (context->done.empty()) {
            if (milliseconds < 0)
                context->io.run_one();
            else if (milliseconds == 0)
                context->io.poll_one();
            else
                context->io.run_one_for(std::chrono::milliseconds(milliseconds));
        }
        long count = 0;
        for (; count < room && !context->done.empty(); count++) {
            into[count] = context->done.front();
            context->done.pop_front();
        }
        return count;
    });
}

// A new connection without a descriptor, or null if memory is missing.
Stream *tenfold_asio_stream(Context *context) noexcept
{
    try {
        return new Stream(*context);
    } catch (...) {
        return nullptr;
    }
}

int tenfold_asio_assign(Stream *stream, int number) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        error_code error;
        stream->socket.assign(Protocol(AF_UNSPEC, 0), number, error);
        return number_of(error);
    }));
}

// The descriptor of an accepted connection, owned by the caller from now on.
int tenfold_asio_number(Stream *stream) noexcept { return stream->socket.native_handle(); }

// Its operations in flight are cancelled and access their memory no longer. `keeps` leaves the descriptor open.
void tenfold_asio_stream_free(Stream *stream, bool keeps) noexcept
{
    guarded([&]() -> long {
        error_code ignored;
        if (keeps)
            stream->socket.release(ignored);
        delete stream;
        return 0;
    });
}

// The caller owns the memory of a read or write, and keeps it in place until the result was returned.
int tenfold_asio_read_some(Context *context, Stream *stream, void *into, std::size_t room, std::uint64_t key) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        stream->socket.async_read_some(asio::buffer(into, room), Put{*context, key});
        return 0;
    }));
}

// async_send with flags is async_write_some with MSG_MORE.
int tenfold_asio_write_some(Context *context, Stream *stream, const void *from, std::size_t count, bool more,
                            std::uint64_t key) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        if (more)
            stream->socket.async_send(asio::buffer(from, count), MSG_MORE, Put{*context, key});
        else
            stream->socket.async_write_some(asio::buffer(from, count), Put{*context, key});
        return 0;
    }));
}

int tenfold_asio_wait_room(Context *context, Stream *stream, std::uint64_t key) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        stream->socket.async_wait(Protocol::socket::wait_write, Put{*context, key});
        return 0;
    }));
}

// Cancels every operation of the connection in flight.
void tenfold_asio_cancel(Stream *stream) noexcept
{
    guarded([&]() -> long {
        error_code ignored;
        stream->socket.cancel(ignored);
        return 0;
    });
}

Acceptor *tenfold_asio_listen(Context *context, int number, int *error) noexcept
{
    Acceptor *acceptor = nullptr;
    *error = static_cast<int>(guarded([&]() -> long {
        acceptor = new Acceptor(*context);
        error_code failed;
        acceptor->acceptor.assign(Protocol(AF_UNSPEC, 0), number, failed);
        return number_of(failed);
    }));
    if (*error != 0) {
        delete acceptor;
        return nullptr;
    }
    return acceptor;
}

// Accepts one connection into a stream without a descriptor.
int tenfold_asio_accept(Context *context, Acceptor *acceptor, Stream *into, std::uint64_t key) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        acceptor->acceptor.async_accept(into->socket, Put{*context, key});
        return 0;
    }));
}

void tenfold_asio_cancel_accept(Acceptor *acceptor) noexcept
{
    guarded([&]() -> long {
        error_code ignored;
        acceptor->acceptor.cancel(ignored);
        return 0;
    });
}

// The listening socket stays open.
void tenfold_asio_unlisten(Acceptor *acceptor) noexcept
{
    guarded([&]() -> long {
        error_code ignored;
        acceptor->acceptor.release(ignored);
        delete acceptor;
        return 0;
    });
}

// The library's version, as ASIO_VERSION: major * 100000 + minor * 100 + patch.
long tenfold_asio_version() noexcept
{
#ifdef ASIO_VERSION
    return ASIO_VERSION;
#else
    return BOOST_ASIO_VERSION;
#endif
}

}  // extern "C"
