//! Making a store: tables, rows, indexes, in this order.
//!
//! Several connections copy at the same time, each a piece of a table after the other.
//! What they copy follows from the seed alone, so it is the same however they share
//! the work. The row in `store` that says that all is there comes last: a load that
//! was killed, or ran out of space, is recognised, and made anew only if asked for.

use std::collections::VecDeque;
use std::io::Cursor;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::SinkExt;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::copy::Table;
use super::error::StoreError;
use super::population::Population;
use super::schema::{self, Tablespaces};
use super::server::{Found, Server, Store, check_tablespaces, find};
use super::size::Size;

/// Connections that load: a server with slow disks is kept busy, and a small one is
/// not drowned.
const LOADERS: usize = 4;
/// Customers, orders or products in one piece of work: seconds at most, so that the
/// last pieces end together.
const PIECE: u64 = 10_000;
/// So many bytes are sent at once.
const SENT: usize = 64 << 10;
/// Rows that an order has on average in the tables that have one for each line.
const LINES_MEAN: u64 = 5;

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// How much.
    pub size: Size,
    /// What the rows are made from.
    pub seed: u64,
    /// Where to.
    pub spaces: Tablespaces,
    /// Whether a store that is there is removed first.
    pub reload: bool,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// About so many rows of so many are there.
    Rows(u64, u64),
    /// So many indexes of so many are there.
    Indexes(u64, u64),
    /// What the server likes to know of its tables is collected.
    Analysis,
}

/// Loads a store.
pub async fn load(
    server: &Server,
    options: &LoadOptions,
    told: &mut dyn FnMut(Loading),
) -> Result<Store, StoreError> {
    let client = prepare(server, options).await?;
    let LoadOptions { size, seed, spaces, .. } = options;
    fill(server, Population { size: *size, seed: *seed }, told).await?;
    index(server, spaces, told).await?;
    for statement in schema::references() {
        client.batch_execute(statement).await?;
    }
    client.batch_execute(schema::NUMBERS).await?;
    client.batch_execute(&schema::functions()).await?;
    told(Loading::Analysis);
    for table in Table::ALL {
        let name = table.name();
        client.batch_execute(&format!("VACUUM (ANALYZE) dvdstore.{name}")).await?;
    }
    let row = "INSERT INTO dvdstore.store VALUES ($1, $2, now())";
    let (bytes, number) = (size.bytes().cast_signed(), seed.cast_signed());
    client.execute(row, &[&bytes, &number]).await?;
    Ok(Store { size: *size, seed: *seed })
}

/// Makes the tables, where there are none or they may be replaced.
async fn prepare(server: &Server, options: &LoadOptions) -> Result<Client, StoreError> {
    let client = server.connect().await?;
    check_tablespaces(&client, &options.spaces).await?;
    let drop = match find(&client).await? {
        Found::Nothing => "",
        Found::Unfinished | Found::Whole(_) if options.reload => schema::DROP,
        Found::Unfinished => return Err(StoreError::Unfinished),
        Found::Whole(store) => return Err(StoreError::Exists(store.size)),
    };
    let tables = schema::tables(&options.spaces);
    let create = schema::CREATE;
    client.batch_execute(&format!("BEGIN; {drop}; {create}; {tables} COMMIT")).await?;
    Ok(client)
}

/// What a loader does at a time.
enum Work {
    /// Copies these things of a table.
    Copy(Population, Table, Range<u64>),
    /// Builds an index.
    Index(String),
}

/// Copies all rows.
async fn fill(
    server: &Server,
    all: Population,
    told: &mut dyn FnMut(Loading),
) -> Result<(), StoreError> {
    let total = Table::ALL.map(|table| rows(table, table.count(all.size))).iter().sum();
    let pieces = Table::ALL.into_iter().flat_map(|table| pieces(all, table));
    let mut done = 0;
    told(Loading::Rows(0, total));
    spread(server, pieces.collect(), &mut |rows| {
        done += rows;
        told(Loading::Rows(done, total));
    })
    .await
}

fn pieces(all: Population, table: Table) -> impl Iterator<Item = Work> {
    let count = table.count(all.size);
    let starts = (0..count).step_by(PIECE as usize);
    starts
        .map(move |from| Work::Copy(all, table, from + 1..(from + PIECE).min(count) + 1))
}

/// About how many rows there are for so many things.
fn rows(table: Table, things: u64) -> u64 {
    match table {
        Table::OrderLines | Table::History => LINES_MEAN * things,
        _ => things,
    }
}

/// Builds all indexes.
async fn index(
    server: &Server,
    spaces: &Tablespaces,
    told: &mut dyn FnMut(Loading),
) -> Result<(), StoreError> {
    let statements = schema::indexes(spaces);
    let (total, mut done) = (statements.len() as u64, 0);
    told(Loading::Indexes(done, total));
    let work = statements.into_iter().map(Work::Index);
    spread(server, work.collect(), &mut |_| {
        done += 1;
        told(Loading::Indexes(done, total));
    })
    .await
}

/// Spreads work over the loaders; after the first failure none of it is begun.
async fn spread(
    server: &Server,
    work: VecDeque<Work>,
    told: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let work = Arc::new(Mutex::new(work));
    let (done, mut news) = unbounded_channel();
    let mut loaders = JoinSet::new();
    for _ in 0..LOADERS {
        let (server, work, done) = (server.clone(), Arc::clone(&work), done.clone());
        loaders.spawn(async move {
            let ended = loader(&server, &work, &done).await;
            if ended.is_err() {
                queue(&work).clear();
            }
            ended
        });
    }
    drop(done);
    while let Some(count) = news.recv().await {
        told(count);
    }
    while let Some(ended) = loaders.join_next().await {
        ended.expect("a loader does not panic")?;
    }
    Ok(())
}

fn queue(work: &Mutex<VecDeque<Work>>) -> MutexGuard<'_, VecDeque<Work>> {
    // A queue is whole whoever panicked.
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works until there is nothing left.
async fn loader(
    server: &Server,
    work: &Mutex<VecDeque<Work>>,
    done: &UnboundedSender<u64>,
) -> Result<(), StoreError> {
    let client = server.connect().await?;
    // What is lost in a crash is a load that is not finished anyway.
    client.batch_execute("SET synchronous_commit = off").await?;
    loop {
        let Some(next) = queue(work).pop_front() else { return Ok(()) };
        let count = match next {
            Work::Copy(all, table, numbers) => {
                copy(&client, all, table, numbers.clone()).await?;
                rows(table, numbers.end - numbers.start)
            }
            Work::Index(statement) => {
                client.batch_execute(&statement).await?;
                1
            }
        };
        // Whoever does not listen has seen another loader fail.
        let _ = done.send(count);
    }
}

/// Copies a piece of a table.
async fn copy(
    client: &Client,
    all: Population,
    table: Table,
    numbers: Range<u64>,
) -> Result<(), StoreError> {
    let sink = client.copy_in::<_, Cursor<Vec<u8>>>(&table.statement()).await?;
    let mut sink = pin!(sink);
    let mut text = String::with_capacity(SENT + 1024);
    for number in numbers {
        table.write(all, number..number + 1, &mut text);
        if text.len() >= SENT {
            sink.send(Cursor::new(std::mem::take(&mut text).into_bytes())).await?;
        }
    }
    sink.send(Cursor::new(text.into_bytes())).await?;
    sink.finish().await?;
    Ok(())
}
