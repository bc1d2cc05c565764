//! Recovered disks, in words.

use sterna_api::{FoundImage, RecoverDisks, Recovery};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, count};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Column, Table, wrap};

/// What to say where nothing was found, to somebody who misses disks.
const NOTHING: &str = "\
Nothing to recover: on all datastores of this Sterna, each image with a sidecar
is the image of a known disk. If a disk is missing, add the datastore that its
image is on (`sterna datastore list` shows those that are there). If that is a
device or an export that was made larger, make it as large as before: its
sidecar is where its end was.";

/// Carries out the command.
pub(super) fn run(
    on: Option<String>,
    dry_run: bool,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let request = RecoverDisks { datastore: on, dry_run };
    let done = link.ask(async |client| Ok(client.recover_disks(&request).await?))?;
    output.answer(&done, |done| show(done, request.datastore.as_deref(), output))
}

/// What was taken in, and what was not, and why; `on` is the datastore to which it was
/// limited.
fn show(recovery: &Recovery, on: Option<&str>, output: Output) -> String {
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
        text.push_str(&format!("{gap}Not recovered, and left as found: {images}.\n"));
    }
    for image in left {
        text.push_str(&format!("  {}\n", image.image));
        let reason = image.reason.as_deref().unwrap_or_default();
        for line in wrap(reason, WIDTH - 4) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if text.is_empty() {
        return NOTHING.into();
    }
    if recovery.dry_run {
        text.push_str("\nSterna has changed nothing.");
        if !taken.is_empty() {
            let on = on.map_or(String::new(), |on| format!(" --on {on}"));
            text.push_str(&format!(" To recover: sterna disk recover{on}"));
        }
        text.push('\n');
    }
    text
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
                "The datastore holds disks that this Sterna does not know: {disks}. To \
                 recover them, make sure that no other Sterna serves them, add all \
                 datastores, and see what would be done: `sterna disk recover --dry-run`"
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
        let text = show(&recovery, None, Output::new(false));
        let expected = "\
Recovered: 1 disk.
NAME      SIZE  DATASTORE  IMAGE
db    10.0 GiB  fast       /mnt/fast/db.raw

Not recovered, and left as found: 1 image.
  /mnt/fast/web.raw
    out of date: it has generation 1 of disk web, and /mnt/slow/web.raw has 2
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_dry_run_does_not_claim_to_have_done_anything() {
        let recovery = Recovery { dry_run: true, images: vec![image("db", None)] };
        let text = show(&recovery, None, Output::new(false));
        assert!(text.starts_with("Would be recovered: 1 disk.\n"), "{text}");
        let next = "\nSterna has changed nothing. To recover: sterna disk recover\n";
        assert!(text.ends_with(next), "{text}");
        let text = show(&recovery, Some("fast"), Output::new(false));
        assert!(text.ends_with("sterna disk recover --on fast\n"), "{text}");
        let nothing = Recovery { dry_run: true, images: Vec::new() };
        let text = show(&nothing, None, Output::new(false));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("add the datastore"), "{text}");
    }
}
