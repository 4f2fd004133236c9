/* Checks the declarations of src/readiness/libevent/declared.rs against the library's own header. The build
   discards the object file; if it does not compile, libevent 2.1 is missing. */
#include <event2/event.h>

#if LIBEVENT_VERSION_NUMBER < 0x02010000
#error "libevent is older than 2.1"
#endif

#define HOLDS(what, name) _Static_assert(what, name)
HOLDS(EV_TIMEOUT == 0x01 && EV_READ == 0x02 && EV_WRITE == 0x04, "kinds of events");
HOLDS(EV_PERSIST == 0x10 && EV_ET == 0x20 && EV_CLOSED == 0x80, "flags of events");
HOLDS(EVLOOP_ONCE == 0x01 && EVLOOP_NONBLOCK == 0x02, "flags of the loop");
HOLDS(EVENT_BASE_FLAG_NOLOCK == 0x01 && EVENT_BASE_FLAG_IGNORE_ENV == 0x02, "flags of a base");
HOLDS(sizeof(evutil_socket_t) == sizeof(int), "a socket is an int");

void (*set_log_callback)(void (*)(int, const char *)) = event_set_log_callback;
struct event_config *(*config_new)(void) = event_config_new;
void (*config_free)(struct event_config *) = event_config_free;
int (*config_avoid_method)(struct event_config *, const char *) = event_config_avoid_method;
int (*config_set_flag)(struct event_config *, int) = event_config_set_flag;
struct event_base *(*base_new)(const struct event_config *) = event_base_new_with_config;
void (*base_free)(struct event_base *) = event_base_free;
const char *(*base_get_method)(const struct event_base *) = event_base_get_method;
int (*base_loop)(struct event_base *, int) = event_base_loop;
const char **(*supported_methods)(void) = event_get_supported_methods;
struct event *(*make)(struct event_base *, evutil_socket_t, short, void (*)(evutil_socket_t, short, void *),
                      void *) = event_new;
int (*assign)(struct event *, struct event_base *, evutil_socket_t, short,
              void (*)(evutil_socket_t, short, void *), void *) = event_assign;
void (*release)(struct event *) = event_free;
int (*add)(struct event *, const struct timeval *) = event_add;
int (*del)(struct event *) = event_del;
