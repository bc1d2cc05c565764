//! Records as tests have them: here, and in the crates that use the state.

use sterna_api::{Application, Guard, PlanEstimate, PlanState, Provision};
use sterna_core::DiskId;
use sterna_placement::waves::{Fault, Stage};

use crate::{
    Counted, Course, DiskRecord, FoundInImages, MigrationRecord, MoveDesign, Place,
    PlanDesign, PlanEnd, PlanMove, PlanRecord, Step,
};

/// A disk on a datastore.
pub fn disk(name: &str, datastore: &str) -> DiskRecord {
    DiskRecord {
        id: DiskId(name.bytes().fold(0, |id, byte| id << 8 | u128::from(byte))),
        name: name.into(),
        size: 10 << 30,
        datastore: datastore.into(),
        image: format!("{name}.raw"),
        provision: Provision::ThickZeroed,
        imported: true,
        generation: 1,
        created: 8,
        vhost_user: None,
    }
}

/// A migration of a disk to another datastore, just asked for.
pub fn migration(disk: &DiskRecord, to: &str) -> MigrationRecord {
    MigrationRecord {
        id: 0,
        disk: disk.id,
        name: disk.name.clone(),
        size: disk.size,
        from: Place { datastore: disk.datastore.clone(), image: disk.image.clone() },
        to: Place { datastore: to.into(), image: "new.raw".into() },
        provision: Provision::Thin,
        reads_zero: false,
        rate: Some(1 << 20),
        guard: Guard { keep: Some(0.97), ..Default::default() },
        verify: true,
        keep_source: true,
        skip_bad: false,
        found: FoundInImages::default(),
        step: Step::Created,
        source_generation: 1,
        destination_generation: 2,
        cancel: false,
        pause: None,
        started: 9,
        ended: None,
        note: None,
        application: Application::default(),
        counted: Counted::default(),
        forecast: None,
        experience: None,
        report: None,
    }
}

/// A plan of which one move waits, and one is being given up.
pub fn plan_of_two() -> PlanRecord {
    let end = |name: &str, speed| PlanEnd {
        name: name.into(),
        takes: true,
        room: 1 << 40,
        shared_room: Some(7),
        single: false,
        speed,
    };
    let planned = |disk: &DiskRecord, stage| PlanMove {
        disk: disk.id,
        design: MoveDesign {
            name: disk.name.clone(),
            from: 0,
            to: 1,
            why: "it has room".into(),
            group: None,
            wave: 1,
            size: disk.size,
            needs: disk.size,
            bytes: 77,
            predicted: None,
            time_s: 3.5,
            rate: 22.0,
            begins_s: 0.0,
            ends_s: 3.5,
        },
        course: Course { to: 1, stage, ..Course::default() },
    };
    PlanRecord {
        id: 0,
        state: PlanState::Planned,
        design: PlanDesign {
            datastore: "here".into(),
            space: 0.8,
            guard: Guard { keep: Some(0.97), ..Default::default() },
            by: Some(99),
            rate: None,
            verify: true,
            at_once: Some(4),
            tiles: Vec::new(),
            groups: vec![(vec![], true), (vec![0], false)],
            ends: vec![end("here", Some(1e8)), end("there", None)],
            refused: Vec::new(),
            estimate: PlanEstimate { bytes: 154, ..PlanEstimate::default() },
        },
        closed: vec![None, None],
        created: 8,
        started: None,
        ended: None,
        moves: vec![
            planned(&disk("a", "here"), Stage::Waiting),
            planned(&disk("b", "here"), Stage::Leaving(Fault::Full)),
        ],
        workloads: Vec::new(),
    }
}
