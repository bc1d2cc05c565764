//! What the command line answered.

use std::process::Output;

use serde_json::Value;

/// An exit code and what was said.
#[derive(Debug)]
pub struct Answer {
    /// The command, for messages.
    pub command: String,
    /// 0, 1 or 2.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
}

impl Answer {
    /// From a finished process.
    pub fn new(command: String, output: &Output) -> Answer {
        Answer {
            command,
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It must have succeeded.
    #[track_caller]
    pub fn ok(self) -> Answer {
        assert_eq!(
            self.code, 0,
            "`{}` failed:\n{}{}",
            self.command, self.stdout, self.stderr
        );
        self
    }

    /// It must have failed with exit code 1 and a message that has all of
    /// `words` in it (case does not matter) and says what to do.
    #[track_caller]
    pub fn fails_with(self, words: &[&str]) -> Answer {
        assert_eq!(
            self.code, 1,
            "`{}` should fail with 1:\n{}{}",
            self.command, self.stdout, self.stderr
        );
        // Messages are wrapped to the terminal's width.
        let text = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(
                text.to_lowercase().contains(&word.to_lowercase()),
                "`{}` should say {word:?}, but says:\n{}",
                self.command,
                self.stderr
            );
        }
        self
    }

    /// It must have been refused as a usage error.
    #[track_caller]
    pub fn is_usage_error(self) -> Answer {
        assert_eq!(
            self.code, 2,
            "`{}` should be a usage error:\n{}{}",
            self.command, self.stdout, self.stderr
        );
        assert!(!self.stderr.is_empty(), "`{}` should say why", self.command);
        self
    }

    /// Its output as JSON.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("`{}` gave no JSON ({error}):\n{}", self.command, self.stdout)
        })
    }
}
