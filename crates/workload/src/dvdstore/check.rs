//! Whether every acknowledged order is there, with its lines.

use std::path::Path;

use serde::Serialize;
use tokio_postgres::Row;

use super::error::StoreError;
use super::ledger::{self, Acknowledged};
use super::server::{Found, Server, find};

/// Orders that are asked for at once.
const ASKED: usize = 1000;

const ORDERS: &str = "
    SELECT o.customerid, (o.totalamount * 100)::bigint,
        (SELECT count(*) FROM dvdstore.orderlines l WHERE l.orderid = a.id),
        (SELECT count(*) FROM dvdstore.cust_hist h
            WHERE h.customerid = o.customerid AND h.orderid = a.id)
    FROM unnest($1::integer[]) WITH ORDINALITY a (id, place)
        LEFT JOIN dvdstore.orders o ON o.orderid = a.id
    ORDER BY a.place";

/// What the comparison came to.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Orders that were acknowledged.
    pub acknowledged: u64,
    /// Those that are not there as they were acknowledged.
    pub missing: Vec<Missing>,
}

/// An order that is not there as it was acknowledged.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// The order.
    #[serde(flatten)]
    pub order: Acknowledged,
    /// What is there instead.
    pub why: String,
}

/// What the database has of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct There {
    customer: i32,
    total_cents: i64,
    lines: i64,
    history: i64,
}

/// Asks for every order that a file names.
pub async fn check(server: &Server, path: &Path) -> Result<Verdict, StoreError> {
    let orders = ledger::read(path)?;
    let client = server.connect().await?;
    if find(&client).await? == Found::Nothing {
        return Err(StoreError::NoStore);
    }
    let statement = client.prepare(ORDERS).await?;
    let mut missing = Vec::new();
    for some in orders.chunks(ASKED) {
        let numbers: Vec<i32> = some.iter().map(|one| one.order).collect();
        let rows = client.query(&statement, &[&numbers]).await?;
        let wrong = some.iter().zip(&rows).filter_map(|(order, row)| {
            let why = compare(order, there(row))?;
            Some(Missing { order: *order, why })
        });
        missing.extend(wrong);
    }
    Ok(Verdict { acknowledged: orders.len() as u64, missing })
}

fn there(row: &Row) -> Option<There> {
    let customer: Option<i32> = row.get(0);
    Some(There {
        customer: customer?,
        total_cents: row.get(1),
        lines: row.get(2),
        history: row.get(3),
    })
}

/// What is wrong with an order, if anything is.
fn compare(order: &Acknowledged, there: Option<There>) -> Option<String> {
    let Some(there) = there else { return Some("it is not there".into()) };
    let Acknowledged { customer, total_cents, lines, .. } = *order;
    if there.customer != customer {
        Some(format!("it is customer {}'s", there.customer))
    } else if there.total_cents != total_cents {
        let total = Acknowledged { total_cents: there.total_cents, ..*order }.total();
        Some(format!("its total is {total}"))
    } else if there.lines != lines {
        Some(format!("{} of its {lines} lines are there", there.lines))
    } else if there.history != lines {
        Some(format!("{} of its {lines} lines are in the history", there.history))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_about_an_order_is_compared() {
        let order = Acknowledged {
            order: 1,
            customer: 7,
            total_cents: 1205,
            lines: 3,
            unix_ms: 0,
        };
        let there = There { customer: 7, total_cents: 1205, lines: 3, history: 3 };
        assert_eq!(compare(&order, Some(there)), None);
        for (other, word) in [
            (None, "not there"),
            (Some(There { customer: 8, ..there }), "customer 8"),
            (Some(There { total_cents: 5, ..there }), "0.05"),
            (Some(There { lines: 2, ..there }), "2 of its 3"),
            (Some(There { history: 0, ..there }), "history"),
        ] {
            let why = compare(&order, other).expect("wrong");
            assert!(why.contains(word), "{why}");
        }
    }
}
