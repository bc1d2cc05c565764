//! The typed client: what can be asked of a daemon. How it is asked is in `call`.

mod call;
mod hosts;

use std::path::{Path, PathBuf};

use hyper::Method;

use crate::{
    Activities, AddDatastore, AddVm, AdoptVmDisk, Advised, AskGuard, AskStorageDrs,
    AttachDisk, ChangeClass, ChangeStorageDrs, Class, CreateClass, CreateDashboardLink,
    CreateDisk, CreatePolicy, CreateStorageRule, CreatedDisk, DashboardLink, Datastore,
    DatastoreImage, DatastoreImages, Device, Disk, DiskStats, Explanation, ImageFate,
    ImportDisk, Migration, MoveVmDisk, Plan, PlanEvacuation, Policy, Predict, Prediction,
    ProbeFound, Recommendations, RecoverDisks, Recovery, ReleaseVmDisk, RemovedDisk,
    ResumeMigration, SetMaintenance, SetRate, StartMigration, Status, StorageDrs,
    StorageDrsSettings, StorageRule, Task, Top, TopBy, Vm,
};

pub use call::{ClientError, Waits};

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    /// Who is told of calls that take long.
    waits: Option<fn(Waits)>,
    /// Whether answers are for a terminal.
    shown: bool,
    /// What somebody typed, for the list of activities.
    command: Option<String>,
}

