//! Recovered disks, in words.

use sterna_api::{FoundImage, RecoverDisks, Recovery};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, count};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Column, Table, wrap};

/// What was taken in, and what was not, and why.
pub(crate) fn show(recovery: &Recovery, output: Output) -> String {
    let (taken, left): (Vec<&FoundImage>, Vec<&FoundImage>) =
        recovery.images.iter().partition(|image| image.taken);
    let mut text = String::new();
    if !taken.is_empty() {
        let taken_in = if recovery.dry_run { "Would be recovered" } else { "Recovered" };
        text.push_str(&format!("{taken_in}: {}.\n", count(taken.len() as u64, "disk")));
        text.push_str(&output.table(&table(&taken)));
    }
    if !left.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let images = count(left.len() as u64, "image");
        text.push_str(&format!("{gap}Not recovered: {images}.\n"));
    }
    for image in left {
        text.push_str(&format!("  {}\n", image.image));
        let reason = image.reason.as_deref().unwrap_or_default();
        for line in wrap(reason, WIDTH - 4) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    match text.is_empty() {
        true => "Nothing to recover: each image with a sidecar is the image of a disk\n\
                 already."
            .into(),
        false => text,
    }
}

fn table(taken: &[&FoundImage]) -> Table {
    let mut table = Table::new(&[
        ("NAME", Column::Flexible),
        ("SIZE", Column::Right),
        ("DATASTORE", Column::Flexible),
        ("IMAGE", Column::Flexible),
    ]);
    for image in taken {
        let sidecar = image.sidecar.as_ref();
        table.row(vec![
            sidecar.map_or("", |it| it.disk.as_str()).into(),
            bytes(sidecar.map_or(0, |it| it.size)).into(),
            image.datastore.as_str().into(),
            image.image.as_str().into(),
        ]);
    }
    table
}

/// What to say of a new datastore that holds images of disks that are not known;
/// nothing if it holds none, or if that cannot be found out now.
pub(crate) fn invitation(datastore: &str, link: &Link) -> String {
    let request = RecoverDisks { datastore: Some(datastore.into()), dry_run: true };
    let found = link.ask(async |client| Ok(client.recover_disks(&request).await?));
    let images = found.map(|found| found.images).unwrap_or_default();
    match images.iter().filter(|image| image.taken).count() {
        0 => String::new(),
        disks => {
            let text = format!(
                "The datastore holds disks that this Sterna does not know: {disks}. If \
                 no other Sterna serves them, add all datastores, then recover the \
                 disks: `sterna disk recover`"
            );
            format!("\n{}", wrap(&text, WIDTH).join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::{ImageRole, Sidecar};

    use super::*;

    fn image(disk: &str, reason: Option<&str>) -> FoundImage {
        FoundImage {
            datastore: "fast".into(),
            image: format!("/mnt/fast/{disk}.raw"),
            sidecar: Some(Sidecar {
                disk: disk.into(),
                id: "1".into(),
                size: 10 << 30,
                generation: 1,
                role: ImageRole::Active,
            }),
            taken: reason.is_none(),
            reason: reason.map(Into::into),
        }
    }

    #[test]
    fn what_was_taken_comes_first_and_each_other_image_has_its_reason() {
        let reason = "out of date: it has generation 1 of disk web, and \
                      /mnt/slow/web.raw has 2";
        let images = vec![image("db", None), image("web", Some(reason))];
        let recovery = Recovery { dry_run: false, images };
        let text = show(&recovery, Output::new(false));
        let expected = "\
Recovered: 1 disk.
NAME      SIZE  DATASTORE  IMAGE
db    10.0 GiB  fast       /mnt/fast/db.raw

Not recovered: 1 image.
  /mnt/fast/web.raw
    out of date: it has generation 1 of disk web, and /mnt/slow/web.raw has 2
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_dry_run_does_not_claim_to_have_done_anything() {
        let recovery = Recovery { dry_run: true, images: vec![image("db", None)] };
        let text = show(&recovery, Output::new(false));
        assert!(text.starts_with("Would be recovered: 1 disk.\n"), "{text}");
        let nothing = Recovery { dry_run: true, images: Vec::new() };
        let text = show(&nothing, Output::new(false));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }
}
