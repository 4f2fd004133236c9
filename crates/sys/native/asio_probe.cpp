// Whether one of the two Asios is there. It is compiled and thrown away.
#if !__has_include(<asio.hpp>) && !__has_include(<boost/asio.hpp>)
#error "neither Asio nor Boost.Asio is there"
#endif
