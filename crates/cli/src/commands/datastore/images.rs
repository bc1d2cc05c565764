//! `sterna datastore images` and `remove-image`: the files of a directory, in words.

use sterna_api::{DatastoreImage, DatastoreImages, ImageUse};
use sterna_console::format::{bytes, count};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Style, Table};

/// The list of the images, and what to do with old copies.
pub(super) fn list(all: &DatastoreImages, output: Output) -> String {
    let name = &all.datastore;
    if all.images.is_empty() {
        return format!("There are no images on datastore {name}.");
    }
    let mut table = Table::new(&[
        ("IMAGE", Column::Flexible),
        ("SIZE", Column::Right),
        ("ON DISK", Column::Right),
        ("IS", Column::Wrapped),
    ]);
    for one in &all.images {
        let is = match one.is {
            ImageUse::OldCopy | ImageUse::Unclear => Cell::styled(is(one), Style::Warn),
            _ => is(one).into(),
        };
        table.row(vec![
            one.image.as_str().into(),
            bytes(one.size).into(),
            bytes(one.allocated).into(),
            is,
        ]);
    }
    let mut text = output.table(&table);
    if all.left_out > 0 {
        text += &format!("\n{} more.", count(all.left_out, "file"));
    }
    if all.images.iter().any(|one| one.is == ImageUse::OldCopy) {
        text += &format!(
            "\nTo remove an old copy: sterna datastore remove-image {name} IMAGE"
        );
    }
    text
}

/// What an image is.
fn is(one: &DatastoreImage) -> String {
    let of_vm = one.vm.as_ref().zip(one.device.as_ref());
    let of_vm = of_vm.map(|(vm, device)| format!("{vm}/{device}"));
    let of = one.disk.clone().or(of_vm).unwrap_or_default();
    let id = one.migration.unwrap_or_default();
    match one.is {
        ImageUse::Disk => format!("disk {of}"),
        ImageUse::Vm => format!("disk {of} of a VM"),
        ImageUse::Migration => format!("used by migration {id}"),
        ImageUse::Unclear => format!("{of} or its old copy: see migration {id}"),
        ImageUse::OldCopy => format!("old copy of {of} (migration {id})"),
        ImageUse::Unknown => "unknown".into(),
    }
}

/// What was removed.
pub(super) fn removed(one: &DatastoreImage) -> String {
    format!(
        "{} is removed: it was the {}.\n  freed: {}",
        one.image,
        is(one),
        bytes(one.allocated)
    )
}
