//! Logins that count for a connection (NTLM, Negotiate): ground is told by which connection of the client each request came,
//! and when that has ended.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_htotp::head::CLIENT_CONNECTION;
use farhop_transport::hop::Incoming;
use support::{Asked, BROWSER, PATIENCE, UNCACHEABLE, World, head, read_until, world};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Asks on a connection that stays; gives what ground hears of the connection, when the answer is here.
async fn ask(world: &World, client: &mut TcpStream, fields: &str) -> Option<String> {
    let request = format!("GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\n{BROWSER}{fields}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), farhop_htotp::frame::Coding::Identity, None);
    sender.finish(None);
    read_until(client, &mut String::new(), "0\r\n\r\n").await;
    asked.fields.get(CLIENT_CONNECTION).map(|name| name.to_str().unwrap().to_owned())
}

/// The next connection of which ground is told that it has ended.
async fn left(world: &World) -> String {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        if let Incoming::Left { connection, .. } = incoming {
            return connection;
        }
    }
}

#[tokio::test]
async fn ground_is_told_when_a_connection_that_may_have_logged_in_has_ended_and_of_no_other() {
    let world = world().await;
    let (mut plain, mut ann, mut ben) = (world.client().await, world.client().await, world.client().await);
    assert_eq!(ask(&world, &mut plain, "").await, None);
    let login = "authorization: NTLM TlRMTVNTUAABAAAA\r\n";
    let of_ann = ask(&world, &mut ann, login).await.expect("a name");
    let of_ben = ask(&world, &mut ben, login).await.expect("a name");
    assert_eq!(ask(&world, &mut ann, "").await.as_ref(), Some(&of_ann));
    for (client, name) in [(plain, None), (ben, Some(of_ben)), (ann, Some(of_ann))] {
        drop(client);
        if let Some(name) = name {
            assert_eq!(left(&world).await, name);
        }
    }
}
