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
    std::int64_t value;  // bits of Kind, or bytes, or a negative error number
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
        descriptor.async_wait(type, [self = Reference(this), kind](const error_code &error) {
            Watched &watched = *self.to;
            watched.waiting.fetch_and(static_cast<std::uint8_t>(~kind), std::memory_order_acq_rel);
            if (error != asio::error::operation_aborted)
                watched.context.done.push_back({watched.key.load(std::memory_order_relaxed), kind});
        });
    }

    Context &context;
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint8_t> waiting{0};
    std::atomic<unsigned> references{1};
    asio::posix::stream_descriptor descriptor;
};

int number_of(const error_code &error) { return error ? -error.value() : 0; }

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
