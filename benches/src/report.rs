//! What a program prints: a table, what was to be reached, and the same as one line of JSON.

use serde_json::{Map, Value, json};

/// The outcome of a program.
#[derive(Debug)]
pub struct Report {
    bench: &'static str,
    rows: Vec<Vec<String>>,
    figures: Map<String, Value>,
    bars: Vec<(String, f64, f64, bool)>,
}

impl Report {
    /// An outcome whose table has these columns.
    #[must_use]
    pub fn new(bench: &'static str, columns: &[&str]) -> Self {
        let rows = vec![columns.iter().map(|it| (*it).to_owned()).collect()];
        Self { bench, rows, figures: Map::new(), bars: Vec::new() }
    }

    /// One more row of the table.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// A figure for the line of JSON.
    pub fn figure(&mut self, name: impl Into<String>, value: f64) {
        self.figures.insert(name.into(), json!((value * 1e4).round() / 1e4));
    }

    /// A figure that has to be at most `most`.
    pub fn at_most(&mut self, name: impl Into<String>, value: f64, most: f64) {
        self.bar(name.into(), value, most, value <= most);
    }

    /// A figure that has to be at least `least`.
    pub fn at_least(&mut self, name: impl Into<String>, value: f64, least: f64) {
        self.bar(name.into(), value, least, value >= least);
    }

    fn bar(&mut self, name: String, value: f64, bar: f64, reached: bool) {
        self.figure(name.clone(), value);
        self.bars.push((name, value, bar, reached));
    }

    /// Prints it.
    pub fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|it| it.get(column)).map(|it| it.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line.push_str(&if place == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") });
            }
            println!("{line}");
        }
        println!();
        for (name, value, bar, reached) in &self.bars {
            println!("{} {name} {value:.3} (bar {bar})", if *reached { "reached" } else { "MISSED " });
        }
        println!("{}", json!({ "bench": self.bench, "figures": self.figures, "missed": self.missed() }));
    }

    /// The names of the figures that miss their bar.
    #[must_use]
    pub fn missed(&self) -> Vec<&str> {
        self.bars.iter().filter(|it| !it.3).map(|it| it.0.as_str()).collect()
    }
}

/// Nanoseconds as a text of microseconds.
#[must_use]
pub fn micros(nanos: f64) -> String {
    format!("{:.2}", nanos / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure on its bar has reached it, on whichever side the bar lies.
    #[test]
    fn bars_are_reached_at_their_value() {
        let mut report = Report::new("x", &["a"]);
        report.at_most("low", 0.1, 0.1);
        report.at_least("high", 0.1, 0.1);
        report.at_most("over", 0.11, 0.1);
        report.at_least("under", 0.09, 0.1);
        assert_eq!(report.missed(), ["over", "under"]);
    }
}
