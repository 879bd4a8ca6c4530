//! Computes medians, ratios and results from the numbers of all rounds, and renders them as a table and as
//! JSON.

use super::Sample;
use serde_json::{Value, json};
use std::fmt::Write;

/// Threshold that a row must meet.
#[derive(Clone, Copy)]
pub enum Threshold {
    /// Shown for information only.
    None,
    RatioAtLeast {
        must: f64,
        going_to: Option<f64>,
    },
    RatioAtMost {
        must: f64,
    },
    ValueAtMost {
        must: f64,
        going_to: f64,
    },
    /// Alternative for the row above: meeting this threshold is enough if the row above misses its own.
    InsteadOfTheLast {
        ratio_at_most: f64,
    },
}

/// One number of one scenario, with its values of all rounds.
pub struct Row {
    label: String,
    bar: Threshold,
    hub: Vec<f64>,
    reference: Vec<f64>,
}

pub struct RowResult<'a> {
    row: &'a Row,
    hub: f64,
    reference: f64,
    /// Median of the ratios of all rounds. The two numbers of a round were measured under the same
    /// conditions.
    ratio: f64,
    /// Whether the threshold is met; `None` for a row without a threshold.
    pub ok: Option<bool>,
}

impl Threshold {
    fn met_by(self, hub: f64, ratio: f64) -> Option<bool> {
        match self {
            Self::None => None,
            Self::RatioAtLeast { must, .. } => Some(ratio >= must),
            Self::RatioAtMost { must } => Some(ratio <= must),
            Self::ValueAtMost { must, .. } => Some(hub <= must),
            Self::InsteadOfTheLast { ratio_at_most } => Some(ratio <= ratio_at_most),
        }
    }

    fn columns(self) -> (String, String) {
        match self {
            Self::None => (String::new(), String::new()),
            Self::RatioAtLeast { must, going_to } => {
                (format!("≥ {must:.2}"), going_to.map(|ratio| format!("{ratio:.2}")).unwrap_or_default())
            }
            Self::RatioAtMost { must } => (format!("≤ {must:.2}"), String::new()),
            Self::ValueAtMost { must, going_to } => (format!("≤ {must}"), going_to.to_string()),
            Self::InsteadOfTheLast { ratio_at_most } => (format!("or ≤ {ratio_at_most:.2}"), String::new()),
        }
    }
}

impl Row {
    pub fn new(
        label: String,
        bar: Threshold,
        hub: &[Sample],
        reference: &[Sample],
        number: impl Fn(&Sample) -> Option<f64>,
    ) -> Self {
        let numbers = |samples: &[Sample]| samples.iter().filter_map(&number).collect();
        Self { label, bar, hub: numbers(hub), reference: numbers(reference) }
    }
}

pub fn judge(rows: &[Row]) -> Vec<RowResult<'_>> {
    let mut judged: Vec<RowResult> = rows
        .iter()
        .map(|row| {
            let ratios: Vec<f64> =
                row.hub.iter().zip(&row.reference).map(|(hub, other)| hub / other).collect();
            let (hub, ratio) = (median(&row.hub), median(&ratios));
            RowResult { row, hub, reference: median(&row.reference), ratio, ok: row.bar.met_by(hub, ratio) }
        })
        .collect();
    for index in 1..judged.len() {
        if matches!(judged[index].row.bar, Threshold::InsteadOfTheLast { .. }) {
            // Meeting one of the two thresholds is enough, and the two rows share one result.
            let either = judged[index - 1].ok == Some(true) || judged[index].ok == Some(true);
            judged[index - 1].ok = Some(either);
            judged[index].ok = None;
        }
    }
    judged
}

