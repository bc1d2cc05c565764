//! The dashboard's files, as a browser gets them.
//!
//! `web/` has the sources; what it builds is in `dist/`, is committed, and is put into the
//! binary here: whoever builds Sterna needs no node. Each file is there compressed by brotli
//! and by gzip, and the small ones as they are, too ([`find`] picks by what the browser takes).
//!
//! This crate knows no HTTP server and decides nothing but which bytes a path means.
#![forbid(unsafe_code)]

mod files;

/// A file for a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// What kind of file it is (`Content-Type`).
    pub kind: &'static str,
    /// How it is compressed (`Content-Encoding`), if it is.
    pub encoding: Option<&'static str>,
    /// Its bytes.
    pub bytes: &'static [u8],
    /// Whether a file of this name never changes: its name has its hash.
    pub is_immutable: bool,
}

/// The policy that the page is written for (`Content-Security-Policy`): nothing from
/// elsewhere, and nothing inline.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// A file as it was built, if that is small, and compressed; one of `plain` and `gzip` is
/// there.
struct File {
    path: &'static str,
    plain: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The file of that path, in the best form that the browser takes; in gzip for one that takes
/// none in which the file is there, which RFC 9110 (12.5.3) leaves to the server. `/` and each
/// path that has no file are the page itself: its own code knows what the path means.
pub fn find(path: &str, accepts: &str) -> Option<Asset> {
    let path = path.trim_start_matches('/');
    let named = files::ALL.iter().find(|file| file.path == path);
    // A missing script must not be answered with the page.
    let is_page = !path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let page = || files::ALL.iter().find(|file| file.path == "index.html");
    let file = named.or_else(|| is_page.then(page).flatten())?;
    let takes = |name: &str| {
        let mut offers = accepts.split(',').map(|offer| offer.split(';'));
        offers.any(|mut offer| {
            let is_it = offer.next().is_some_and(|it| it.trim() == name);
            is_it && !offer.any(|weight| matches!(weight.trim(), "q=0" | "q=0.0"))
        })
    };
    let forms = [("br", file.brotli), ("gzip", file.gzip)];
    let best = forms.into_iter().find(|(name, form)| form.is_some() && takes(name));
    let (encoding, bytes) = match (best, file.plain) {
        (Some((name, Some(bytes))), _) => (Some(name), bytes),
        (_, Some(plain)) => (None, plain),
        (_, None) => (Some("gzip"), file.gzip?),
    };
    let is_immutable = file.path.starts_with("assets/");
    Some(Asset { kind: kind(file.path), encoding, bytes, is_immutable })
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_without_a_file_name_is_the_page() {
        let page = find("/", "").expect("the page");
        assert_eq!(page.kind, "text/html; charset=utf-8");
        assert!(!page.is_immutable && page.encoding.is_none());
        assert_eq!(find("/disks/db", ""), Some(page));
        assert_eq!(find("/assets/missing.js", ""), None);
    }

    #[test]
    fn a_browser_gets_the_smallest_form_that_it_takes() {
        let form = |accepts| find("/index.html", accepts).expect("the page");
        let all = form("gzip, deflate, br");
        assert_eq!(all.encoding, Some("br"));
        assert!(all.bytes.len() < form("").bytes.len());
        assert_eq!(form("gzip").encoding, Some("gzip"));
        assert_eq!(form("br;q=0, gzip;q=0.5").encoding, Some("gzip"));
        assert_eq!(form("identity").encoding, None);
    }

    #[test]
    fn a_script_is_there_for_a_browser_that_takes_nothing_compressed() {
        let script =
            files::ALL.iter().find(|it| it.plain.is_none()).expect("a large file");
        let found = find(script.path, "identity").expect("it is there");
        assert_eq!((found.encoding, Some(found.bytes)), (Some("gzip"), script.gzip));
    }

    #[test]
    fn the_page_adds_less_than_300_kb_to_the_binary() {
        let forms = files::ALL.iter().flat_map(|it| [it.plain, it.brotli, it.gzip]);
        let sum: usize = forms.flatten().map(<[u8]>::len).sum();
        assert!(sum <= 300_000, "{sum} bytes");
    }

    #[test]
    fn the_first_load_is_small_and_names_no_other_place() {
        let sum: usize = files::ALL
            .iter()
            .filter_map(|it| it.brotli.or(it.plain))
            .map(<[u8]>::len)
            .sum();
        assert!(sum <= 120_000, "{sum} bytes");
        let page = String::from_utf8_lossy(find("/", "").expect("the page").bytes);
        assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    }
}
