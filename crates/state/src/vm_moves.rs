//! The record of a move of a VM's disk.
//!
//! It has the steps of a migration (`steps`), with QEMU as the one who switches over:
//! from `switching` on the destination may be the truth, and only QEMU can say. It has a
//! number of the migrations' too, so that a number means one move, of whatever kind.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sterna_api::{Application, Guard, Report};

use super::{Ending, KnownFile, MadeFile, Step, VmMoveKind};
use super::{Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql};

/// A move, as the state knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct VmMoveRecord {
    /// Its number; given by the store.
    pub id: u64,
    /// What it makes of the disk.
    pub kind: VmMoveKind,
    /// The VM's name.
    pub vm: String,
    /// The disk.
    pub device: String,
    /// Its size.
    pub size: u64,
    /// How its bytes are kept where it goes.
    pub format: String,
    /// Where it was: a datastore, or a directory that is none.
    pub from: String,
    /// Its image there.
    pub source: String,
    /// The file of that image: as it was when the move was asked for, and from the end on
    /// as the disk has left it. Nothing if that is no file, was replaced meanwhile, or if
    /// an older Sterna has recorded the move.
    pub source_file: Option<KnownFile>,
    /// Where it goes: a datastore, or a directory that is none.
    pub to: String,
    /// Its image there; known once the move has its number.
    pub destination: String,
    /// The file of that image, once it was made for this move. Nothing if that is no file,
    /// or if an older Sterna has made it.
    pub destination_file: Option<MadeFile>,
    /// The limit of the copy, bytes per second.
    pub rate: Option<u64>,
    /// What must hold meanwhile.
    pub guard: Guard,
    /// Where it is.
    pub step: Step,
    /// Whether somebody wants it to stand still.
    pub paused: bool,
    /// Whether somebody wants it to be given up.
    pub cancel: bool,
    /// When it was asked for (seconds since 1970).
    pub started: u64,
    /// When it ended (seconds since 1970).
    pub ended: Option<u64>,
    /// How it ended, if not as asked.
    pub note: Option<String>,
    /// What was noticed.
    pub application: Application,
    /// What it came to.
    pub report: Option<Report>,
    /// Nobody has seen in which image the last writes are.
    pub unclear: bool,
}

/// What a move leaves behind when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaves {
    /// Its VM may still have something of it.
    pub untidy: bool,
    /// The last writes may be in either image.
    pub unclear: bool,
    /// The file that the disk has left, as it was then.
    pub source_file: Option<KnownFile>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<VmMoveRecord> {
    let optional = |column: &str| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(from_sql))
    };
    Ok(VmMoveRecord {
        id: from_sql(row.get("id")?),
        kind: from_json(row, "kind")?,
        vm: row.get("vm")?,
        device: row.get("device")?,
        size: from_sql(row.get("size")?),
        format: row.get("format")?,
        from: row.get("from_place")?,
        source: row.get("from_image")?,
        source_file: from_json(row, "source_file")?,
        to: row.get("to_datastore")?,
        destination: row.get("to_image")?,
        destination_file: from_json(row, "destination_file")?,
        rate: optional("rate")?,
        guard: from_json(row, "guard")?,
        step: parsed(row, "step")?,
        paused: row.get("paused")?,
        cancel: row.get("cancel")?,
        started: from_sql(row.get("started")?),
        ended: optional("ended")?,
        note: row.get("note")?,
        application: from_json(row, "application")?,
        report: from_json(row, "report")?,
        unclear: row.get("unclear")?,
    })
}

/// The next number of the migrations.
fn next_number(connection: &Connection) -> rusqlite::Result<i64> {
    let bumped = connection.execute(
        "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'migrations'",
        [],
    )?;
    if bumped == 0 {
        let first = "INSERT INTO sqlite_sequence (name, seq) VALUES ('migrations', 1)";
        connection.execute(first, [])?;
    }
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'migrations'";
    connection.query_row(sql, [], |row| row.get(0))
}

fn insert(connection: &Connection, one: &VmMoveRecord) -> rusqlite::Result<u64> {
    let id = next_number(connection)?;
    connection.execute(
        "INSERT INTO vm_moves (id, vm, device, size, format, from_place, from_image,
         to_datastore, to_image, rate, guard, step, paused, cancel, started, application,
         kind, source_file)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            id,
            one.vm,
            one.device,
            to_sql(one.size),
            one.format,
            one.from,
            one.source,
            one.to,
            one.destination,
            one.rate.map(to_sql),
            to_json(&one.guard),
            one.step.text(),
            one.paused,
            one.cancel,
            to_sql(one.started),
            to_json(&one.application),
            to_json(&one.kind),
            one.source_file.as_ref().map(to_json),
        ],
    )?;
    Ok(from_sql(id))
}

