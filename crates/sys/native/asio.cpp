// What Tenfold uses of Asio, as functions of C. None of them throws: they are noexcept, Asio is asked by its
// forms with an error_code, and what could still be thrown (memory that is not there) is caught.
//
// A completion does nothing but put its result aside, for the caller of asio_run: no code of the caller's runs
// below a frame of C++.

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

// What one completion came to.
struct Result {
    std::uint64_t key;
    std::int64_t value;  // of a Watched a Kind; of an operation bytes, or a negative error number
};

enum Kind : std::uint8_t { READ = 1, WRITE = 2 };

struct Context {
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> work;
    std::deque<Result> done;

    // One thread runs it; others may begin waits. A hint of 1 says so: the locks stay, signals between threads that
    // run it go.
    Context() : io(1), work(asio::make_work_guard(io)) {}
};

// A descriptor that is watched. Who registered it and each wait in flight hold a reference.
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

    // The descriptor is the caller's again; waits in flight end, and say nothing.
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
            // No memory: the next wait is to begin anew.
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

// A connection that is read and written by operations. It does not own what it is assigned; what was accepted into it
// is its own until it is released.
struct Stream {
    Protocol::socket socket;
    explicit Stream(Context &context) : socket(context.io) {}
};

// A listening socket, which stays the caller's.
struct Acceptor {
    asio::basic_socket_acceptor<Protocol> acceptor;
    explicit Acceptor(Context &context) : acceptor(context.io) {}
};

// Puts aside what an operation came to: so many bytes, of which none are the end.
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

// A context, or nothing where memory or descriptors are missing.
Context *tenfold_asio_new() noexcept
{
    try {
        return new Context;
    } catch (...) {
        return nullptr;
    }
}

// Everything that was registered has been given up.
void tenfold_asio_free(Context *context) noexcept { delete context; }

// Registers a descriptor; waits for nothing yet.
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

// Waits until the descriptor is ready for one of these kinds, beside those that are waited for already; once.
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

// Runs one completion, or waits for one at most so many milliseconds (-1: for ever); then hands out what was put
// aside, at most `room` results.
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

// A connection to be, without a descriptor; or nothing where memory is missing.
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

// The descriptor of what was accepted. It is the caller's from here on.
int tenfold_asio_number(Stream *stream) noexcept { return stream->socket.native_handle(); }

// Its operations in flight end as cancelled and touch no memory of theirs any more. Where `keeps`, the descriptor
// stays open, else it is closed with what has it.
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

// The memory of a read or write is the caller's, and stays as it is until the result was handed out.
int tenfold_asio_read_some(Context *context, Stream *stream, void *into, std::size_t room, std::uint64_t key) noexcept
{
    return static_cast<int>(guarded([&]() -> long {
        stream->socket.async_read_some(asio::buffer(into, room), Put{*context, key});
        return 0;
    }));
}

// async_send with flags is async_write_some that tells more.
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

// Everything of the connection that is in flight completes as cancelled.
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

// Accepts one connection into a stream that has none.
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
