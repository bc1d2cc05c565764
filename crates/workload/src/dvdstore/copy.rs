//! Rows as PostgreSQL's COPY takes them: text, a tab between columns.
//!
//! Nothing that a [`Population`] makes has a tab, a line's end or a backslash in it,
//! so nothing has to be escaped.

use std::fmt::Write as _;
use std::ops::Range;

use super::population::{CATEGORIES, Cost, PASSWORD, Population, username};
use super::size::Size;

/// The year that the first orders were made in.
const YEAR: u32 = 2025;

/// A table that is filled when a store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Categories,
    Products,
    Inventory,
    Customers,
    Orders,
    OrderLines,
    History,
}

impl Table {
    /// All of them; the large ones begin first.
    pub(crate) const ALL: [Table; 7] = [
        Table::OrderLines,
        Table::Customers,
        Table::History,
        Table::Orders,
        Table::Products,
        Table::Inventory,
        Table::Categories,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Categories => "categories",
            Table::Products => "products",
            Table::Inventory => "inventory",
            Table::Customers => "customers",
            Table::Orders => "orders",
            Table::OrderLines => "orderlines",
            Table::History => "cust_hist",
        }
    }

    /// How many things it is made of: for the lines of orders, the orders.
    pub(crate) fn count(self, size: Size) -> u64 {
        match self {
            Table::Categories => CATEGORIES.len() as u64,
            Table::Products | Table::Inventory => size.products(),
            Table::Customers => size.customers(),
            Table::Orders | Table::OrderLines | Table::History => size.orders(),
        }
    }

    /// The statement that takes its rows.
    pub(crate) fn statement(self) -> String {
        // Columns that the database fills by itself are not named.
        let columns = match self {
            Table::Inventory => " (prod_id, quan_in_stock, sales)",
            _ => "",
        };
        format!("COPY dvdstore.{}{columns} FROM STDIN", self.name())
    }

    /// Appends the rows of the things with these numbers; gives how many there were.
    pub(crate) fn write(self, all: Population, of: Range<u64>, to: &mut String) -> u64 {
        of.map(|number| write_rows(self, all, number, to)).sum()
    }
}

fn write_rows(table: Table, all: Population, number: u64, to: &mut String) -> u64 {
    let written = match table {
        Table::Categories => {
            writeln!(to, "{number}\t{}", CATEGORIES[number as usize - 1])
        }
        Table::Products => write_product(all, number, to),
        Table::Inventory => writeln!(to, "{number}\t{}\t0", all.product(number).stock),
        Table::Customers => write_customer(all, number, to),
        Table::Orders => {
            let order = all.order(number);
            let Cost { net, tax } = order.cost;
            let (date, customer) = (date(order.month, order.day), order.customer);
            let (net, tax, total) = (money(net), money(tax), money(order.cost.total()));
            writeln!(to, "{number}\t{date}\t{customer}\t{net}\t{tax}\t{total}")
        }
        Table::OrderLines | Table::History => return write_lines(table, all, number, to),
    };
    written.expect("a string takes everything");
    1
}

fn write_product(all: Population, number: u64, to: &mut String) -> std::fmt::Result {
    let one = all.product(number);
    writeln!(
        to,
        "{number}\t{}\t{}\t{}\t{}.99\t{}\t{}",
        one.category,
        one.title,
        one.actor,
        one.dollars,
        u8::from(one.special),
        one.common
    )
}

fn write_customer(all: Population, number: u64, to: &mut String) -> std::fmt::Result {
    let one = all.customer(number);
    write!(
        to,
        "{number}\t{}\t{}\t{}\t\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        one.first_name,
        one.last_name,
        one.address,
        one.city,
        one.state,
        one.zip,
        one.country,
        one.region,
        one.email,
        one.phone
    )?;
    writeln!(
        to,
        "\t{}\t{}\t{}\t{}\t{PASSWORD}\t{}\t{}\t{}",
        one.card_type,
        one.card,
        one.expires,
        username(number),
        one.age,
        one.income,
        one.gender
    )
}

fn write_lines(table: Table, all: Population, number: u64, to: &mut String) -> u64 {
    let order = all.order(number);
    let date = date(order.month, order.day);
    for (index, line) in order.lines.iter().enumerate() {
        let (product, quantity) = (line.product, line.quantity);
        let written = match table {
            Table::History => writeln!(to, "{}\t{number}\t{product}", order.customer),
            _ => writeln!(to, "{}\t{number}\t{product}\t{quantity}\t{date}", index + 1),
        };
        written.expect("a string takes everything");
    }
    order.lines.len() as u64
}

fn date(month: u64, day: u64) -> String {
    format!("{YEAR}-{month:02}-{day:02}")
}

/// Cents, as an amount.
pub(crate) fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: Table) -> String {
        let size = "1M".parse().expect("a size");
        let mut text = String::new();
        table.write(Population { size, seed: 1 }, 1..11, &mut text);
        text
    }

    #[test]
    fn every_row_has_the_columns_of_its_table() {
        for (table, columns) in [
            (Table::Categories, 2),
            (Table::Products, 7),
            (Table::Inventory, 3),
            (Table::Customers, 20),
            (Table::Orders, 6),
            (Table::OrderLines, 5),
            (Table::History, 3),
        ] {
            for row in rows(table).lines() {
                assert_eq!(row.split('\t').count(), columns, "{}: {row}", table.name());
                assert!(!row.contains('\\'), "{row}");
            }
        }
    }

    #[test]
    fn history_has_a_row_for_each_line_of_an_order() {
        let (lines, history) = (rows(Table::OrderLines), rows(Table::History));
        let products = |text: &str, at: usize| -> Vec<String> {
            text.lines().map(|row| row.split('\t').nth(at).unwrap().into()).collect()
        };
        assert_eq!(products(&lines, 2), products(&history, 2));
    }

    #[test]
    fn money_has_two_digits_after_the_point() {
        assert_eq!(money(1), "0.01");
        assert_eq!(money(43_300), "433.00");
    }
}
