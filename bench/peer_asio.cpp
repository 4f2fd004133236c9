// A small server, only for comparison: Asio with one io_context in several threads, which reads the file into a string
// before it sends the file.
//
// usage: peer_asio PORT FOLDER [THREADS [close]]
//
// Serves the files directly in FOLDER on 127.0.0.1; with `close`, a connection for each request.
#if __has_include(<asio.hpp>)
#define ASIO_STANDALONE
#include <asio.hpp>
using error_code = std::error_code;
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
using error_code = boost::system::error_code;
#endif

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using asio::ip::tcp;

static std::string folder;
static bool closes = false;

class Connection : public std::enable_shared_from_this<Connection> {
public:
    explicit Connection(tcp::socket accepted) : socket(std::move(accepted)) {}

    void receive()
    {
        auto self = shared_from_this();
        asio::async_read_until(socket, asio::dynamic_buffer(input, 16384), "\r\n\r\n",
                               [self](const error_code &error, std::size_t length) {
                                   if (!error)
                                       self->answer(length);
                               });
    }

private:
    void answer(std::size_t length)
    {
        const std::string line = input.substr(0, input.find("\r\n"));
        input.erase(0, length);
        const auto begin = line.find(' ') + 1, end = line.find(' ', begin);
        const std::string path = line.substr(begin, end == std::string::npos ? end : end - begin);
        // The only safety check: a name without a slash and without a leading dot.
        const bool plain = path.size() > 1 && path[0] == '/' && path[1] != '.' && path.find('/', 1) == std::string::npos;
        std::ifstream file(plain ? folder + path : std::string(), std::ios::binary);
        std::string body;
        if (file)
            body.assign(std::istreambuf_iterator<char>(file), {});
        output = file.is_open() ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 404 Not Found\r\n";
        output += "Content-Type: text/html\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
        output += closes ? "Connection: close\r\n\r\n" : "\r\n";
        output += body;
        auto self = shared_from_this();
        asio::async_write(socket, asio::buffer(output), [self](const error_code &error, std::size_t) {
            if (!error && !closes)
                self->receive();
        });
    }

    tcp::socket socket;
    std::string input, output;
};

static void accept(tcp::acceptor &acceptor)
{
    acceptor.async_accept([&acceptor](const error_code &error, tcp::socket socket) {
        if (!error) {
            error_code ignored;
            socket.set_option(tcp::no_delay(true), ignored);
            std::make_shared<Connection>(std::move(socket))->receive();
        }
        accept(acceptor);
    });
}

int main(int count, char **words)
{
    if (count < 3) {
        std::cerr << "usage: peer_asio PORT FOLDER [THREADS [close]]\n";
        return 2;
    }
    folder = words[2];
    const int threads = count > 3 ? std::atoi(words[3]) : 1;
    closes = count > 4 && std::string(words[4]) == "close";
    try {
        asio::io_context context(threads);
        const auto port = static_cast<unsigned short>(std::atoi(words[1]));
        tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
        accept(acceptor);
        std::vector<std::thread> others;
        for (int number = 1; number < threads; number++)
            others.emplace_back([&context] { context.run(); });
        context.run();
    } catch (const std::exception &error) {
        std::cerr << "peer_asio: " << error.what() << "\n";
        return 1;
    }
}
