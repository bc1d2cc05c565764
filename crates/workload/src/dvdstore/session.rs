//! A user's connection, and a visit on it.
//!
//! Each transaction is one statement but for the purchase, which is a transaction that
//! the user begins, and ends with a commit or, if something was not in stock, with a
//! rollback. An order counts as acknowledged when the answer to its commit is here.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::{Client, Error, Statement};

use super::error::{StoreError, chain, kind};
use super::population::{Person, username};
use super::server::Server;
use super::shopper::{Entry, Search, Shopper, Visit};

const LOGIN: &str = "
    SELECT c.customerid, h.title, h.actor, h.related
    FROM dvdstore.customers c LEFT JOIN LATERAL (
        SELECT p.title, p.actor, q.title AS related
        FROM dvdstore.cust_hist h
            JOIN dvdstore.products p ON p.prod_id = h.prod_id
            JOIN dvdstore.products q ON q.prod_id = p.common_prod_id
        WHERE h.customerid = c.customerid
        ORDER BY h.orderid DESC LIMIT 10) h ON true
    WHERE c.username = $1 AND c.password = $2";
const NEW_CUSTOMER: &str = "
    INSERT INTO dvdstore.customers (firstname, lastname, address1, address2, city,
        state, zip, country, region, email, phone, creditcardtype, creditcard,
        creditcardexpiration, username, password, age, income, gender)
    VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
        $17, $18)
    ON CONFLICT DO NOTHING RETURNING customerid";
const BY_CATEGORY: &str = "
    SELECT * FROM dvdstore.products WHERE category = $1 AND special = 1 LIMIT $2";
const BY_TITLE: &str = "
    SELECT * FROM dvdstore.products
    WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) LIMIT $2";
const BY_ACTOR: &str = "
    SELECT * FROM dvdstore.products
    WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) LIMIT $2";
const PURCHASE: &str = "SELECT dvdstore.purchase($1, $2, $3, $4, $5)";

/// What somebody does in the store, and all of it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Order,
    Login,
    NewCustomer,
    Browse,
    Purchase,
}

/// A user who is in.
pub(crate) struct Session {
    client: Client,
    login: Statement,
    new_customer: Statement,
    by_category: Statement,
    by_title: Statement,
    by_actor: Statement,
    purchase: Statement,
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With an order: its number and its customer's.
    Order(i32, i32),
    /// Something was not in stock, and all of the purchase was undone.
    RolledBack,
}

/// Why a visit ended without either.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// The same for all errors of a kind.
    pub(crate) kind: String,
    /// In words.
    pub(crate) text: String,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble { kind: kind(&error), text: chain(&error) }
    }
}

impl Session {
    /// Lets a user in.
    pub(crate) async fn open(server: &Server) -> Result<Session, StoreError> {
        let client = server.connect().await?;
        Ok(Session {
            login: client.prepare(LOGIN).await?,
            new_customer: client.prepare(NEW_CUSTOMER).await?,
            by_category: client.prepare(BY_CATEGORY).await?,
            by_title: client.prepare(BY_TITLE).await?,
            by_actor: client.prepare(BY_ACTOR).await?,
            purchase: client.prepare(PURCHASE).await?,
            client,
        })
    }

    /// Whether the server has gone away.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Carries out a visit; each transaction's time is told.
    pub(crate) async fn visit(
        &mut self,
        visit: &Visit,
        shopper: &mut Shopper,
        took: &mut (dyn FnMut(Kind, Duration) + Send),
    ) -> Result<Outcome, Trouble> {
        let began = Instant::now();
        let customer = match &visit.entry {
            Entry::Login(number) => {
                let customer = self.login(*number, shopper.password()).await?;
                took(Kind::Login, began.elapsed());
                customer
            }
            Entry::New(person) => {
                let customer = self.new_customer(person, shopper).await?;
                took(Kind::NewCustomer, began.elapsed());
                customer
            }
        };
        for (search, most) in &visit.searches {
            let began = Instant::now();
            self.browse(search, *most).await?;
            took(Kind::Browse, began.elapsed());
        }
        let began = Instant::now();
        let outcome = self.purchase(customer, visit).await?;
        took(Kind::Purchase, began.elapsed());
        Ok(outcome)
    }

    async fn login(&self, number: u64, password: &str) -> Result<i32, Trouble> {
        let name = username(number);
        let rows = self.client.query(&self.login, &[&name, &password]).await?;
        match rows.first() {
            Some(row) => Ok(row.get(0)),
            None => Err(Trouble {
                kind: "login".into(),
                text: format!("{name} is not among the customers"),
            }),
        }
    }

    /// Takes another name until one is free.
    async fn new_customer(
        &self,
        one: &Person,
        shopper: &mut Shopper,
    ) -> Result<i32, Trouble> {
        loop {
            let (name, password) = (shopper.username(), shopper.password());
            let row = self
                .client
                .query_opt(
                    &self.new_customer,
                    &[
                        &one.first_name,
                        &one.last_name,
                        &one.address,
                        &one.city,
                        &one.state,
                        &one.zip,
                        &one.country,
                        &one.region,
                        &one.email,
                        &one.phone,
                        &one.card_type,
                        &one.card,
                        &one.expires,
                        &name,
                        &password,
                        &one.age,
                        &one.income,
                        &one.gender,
                    ],
                )
                .await?;
            if let Some(row) = row {
                return Ok(row.get(0));
            }
        }
    }

    async fn browse(&self, search: &Search, most: i64) -> Result<(), Trouble> {
        match search {
            Search::Category(one) => {
                self.client.query(&self.by_category, &[one, &most]).await?
            }
            Search::Title(word) => {
                self.client.query(&self.by_title, &[word, &most]).await?
            }
            Search::Actor(name) => {
                self.client.query(&self.by_actor, &[name, &most]).await?
            }
        };
        Ok(())
    }

    async fn purchase(&mut self, customer: i32, of: &Visit) -> Result<Outcome, Trouble> {
        // Products are numbered with 31 bits, and nobody buys more than a few of one.
        let products: Vec<i32> = of.cart.iter().map(|line| line.product as i32).collect();
        let counts: Vec<i32> = of.cart.iter().map(|line| line.quantity as i32).collect();
        let (net, tax) = (of.cost.net.cast_signed(), of.cost.tax.cast_signed());
        let transaction = self.client.transaction().await?;
        let row = transaction
            .query_one(&self.purchase, &[&customer, &products, &counts, &net, &tax])
            .await?;
        match row.get(0) {
            0 => {
                transaction.rollback().await?;
                Ok(Outcome::RolledBack)
            }
            order => {
                transaction.commit().await?;
                Ok(Outcome::Order(order, customer))
            }
        }
    }
}
