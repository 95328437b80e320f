//! What stands between a store and its server, and breaks off where a test says so.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A way to the server that can be cut at the moment of a `COMMIT`.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    /// Whether the `COMMIT` at which it is cut still arrives.
    pub(crate) fn before(server: u16, arrives: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, armed) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let is_armed = Arc::clone(&armed);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, is_armed) = (client.unwrap(), Arc::clone(&is_armed));
                let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || drop(std::io::copy(&mut back, &mut to_client)));
                thread::spawn(move || {
                    let mut bytes = [0; 65_536];
                    while let Ok(read @ 1..) = client.read(&mut bytes) {
                        let is_end = bytes[..read].windows(7).any(|it| it == b"COMMIT\0");
                        if is_end && is_armed.load(Ordering::SeqCst) {
                            // Nothing goes back any more, whatever becomes of it.
                            client.shutdown(Shutdown::Both).unwrap();
                            if arrives {
                                server.write_all(&bytes[..read]).unwrap();
                                let _ = std::io::copy(&mut server, &mut std::io::sink());
                            }
                            let _ = server.shutdown(Shutdown::Both);
                            return;
                        }
                        server.write_all(&bytes[..read]).unwrap();
                    }
                    let _ = server.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port, armed }
    }

    pub(crate) fn cut(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Nothing is cut from now on.
    pub(crate) fn mend(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}
