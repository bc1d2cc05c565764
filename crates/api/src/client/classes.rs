//! What can be asked about service levels: classes and policies.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{ChangeClass, Class, CreateClass, CreatePolicy, Explanation, Policy};

impl Client {
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
}
