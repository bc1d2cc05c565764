//! Jobs: what QEMU does in the background, under a name.
//!
//! Ours are never dismissed by QEMU itself (`auto-dismiss` off): one that has ended
//! stays, with how it ended, until we have seen it.

use serde::{Deserialize, Serialize};

use super::block::NewImage;
use super::command::{Nothing, command};

/// Copies a device's node to another, and from then on writes to both.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Mirror {
    /// The job's name.
    pub job_id: String,
    /// The device's root node.
    pub device: String,
    /// The node that it is copied to.
    pub target: String,
    /// `full`: all that the guest sees, what it is based on included.
    pub sync: &'static str,
    /// Bytes per second.
    pub speed: u64,
    /// Bytes that are copied at a time, and so the least that a limit lets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buf_size: Option<u64>,
    /// Whether QEMU forgets the job as soon as it has ended.
    pub auto_dismiss: bool,
}
command!(Mirror, "blockdev-mirror", Nothing);

/// Makes an image in a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CreateImage {
    /// The job's name.
    pub job_id: String,
    /// The image.
    pub options: NewImage,
}
command!(CreateImage, "blockdev-create", Nothing);

/// All jobs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryJobs {}
command!(QueryJobs, "query-jobs", Vec<Job>);

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// Its name.
    pub id: String,
    /// Where it is.
    pub status: JobStatus,
    /// How far it is; in bytes, for a mirror.
    pub current_progress: u64,
    /// How far it has to go, as far as is known.
    pub total_progress: u64,
    /// Why it failed, once it has.
    pub error: Option<String>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// It has been made.
    Created,
    /// It is at work.
    Running,
    /// It stands still.
    Paused,
    /// Both sides are the same, and writes go to both.
    Ready,
    /// It stands still, with both sides the same.
    Standby,
    /// It ends, together with others.
    Waiting,
    /// It can end.
    Pending,
    /// It is given up.
    Aborting,
    /// It has ended.
    Concluded,
    /// It is gone.
    Null,
    /// Something that a newer QEMU knows.
    #[serde(other)]
    Unknown,
}

/// Limits a job.
#[derive(Clone, Debug, Serialize)]
pub struct SetSpeed {
    /// The job's name.
    #[serde(rename = "device")]
    pub id: String,
    /// Bytes per second; 0 lifts the limit.
    pub speed: u64,
}
command!(SetSpeed, "block-job-set-speed", Nothing);

/// Has a job that is ready switch over.
#[derive(Clone, Debug, Serialize)]
pub struct CompleteJob {
    /// Its name.
    pub id: String,
}
command!(CompleteJob, "job-complete", Nothing);

/// Gives a job up.
#[derive(Clone, Debug, Serialize)]
pub struct StopJob {
    /// Its name.
    pub id: String,
}
command!(StopJob, "job-cancel", Nothing);

/// Forgets a job that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct DismissJob {
    /// Its name.
    pub id: String,
}
command!(DismissJob, "job-dismiss", Nothing);
