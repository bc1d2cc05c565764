//! The server, and the store that is on it.
//!
//! A database has at most one store. Whether it is whole, of which size, and where its
//! tables are is asked before anything is done with it.

use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use super::error::{StoreError, causes, not_connected};
use super::schema::Tablespaces;
use super::size::Size;

/// How long a server may take to let somebody in.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// After so long a silence it is asked whether it is still there: hosts can vanish
/// without a goodbye.
const SILENCE: Duration = Duration::from_secs(15);

/// A PostgreSQL server, and a database on it.
#[derive(Clone, Debug)]
pub struct Server {
    config: Config,
}

/// A store that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its size when it was loaded.
    pub size: Size,
    /// What its rows were made from.
    pub seed: u64,
}

/// What is in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Unfinished,
    Whole(Store),
}

impl Server {
    /// The server that a URI names. A password in it goes before the other one.
    pub fn new(uri: &str, password: Option<String>) -> Result<Server, StoreError> {
        let mut config: Config =
            uri.parse().map_err(|error| StoreError::Uri(causes(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(StoreError::Uri("it names no host".into()));
        }
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        config.keepalives_idle(SILENCE).tcp_user_timeout(2 * SILENCE);
        config.application_name("sterna bench dvdstore");
        Ok(Server { config })
    }

    /// The store that is there, if it is whole.
    pub async fn store(&self) -> Result<Store, StoreError> {
        match find(&self.connect().await?).await? {
            Found::Nothing => Err(StoreError::NoStore),
            Found::Unfinished => Err(StoreError::Unfinished),
            Found::Whole(store) => Ok(store),
        }
    }

    /// The store that is there, if there is one; it must be this large, and where it
    /// is asked for.
    pub async fn store_like(
        &self,
        size: Size,
        spaces: &Tablespaces,
    ) -> Result<Option<Store>, StoreError> {
        let client = self.connect().await?;
        let store = match find(&client).await? {
            Found::Nothing => return Ok(None),
            Found::Unfinished => return Err(StoreError::Unfinished),
            Found::Whole(store) => store,
        };
        if store.size != size {
            return Err(StoreError::OtherSize { found: store.size, asked: size });
        }
        let asked = [
            ("tables", "dvdstore.orders", &spaces.data),
            ("indexes", "dvdstore.orders_pkey", &spaces.index),
        ];
        for (what, name, space) in asked {
            let Some(asked) = space else { continue };
            let found = tablespace_of(&client, name).await?;
            if found != *asked {
                let asked = asked.clone();
                return Err(StoreError::OtherTablespace { what, found, asked });
            }
        }
        Ok(Some(store))
    }

    /// A connection of one's own. It ends when the client is dropped.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let refused = |error| not_connected(&self.config, &error);
        let (client, connection) = self.config.connect(NoTls).await.map_err(refused)?;
        // How it ends is told to whoever asks for something on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }
}

/// What is in the database.
pub(crate) async fn find(client: &Client) -> Result<Found, StoreError> {
    let there = "SELECT to_regnamespace('dvdstore') IS NOT NULL,
        to_regclass('dvdstore.store') IS NOT NULL";
    let row = client.query_one(there, &[]).await?;
    match (row.get(0), row.get(1)) {
        (false, _) => return Ok(Found::Nothing),
        (true, false) => return Err(StoreError::Foreign),
        (true, true) => {}
    }
    let row = client.query_opt("SELECT size, seed FROM dvdstore.store", &[]).await?;
    let Some(row) = row else { return Ok(Found::Unfinished) };
    let (size, seed): (i64, i64) = (row.get(0), row.get(1));
    let size = Size::new(size.cast_unsigned()).map_err(|_| StoreError::Foreign)?;
    Ok(Found::Whole(Store { size, seed: seed.cast_unsigned() }))
}

/// The tablespace that a table or an index is in.
async fn tablespace_of(client: &Client, name: &str) -> Result<String, StoreError> {
    // 0 stands for the database's own.
    let sql = "SELECT spcname FROM pg_tablespace
        WHERE oid = coalesce(
            (SELECT nullif(reltablespace, 0) FROM pg_class WHERE oid = to_regclass($1)),
            (SELECT dattablespace FROM pg_database WHERE datname = current_database()))";
    Ok(client.query_one(sql, &[&name]).await?.get(0))
}

/// Fails if the server lacks one of the tablespaces.
pub(crate) async fn check_tablespaces(
    client: &Client,
    spaces: &Tablespaces,
) -> Result<(), StoreError> {
    let rows = client.query("SELECT spcname::text FROM pg_tablespace", &[]).await?;
    let there: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    for name in spaces.data.iter().chain(&spaces.index) {
        if !there.contains(name) {
            let (name, there) = (name.clone(), there.join(", "));
            return Err(StoreError::NoTablespace { name, there });
        }
    }
    Ok(())
}
