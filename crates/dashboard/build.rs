//! Lists the files of `dist/` for `files.rs`: their names have hashes, and change.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Up to so many bytes a file is put into the binary as it is, too, for clients that take no
/// compressed one. Larger ones would be most of what the page adds to the binary.
const PLAIN_MAX: u64 = 4 << 10;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says it"));
    let dist = root.join("dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, &mut files)?;
    files.sort();
    let compressed = |file: &&PathBuf| !has_ending(file, "br") && !has_ending(file, "gz");
    let mut code = String::from("&[\n");
    for file in files.iter().filter(compressed) {
        let path = file.strip_prefix(&dist).expect("it is in there");
        let form = |ending: &str| {
            let form = PathBuf::from(format!("{}.{ending}", file.display()));
            match files.contains(&form) {
                true => format!("Some(include_bytes!({form:?}))"),
                false => "None".to_owned(),
            }
        };
        let (brotli, gzip) = (form("br"), form("gz"));
        let is_small = fs::metadata(file)?.len() <= PLAIN_MAX;
        let plain = match is_small || gzip == "None" {
            true => format!("Some(include_bytes!({file:?}))"),
            false => "None".to_owned(),
        };
        writeln!(
            code,
            "    super::File {{ path: {path:?}, plain: {plain}, \
             brotli: {brotli}, gzip: {gzip} }},"
        )
        .expect("a string takes it");
    }
    code.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says it"));
    fs::write(out.join("files.in"), code)
}

fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|it| it == ending)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
