//! The machine that an experiment ran on, as far as its figures depend on it.

use std::fs;

/// What the machine is, in names and values. What the system does not tell is left
/// out.
pub(crate) fn facts() -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let model = line_of("/proc/cpuinfo", "model name", ':');
    let model = model.map_or(format!("{cpus} CPUs"), |model| format!("{cpus} × {model}"));
    add("processor", Some(model));
    let memory = line_of("/proc/meminfo", "MemTotal", ':').as_deref().and_then(kilobytes);
    add("memory", memory.map(sterna_console::format::bytes));
    add("kernel", read("/proc/sys/kernel/osrelease"));
    let system = line_of("/etc/os-release", "PRETTY_NAME", '=');
    add("system", system.map(|name| name.trim_matches('"').to_owned()));
    add("load before", read("/proc/loadavg").and_then(|text| first_words(&text, 3)));
    facts
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// What stands behind `name` and the separator in a file of such lines.
fn line_of(path: &str, name: &str, separator: char) -> Option<String> {
    value_of(&read(path)?, name, separator)
}

fn value_of(text: &str, name: &str, separator: char) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// `16384 kB` in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn first_words(text: &str, count: usize) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().take(count).collect();
    (words.len() == count).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_files_are_read() {
        let text = "MemTotal:       16384 kB\nMemFree: 1 kB";
        let total = value_of(text, "MemTotal", ':').as_deref().and_then(kilobytes);
        assert_eq!(total, Some(16384 * 1024));
        assert_eq!(
            value_of("model name\t: A CPU\n", "model name", ':').unwrap(),
            "A CPU"
        );
        assert_eq!(value_of(text, "Swap", ':'), None);
        assert_eq!(first_words("0.5 0.4 0.3 1/100", 3).unwrap(), "0.5 0.4 0.3");
    }
}
