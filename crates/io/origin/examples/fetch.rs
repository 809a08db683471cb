//! Fetches a URL as ground would and says what came, to try origins by hand:
//!
//! ```text
//! cargo run -p farhop-origin --example fetch -- https://host.example/ [times at once] [file of roots]
//! ```
//!
//! Origins on this machine may be fetched from.

use farhop_origin::{
    Client, Destination, Guard, Partition, Request, Scheme, Settings, SystemResolver, Trust, Upload,
};
use http::uri::Uri;
use http::{HeaderMap, Method};
use std::error::Error;
use std::sync::Arc;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url: Uri = arguments.next().ok_or("give a URL")?.parse()?;
    let times: usize = arguments.next().map_or(Ok(1), |times| times.parse())?;
    let roots: Vec<_> = arguments.map(Into::into).collect();
    let guard = Guard::new(vec!["127.0.0.0/8".parse()?]);
    let trust = Trust::system(&roots, &[])?;
    let client = Client::new(Settings::default(), guard, Arc::new(SystemResolver::new()?), trust);

    let mut fetches = JoinSet::new();
    for _ in 0..times {
        let (client, url) = (client.clone(), url.clone());
        fetches.spawn(async move { fetch(&client, &url).await.map_err(|error| error.to_string()) });
    }
    let mut failed = 0;
    while let Some(fetched) = fetches.join_next().await {
        match fetched? {
            Ok(said) if times == 1 => println!("{said}"),
            Ok(_) => {}
            Err(error) => {
                failed += 1;
                println!("{error}");
            }
        }
    }
    println!("{} of {times} came whole", times - failed);
    Ok(())
}

/// The status, the fields and the size of what came.
async fn fetch(client: &Client, url: &Uri) -> Result<String, farhop_origin::Error> {
    let scheme: Scheme = url.scheme_str().unwrap_or_default().parse()?;
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let request = Request {
        partition: Partition::new("user"),
        scheme,
        method: Method::GET,
        destination: Destination::of_url(url.scheme_str().unwrap_or_default(), authority)?,
        path: url.path_and_query().cloned().unwrap_or_else(|| http::uri::PathAndQuery::from_static("/")),
        fields: HeaderMap::new(),
        upload: Upload::empty(),
        patience: None,
    };
    let mut response = client.fetch(request, |_, status, fields| println!("{status} {fields:?}")).await?;
    let mut size = 0;
    while let Some(data) = response.body.data().await? {
        size += data.len();
    }
    Ok(format!("{} {:#?}\n{size} bytes", response.status, response.fields))
}
