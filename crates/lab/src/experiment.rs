//! What an experiment is: cases that run a few seeds each, and a judgement that sets their numbers beside the paper's.
//!
//! An [`Experiment`] plans for a [`Scale`]; its [`Case`]s are independent of each other and of the order in which they
//! run ([`run`]), and deterministic by their seed. [`Plan::judge`] turns the [`Results`] into [`Findings`]: rows (ours
//! beside the paper's), shapes (what must hold, computed from the rows) and figures. [`report`] and [`markdown`] write
//! them down, [`plot`] draws them.
//!
//! 1. A row's number is the mean over the seeds, with the interval that holds it in 95 of 100 such runs (Student's t).
//! 2. A shape is judged by rows alone, so that a reader can check it against the table.

pub mod markdown;
pub mod plot;
pub mod report;
pub mod run;
#[cfg(test)]
mod tests;

pub use serde_json::Value;
use std::collections::BTreeMap;

/// How much of an experiment to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Under a minute or so, one seed: shows that it works, and roughly what comes out.
    Quick,
    /// Minutes, five seeds or more: what counts.
    Full,
}

impl Scale {
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Full => "full",
        }
    }

    /// One of two values.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }

    /// Seeds that each case runs where nobody says how many.
    pub fn seeds(self) -> u64 {
        self.pick(1, 5)
    }
}

/// One table or figure of a paper, or one property of ours.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// `document/figure`, as `terrace lab run` takes it.
    pub id: &'static str,
    /// What it shows, in a line.
    pub shows: &'static str,
    /// Where the paper's numbers stand.
    pub source: &'static str,
    pub plan: fn(Scale) -> Plan,
}

/// An experiment, made ready.
pub struct Plan {
    /// What it runs on, in the order to print; sizes and times state their units.
    pub config: Vec<(&'static str, Value)>,
    pub cases: Vec<Case>,
    pub judge: Box<dyn Fn(&Results) -> Findings + Send + Sync>,
}

/// Runs one seed; hears of the work done so far through the function.
pub type Runner = Box<dyn Fn(u64, &dyn Fn(f64)) -> Result<Numbers, String> + Send + Sync>;

/// One configuration, to be run with several seeds.
pub struct Case {
    pub label: String,
    /// How long it takes, in seconds of virtual time (or in any unit that all cases of the plan share): for the
    /// progress bar.
    pub work: f64,
    pub run: Runner,
}

/// What one run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    values: BTreeMap<&'static str, f64>,
    series: BTreeMap<&'static str, Vec<(f64, f64)>>,
}

impl Numbers {
    pub fn set(&mut self, name: &'static str, value: f64) -> &mut Numbers {
        assert!(value.is_finite(), "{name} is {value}: measure something, or leave it out");
        self.values.insert(name, value);
        self
    }

    /// Points of a curve; the same x in all seeds.
    pub fn set_series(&mut self, name: &'static str, points: Vec<(f64, f64)>) -> &mut Numbers {
        self.series.insert(name, points);
        self
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    pub fn series(&self, name: &str) -> Vec<(f64, f64)> {
        self.series.get(name).cloned().unwrap_or_default()
    }
}

/// A mean, and where it may lie (invariant 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub seeds: usize,
}

/// Student's t for 95%, by degrees of freedom from 1; beyond: the normal distribution's.
const STUDENT: [f64; 15] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131];

impl Interval {
    pub fn of(values: &[f64]) -> Interval {
        assert!(!values.is_empty(), "an interval of no values");
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Interval { mean, low: mean, high: mean, seeds: 1 };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let student = STUDENT.get(values.len() - 2).copied().unwrap_or(1.96);
        let half = student * (variance / n).sqrt();
        Interval { mean, low: mean - half, high: mean + half, seeds: values.len() }
    }
}

/// All cases' numbers, by label, then by seed.
pub struct Results {
    pub(crate) cases: Vec<(String, Vec<Numbers>)>,
}

impl Results {
    /// One for each seed.
    fn of(&self, case: &str) -> &[Numbers] {
        let found = self.cases.iter().find(|(label, _)| label == case);
        &found.unwrap_or_else(|| panic!("the plan has no case {case:?}")).1
    }

    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|(label, _)| label.as_str())
    }

    fn values(&self, case: &str, name: &str) -> Vec<f64> {
        let value = |numbers: &Numbers| numbers.get(name);
        self.of(case).iter().map(|n| value(n).unwrap_or_else(|| panic!("{case} measured no {name}"))).collect()
    }

    pub fn interval(&self, case: &str, name: &str) -> Interval {
        Interval::of(&self.values(case, name))
    }

    /// One case's value over another's, seed by seed.
    pub fn ratio(&self, case: &str, to: &str, name: &str) -> Interval {
        let (above, below) = (self.values(case, name), self.values(to, name));
        Interval::of(&above.iter().zip(&below).map(|(a, b)| a / b).collect::<Vec<_>>())
    }

    /// The same, once what the quickest of several cases needs of `part` is taken off both: it is what each needs.
    pub fn ratio_beyond(&self, case: &str, to: &str, name: &str, (part, cases): (&str, &[String])) -> Interval {
        let parts: Vec<Vec<f64>> = cases.iter().map(|case| self.values(case, part)).collect();
        let least = |seed: usize| parts.iter().map(|values| values[seed]).fold(f64::INFINITY, f64::min);
        let (above, below) = (self.values(case, name), self.values(to, name));
        let beyond =
            |(seed, (a, b)): (usize, (&f64, &f64))| (a - least(seed)) / (b - least(seed)).max(f64::MIN_POSITIVE);
        Interval::of(&above.iter().zip(&below).enumerate().map(beyond).collect::<Vec<_>>())
    }

    /// One value of a case over another of the same seed.
    pub fn quotient(&self, case: &str, above: &str, below: &str) -> Interval {
        let (above, below) = (self.values(case, above), self.values(case, below));
        Interval::of(&above.iter().zip(&below).map(|(a, b)| a / b.max(f64::MIN_POSITIVE)).collect::<Vec<_>>())
    }

    /// One case's value less another's, seed by seed: what both have of a seed's luck falls out.
    pub fn difference(&self, case: &str, from: &str, name: &str) -> Interval {
        let (above, below) = (self.values(case, name), self.values(from, name));
        Interval::of(&above.iter().zip(&below).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// Whether all seeds of a case measured it.
    pub fn measured(&self, case: &str, name: &str) -> bool {
        self.of(case).iter().all(|numbers| numbers.get(name).is_some())
    }

    /// A curve, as the mean over the seeds at each of its points.
    pub fn series(&self, case: &str, name: &str) -> Vec<(f64, f64)> {
        let all: Vec<Vec<(f64, f64)>> = self.of(case).iter().map(|numbers| numbers.series(name)).collect();
        let points = all.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at: usize| all.iter().map(|curve| curve[at].1).sum::<f64>() / all.len() as f64;
        (0..points).map(|at| (all[0][at].0, mean(at))).collect()
    }
}

/// One number of ours, and the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub label: String,
    pub metric: String,
    pub unit: &'static str,
    pub ours: Interval,
    pub paper: Option<f64>,
}