pub fn table(rows: &[RowResult]) -> String {
    let label_width = rows.iter().map(|row| row.row.label.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let mut line = |cells: [&str; 7]| {
        let [label, hub, reference, ratio, must, going_to, verdict] = cells;
        let text = format!(
            "{label:<label_width$}  {hub:>11} {reference:>11} {ratio:>6}  {must:>9} {going_to:>8}  {verdict}"
        );
        writeln!(out, "{}", text.trim_end()).expect("writing to a string cannot fail");
    };
    line(["medians", "hub", "reference", "ratio", "must", "going to", ""]);
    for row in rows {
        let (must, going_to) = row.row.bar.columns();
        let verdict = match row.ok {
            None => "",
            Some(true) => "ok",
            Some(false) => "BELOW",
        };
        let ratio = if row.ratio.is_finite() { format!("{:.2}", row.ratio) } else { String::new() };
        line([&row.row.label, &amount(row.hub), &amount(row.reference), &ratio, &must, &going_to, verdict]);
    }
    out
}

pub fn json(rows: &[RowResult], rounds: usize, seconds: f64, cores_of_others: f64) -> Value {
    let measures: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (must, going_to) = row.row.bar.columns();
            json!({
                "name": row.row.label,
                "hub": {"median": row.hub, "rounds": row.row.hub},
                "reference": {"median": row.reference, "rounds": row.row.reference},
                "ratio": row.ratio,
                "must": must,
                "goingTo": going_to,
                "ok": row.ok,
            })
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "rounds": rounds,
        "seconds": seconds,
        "cores": cores,
        "coresOfOthers": cores_of_others,
        "measures": measures,
    })
}

pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Formats numbers below 1,000 with decimals, and larger ones in groups of three digits.
fn amount(number: f64) -> String {
    if !number.is_finite() {
        return String::new();
    }
    if number < 1_000.0 {
        return format!("{number:.2}");
    }
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Threshold = Threshold::RatioAtLeast { must: 0.5, going_to: Some(1.0) };

    #[test]
    fn the_ratio_is_the_median_of_the_ratios_and_not_the_ratio_of_the_medians() {
        let row = row(HALF, &[10.0, 40.0, 90.0], &[20.0, 50.0, 100.0]);
        let judged = &judge(std::slice::from_ref(&row))[0];
        assert_eq!((judged.hub, judged.reference, judged.ratio), (40.0, 50.0, 0.8));
    }

    #[test]
    fn a_threshold_is_inclusive() {
        check(&[row(HALF, &[5.0], &[10.0])], &[Some(true)]);
        check(&[row(HALF, &[4.9], &[10.0])], &[Some(false)]);
        check(&[row(Threshold::ValueAtMost { must: 12.0, going_to: 6.0 }, &[12.0], &[1.0])], &[Some(true)]);
        check(&[row(Threshold::ValueAtMost { must: 12.0, going_to: 6.0 }, &[12.1], &[1.0])], &[Some(false)]);
        check(&[row(Threshold::None, &[1.0], &[2.0])], &[None]);
    }

    #[test]
    fn a_row_below_its_threshold_is_accepted_if_its_alternative_is_met() {
        let few = || row(HALF, &[4.0], &[10.0]);
        let enough = || row(HALF, &[6.0], &[10.0]);
        let cpu = |hub| row(Threshold::InsteadOfTheLast { ratio_at_most: 1.0 }, &[hub], &[1.0]);
        check(&[few(), cpu(0.9)], &[Some(true), None]);
        check(&[few(), cpu(1.1)], &[Some(false), None]);
        check(&[enough(), cpu(1.1)], &[Some(true), None]);
    }

    #[test]
    fn a_row_without_a_valid_ratio_misses_its_threshold() {
        check(&[row(HALF, &[0.0], &[0.0])], &[Some(false)]);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(amount(0.314), "0.31");
        assert_eq!(amount(999.0), "999.00");
        assert_eq!(amount(1_000.0), "1,000");
        assert_eq!(amount(1_234_567.8), "1,234,568");
    }

    #[track_caller]
    fn check(rows: &[Row], expected: &[Option<bool>]) {
        let verdicts: Vec<Option<bool>> = judge(rows).iter().map(|row| row.ok).collect();
        assert_eq!(verdicts, expected);
    }

    fn row(bar: Threshold, hub: &[f64], reference: &[f64]) -> Row {
        Row { label: "x".into(), bar, hub: hub.to_vec(), reference: reference.to_vec() }
    }
}