impl Client {
    /// A client of the daemon that listens on `socket`.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Client { socket: socket.into(), waits: None, shown: false, command: None }
    }

    /// The same client, which says that it waits for a call that takes more than a second,
    /// and when that is over: the daemon may have asked somebody who hangs.
    pub fn that_tells(self, waits: fn(Waits)) -> Self {
        Client { waits: Some(waits), ..self }
    }

    /// The same client, whose answers have nothing in them that a terminal would obey: they
    /// are for people. Programs want them as they are.
    pub fn for_people(self) -> Self {
        Client { shown: true, ..self }
    }

    /// The same client, which tells the daemon what was typed: the list of activities shows
    /// it.
    pub fn for_command(self, line: String) -> Self {
        Client { command: Some(line), ..self }
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The daemon in one page.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get("/v1/status").await
    }

    /// What was done, by whom, and what the daemon decided, the latest first.
    pub async fn activity(
        &self,
        of: Option<&str>,
        since: Option<u64>,
        limit: usize,
    ) -> Result<Activities, ClientError> {
        let of = of.map_or(String::new(), |it| format!("&of={}", escaped(it)));
        let from = since.map_or(String::new(), |since| format!("&from={since}"));
        self.get(&format!("/v1/activity?limit={limit}{of}{from}")).await
    }

    /// Makes a link to the dashboard that works once.
    pub async fn dashboard_link(
        &self,
        request: CreateDashboardLink,
    ) -> Result<DashboardLink, ClientError> {
        self.call(Method::POST, "/v1/dashboard/links", &request).await
    }

    /// What the daemon does again and again.
    pub async fn tasks(&self) -> Result<Vec<Task>, ClientError> {
        self.get("/v1/tasks").await
    }

    /// All datastores.
    pub async fn datastores(&self) -> Result<Vec<Datastore>, ClientError> {
        self.get("/v1/datastores").await
    }

    /// One datastore.
    pub async fn datastore(&self, name: &str) -> Result<Datastore, ClientError> {
        self.get(&path("datastores", name)).await
    }

    /// Adds a datastore.
    pub async fn add_datastore(
        &self,
        request: &AddDatastore,
    ) -> Result<Datastore, ClientError> {
        self.call(Method::POST, "/v1/datastores", request).await
    }

    /// Forgets a datastore; what is on it stays. Answers with what it was.
    pub async fn remove_datastore(&self, name: &str) -> Result<Datastore, ClientError> {
        self.call(Method::DELETE, &path("datastores", name), &()).await
    }

    /// Tells what a probe of a datastore's device has found. Answers with what is known of
    /// the device now.
    pub async fn probed(
        &self,
        name: &str,
        found: &ProbeFound,
    ) -> Result<Device, ClientError> {
        self.call(Method::PUT, &format!("{}/device", path("datastores", name)), found)
            .await
    }

    /// Puts a datastore in maintenance, or ends that.
    pub async fn set_maintenance(
        &self,
        name: &str,
        maintenance: bool,
    ) -> Result<Datastore, ClientError> {
        let path = format!("{}/maintenance", path("datastores", name));
        self.call(Method::PUT, &path, &SetMaintenance { maintenance }).await
    }

    /// The files in a datastore's directory.
    pub async fn datastore_images(
        &self,
        name: &str,
    ) -> Result<DatastoreImages, ClientError> {
        self.get(&format!("{}/images", path("datastores", name))).await
    }

    /// Removes an old copy that a migration has left. Answers with what it was.
    pub async fn remove_image(
        &self,
        name: &str,
        image: &str,
    ) -> Result<DatastoreImage, ClientError> {
        let path = format!("{}/images/{}", path("datastores", name), escaped(image));
        self.call(Method::DELETE, &path, &()).await
    }

    /// All disks.
    pub async fn disks(&self) -> Result<Vec<Disk>, ClientError> {
        self.get("/v1/disks").await
    }

    /// One disk.
    pub async fn disk(&self, name: &str) -> Result<Disk, ClientError> {
        self.get(&path("disks", name)).await
    }

    /// What a disk's requests are like.
    pub async fn disk_stats(&self, name: &str) -> Result<DiskStats, ClientError> {
        self.get(&format!("{}/stats", path("disks", name))).await
    }

    /// Who did what in the last `window_s` seconds.
    pub async fn top(&self, by: TopBy, window_s: f64) -> Result<Top, ClientError> {
        self.get(&format!("/v1/top?by={}&window_s={window_s}", by.as_str())).await
    }

    /// What to do about a disk, about a datastore and its disks, or about everything, by
    /// what was done in the last `window_s` seconds.
    pub async fn advise(
        &self,
        about: Option<&str>,
        window_s: f64,
    ) -> Result<Advised, ClientError> {
        let about = about.map_or(String::new(), |it| format!("&about={}", escaped(it)));
        self.get(&format!("/v1/advice?window_s={window_s}{about}")).await
    }

    /// Creates an empty disk.
    pub async fn create_disk(
        &self,
        request: &CreateDisk,
    ) -> Result<CreatedDisk, ClientError> {
        self.call(Method::POST, "/v1/disks", request).await
    }

    /// Makes a raw image that exists a disk.
    pub async fn import_disk(&self, request: &ImportDisk) -> Result<Disk, ClientError> {
        self.call(Method::POST, "/v1/imports", request).await
    }

    /// Makes images that are the truth of disks disks again.
    pub async fn recover_disks(
        &self,
        request: &RecoverDisks,
    ) -> Result<Recovery, ClientError> {
        self.call(Method::POST, "/v1/recoveries", request).await
    }

    /// Removes a disk. Answers with what it was, and what became of its image.
    pub async fn remove_disk(
        &self,
        name: &str,
        image: ImageFate,
    ) -> Result<RemovedDisk, ClientError> {
        let path = format!("{}?image={}", path("disks", name), image.as_str());
        self.call(Method::DELETE, &path, &()).await
    }

    /// Gives a disk to a VM, over vhost-user-blk.
    pub async fn attach_disk(
        &self,
        name: &str,
        request: &AttachDisk,
    ) -> Result<Disk, ClientError> {
        let path = format!("{}/attachment", path("disks", name));
        self.call(Method::POST, &path, request).await
    }

    /// Takes a disk away from its VM.
    pub async fn detach_disk(&self, name: &str) -> Result<Disk, ClientError> {
        let path = format!("{}/attachment", path("disks", name));
        self.call(Method::DELETE, &path, &()).await
    }

    /// All classes.
    pub async fn classes(&self) -> Result<Vec<Class>, ClientError> {
        self.get("/v1/classes").await
    }

    /// One class.
    pub async fn class(&self, name: &str) -> Result<Class, ClientError> {
        self.get(&path("classes", name)).await
    }

    /// Creates a class.
    pub async fn create_class(
        &self,
        request: &CreateClass,
    ) -> Result<Class, ClientError> {
        self.call(Method::POST, "/v1/classes", request).await
    }

    /// Changes a class.
    pub async fn change_class(
        &self,
        name: &str,
        change: &ChangeClass,
    ) -> Result<Class, ClientError> {
        self.call(Method::PATCH, &path("classes", name), change).await
    }

    /// Deletes a class; its policies only if they are to go with it. Answers with what
    /// it was.
    pub async fn delete_class(
        &self,
        name: &str,
        with_policies: bool,
    ) -> Result<Class, ClientError> {
        let path = format!("{}?with_policies={with_policies}", path("classes", name));
        self.call(Method::DELETE, &path, &()).await
    }

    /// What binds a class now, and what would change that.
    pub async fn explain(&self, class: &str) -> Result<Explanation, ClientError> {
        self.get(&format!("{}/explanation", path("classes", class))).await
    }

    /// All policies.
    pub async fn policies(&self) -> Result<Vec<Policy>, ClientError> {
        self.get("/v1/policies").await
    }

    /// One policy.
    pub async fn policy(&self, id: u64) -> Result<Policy, ClientError> {
        self.get(&path("policies", &id.to_string())).await
    }

    /// Makes a policy.
    pub async fn create_policy(
        &self,
        request: &CreatePolicy,
    ) -> Result<Policy, ClientError> {
        self.call(Method::POST, "/v1/policies", request).await
    }

    /// Removes a policy. Answers with what it was.
    pub async fn remove_policy(&self, id: u64) -> Result<Policy, ClientError> {
        self.call(Method::DELETE, &path("policies", &id.to_string()), &()).await
    }

    /// All VMs.
    pub async fn vms(&self) -> Result<Vec<Vm>, ClientError> {
        self.get("/v1/vms").await
    }

    /// One VM.
    pub async fn vm(&self, name: &str) -> Result<Vm, ClientError> {
        self.get(&path("vms", name)).await
    }

    /// Adds a VM that runs.
    pub async fn add_vm(&self, request: &AddVm) -> Result<Vm, ClientError> {
        self.call(Method::POST, "/v1/vms", request).await
    }

    /// Forgets a VM, which goes on as it is. Answers with what it was.
    pub async fn remove_vm(&self, name: &str) -> Result<Vm, ClientError> {
        self.call(Method::DELETE, &path("vms", name), &()).await
    }

    /// Moves a disk that QEMU serves.
    pub async fn move_vm_disk(
        &self,
        name: &str,
        request: &MoveVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/moves", path("vms", name));
        self.call(Method::POST, &path, request).await
    }

    /// Makes a disk that QEMU serves a disk of Sterna's.
    pub async fn adopt_vm_disk(
        &self,
        name: &str,
        request: &AdoptVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/adoptions", path("vms", name));
        self.call(Method::POST, &path, request).await
    }

    /// Makes a disk of Sterna's that a VM has a file, which QEMU serves.
    pub async fn release_vm_disk(
        &self,
        name: &str,
        request: &ReleaseVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/releases", path("vms", name));
        self.call(Method::POST, &path, request).await
    }

    /// All migrations, the ended ones too.
    pub async fn migrations(&self) -> Result<Vec<Migration>, ClientError> {
        self.get("/v1/migrations").await
    }

    /// One migration.
    pub async fn migration(&self, id: u64) -> Result<Migration, ClientError> {
        self.get(&path("migrations", &id.to_string())).await
    }

    /// Predicts what a move would take.
    pub async fn predict(&self, request: &Predict) -> Result<Prediction, ClientError> {
        self.call(Method::POST, "/v1/predictions", request).await
    }

    /// Recommends moves, and says why other disks stay.
    pub async fn recommend(
        &self,
        asked: &AskStorageDrs,
    ) -> Result<Recommendations, ClientError> {
        self.call(Method::POST, "/v1/storage-drs/recommendations", asked).await
    }

    /// Storage DRS in one page.
    pub async fn storage_drs(&self) -> Result<StorageDrs, ClientError> {
        self.get("/v1/storage-drs").await
    }

    /// Changes its settings; answers with what they are then.
    pub async fn change_storage_drs(
        &self,
        change: &ChangeStorageDrs,
    ) -> Result<StorageDrsSettings, ClientError> {
        self.call(Method::PATCH, "/v1/storage-drs", change).await
    }

    /// The rules of Storage DRS.
    pub async fn storage_rules(&self) -> Result<Vec<StorageRule>, ClientError> {
        self.get("/v1/storage-drs/rules").await
    }

    /// Makes a rule.
    pub async fn create_storage_rule(
        &self,
        request: &CreateStorageRule,
    ) -> Result<StorageRule, ClientError> {
        self.call(Method::POST, "/v1/storage-drs/rules", request).await
    }

    /// Removes a rule. Answers with what it was.
    pub async fn remove_storage_rule(
        &self,
        name: &str,
    ) -> Result<StorageRule, ClientError> {
        self.call(Method::DELETE, &path("storage-drs/rules", name), &()).await
    }

    /// All plans, the ended ones too.
    pub async fn plans(&self) -> Result<Vec<Plan>, ClientError> {
        self.get("/v1/plans").await
    }

    /// One plan.
    pub async fn plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.get(&path("plans", &id.to_string())).await
    }

    /// Makes a plan to empty a datastore; begins nothing.
    pub async fn plan_evacuation(
        &self,
        request: &PlanEvacuation,
    ) -> Result<Plan, ClientError> {
        self.call(Method::POST, "/v1/plans", request).await
    }

    /// Begins a plan.
    pub async fn apply_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "apply").await
    }

    /// Makes a plan and its moves stand still.
    pub async fn pause_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "pause").await
    }

    /// Makes a paused plan and its moves go on.
    pub async fn resume_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "resume").await
    }

    /// Gives a plan up.
    pub async fn cancel_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "cancel").await
    }

    /// Forgets a plan that has ended, or has never begun. Answers with what it was.
    pub async fn remove_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.call(Method::DELETE, &path("plans", &id.to_string()), &()).await
    }

    async fn act_on_plan(&self, id: u64, what: &str) -> Result<Plan, ClientError> {
        self.call(Method::POST, &format!("/v1/plans/{id}/{what}"), &()).await
    }

    /// Starts a migration.
    pub async fn migrate(
        &self,
        request: &StartMigration,
    ) -> Result<Migration, ClientError> {
        self.call(Method::POST, "/v1/migrations", request).await
    }

    /// Pauses a migration.
    pub async fn pause(&self, id: u64) -> Result<Migration, ClientError> {
        self.act(id, "pause").await
    }

    /// Makes a paused migration go on.
    pub async fn resume(
        &self,
        id: u64,
        how: ResumeMigration,
    ) -> Result<Migration, ClientError> {
        self.call(Method::POST, &format!("/v1/migrations/{id}/resume"), &how).await
    }

    /// Cancels a migration.
    pub async fn cancel(&self, id: u64) -> Result<Migration, ClientError> {
        self.act(id, "cancel").await
    }

    /// Changes a migration's rate.
    pub async fn set_rate(
        &self,
        id: u64,
        rate: Option<u64>,
    ) -> Result<Migration, ClientError> {
        let path = path("migrations", &id.to_string());
        self.call(Method::PATCH, &path, &SetRate { rate }).await
    }

    /// Changes what must hold while a disk moves; an empty guard lifts it.
    pub async fn set_guard(
        &self,
        id: u64,
        guard: &AskGuard,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/guard", path("migrations", &id.to_string()));
        self.call(Method::PUT, &path, guard).await
    }

    async fn act(&self, id: u64, what: &str) -> Result<Migration, ClientError> {
        self.call(Method::POST, &format!("/v1/migrations/{id}/{what}"), &()).await
    }
}

/// `/v1/<collection>/<name>`, the name escaped: it is what a user typed.
fn path(collection: &str, name: &str) -> String {
    format!("/v1/{collection}/{}", escaped(name))
}

fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_names_are_escaped() {
        assert_eq!(path("disks", "web-1"), "/v1/disks/web-1");
        assert_eq!(path("disks", "a b/ü"), "/v1/disks/a%20b%2F%C3%BC");
    }
}
