//! A record of a move, as tests begin with it.

use sterna_api::{Application, Guard};
use sterna_state::{Step, VmMoveKind, VmMoveRecord};

/// A move of web's vda from one file to another, from `10 * id` on, which has ended after 5 s.
pub(crate) fn vm_move(id: u64, source: &str, destination: &str) -> VmMoveRecord {
    VmMoveRecord {
        id,
        kind: VmMoveKind::Move,
        vm: "web".into(),
        device: "vda".into(),
        size: 512,
        format: "raw".into(),
        from: "fast".into(),
        source: source.into(),
        source_file: None,
        to: "slow".into(),
        destination: destination.into(),
        destination_file: None,
        rate: None,
        guard: Guard::default(),
        step: Step::Completed,
        paused: false,
        cancel: false,
        started: 10 * id,
        ended: Some(10 * id + 5),
        note: None,
        application: Application::default(),
        report: None,
        unclear: false,
    }
}
