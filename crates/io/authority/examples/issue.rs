//! How long a leaf takes, new and kept: `cargo run --release -p farhop-authority --example issue`.

use std::sync::Arc;
use std::time::Instant;

use farhop_authority::{Authority, AuthorityError, Leaves, Terms};

const HOSTS: u32 = 2000;

fn main() -> Result<(), AuthorityError> {
    let leaves = Leaves::new(Arc::new(Authority::ephemeral(&Terms::default())?))?;
    for what in ["new", "kept"] {
        let start = Instant::now();
        for host in 0..HOSTS {
            leaves.for_host(&format!("www.{host}.example"))?;
        }
        println!("{what}: {:.1} µs a leaf", start.elapsed().as_secs_f64() * 1e6 / f64::from(HOSTS));
    }
    Ok(())
}
