//! Our client against our server over a pipe in memory, in arbitrary pieces.
//!
//! Whatever the client asks for and whatever the export can do, both sides end with
//! the same session, and the bytes after the handshake arrive untouched.

use proptest::prelude::*;
use sterna_nbd::client::{ClientConfig, ClientError, ClientReady};
use sterna_nbd::server::{Closed, Ready};
use sterna_nbd::{
    BlockSizes, ClientHandshake, ClientStep, Command, Export, OptionError, Request,
    ServerHandshake, ServerStep, TransmissionFlags, wire,
};

type Outcome = (Result<Ready, Closed>, Result<ClientReady, ClientError>);

/// Takes at most `len` bytes off the front.
fn take(pipe: &mut Vec<u8>, len: usize) -> Vec<u8> {
    pipe.drain(..len.min(pipe.len())).collect()
}

/// Runs both machines until both have ended. After its own end the client sends
/// `first` at once.
fn connect(
    config: ClientConfig,
    lookup: impl Fn(&str) -> Result<Export, OptionError>,
    mut piece: impl FnMut() -> usize,
    first: &[u8],
) -> Outcome {
    let mut server = ServerHandshake::new();
    let mut client = ClientHandshake::new(config);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let (mut server_end, mut client_end) = (None, None);
    for _ in 0..100_000 {
        if server_end.is_none() {
            match server.step() {
                ServerStep::Send(bytes) => to_client.extend(bytes),
                ServerStep::Receive => {
                    let bytes = take(&mut to_server, piece());
                    assert_eq!(server.push(&bytes), bytes.len());
                }
                ServerStep::NeedExport(q) => server.answer_export(lookup(&q.name)),
                ServerStep::NeedList => server.answer_list(Err(OptionError::Policy)),
                ServerStep::Ready(mut ready) => {
                    ready.leftover.append(&mut to_server);
                    server_end = Some(Ok(*ready));
                }
                ServerStep::Closed(why) => server_end = Some(Err(why)),
            }
        }
        if client_end.is_none() {
            match client.step() {
                ClientStep::Send(bytes) => to_server.extend(bytes),
                ClientStep::Receive if to_client.is_empty() => {
                    if let Some(Err(_)) = server_end {
                        client_end = Some(Err(client.end_of_input()));
                    }
                }
                ClientStep::Receive => {
                    let bytes = take(&mut to_client, piece());
                    assert_eq!(client.push(&bytes), bytes.len());
                }
                ClientStep::Ready(ready) => {
                    to_server.extend_from_slice(first);
                    client_end = Some(Ok(*ready));
                }
                ClientStep::Failed(error) => client_end = Some(Err(error)),
            }
        }
        if let (Some(_), Some(_)) = (&server_end, &client_end) {
            break;
        }
    }
    let mut server_end = server_end.expect("the server ends");
    if let Ok(ready) = &mut server_end {
        ready.leftover.append(&mut to_server);
    }
    (server_end, client_end.expect("the client ends"))
}

prop_compose! {
    fn any_export()(
        size in 0u64..=i64::MAX as u64,
        flags: u16,
        minimum in 0u32..=16,
        maximum in 65_536u32..,
        block_sizes_required: bool,
        allocation: bool,
        name in prop::option::of("[^\0]{0,20}"),
        description in prop::option::of("[^\0]{0,20}"),
    ) -> Export {
        let minimum = 1 << minimum;
        Export {
            size,
            flags: TransmissionFlags::from_bits(flags),
            block_sizes: BlockSizes::new(minimum, minimum.max(512), maximum).unwrap(),
            block_sizes_required,
            allocation,
            name,
            description,
        }
    }
}

proptest! {
    #[test]
    fn both_sides_agree(
        export in any_export(),
        name in "[^\0]{0,20}",
        structured: bool,
        allocation: bool,
        pieces in prop::collection::vec(1usize..60, 1..50),
    ) {
        let mut pieces = pieces.into_iter().cycle();
        let config = ClientConfig { export: name.clone(), structured, allocation };
        let first = Command::Flush.request(5).encode();
        let lookup = |_: &str| Ok(export.clone());
        let (server, client) =
            connect(config, lookup, || pieces.next().unwrap(), &first);
        let (server, client) = (server.unwrap(), client.unwrap());
        prop_assert_eq!(server.session, client.negotiated.session);
        prop_assert_eq!(server.session.size, export.size);
        prop_assert_eq!(server.session.block_sizes, export.block_sizes);
        prop_assert_eq!(server.session.structured, structured);
        let selected = structured && allocation && export.allocation;
        prop_assert_eq!(server.session.allocation.is_some(), selected);
        prop_assert_eq!(&server.name, &name);
        prop_assert_eq!(client.negotiated.name, Some(export.name.unwrap_or(name)));
        prop_assert_eq!(client.negotiated.description, export.description);
        prop_assert!(client.leftover.is_empty());
        let leftover: [u8; wire::REQUEST_LEN] = server.leftover.try_into().unwrap();
        prop_assert_eq!(Request::parse(&leftover), Ok(Command::Flush.request(5)));
    }
}

#[test]
fn an_unknown_export_is_told_and_both_sides_part_in_peace() {
    let lookup = |_: &str| Err(OptionError::Unknown);
    let (server, client) = connect(ClientConfig::new("nothing"), lookup, || 1000, &[]);
    assert_eq!(server, Err(Closed::Aborted));
    assert!(matches!(client, Err(ClientError::ExportUnknown { .. })));
}