/// Moves a record to `next`, if its step leads there.
fn advance(connection: &Connection, id: u64, next: Step) -> Result<(), StoreError> {
    if !step_of(connection, id)?.is_some_and(|step| step.leads_to(next)) {
        return Err(StoreError::Step { id, wanted: next });
    }
    let sql = "UPDATE vm_moves SET step = ? WHERE id = ?";
    let set = connection.execute(sql, params![next.text(), to_sql(id)]);
    set.map(drop).map_err(cannot("record a move's step"))
}

/// Where a move is, if that number is one.
fn step_of(connection: &Connection, id: u64) -> Result<Option<Step>, StoreError> {
    let sql = "SELECT step FROM vm_moves WHERE id = ?";
    connection
        .query_row(sql, [to_sql(id)], |row| parsed(row, "step"))
        .optional()
        .map_err(cannot("look up a move's step"))
}

impl Store {
    /// All moves of VMs' disks, oldest first.
    pub fn vm_moves(&self) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.list_vm_moves("SELECT * FROM vm_moves ORDER BY id")
    }

    /// Those that have ended, and of which their VM may still have something.
    pub fn untidy_vm_moves(&self) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.list_vm_moves("SELECT * FROM vm_moves WHERE untidy ORDER BY id")
    }

    /// Whether a move is one of those.
    pub fn vm_move_is_untidy(&self, id: u64) -> Result<bool, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT untidy FROM vm_moves WHERE id = ?";
            connection.query_row(sql, [to_sql(id)], |row| row.get(0))
        })?
        .map_err(cannot("look up what is left of a move"))
    }

    /// The VM has nothing of it any more; and what is noted of its end from now on.
    pub fn vm_move_is_tidy(
        &self,
        id: u64,
        note: Option<String>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE vm_moves SET untidy = FALSE, note = ?1 WHERE id = ?2";
        self.set(id, sql, note)
    }

    /// The same, and the VM was found with the destination after all.
    pub fn vm_move_is_unclear(&self, id: u64, note: String) -> Result<(), StoreError> {
        let sql = "UPDATE vm_moves SET untidy = FALSE, unclear = TRUE, note = ?1
                   WHERE id = ?2";
        self.set(id, sql, Some(note))
    }

    /// The last move of each VM's disk that has led somewhere, or may have: one that was
    /// given up changes nothing of what the ones before have left.
    pub fn last_vm_moves(&self) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.list_vm_moves(
            "SELECT * FROM vm_moves WHERE id IN
             (SELECT max(id) FROM vm_moves WHERE step = 'completed' OR unclear
              GROUP BY vm, device)
             ORDER BY id",
        )
    }

    /// The last move by which a VM's disk has left an image, if none has brought it back
    /// since.
    pub fn left_by_vm_move(
        &self,
        vm: &str,
        device: &str,
        image: &str,
    ) -> Result<Option<VmMoveRecord>, StoreError> {
        let asked = [vm, device, image].map(str::to_owned);
        self.run(move |connection| {
            let sql = "SELECT * FROM vm_moves AS one
                 WHERE step = 'completed' AND vm = ?1 AND device = ?2 AND from_image = ?3
                 AND NOT EXISTS (SELECT 1 FROM vm_moves AS later
                     WHERE later.step = 'completed' AND later.vm = ?1
                     AND later.device = ?2 AND later.to_image = ?3
                     AND later.id > one.id)
                 ORDER BY id DESC LIMIT 1";
            connection.query_row(sql, asked, read).optional()
        })?
        .map_err(cannot("look up a move"))
    }

    /// Those of which nobody has seen in which image the last writes are.
    pub fn unclear_vm_moves(&self) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.list_vm_moves("SELECT * FROM vm_moves WHERE unclear ORDER BY id")
    }

    /// Somebody has decided in which image the last writes of a move are.
    pub fn vm_move_is_clear(&self, id: u64) -> Result<(), StoreError> {
        self.set(id, "UPDATE vm_moves SET unclear = FALSE WHERE id = ?2", None::<i64>)
    }

    /// Those that have not ended, which are few, however many there were.
    pub fn open_vm_moves(&self) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.list_vm_moves(
            "SELECT * FROM vm_moves WHERE step NOT IN ('completed', 'cancelled')
             ORDER BY id",
        )
    }

    fn list_vm_moves(&self, sql: &'static str) -> Result<Vec<VmMoveRecord>, StoreError> {
        self.run(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the moves"))
    }

    /// One move, if that number is one.
    pub fn vm_move(&self, id: u64) -> Result<Option<VmMoveRecord>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM vm_moves WHERE id = ?";
            connection.query_row(sql, [to_sql(id)], read).optional()
        })?
        .map_err(cannot("look up a move"))
    }

    /// Adds a move, and names its destination by its number; gives that. What another one
    /// copies to, or may not have put away, is that one's.
    pub fn add_vm_move(
        &self,
        one: VmMoveRecord,
        name: impl FnOnce(u64) -> String + Send + 'static,
    ) -> Result<u64, StoreError> {
        self.transact(move |transaction| {
            let id = insert(transaction, &one).map_err(cannot("add a move"))?;
            let place = name(id);
            let sql = "SELECT id FROM vm_moves WHERE to_image = ?
                       AND (untidy OR step NOT IN ('completed', 'cancelled'))";
            let other: Option<i64> = transaction
                .query_row(sql, [&place], |row| row.get(0))
                .optional()
                .map_err(cannot("look up where moves go"))?;
            if let Some(other) = other {
                return Err(StoreError::Taken { place, id: from_sql(other) });
            }
            let sql = "UPDATE vm_moves SET to_image = ? WHERE id = ?";
            let named = transaction.execute(sql, params![place, to_sql(id)]);
            named.map_err(cannot("add a move"))?;
            Ok(id)
        })
    }

    /// The move goes on to its next step. That may have been recorded, and the answer got
    /// lost: then it is where it is to be.
    pub fn vm_move_advances(&self, id: u64, next: Step) -> Result<(), StoreError> {
        self.transact(move |transaction| match step_of(transaction, id)? {
            Some(now) if now == next => Ok(()),
            _ => advance(transaction, id, next),
        })
    }

    /// The VM is to be told to switch over, unless somebody wants the move to be given
    /// up; says whether it is.
    pub fn vm_move_switches(&self, id: u64) -> Result<bool, StoreError> {
        self.transact(move |transaction| {
            let sql = "SELECT cancel FROM vm_moves WHERE id = ?";
            let cancel: bool = transaction
                .query_row(sql, [to_sql(id)], |row| row.get(0))
                .map_err(cannot("look up what is asked of a move"))?;
            match step_of(transaction, id)? {
                Some(Step::Switching) => Ok(true),
                _ if cancel => Ok(false),
                _ => advance(transaction, id, Step::Switching).map(|()| true),
            }
        })
    }

    /// Its destination is this file, and no other one that may have its name later.
    pub fn vm_move_made(&self, id: u64, file: MadeFile) -> Result<(), StoreError> {
        let sql = "UPDATE vm_moves SET destination_file = ?1 WHERE id = ?2";
        self.set(id, sql, Some(to_json(&file)))
    }

    /// Somebody wants it to be given up.
    pub fn vm_move_cancel(&self, id: u64) -> Result<(), StoreError> {
        self.set(id, "UPDATE vm_moves SET cancel = TRUE WHERE id = ?2", None::<i64>)
    }

    /// Somebody wants it to stand still, or to go on.
    pub fn vm_move_pause(&self, id: u64, paused: bool) -> Result<(), StoreError> {
        self.set(id, "UPDATE vm_moves SET paused = ?1 WHERE id = ?2", Some(paused))
    }

    /// The copy has another limit.
    pub fn vm_move_rate(&self, id: u64, rate: Option<u64>) -> Result<(), StoreError> {
        let sql = "UPDATE vm_moves SET rate = ?1 WHERE id = ?2";
        self.set(id, sql, rate.map(to_sql))
    }

    /// Something else must hold.
    pub fn vm_move_guard(&self, id: u64, guard: &Guard) -> Result<(), StoreError> {
        let sql = "UPDATE vm_moves SET guard = ?1 WHERE id = ?2";
        self.set(id, sql, Some(to_json(guard)))
    }

    /// The move has ended. One that is given up while it switches over ends at once: at no
    /// moment is it one whose destination holds but a part of a copy.
    pub fn vm_move_ends(
        &self,
        id: u64,
        step: Step,
        ending: Ending,
        leaves: Leaves,
    ) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            match step_of(transaction, id)? {
                // It was recorded, and the answer got lost.
                Some(now) if now == step => return Ok(()),
                Some(Step::Switching) if step == Step::Cancelled => {
                    advance(transaction, id, Step::Copying)?;
                }
                _ => {}
            }
            advance(transaction, id, step)?;
            let sql = "UPDATE vm_moves SET ended = ?, note = ?, application = ?,
                       report = ?, untidy = ?, unclear = ?, source_file = ?
                       WHERE id = ?";
            let values = params![
                to_sql(ending.at),
                ending.note,
                to_json(&ending.application),
                ending.report.as_ref().map(to_json),
                leaves.untidy,
                leaves.unclear,
                leaves.source_file.as_ref().map(to_json),
                to_sql(id),
            ];
            let set = transaction.execute(sql, values);
            set.map(drop).map_err(cannot("record a move's end"))
        })
    }

    fn set(
        &self,
        id: u64,
        sql: &'static str,
        value: Option<impl rusqlite::ToSql + Send + 'static>,
    ) -> Result<(), StoreError> {
        self.run(move |connection| {
            connection.execute(sql, params![value, to_sql(id)]).map(drop)
        })?
        .map_err(cannot("change a move"))
    }
}
