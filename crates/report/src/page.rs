//! The report as one HTML page.
//!
//! The page is self-contained: styles, script and data are in it, and its content
//! policy forbids the browser to load anything else. Words and tables are HTML, so
//! that they are there without the script; the charts are drawn by uPlot from the
//! JSON at the end. All text is escaped: names come from users.

use serde::Serialize;

use crate::{Chart, Event, Facts, Report, Sheet, UNKNOWN, Verdict};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");

/// What the script draws.
#[derive(Serialize)]
struct Drawn<'r> {
    charts: Vec<Shown>,
    events: &'r [Event],
    /// Moments are hours and minutes, not minutes and seconds.
    in_hours: bool,
}

/// A chart, and how it is drawn.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    chart: Chart,
    is_logarithmic: bool,
}

impl Shown {
    fn of(chart: &Chart) -> Shown {
        Shown { is_logarithmic: chart.is_logarithmic(), chart: chart.thinned() }
    }
}

/// From this length on, an experiment is told in hours.
const HOUR: f64 = 3600.0;

/// Whether an experiment takes hours.
fn is_in_hours(report: &Report) -> bool {
    let moments = report.charts.iter().filter_map(|chart| chart.at_s.last());
    moments.chain(report.events.iter().map(|event| &event.at_s)).any(|at_s| *at_s >= HOUR)
}

/// The page.
pub(super) fn render(report: &Report) -> anyhow::Result<String> {
    let charts = report.charts.iter().map(Shown::of).collect();
    let in_hours = is_in_hours(report);
    let data =
        serde_json::to_string(&Drawn { charts, events: &report.events, in_hours })?;
    // A `</script>` in a name must not end the script.
    let data = data.replace('<', "\\u003c");
    let sheets: String = report.sheets.iter().map(sheet).collect();
    let facts: String = report.facts.iter().map(facts).collect();
    let holes = [
        ("style", format!("{UPLOT_STYLE}\n{STYLE}")),
        ("title", escape(&report.title)),
        ("about", escape(&report.about)),
        ("made", escape(&report.made)),
        ("summary", summary(report)),
        ("verdicts", verdicts(&report.verdicts)),
        ("axis", axis(in_hours).into()),
        ("events", events(&report.events, in_hours)),
        ("sheets", sheets),
        ("facts", facts),
        ("uplot", UPLOT.into()),
        ("data", data),
        ("script", SCRIPT.into()),
    ];
    Ok(fill(TEMPLATE, &holes))
}

/// The template with its holes (`{{name}}`) filled, in one go: what is filled in is
/// not looked at again.
fn fill(template: &str, holes: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("a hole has an end");
        let filling = holes.iter().find(|(hole, _)| *hole == name);
        text.push_str(before);
        text.push_str(&filling.expect("every hole has its filling").1);
        rest = after;
    }
    text + rest
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn summary(report: &Report) -> String {
    let met = report.verdicts.iter().filter(|verdict| verdict.passed).count();
    let (class, all) = match report.passed {
        true => ("good", "All"),
        false => ("bad", "Not all"),
    };
    format!(
        "<p class=\"summary {class}\">{all} requirements are met: {met} of {}.</p>",
        report.verdicts.len()
    )
}

fn verdicts(verdicts: &[Verdict]) -> String {
    let mut rows = String::new();
    for Verdict { what, measured, bar, passed, .. } in verdicts {
        let (class, word) =
            if *passed { ("good", "✓ passed") } else { ("bad", "✗ failed") };
        rows.push_str(&format!(
            "<tr><td>{}</td><td class=\"figure\">{}</td><td>{}</td>\
             <td class=\"{class}\">{word}</td></tr>\n",
            escape(what),
            escape(measured),
            escape(bar)
        ));
    }
    rows
}

fn axis(in_hours: bool) -> &'static str {
    match in_hours {
        true => "Time is in hours and minutes from the beginning.",
        false => "Time is in minutes and seconds from the beginning.",
    }
}

/// `83.25` as `1:23.3`; in hours, `7503.2` as `2:05:03`.
fn clock(at_s: f64, in_hours: bool) -> String {
    let tenths = (at_s.max(0.0) * 10.0).round() as u64;
    let (minutes, seconds) = (tenths / 600, tenths / 10 % 60);
    match in_hours {
        true => format!("{}:{:02}:{seconds:02}", minutes / 60, minutes % 60),
        false => format!("{minutes}:{seconds:02}.{}", tenths % 10),
    }
}

fn events(events: &[Event], in_hours: bool) -> String {
    let mut rows = String::new();
    for (at, event) in events.iter().enumerate() {
        rows.push_str(&format!(
            "<tr><td class=\"figure\">{}</td><td class=\"figure\">{}</td>\
             <td>{}</td></tr>\n",
            at + 1,
            clock(event.at_s, in_hours),
            escape(&event.text)
        ));
    }
    rows
}

/// A sheet without the columns of which nothing is known in any row.
fn sheet(sheet: &Sheet) -> String {
    let is_known = |at: usize| {
        let mut column = sheet.rows.iter().filter_map(|row| row.get(at));
        at == 0 || sheet.rows.is_empty() || column.any(|text| text != UNKNOWN)
    };
    let cells = |cells: &[String], tag: &str| -> String {
        let cell = |(at, text): (usize, &String)| {
            let class = if at == 0 { "" } else { " class=\"figure\"" };
            format!("<{tag}{class}>{}</{tag}>", escape(text))
        };
        cells.iter().enumerate().filter(|(at, _)| is_known(*at)).map(cell).collect()
    };
    let rows: String =
        sheet.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row, "td"))).collect();
    format!(
        "<section><h2>{}</h2><div class=\"wide\"><table><thead><tr>{}</tr></thead>\
         <tbody>\n{rows}</tbody></table></div></section>\n",
        escape(&sheet.title),
        cells(&sheet.head, "th"),
    )
}

