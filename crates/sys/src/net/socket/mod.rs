//! Sockets of connections and of listeners.

mod listen;
pub(crate) mod option;
mod passed;
pub(crate) mod stream;
mod unix;

pub use listen::{ListenAddress, ListenOptions, Listener};
pub use passed::PassedSocket;
pub use stream::{DISCONNECT_BYTES, Socket, wait_slice};
pub use unix::{is_in_use, listening_process};
