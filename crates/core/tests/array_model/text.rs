//! Models as people write them.

use proptest::prelude::*;
use sterna_core::array::{Model, ParseModelError, Preset};

#[track_caller]
fn refused(text: &str, with: &str) {
    let error: ParseModelError = text.parse::<Model>().expect_err(text);
    assert!(error.to_string().contains(with), "{text}: {error}");
}

#[test]
fn a_name_and_what_differs() {
    let model: Model = "old-fc?spindles=8&cache=256M&ageing=50ms".parse().unwrap();
    assert_eq!((model.preset(), model.spindles()), (Preset::OldFc, 8));
    assert_eq!(model.to_string(), "old-fc?spindles=8&ageing=50ms&cache=256M");
    // What does not differ is not said.
    let same: Model = "old-fc?spindles=7&cache=0.5G".parse().unwrap();
    assert_eq!(same.to_string(), "old-fc");
    assert_eq!("old-fc?".parse(), Ok(same));
    assert_eq!("e4-fc".parse::<Model>().unwrap().spindles(), 18);
    let groups: Model = "sas-10k?raid=6:6+2x13".parse().unwrap();
    assert_eq!(
        (groups.spindles(), groups.to_string().as_str()),
        (104, "sas-10k?raid=6:6+2x13")
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    refused("old", "give one of old-fc, new-fc");
    refused("old-fc?spindle=7", "write key=value, with spindles, raid");
    refused("old-fc?spindles", "`spindles` is not a parameter");
    refused("old-fc?spindles=0", "from 1 to 1024");
    refused("old-fc?spindles=7&spindles=8", "`spindles` is given twice");
    refused("old-fc?spindles=7&raid=0:8", "`raid` is given twice");
    refused("old-fc?raid=5:4", "5:4+1x2");
    refused("old-fc?raid=0:1000,0:1000", "1024 spindles at most");
    refused("old-fc?access=1ms", "`old-fc` is made of disks, which has no `access`");
    refused("sata-ssd?seek=1ms", "made of flash");
    refused("old-fc?seek=3", "a duration");
    refused("old-fc?seek=11s", "from 0s to 10s");
    refused("old-fc?media=1K", "from 4K to 1T");
    refused("old-fc?cache=65G", "up to 64G");
    refused("old-fc?hits=101", "from 0 to 100");
    refused("old-fc?coalesce=maybe", "`yes` or `no`");
}

proptest! {
    #[test]
    fn what_is_shown_is_read_the_same(
        preset in prop::sample::select(Preset::ALL.to_vec()),
        spindles in 1u32..=1024,
        times in prop::collection::vec(0u64..10_000_000_000, 3),
        sizes in prop::collection::vec(0u64..1 << 36, 2),
        link in 4096u64..1 << 40,
        hits in 0u32..=100,
    ) {
        let text = format!(
            "{}?spindles={spindles}&ageing={}ns&ack={}ns&overhead={}ns&cache={}\
             &write-cache={}&link={link}&hits={hits}&coalesce=yes",
            preset.name(), times[0], times[1], times[2], sizes[0], sizes[1],
        );
        let model: Model = text.parse().unwrap();
        let shown = model.to_string();
        prop_assert_eq!(shown.parse::<Model>().unwrap(), model);
    }
}
