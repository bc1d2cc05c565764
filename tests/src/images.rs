//! Raw images as files: made, measured and compared.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::programs;
use crate::random::Random;
use crate::wait::{seconds, until};

/// All bytes of a file are this one.
#[track_caller]
pub fn is_all(file: &Path, byte: u8) {
    let bytes = std::fs::read(file).expect("read an image");
    let others = bytes.iter().filter(|it| **it != byte).count();
    assert_eq!(others, 0, "bytes of {} are others", file.display());
}

/// Makes a file of `size` bytes whose first `data` bytes are not zero and
/// differ from block to block.
#[track_caller]
pub fn write_image(path: &Path, size: u64, data: u64) {
    let mut file = File::create(path).expect("create an image");
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut chunk = vec![0; 1 << 20];
    for _ in 0..data.div_ceil(1 << 20) {
        for bytes in chunk.chunks_exact_mut(8) {
            bytes.copy_from_slice(&random.word().to_le_bytes());
        }
        file.write_all(&chunk).expect("write an image");
    }
    file.set_len(size).expect("size an image");
}

/// What a file really takes, in bytes.
#[track_caller]
pub fn allocated(path: &Path) -> u64 {
    std::fs::metadata(path).expect("ask for a file").blocks() * 512
}

/// Two raw images must be the same to the last byte. (They may be anything that
/// QEMU can open: files, URIs.)
#[track_caller]
pub fn identical(a: &str, b: &str) {
    let text =
        programs::run("qemu-img", ["compare", "-U", "-f", "raw", "-F", "raw", a, b]);
    assert!(text.contains("identical"), "{text}");
}

/// [`identical`], for files.
#[track_caller]
pub fn identical_files(a: &Path, b: &Path) {
    identical(&a.display().to_string(), &b.display().to_string());
}

/// A file's times say as exactly as this who has written to it, and some more.
const TELLABLE: Duration = Duration::from_millis(300);

/// Waits until an image has not changed for so long that the daemon tells what is written next
/// from what was written before.
#[track_caller]
pub fn rests(image: &Path) {
    until("the image to rest", seconds(20), || {
        let changed = fs::metadata(image).expect("the image is there");
        let changed = Duration::new(changed.ctime() as u64, changed.ctime_nsec() as u32);
        (UNIX_EPOCH + changed).elapsed().is_ok_and(|it| it > TELLABLE).then_some(())
    });
}
