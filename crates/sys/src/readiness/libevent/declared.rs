//! libevent's functions, declared by hand; the build checks them against the header with `native/libevent.c`.

use std::ffi::{c_char, c_int, c_short, c_void};

pub(super) const EV_READ: c_short = 0x02;
pub(super) const EV_WRITE: c_short = 0x04;
pub(super) const EV_PERSIST: c_short = 0x10;
pub(super) const EV_ET: c_short = 0x20;
pub(super) const EV_CLOSED: c_short = 0x80;

pub(super) const EVLOOP_ONCE: c_int = 0x01;
pub(super) const EVLOOP_NONBLOCK: c_int = 0x02;

pub(super) const EVENT_BASE_FLAG_NOLOCK: c_int = 0x01;
pub(super) const EVENT_BASE_FLAG_IGNORE_ENV: c_int = 0x02;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident),+) => {
        $($(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            _memory: [u8; 0],
        })+
    };
}

opaque! {
    /// `struct event_config`
    EventConfig,
    /// `struct event_base`
    EventBase,
    /// `struct event`
    Event
}

pub(super) type LogCallback = extern "C" fn(c_int, *const c_char);
pub(super) type Callback = extern "C" fn(c_int, c_short, *mut c_void);

unsafe extern "C" {
    pub(super) fn event_set_log_callback(callback: LogCallback);
    pub(super) fn event_config_new() -> *mut EventConfig;
    pub(super) fn event_config_free(config: *mut EventConfig);
    pub(super) fn event_config_avoid_method(config: *mut EventConfig, method: *const c_char) -> c_int;
    pub(super) fn event_config_set_flag(config: *mut EventConfig, flag: c_int) -> c_int;
    pub(super) fn event_base_new_with_config(config: *const EventConfig) -> *mut EventBase;
    pub(super) fn event_base_free(base: *mut EventBase);
    pub(super) fn event_base_get_method(base: *const EventBase) -> *const c_char;
    pub(super) fn event_base_loop(base: *mut EventBase, flags: c_int) -> c_int;
    pub(super) fn event_new(
        base: *mut EventBase,
        number: c_int,
        events: c_short,
        callback: Callback,
        argument: *mut c_void,
    ) -> *mut Event;
    pub(super) fn event_assign(
        event: *mut Event,
        base: *mut EventBase,
        number: c_int,
        events: c_short,
        callback: Callback,
        argument: *mut c_void,
    ) -> c_int;
    pub(super) fn event_free(event: *mut Event);
    pub(super) fn event_add(event: *mut Event, timeout: *const libc::timeval) -> c_int;
    pub(super) fn event_del(event: *mut Event) -> c_int;
}
