//! The dashboard's files, as a browser gets them.
//!
//! `web/` has the sources; what it builds is in `dist/`, is committed, and is put into the
//! binary here: whoever builds Sterna needs no node. Each file is there as it is and
//! compressed by brotli and by gzip ([`find`] picks by what the browser takes).
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

/// A file as it was built, and compressed.
struct File {
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The file of that path, in the best form that the browser takes. `/` and each path that
/// has no file are the page itself: its own code knows what the path means.
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
    let (encoding, bytes) = match best {
        Some((name, Some(bytes))) => (Some(name), bytes),
        _ => (None, file.plain),
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
    fn the_first_load_is_small_and_names_no_other_place() {
        let sum: usize =
            files::ALL.iter().map(|it| it.brotli.unwrap_or(it.plain).len()).sum();
        assert!(sum <= 120_000, "{sum} bytes");
        let page = String::from_utf8_lossy(find("/", "").expect("the page").bytes);
        assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    }
}
