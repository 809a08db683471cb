//! What saturates the link beside calls: downloads and uploads without end, each a TCP connection of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use farhop_testbed::{Place, Testbed};

use crate::MeasureError;

const DOWNLOADS: u16 = 9100;
const UPLOADS: u16 = 9101;
const PIECE: usize = 64 * 1024;

/// Runs until it is dropped.
pub(super) struct Load {
    connections: Vec<TcpStream>,
    over: Arc<AtomicBool>,
}

impl Load {
    /// So many of each, from the client to the first of the origins.
    pub(super) fn start(testbed: &Testbed, downloads: usize, uploads: usize) -> Result<Load, MeasureError> {
        let failed = MeasureError::system("downloads and uploads");
        let over = Arc::new(AtomicBool::new(false));
        let origin = testbed.addresses.origin(0);
        let listen = |port| {
            let bind = || TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
            testbed.namespace(Place::Origins).run(bind).map_err(farhop_testbed::Error::from)
        };
        serve(listen(DOWNLOADS)?.map_err(&failed)?, send, &over);
        serve(listen(UPLOADS)?.map_err(&failed)?, take, &over);
        let mut connections = Vec::new();
        for (number, port, act) in [(downloads, DOWNLOADS, take as Act), (uploads, UPLOADS, send as Act)] {
            for _ in 0..number {
                let connect = || TcpStream::connect((origin, port));
                let stream =
                    testbed.namespace(Place::Client).run(connect).map_err(farhop_testbed::Error::from)?;
                let stream = stream.map_err(&failed)?;
                connections.push(stream.try_clone().map_err(&failed)?);
                thread::spawn(move || act(stream));
            }
        }
        Ok(Load { connections, over })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for connection in &self.connections {
            // One that has ended by itself is as good.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

type Act = fn(TcpStream) -> io::Result<()>;

/// Accepts until the process ends; the namespace goes with the testbed.
fn serve(listener: TcpListener, act: Act, over: &Arc<AtomicBool>) {
    let over = Arc::clone(over);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if over.load(Relaxed) {
                return;
            }
            thread::spawn(move || act(stream));
        }
    });
}

fn send(mut stream: TcpStream) -> io::Result<()> {
    loop {
        stream.write_all(&[7; PIECE])?;
    }
}

fn take(mut stream: TcpStream) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while stream.read(&mut piece)? > 0 {}
    Ok(())
}
