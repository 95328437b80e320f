//! The `svc` command.

#[cfg(not(unix))]
compile_error!("the `svc` program runs on Linux and macOS, and on Windows in WSL; the libraries build on Windows too");

mod cli;
mod hook;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// One thread frees what another has allocated, in every request: with the C library's allocator an authorize takes a
/// quarter more of the processor.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let code = cli::main();
    svc_http::log::settle();
    code
}
