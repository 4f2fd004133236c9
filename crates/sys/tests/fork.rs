//! A fork concerns a whole process, so this one runs without a harness and its threads.

use tenfold_sys::asio::IoContext;
use tenfold_sys::process::{Fork, fork, reap};
use tenfold_sys::uring::{Ring, Sizes};

fn main() {
    h88_memory_that_the_kernel_addresses_is_not_forked();
    println!("h88_memory_that_the_kernel_addresses_is_not_forked ... ok");
}

fn h88_memory_that_the_kernel_addresses_is_not_forked() {
    let sizes = Sizes { submissions: 16, completions: 32, buffers: 4, buffer_bytes: 256 };
    let ring = Ring::new(sizes).expect("this kernel has io_uring");
    refused("io_uring");
    drop(ring);
    forked();
    if let Ok(context) = IoContext::new() {
        refused("Asio");
        drop(context);
        forked();
    }
}

fn refused(name: &str) {
    match fork() {
        Ok(Fork::Child) => std::process::exit(0),
        Ok(Fork::Parent(_)) => panic!("a process with {name} was forked"),
        Err(error) => assert!(error.to_string().contains(name), "{error}"),
    }
}

fn forked() {
    match fork().expect("this process has one thread and nothing that the kernel finds by address") {
        Fork::Child => std::process::exit(0),
        Fork::Parent(child) => {
            let ended = std::iter::repeat_with(|| reap().expect("it has a child")).flatten().next();
            assert_eq!(ended.map(|(process, _)| process), Some(child));
        }
    }
}
