//! The examples of the NBD URI specification, what is refused, and round trips.

use super::*;
use proptest::prelude::*;

fn tcp(host: &str, port: u16, export: &str) -> Uri {
    let transport = Transport::Tcp { host: host.to_owned(), port };
    Uri { transport, export: export.to_owned() }
}

fn unix(socket: &str, export: &str) -> Uri {
    let transport = Transport::Unix { socket: socket.into() };
    Uri { transport, export: export.to_owned() }
}

#[test]
fn the_examples_of_the_specification_are_read_as_it_says() {
    let cases = [
        ("nbd://example.com:10809/export", tcp("example.com", 10809, "export")),
        ("nbd://example.com/disk", tcp("example.com", 10809, "disk")),
        ("nbd+unix:///disk?socket=sock", unix("sock", "disk")),
        ("nbd://example.com/", tcp("example.com", 10809, "")),
        ("nbd://example.com", tcp("example.com", 10809, "")),
        ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
        ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
        ("nbd+unix:///?socket=%00/abstract", unix("\0/abstract", "")),
        ("nbd+unix:///export?socket=nbd.sock", unix("nbd.sock", "export")),
    ];
    for (text, uri) in cases {
        assert_eq!(text.parse(), Ok(uri), "{text}");
    }
}

#[test]
fn hosts_come_in_all_forms() {
    let cases = [
        ("nbd://[::1]:2000/x", tcp("::1", 2000, "x")),
        ("nbd://[2001:DB8::1]", tcp("2001:db8::1", 10809, "")),
        ("nbd://192.0.2.7:1/x", tcp("192.0.2.7", 1, "x")),
        ("nbd:///x", tcp("localhost", 10809, "x")),
        ("nbd://host:/x", tcp("host", 10809, "x")),
        ("NBD://host/x", tcp("host", 10809, "x")),
    ];
    for (text, uri) in cases {
        assert_eq!(text.parse(), Ok(uri), "{text}");
    }
}

#[test]
fn one_place_is_read_from_all_its_spellings() {
    let places = [
        (
            "nbd://host/",
            &["nbd://host", "nbd://host:10809/", "nbd+tcp://host", "nbd:host:10809"][..],
        ),
        (
            "nbd://host:1/x",
            &["NBD://host:1/x", "nbd:host:1:exportname=x", "nbd://host:1/%78"],
        ),
        ("nbd://[::1]/x", &["nbd://[::1]:10809/x", "nbd:[::1]:10809:exportname=x"]),
        (
            "nbd+unix:///x?socket=/run/s",
            &[
                "nbd+unix:///x?socket=%2Frun%2Fs",
                "unix:/run/s:exportname=x",
                "nbd:unix:/run/s:exportname=x",
            ],
        ),
        (
            "nbd+unix:///?socket=/run/s",
            &["nbd+unix://?socket=/run/s", "unix:/run/s", "nbd:unix:/run/s:exportname="],
        ),
    ];
    for (uri, spellings) in places {
        for spelling in spellings {
            let read = spelling.parse::<Uri>().map(|uri| uri.to_string());
            assert_eq!(read.as_deref(), Ok(uri), "{spelling}");
        }
    }
}

#[test]
fn a_plus_is_a_plus() {
    assert_eq!("nbd://h/a+b".parse(), Ok(tcp("h", 10809, "a+b")));
    assert_eq!("nbd+unix:///?socket=/a+b".parse(), Ok(unix("/a+b", "")));
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    let cases = [
        ("/dev/sda", UriError::NotAUri),
        ("http://host/", UriError::Scheme("http".to_owned())),
        ("nbds://host/x", UriError::Tls),
        ("nbds+tcp://host/x", UriError::Tls),
        ("unix:", UriError::NoSocket),
        ("nbd:host", UriError::Host),
        ("nbd:host:x", UriError::Port),
        ("host:10809", UriError::NotAUri),
        ("nbds+unix:///x?socket=/s", UriError::Tls),
        ("nbd://host/x?tls-type=psk", UriError::Tls),
        ("nbd://user@host/x", UriError::UserInfo),
        ("nbd://host:0/x", UriError::Port),
        ("nbd://host:65536/x", UriError::Port),
        ("nbd://host:+1/x", UriError::Port),
        ("nbd://[::g]/x", UriError::Host),
        ("nbd://[::1]x/x", UriError::Host),
        ("nbd://::1/x", UriError::Port),
        ("nbd://h/%", UriError::Percent),
        ("nbd://h/%4", UriError::Percent),
        ("nbd://h/%+1", UriError::Percent),
        ("nbd://h/%00", UriError::ExportName),
        ("nbd://h/%ff", UriError::ExportName),
        ("nbd://h/a b", UriError::Character(' ')),
        ("nbd://h/é", UriError::Character('é')),
        ("nbd://h/a#b", UriError::Fragment),
        ("nbd://h/x?socket=/s", UriError::SocketWithTcp),
        ("nbd://h/x?x-speed=1", UriError::Parameter("x-speed".to_owned())),
        ("nbd+unix:///x", UriError::NoSocket),
        ("nbd+unix:///x?socket=", UriError::NoSocket),
        ("nbd+unix:///x?socket=a%00b", UriError::NoSocket),
        ("nbd+unix:///x?socket=a&socket=b", UriError::TwoSockets),
        ("nbd+unix://h/x?socket=a", UriError::HostWithSocket),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<Uri>(), Err(error), "{text}");
    }
}

#[test]
fn what_is_special_is_encoded() {
    assert_eq!(
        unix("/run/a b&c;d=e?f#g%/s", "/x?y").to_string(),
        "nbd+unix:////x%3Fy?socket=/run/a%20b%26c%3Bd%3De%3Ff%23g%25/s"
    );
    assert_eq!(tcp("::1", 10809, "é").to_string(), "nbd://[::1]/%C3%A9");
}

proptest! {
    #[test]
    fn formatting_and_parsing_are_inverse(
        export in "[^\0]{0,40}", host in "[a-z0-9.-]{1,20}", port in 1u16..,
        socket in prop::collection::vec(1u8.., 1..40), abstract_name: bool,
    ) {
        let uri = tcp(&host, port, &export);
        prop_assert_eq!(uri.to_string().parse(), Ok(uri));
        let mut path = if abstract_name { vec![0] } else { Vec::new() };
        path.extend(socket);
        let socket = PathBuf::from(OsString::from_vec(path));
        let uri = Uri { transport: Transport::Unix { socket }, export };
        prop_assert_eq!(uri.to_string().parse(), Ok(uri));
    }

    #[test]
    fn any_text_is_a_uri_or_refused(
        text in prop_oneof![
            "nbd(\\+unix)?://[a-z0-9:@%\\[\\]/?&;=.]{0,40}(socket=[a-z%0-9/]{0,9})?",
            any::<String>(),
        ],
    ) {
        if let Ok(uri) = text.parse::<Uri>() {
            prop_assert_eq!(uri.to_string().parse(), Ok(uri));
        }
    }
}
