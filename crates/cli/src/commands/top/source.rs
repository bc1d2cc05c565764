//! Where the screen's rows come from: a thread that asks the daemon, so that one that
//! does not answer does not stop the keys. It hears of the signals that end a program,
//! too: the screen must be put back before.
//!
//! **If the terminal is gone**, a read of its keys gives nothing, at once, and the screen would
//! read for ever and keep a processor busy. So if the screen has not ended soon after a signal
//! ([`ENDS`]), this thread ends the program.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sterna_api::{Client, ClientError, MemoryTop, Top, TopBy};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// So long the screen may take to end: it looks for news twenty times a second.
const ENDS: Duration = Duration::from_secs(1);

/// What the screen is told.
#[derive(Debug)]
pub(super) enum News {
    /// The daemon has answered.
    Rows(Box<Result<Top, ClientError>>),
    /// How the host's memory is.
    Memory(Box<MemoryTop>),
    /// The program is to end.
    Stop,
}

/// The thread's other end.
pub(super) struct Source {
    /// One question waits at most: a second would ask for what is old by then.
    asks: tokio::sync::mpsc::Sender<TopBy>,
    news: mpsc::Receiver<News>,
}

impl Source {
    /// Starts the thread. It ends with this end.
    pub(super) fn start(client: Client, window_s: f64) -> anyhow::Result<Source> {
        let (asks, asked) = tokio::sync::mpsc::channel(1);
        let (told, news) = mpsc::channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build()?;
        let signals = {
            let _runtime = runtime.enter();
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
                .map(signal)
        };
        let [terminate, interrupt, hangup] = signals;
        let signals = [terminate?, interrupt?, hangup?];
        let answering = answer(client, window_s, asked, told.clone());
        let stopping = async move {
            any(signals).await;
            // The screen is gone if nobody listens.
            let _ = told.send(News::Stop);
            tokio::time::sleep(ENDS).await;
            // There may be no terminal to put back, nor anybody to tell.
            let _ = ratatui::try_restore();
            std::process::exit(0);
        };
        thread::Builder::new().name("sterna-top".into()).spawn(move || {
            runtime.block_on(async { tokio::join!(answering, stopping) })
        })?;
        Ok(Source { asks, news })
    }

    /// Asks for rows, unless the last question still waits.
    pub(super) fn ask(&self, by: TopBy) {
        // Full is as good as asked; a thread that is gone has said why.
        let _ = self.asks.try_send(by);
    }

    /// What there is to tell.
    pub(super) fn news(&self) -> impl Iterator<Item = News> {
        self.news.try_iter()
    }
}

async fn answer(
    client: Client,
    window_s: f64,
    mut asked: tokio::sync::mpsc::Receiver<TopBy>,
    told: mpsc::Sender<News>,
) {
    while let Some(by) = asked.recv().await {
        let rows = client.top(by, window_s).await;
        if told.send(News::Rows(Box::new(rows))).is_err() {
            return;
        }
        // Of a daemon that does not answer the rows tell.
        if let Ok(memory) = client.memory_top().await
            && told.send(News::Memory(Box::new(memory))).is_err()
        {
            return;
        }
    }
}

async fn any(mut signals: [Signal; 3]) {
    let [terminate, interrupt, hangup] = &mut signals;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
}
