//! One call: a connection of its own over the daemon's unix socket.
//!
//! A call is rare and small, so nothing is pooled; a call that finds no daemon
//! says so as an error of its own, since that is the one a user meets most.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::Client;
use crate::Error;
use crate::command_header::{COMMAND, encode_command};
use crate::printable::make_printable;

/// A call that takes longer is one that somebody wonders about.
const LONG: Duration = Duration::from_secs(1);

/// A call that takes longer may never be answered: the daemon may have been stopped.
pub const SILENT: Duration = Duration::from_secs(5);

/// What there is to be told of a call that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It has taken a second, and there is no answer.
    Begun,
    /// It has taken [`SILENT`], and there is no answer.
    Silent,
    /// It is over.
    Over,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens on the socket.
    #[error("no daemon answers on {}", socket.display())]
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// What connecting said.
        source: io::Error,
    },
    /// The daemon is there, but this user may not talk to it.
    #[error("no permission to open {}", socket.display())]
    Forbidden {
        /// The socket.
        socket: PathBuf,
    },
    /// The connection broke in the middle of a call.
    #[error("the connection to the daemon broke")]
    Broken(#[source] hyper::Error),
    /// The daemon answered something that this client does not understand.
    #[error("the daemon's answer to {call} was not understood ({status})")]
    NotUnderstood {
        /// The call.
        call: String,
        /// The HTTP status.
        status: StatusCode,
        /// What was wrong with the body.
        source: serde_json::Error,
    },
    /// The daemon refused.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl Client {
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<T, ClientError> {
        self.call(Method::GET, path, &()).await
    }

    /// One call: connect, ask, read the answer. A body of `()` is no body.
    pub(super) async fn call<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let call = format!("{method} {path}");
        let body = encode(body);
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(hyper::header::HOST, "sterna");
        if let Some(command) = &self.command {
            request = request.header(COMMAND, encode_command(command));
        }
        if !body.is_empty() {
            request = request.header(hyper::header::CONTENT_TYPE, "application/json");
        }
        // A path is escaped, and may still be longer than a request can have.
        let request = request.body(Full::new(body)).map_err(|error| {
            Error::invalid(format!("no request can be made of that: {error}"))
                .hint("a name has at most 63 characters")
        })?;
        let (status, body) = self.patiently(self.send(request)).await?;
        let not_understood =
            |source| ClientError::NotUnderstood { call: call.clone(), status, source };
        if status.is_success() {
            self.read(&body).map_err(not_understood)
        } else {
            let refusal: Error = self.read(&body).map_err(not_understood)?;
            Err(refusal.into())
        }
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, serde_json::Error> {
        if !self.shown {
            return serde_json::from_slice(body);
        }
        let mut value = serde_json::from_slice(body)?;
        make_printable(&mut value);
        serde_json::from_value(value)
    }

    /// Waits for something, and tells of it where it takes long.
    async fn patiently<T>(&self, call: impl Future<Output = T>) -> T {
        let Some(tell) = self.waits else { return call.await };
        let mut call = pin!(call);
        if let Ok(answer) = tokio::time::timeout(LONG, &mut call).await {
            return answer;
        }
        tell(&self.socket, Waits::Begun);
        let answer = match tokio::time::timeout(SILENT - LONG, &mut call).await {
            Ok(answer) => answer,
            Err(_) => {
                tell(&self.socket, Waits::Silent);
                call.await
            }
        };
        tell(&self.socket, Waits::Over);
        answer
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|source| {
            let socket = self.socket.clone();
            match source.kind() {
                io::ErrorKind::PermissionDenied => ClientError::Forbidden { socket },
                _ => ClientError::NoDaemon { socket, source },
            }
        })?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(ClientError::Broken)?;
        // Ends by itself once the answer is read and `sender` is gone.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(ClientError::Broken)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(ClientError::Broken)?;
        Ok((status, body.to_bytes()))
    }
}

fn encode<B: Serialize>(body: &B) -> Bytes {
    match serde_json::to_vec(body).expect("API types are plain data") {
        text if text == b"null" => Bytes::new(),
        text => Bytes::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_daemon_is_an_error_of_its_own() {
        let client = Client::new("/nonexistent/sterna.sock");
        let error = client.status().await.unwrap_err();
        assert!(matches!(error, ClientError::NoDaemon { .. }), "{error:?}");
    }
}
