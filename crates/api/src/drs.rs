//! DRS: which VMs should be on other hosts, and why others stay.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Amounts, Automation};

/// When DRS recommends a move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DrsSettings {
    /// Moves of this priority or more: 1 is the most, 5 the least.
    pub threshold: u8,
    /// The seconds between two checks of the VMs.
    pub round_s: u64,
    /// A problem must last for so many checks in a row before DRS recommends a move
    /// because of it. A violated rule that must hold counts at once.
    pub hold: u32,
    /// A VM that has moved stays for so many seconds; if it moves again soon after that,
    /// twice as long.
    pub cooldown_s: u64,
    /// The most moves that are recommended at once.
    pub moves: u64,
    /// The moves that DRS carries out automatically, one at a time: `manual` none,
    /// `partial` those that repair a rule that must hold or relieve a host, `full` all
    /// recommended moves.
    pub automation: Automation,
}

impl Default for DrsSettings {
    /// Moves that matter moderately; a minute; three rounds; ten minutes; ten moves;
    /// nothing by itself.
    fn default() -> DrsSettings {
        DrsSettings {
            threshold: 3,
            round_s: 60,
            hold: 3,
            cooldown_s: 600,
            moves: 10,
            automation: Automation::Manual,
        }
    }
}

/// Changes settings; a setting that is left out stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeDrs {
    /// 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u8>,
    /// 1 to 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_s: Option<u64>,
    /// 1 to 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<u32>,
    /// At most a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_s: Option<u64>,
    /// 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<u64>,
    /// What it does automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation: Option<Automation>,
}

/// How much loads differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Imbalance {
    /// The root of the mean square of the two values below; moves reduce it.
    pub deviation: f64,
    /// The standard deviation of the hosts' loads.
    pub of: Amounts,
    /// The coefficient of variation of the mean of both loads, as Proxmox has it.
    pub variation: f64,
}

/// A VM as DRS sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgedVm {
    /// Its name.
    pub vm: String,
    /// The host that it is on.
    pub host: String,
    /// The pool that it is in, if it is in one.
    pub pool: Option<String>,
    /// Its processors and its memory.
    pub size: Amounts,
    /// Its average demand: processors that it keeps busy, memory that it holds.
    pub demand: Amounts,
    /// Its entitlement.
    pub entitled: Amounts,
    /// The part of its demand that it gets, 0 to 100; absent while unknown.
    pub score: Option<f64>,
    /// Why the VM cannot move, if it cannot.
    pub stays: Option<String>,
}

/// Everything that DRS sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsStatus {
    /// When DRS recommends a move.
    pub settings: DrsSettings,
    /// How much loads differ.
    pub imbalance: Imbalance,
    /// The hosts.
    pub hosts: Vec<crate::Host>,
    /// The VMs on them.
    pub vms: Vec<JudgedVm>,
    /// VMs whose host is unknown, by name.
    pub elsewhere: Vec<String>,
    /// The rules that do not hold, by name.
    pub broken: Vec<String>,
    /// For how many checks in a row there was a problem.
    pub rounds: u32,
    /// When DRS checked last (seconds since 1970).
    pub looked: Option<u64>,
}

/// The problem that a move repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrsGoal {
    /// A rule that must hold and does not.
    Must,
    /// A host has too little memory for its VMs.
    Memory,
    /// A host has too few processors for its VMs.
    Cpu,
    /// A rule that should hold and does not.
    Should,
    /// Loads differ.
    Even,
}

/// The benefit and the cost of a move. The three amounts are parts of a host times
/// seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveWorth {
    /// The benefit, while loads last.
    pub benefit: f64,
    /// The cost of the copy for both hosts.
    pub cost: f64,
    /// The benefit that varying demand may take away.
    pub risk: f64,
    /// How long the copy takes, in seconds.
    pub seconds: f64,
}

/// A move that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsMove {
    /// The VM.
    pub vm: String,
    /// The host that it should leave.
    pub from: String,
    /// The host that it should go to.
    pub to: String,
    /// The VM that should come back in exchange, if there is one.
    pub back: Option<String>,
    /// The problem that the move repairs.
    pub goal: DrsGoal,
    /// Why, in words.
    pub reason: String,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Whether the problem has lasted long enough; else wait with this move.
    pub held: bool,
    /// Memory to copy, in bytes.
    pub bytes: u64,
    /// Benefit and cost.
    pub worth: MoveWorth,
    /// The load of the host that it leaves: after all earlier moves of the list, and
    /// after this move.
    pub source: [Amounts; 2],
    /// The same for the host that it goes to.
    pub destination: [Amounts; 2],
    /// The same for the imbalance of all hosts.
    pub imbalance: [Imbalance; 2],
}

/// A VM that stays in spite of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StayingVm {
    /// The VM.
    pub vm: String,
    /// Where it is.
    pub host: String,
    /// The problem.
    pub goal: DrsGoal,
    /// The best host for the VM; absent if there is none.
    pub to: Option<String>,
    /// Why it stays.
    pub reason: String,
}

/// Recommended moves, and what stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsAdvice {
    /// When DRS recommends a move.
    pub settings: DrsSettings,
    /// How much loads differ.
    pub imbalance: Imbalance,
    /// For how many checks in a row there was a problem.
    pub rounds: u32,
    /// In the order in which they should be made.
    pub moves: Vec<DrsMove>,
    /// VMs that stay in spite of a problem.
    pub staying: Vec<StayingVm>,
}

/// Why a VM is not on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostVerdict {
    /// The host.
    pub host: String,
    /// Whether the VM may go there.
    pub may: bool,
    /// Why not, or the benefit.
    pub reason: String,
}

/// The reasons for a VM's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsExplanation {
    /// The VM.
    pub vm: JudgedVm,
    /// The problem that its move could repair.
    pub goal: DrsGoal,
    /// The recommended move, if there is one.
    pub recommended: Option<DrsMove>,
    /// Each host.
    pub hosts: Vec<HostVerdict>,
}