fn facts(facts: &Facts) -> String {
    let pair = |(name, value): &(String, String)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value))
    };
    let pairs: String = facts.pairs.iter().map(pair).collect();
    format!("<section><h2>{}</h2><dl>\n{pairs}</dl></section>\n", escape(&facts.title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, Strip};

    fn sample(name: &str) -> Report {
        Report {
            title: format!("Service levels of {name}"),
            about: "What was done.".into(),
            made: "today".into(),
            passed: false,
            verdicts: vec![Verdict {
                what: format!("{name} is quick"),
                measured: "3 s".into(),
                bar: "at most 2 s".into(),
                value: Some(3.0),
                passed: false,
            }],
            charts: vec![Chart {
                title: "Throughput".into(),
                unit: "MB/s".into(),
                at_s: vec![0.25, 0.5],
                lines: vec![Line { name: name.into(), values: vec![Some(1.0), None] }],
                strips: vec![Strip { from_s: 0.0, until_s: 1.0, low: 0.9, high: 1.1 }],
            }],
            events: vec![Event { at_s: 83.25, text: format!("{name} begins") }],
            sheets: vec![Sheet {
                title: "Phases".into(),
                head: vec!["phase".into(), "IO/s".into()],
                rows: vec![vec!["alone".into(), "12".into()]],
            }],
            facts: vec![Facts {
                title: "Machine".into(),
                pairs: vec![("processor".into(), name.into())],
            }],
        }
    }

    #[test]
    fn the_page_has_what_was_measured() {
        let page = sample("oltp").html().unwrap();
        for part in [
            "<title>Service levels of oltp</title>",
            "Not all requirements are met: 0 of 1.",
            "<td>oltp is quick</td><td class=\"figure\">3 s</td><td>at most 2 s</td>",
            "1:23.3</td><td>oltp begins</td>",
            "<th class=\"figure\">IO/s</th>",
            "<dt>processor</dt><dd>oltp</dd>",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn an_experiment_of_hours_is_told_in_hours() {
        let mut report = sample("oltp");
        assert!(report.html().unwrap().contains("\"in_hours\":false"));
        report.charts[0].at_s = vec![60.0, 7200.0];
        report.events[0].at_s = 7503.2;
        let page = report.html().unwrap();
        assert!(page.contains("2:05:03</td><td>oltp begins</td>"));
        assert!(page.contains("\"in_hours\":true"));
    }

    /// The values of attributes and of `url(…)` that make a browser load something.
    fn loads(page: &str) -> Vec<&str> {
        let mut loads = Vec::new();
        for (start, end) in [("src=\"", '"'), ("href=\"", '"'), ("url(", ')')] {
            let after = page.split(start).skip(1);
            loads.extend(after.filter_map(|rest| rest.split(end).next()));
        }
        loads
    }

    #[test]
    fn a_column_of_which_nothing_is_known_is_left_out() {
        let mut report = sample("oltp");
        let text = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        report.sheets[0].head = text(["phase", "IO/s", "switch-over"]);
        report.sheets[0].rows =
            vec![text(["alone", "12", UNKNOWN]), text(["together", UNKNOWN, UNKNOWN])];
        let page = report.html().unwrap();
        assert!(!page.contains("switch-over"), "it is there");
        let row = "<tr><td>together</td><td class=\"figure\">-</td></tr>";
        assert!(page.contains(row), "the other row is not whole");
        assert!(report.json().unwrap().contains("switch-over"));
    }

    #[test]
    fn the_page_loads_nothing_and_forbids_loading() {
        let page = sample("oltp").html().unwrap();
        assert_eq!(loads(&page), Vec::<&str>::new());
        assert!(!page.contains("@import"));
        let policy =
            "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'";
        assert!(page.contains(policy));
        // The one address in it is that of uPlot's home, in the comment of its licence.
        let addresses: Vec<&str> = page.split("https://").skip(1).collect();
        assert_eq!(addresses.len(), 1);
        assert!(addresses[0].starts_with("github.com/leeoniya/uPlot (v1.6.32) */"));
        assert!(!page.contains("http://"));
    }

    #[test]
    fn names_cannot_break_the_page() {
        let page = sample("</script><b onload=x>\"{{data}}").html().unwrap();
        assert!(!page.contains("</script><b"), "the name is there as it came");
        assert_eq!(page.matches("</script>").count(), 3);
        // The name's own hole is not filled.
        assert!(page.contains("{{data}}"));
    }

    #[test]
    fn the_data_is_json_that_can_be_read_back() {
        let page = sample("a<b").html().unwrap();
        let data = page.split("type=\"application/json\">").nth(1).unwrap();
        let data = data.split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["charts"][0]["lines"][0]["name"], "a<b");
        assert_eq!(data["events"][0]["at_s"], 83.25);
    }

    #[test]
    fn every_element_of_the_template_is_closed() {
        let page = sample("oltp").html().unwrap();
        for tag in ["html", "head", "body", "style", "table", "section", "main", "dl"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
