//! The REST types and the typed client.
//!
//! What the daemon answers and what `sterna --json` prints are the same types;
//! the OpenAPI document is made from them. All sizes are bytes, all rates bytes
//! per second, all moments seconds since 1970 (UTC); other units stand in the
//! field's name.
//!
//! The API lives on a unix socket that only its owner can open (mode 0600), so
//! there is no login. `paths` says where that socket is unless told otherwise.
#![forbid(unsafe_code)]

mod activity;
mod advice;
mod class;
mod client;
mod command_header;
mod datastore;
mod disk;
mod drs;
mod error;
mod figures;
mod goal;
mod guard;
mod host;
mod hurt;
mod image;
mod kept;
mod live;
mod memory;
mod memory_shares;
mod memory_top;
mod migration;
mod name;
pub mod paths;
mod plan;
mod policy;
mod pool;
mod prediction;
mod printable;
mod recovery;
mod rule;
mod session;
mod stats;
mod status;
mod storage_drs;
mod task;
mod tile_file;
mod timeline;
mod top;
mod transfer;
mod vm;

/// What holds unless a request says otherwise.
fn yes() -> bool {
    true
}

pub use activity::{Activities, Activity};
pub use advice::{Advice, AdviceKind, Advised, Nature, SeenDisk};
pub use class::{
    Attainment, BindingLimit, ChangeClass, Class, CreateClass, Explanation, HeldFor,
    MIGRATION_CLASS, ReservationState, Terms,
};
pub use client::{Client, ClientError, SILENT, Waits};
pub use command_header::{COMMAND, decode_command, encode_command};
pub use datastore::{
    AddDatastore, Datastore, DatastoreKind, ProbeFound, ProbeStep, SetMaintenance,
};
pub use disk::{
    AttachDisk, ChosenDatastore, CreateDisk, CreatedDisk, Disk, DiskActivity, ImageFate,
    ImportDisk, PassedOver, Provision, RemovedDisk,
};
pub use drs::{
    ChangeDrs, DrsAdvice, DrsExplanation, DrsGoal, DrsMove, DrsSettings, DrsStatus,
    HostVerdict, Imbalance, JudgedVm, MoveWorth, StayingVm,
};
pub use error::{Error, ErrorCode, Result, noun};
pub use figures::{Application, Figures};
pub use goal::{Goal, NotAboveZero, Rate};
pub use guard::{AskGuard, Guard, GuardState, Guarding};
pub use host::{AddHost, Amounts, Host, HostProgram, PlaceVm, Placement};
pub use hurt::{HurtBy, HurtDisk, HurtHelp, UsualDisk, UsualTime};
pub use image::{DatastoreImage, DatastoreImages, ImageUse};
pub use kept::{KeptClass, KeptHour};
pub use live::{Hello, Tick};
pub use memory::{
    AddSwapTier, HostMemory, MemoryWork, MemoryWorkKind, OutOnTier, SleepVm, SwapTier,
    VmMemory, VmMemoryState, WakeReport, WakeVm,
};
pub use memory_shares::{
    ChangeMemory, ChangeMemoryTerms, HostMemoryState, MemoryAutomation,
    MemoryExplanation, MemoryMeans, MemoryMeansKind, MemorySettings, MemoryTerms,
    VmBalloon,
};
pub use memory_top::{MemoryTop, SwapTierTop, VmMemoryTop};
pub use migration::{
    Migration, MigrationState, Places, Progress, Report, ResumeMigration, SetRate, Span,
    StartMigration,
};
pub use name::{NAME_RULE, is_name};
pub use plan::{
    Deadline, DeadlineState, Plan, PlanEstimate, PlanEvacuation, PlanState,
    PlannedDatastore, PlannedMove, PlannedMoveState, PlannedWorkload, RefusedDisk, Tile,
    WorkloadState,
};
pub use policy::{
    Aim, BadAim, CreatePolicy, CruisePhase, CruiseState, Fallback, Policy, Standing,
};
pub use pool::{AskTerms, ChangePool, CreatePool, Pool, PoolTerms};
pub use prediction::{
    BestHour, LearnedFrom, Predict, Predicted, Prediction, PredictionScores, Weakest,
};
pub use printable::{is_printable, printable, printable_line};
pub use recovery::{FoundImage, ImageRole, RecoverDisks, Recovery, Sidecar};
pub use rule::{AddRule, Rule, RuleKind};
pub use session::{CreateDashboardLink, DashboardLink, OpenSession, Role, Session};
pub use stats::{Bucket, DiskStats, Pattern, RequestStats, Times};
pub use status::{Connections, Counts, Io, OpenFiles, Status, Warning};
pub use storage_drs::{
    AskStorageDrs, Automation, Balanced, BalancedOutcome, BalancedScene, BalancedScores,
    ChangeStorageDrs, CreateStorageRule, DatastoreLoad, Fared, JudgedDatastore,
    OverBound, Recommendations, RecommendedMove, RuleStrength, RuleWish, SpaceTrend,
    StayingDisk, StorageDrs, StorageDrsBounds, StorageDrsRun, StorageDrsSettings,
    StorageRule,
};
pub use task::{Task, TaskState};
pub use tile_file::{BadTiles, TileFile};
pub use timeline::{Columns, Timeline};
pub use top::{Device, Load, NO_CLASS, SideLoad, Top, TopBy, TopRow};
pub use transfer::{
    StartTransfer, Transfer, TransferProgress, TransferReport, TransferState,
};
pub use vm::{
    AddVm, AdoptVmDisk, MoveVmDisk, ReleaseVmDisk, Vm, VmDisk, VmFigures, VmNames,
    VmState,
};
