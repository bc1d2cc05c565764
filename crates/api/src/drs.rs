//! DRS: which virtual machines should be on other hosts, and why others stay.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Amounts, Automation};

/// When something is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DrsSettings {
    /// Moves of this priority or more: 1 is the most, 5 the least.
    pub threshold: u8,
    /// It is looked at machines, and at what should move, every so many seconds.
    pub round_s: u64,
    /// For so many rounds in a row something must not be right before it is recommended
    /// to move because of that. A rule that must hold waits for nothing.
    pub hold: u32,
    /// A machine that has moved stays for so many seconds; each time that it moves again
    /// soon after that, twice as long.
    pub cooldown_s: u64,
    /// The most moves that are recommended at once.
    pub moves: u64,
    /// What it does by itself, one move at a time: `manual` is nothing, `partial` what mends
    /// a rule that must hold or relieves a host that has too little, `full` all that it
    /// recommends.
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

/// Changes settings; what is left out stays as it is.
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
    /// What it does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation: Option<Automation>,
}

/// How much loads differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Imbalance {
    /// The root of the mean square of the two below: what moves lower.
    pub deviation: f64,
    /// The standard deviation of the hosts' loads.
    pub of: Amounts,
    /// The coefficient of variation of the mean of both loads, as Proxmox has it.
    pub variation: f64,
}

/// A machine as DRS sees it.
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
    /// What it asks for on average: processors that it keeps busy, memory that it holds.
    pub demand: Amounts,
    /// What it is entitled to.
    pub entitled: Amounts,
    /// The part of what it asks for that it gets, 0 to 100; absent while that is not
    /// known.
    pub score: Option<f64>,
    /// Why it stays where it is, if it does in any case.
    pub stays: Option<String>,
}

/// Everything that DRS sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsStatus {
    /// When something is recommended.
    pub settings: DrsSettings,
    /// How much loads differ.
    pub imbalance: Imbalance,
    /// The hosts.
    pub hosts: Vec<crate::Host>,
    /// The machines on them.
    pub vms: Vec<JudgedVm>,
    /// Machines of which it is not known where they are, by name.
    pub elsewhere: Vec<String>,
    /// The rules that do not hold, by name.
    pub broken: Vec<String>,
    /// For how many rounds in a row something was not right.
    pub rounds: u32,
    /// When it was looked last (seconds since 1970).
    pub looked: Option<u64>,
}

/// What a move puts right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrsGoal {
    /// A rule that must hold and does not.
    Must,
    /// A host has too little memory for its machines.
    Memory,
    /// A host has too few processors for them.
    Cpu,
    /// A rule that should hold and does not.
    Should,
    /// Loads differ.
    Even,
}

/// What a move brings and costs. The three amounts are parts of a host times seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveWorth {
    /// By how much it makes things better while loads last.
    pub benefit: f64,
    /// What the copy takes of both hosts.
    pub cost: f64,
    /// What of the benefit may be lost as demand varies.
    pub risk: f64,
    /// How long the copy takes, in seconds.
    pub seconds: f64,
}

/// A move that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsMove {
    /// The machine.
    pub vm: String,
    /// The host that it should leave.
    pub from: String,
    /// The one that it should go to.
    pub to: String,
    /// The machine there that should come back in its place, if one should.
    pub back: Option<String>,
    /// What it puts right.
    pub goal: DrsGoal,
    /// Why, in words.
    pub reason: String,
    /// How much it matters: 1 is the most, 5 the least.
    pub priority: u8,
    /// Whether this has been so for long enough; else it is to be waited for.
    pub held: bool,
    /// Memory to copy, in bytes.
    pub bytes: u64,
    /// What it brings and costs.
    pub worth: MoveWorth,
    /// The load of the host that it leaves: with the moves before this one made, and with
    /// this one, too.
    pub source: [Amounts; 2],
    /// The load of the one that it goes to: the same.
    pub destination: [Amounts; 2],
    /// How much all loads differ: the same.
    pub imbalance: [Imbalance; 2],
}

/// A machine that stays where something is not right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StayingVm {
    /// The machine.
    pub vm: String,
    /// Where it is.
    pub host: String,
    /// What is not right.
    pub goal: DrsGoal,
    /// The host that came nearest to taking it; absent if none did.
    pub to: Option<String>,
    /// Why it stays.
    pub reason: String,
}

/// What should move, and what should not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsAdvice {
    /// When something is recommended.
    pub settings: DrsSettings,
    /// How much loads differ.
    pub imbalance: Imbalance,
    /// For how many rounds in a row something was not right.
    pub rounds: u32,
    /// In the order in which they should be made.
    pub moves: Vec<DrsMove>,
    /// Machines that stay where something is not right even then.
    pub staying: Vec<StayingVm>,
}

/// Why a machine is not on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostVerdict {
    /// The host.
    pub host: String,
    /// Whether the machine may go there.
    pub may: bool,
    /// Why not, or what it would bring.
    pub reason: String,
}

/// Why a machine is where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrsExplanation {
    /// The machine.
    pub vm: JudgedVm,
    /// What a move of it could put right.
    pub goal: DrsGoal,
    /// That it should move, if it should.
    pub recommended: Option<DrsMove>,
    /// Each host.
    pub hosts: Vec<HostVerdict>,
}
