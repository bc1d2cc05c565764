//! Resource pools: what sets of VMs are promised of all hosts together.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::Amounts;

/// What a pool is promised of a resource, and held to: processors, or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolTerms {
    /// What it gets before anybody gets by shares, as far as it asks for it.
    pub reservation: f64,
    /// What it gets at most.
    pub limit: Option<f64>,
    /// Its part of what is left, against the shares of those beside it.
    pub shares: u32,
}

impl Default for PoolTerms {
    fn default() -> PoolTerms {
        PoolTerms { reservation: 0.0, limit: None, shares: 1000 }
    }
}

/// A resource pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// The pool that it is in, if it is in one.
    pub parent: Option<String>,
    /// Of processors.
    pub cpu: PoolTerms,
    /// Of memory, in bytes.
    pub memory: PoolTerms,
    /// The VMs in it, by name, without those of the pools in it.
    pub vms: Vec<String>,
    /// What all VMs in it, and in the pools in it, are entitled to.
    pub entitled: Amounts,
    /// When it was created (seconds since 1970).
    pub created: u64,
}

/// What is asked for a resource; what is left out stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskTerms {
    /// The reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<f64>,
    /// The limit; `null` lifts it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Option<f64>>,
    /// The shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<u32>,
}

/// What is there, be it `null`, as against what is not.
fn given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Asks for a new pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePool {
    /// Its name.
    pub name: String,
    /// The pool that it is to be in.
    #[serde(default)]
    pub parent: Option<String>,
    /// Of processors.
    #[serde(default)]
    pub cpu: AskTerms,
    /// Of memory.
    #[serde(default)]
    pub memory: AskTerms,
}

/// Changes a pool: all of it or, if something is wrong, nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePool {
    /// Of processors.
    #[serde(default)]
    pub cpu: AskTerms,
    /// Of memory.
    #[serde(default)]
    pub memory: AskTerms,
    /// A VM that shall be in it, and in no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<String>,
    /// A VM that shall be in it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<String>,
}
