//! Any line of a monitor, as the answer to each command: it is one, or it is refused; and
//! what is counted with it goes wrong in no arithmetic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sterna_core::Nanos;
use sterna_qemu::file_of;
use sterna_qemu::qmp::{
    Command, Message, QueryBlock, QueryBlockStats, QueryCapabilities, QueryJobs,
    QueryMemory, QueryName, QueryNodes, QueryProcessors, QuerySend, QueryStatus,
};

fuzz_target!(|text: &str| {
    let _ = file_of(text);
    // Two answers: what was, and what is.
    let mut values =
        text.lines().filter_map(|line| match Message::parse(line.as_bytes()).ok()? {
            Message::Return { value, .. } => Some(value),
            _ => None,
        });
    let Some(first) = values.next() else { return };
    let second = values.next().unwrap_or_else(|| first.clone());
    answers(&first);
    figures(&first, &second);
});

fn answer<C: Command>(value: &Value) -> Option<C::Answer> {
    serde_json::from_value(value.clone()).ok()
}

fn answers(value: &Value) {
    for disk in answer::<QueryBlock>(value).into_iter().flatten() {
        let _ = disk.inserted.as_ref().and_then(|inserted| file_of(&inserted.file));
    }
    let _ = answer::<QueryNodes>(value);
    let _ = answer::<QueryJobs>(value);
    let _ = answer::<QueryMemory>(value);
    let _ = answer::<QueryName>(value);
    let _ = answer::<QueryProcessors>(value);
    let _ = answer::<QueryCapabilities>(value);
    let _ = answer::<QuerySend>(value);
    let _ = answer::<QueryStatus>(value);
}

fn figures(before: &Value, now: &Value) {
    let before = answer::<QueryBlockStats>(before).into_iter().flatten();
    let now = answer::<QueryBlockStats>(now).into_iter().flatten();
    for (before, now) in before.zip(now) {
        let window = now.stats.since(&before.stats, Nanos::from_secs(1));
        assert!(window.iops() >= 0.0);
        let p99 = window.response.quantile(0.99);
        assert!(p99.is_none() || now.stats.has_times());
    }
}
