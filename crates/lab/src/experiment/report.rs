//! What was found, as JSON and as a page that stands alone.
use super::run::Finished;
use super::{Interval, Shape, Value, plot};
use serde_json::json;
use std::fmt::Write;

/// Said wherever numbers are shown.
pub const VIRTUAL: &str = "the engine itself on emulated devices; all times are virtual";

impl Finished {
    /// `id`, `scale`, `seed` (the first), `seeds`, `config`, `rows`, `shapes`, `notes`, `time`.
    pub fn json(&self) -> Value {
        let rows = self.findings.rows.iter().map(|row| {
            json!({
                "label": row.label, "metric": row.metric, "unit": row.unit,
                "ours": row.ours.mean, "low": row.ours.low, "high": row.ours.high, "paper": row.paper,
            })
        });
        let shapes =
            self.findings.shapes.iter().map(|shape| json!({"statement": shape.statement, "holds": shape.holds}));
        let config: serde_json::Map<String, Value> =
            self.config.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        json!({
            "id": self.experiment.id, "shows": self.experiment.shows, "source": self.experiment.source,
            "scale": self.scale.name(), "seed": self.seeds[0], "seeds": self.seeds, "time": "virtual",
            "config": config, "rows": rows.collect::<Vec<_>>(), "shapes": shapes.collect::<Vec<_>>(),
            "notes": self.findings.notes,
        })
    }

    /// The experiment's name as a file's.
    pub fn file_name(&self) -> String {
        self.experiment.id.replace('/', "-")
    }

    /// A page without links: drawings inline.
    pub fn html(&self) -> String {
        let mut page = String::new();
        let id = escape(self.experiment.id);
        let _ = write!(page, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{id}</title>");
        let _ = write!(page, "<style>{STYLE}</style></head><body><h1>{id}</h1>");
        let _ = write!(page, "<p>{}</p>", escape(self.experiment.shows));
        let seeds = self.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (scale, source) = (self.scale.name(), escape(self.experiment.source));
        let _ = write!(page, "<p class=\"small\">{source}. Scale: {scale}; seeds: {seeds}; {VIRTUAL}.</p>");
        page.push_str("<h2>Shapes</h2><ul>");
        for shape in &self.findings.shapes {
            let verdict = verdict(shape);
            let _ = write!(page, "<li class=\"{verdict}\">{}: <b>{verdict}</b></li>", escape(&shape.statement));
        }
        page.push_str("</ul>");
        for figure in &self.findings.figures {
            let _ = write!(page, "<figure>{}</figure>", plot::svg(figure));
        }
        page.push_str(
            "<h2>Numbers</h2><table><tr><th>case</th><th>metric</th><th>ours</th><th>95% \
                       interval</th><th>paper</th><th>unit</th></tr>",
        );
        for row in &self.findings.rows {
            let (label, metric) = (escape(&row.label), escape(&row.metric));
            let paper = row.paper.map_or_else(|| "-".into(), number);
            let (ours, interval, unit) = (number(row.ours.mean), interval(row.ours), escape(row.unit));
            let _ = write!(
                page,
                "<tr><td>{label}</td><td>{metric}</td><td class=\"n\">{ours}</td><td class=\"n\">{interval}</td>\
                 <td class=\"n\">{paper}</td><td>{unit}</td></tr>"
            );
        }
        page.push_str("</table>");
        for note in &self.findings.notes {
            let _ = write!(page, "<p>{}</p>", escape(note));
        }
        page.push_str("<h2>Configuration</h2><table>");
        for (name, value) in &self.config {
            let _ = write!(page, "<tr><td>{}</td><td>{}</td></tr>", escape(name), escape(&plain(value)));
        }
        page.push_str("</table></body></html>\n");
        page
    }
}

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:.2em .8em;text-align:left}\
    .n{text-align:right;font-variant-numeric:tabular-nums}.small{color:#666}.holds b{color:#1a7f37}.fails b{color:#c00}\
    figure{margin:1.5em 0}svg{max-width:100%;height:auto}";

pub fn verdict(shape: &Shape) -> &'static str {
    match shape.holds {
        Some(true) => "holds",
        Some(false) => "fails",
        None => "not testable at this scale",
    }
}

/// "[0.97, 1.03]"; nothing for one seed.
pub fn interval(interval: Interval) -> String {
    if interval.seeds < 2 {
        return "-".into();
    }
    format!("[{}, {}]", number(interval.low), number(interval.high))
}

/// Three figures, as people write them.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        a if a >= 100.0 || a == 0.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A value of the configuration without JSON's quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