/// What must hold for the result to count.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub statement: String,
    /// `None` where this scale is too small to tell.
    pub holds: Option<bool>,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    pub x: String,
    pub y: String,
    /// Whether each step of y is ten times the one below it; else y begins at 0.
    pub logarithmic: bool,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Curves by name.
    Lines(Vec<(String, Vec<(f64, f64)>)>),
    /// Ours, with its interval, beside the paper's.
    Bars(Vec<(String, Interval, Option<f64>)>),
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub rows: Vec<Row>,
    pub shapes: Vec<Shape>,
    pub figures: Vec<Figure>,
    /// Sentences that explain, each measured.
    pub notes: Vec<String>,
}

impl Findings {
    pub fn row(&mut self, label: &str, metric: &str, unit: &'static str, ours: Interval, paper: Option<f64>) {
        self.rows.push(Row { label: label.into(), metric: metric.into(), unit, ours, paper });
    }

    /// The row of a label and a metric.
    pub fn ours(&self, label: &str, metric: &str) -> Interval {
        let found = self.rows.iter().find(|row| row.label == label && row.metric == metric);
        found.unwrap_or_else(|| panic!("there is no row {label:?}, {metric:?}")).ours
    }

    pub fn shape(&mut self, statement: impl Into<String>, holds: bool) {
        self.shapes.push(Shape { statement: statement.into(), holds: Some(holds) });
    }

    pub fn untestable(&mut self, statement: impl Into<String>) {
        self.shapes.push(Shape { statement: statement.into(), holds: None });
    }

    /// The rows of `metric` fall from label to label, further than noise: their intervals do not meet.
    pub fn falls(&mut self, metric: &str, labels: &[&str]) {
        let rows: Vec<Interval> = labels.iter().map(|label| self.ours(label, metric)).collect();
        let holds = rows.windows(2).all(|pair| pair[0].low > pair[1].high);
        self.shape(format!("{metric}: {}", labels.join(" > ")), holds);
    }

    /// What the cases measured as `name` falls from label to label, by differences seed by seed, each of which gets a
    /// row.
    pub fn falls_paired(&mut self, results: &Results, name: &str, metric: &str, unit: &'static str, labels: &[&str]) {
        let metric = format!("{metric}, seed by seed");
        let mut holds = true;
        for pair in labels.windows(2) {
            let label = format!("{} less {}", pair[0], pair[1]);
            if !self.rows.iter().any(|row| row.label == label && row.metric == metric) {
                self.row(&label, &metric, unit, results.difference(pair[0], pair[1], name), None);
            }
            holds &= self.ours(&label, &metric).low > 0.0;
        }
        self.shape(format!("{metric}: {}", labels.join(" > ")), holds);
    }

    /// A row's interval lies at or above a bound.
    pub fn at_least(&mut self, label: &str, metric: &str, bound: f64) {
        let holds = self.ours(label, metric).low >= bound;
        self.shape(format!("{metric} of {label} is at least {bound}"), holds);
    }

    /// Bars of the rows of one metric, ours beside the paper's.
    pub fn bars(&mut self, title: &str, metric: &str, y: &str) {
        let rows = self.rows.iter().filter(|row| row.metric == metric);
        let bars = rows.map(|row| (row.label.clone(), row.ours, row.paper)).collect();
        let content = Content::Bars(bars);
        let figure = Figure { title: title.into(), x: String::new(), y: y.into(), logarithmic: false, content };
        self.figures.push(figure);
    }

    /// One curve for each case that measured it.
    pub fn lines(&mut self, results: &Results, name: &str, title: &str, x: &str, y: &str) {
        let curve = |label: &str| (label.to_string(), results.series(label, name));
        let curves = results.labels().map(curve).filter(|(_, points)| !points.is_empty()).collect();
        let content = Content::Lines(curves);
        let figure = Figure { title: title.into(), x: x.into(), y: y.into(), logarithmic: false, content };
        self.figures.push(figure);
    }
}
