//! `terrace lab`: the papers' experiments, run by the engine itself on emulated devices in virtual time.

use crate::Failure;
use crate::cli::serve::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use terrace_lab::experiment::report::{VIRTUAL, interval, number, plain, verdict};
use terrace_lab::experiment::run::{self, Finished};
use terrace_lab::experiment::{Content, Experiment, Figure, Scale, plot};
use terrace_lab::experiments;

#[derive(clap::Subcommand)]
pub(crate) enum LabCommand {
    /// Names the experiments, and what each shows.
    List,
    /// Runs experiments, and prints the papers' numbers beside ours.
    #[command(after_help = "Examples:\n  terrace lab run do/fig3.1-c\n  \
                            terrace lab run do/fig3.7 --scale full --html fig3.7.html --json fig3.7.json\n  \
                            terrace lab run all --scale full --out reports")]
    Run(LabRun),
    /// Draws curves: CSV in (lines of curve,x,y, without a heading), SVG out.
    #[command(
        after_help = "Example:\n  terrace lab plot --title 'Reads a second' --x MB --y reads < curves.csv > curves.svg"
    )]
    Plot(LabPlot),
}

#[derive(clap::Args)]
pub(crate) struct LabPlot {
    #[arg(long, default_value = "")]
    title: String,
    /// What x is.
    #[arg(long, default_value = "")]
    x: String,
    /// What y is.
    #[arg(long, default_value = "")]
    y: String,
    /// Each step of y is ten times the one below it.
    #[arg(long)]
    logarithmic: bool,
}

#[derive(clap::Args)]
pub(crate) struct LabRun {
    /// Names from `terrace lab list`, or `all`.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// quick: under a minute or so, one seed. full: minutes, five seeds.
    #[arg(long, value_enum, default_value = "quick")]
    scale: Size,
    /// Seeds that each configuration runs with; numbers become means with 95% intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// The first seed; the others follow. The same seed gives the same numbers.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Simulations that run side by side; 0 = as many as the machine has cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Writes the result of one experiment as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the report of one experiment as a page that needs no other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes JSON, page, Markdown and drawings (SVG) of each experiment to this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Size {
    Quick,
    Full,
}

pub(crate) fn lab(what: LabCommand) -> Result<(), Failure> {
    match what {
        LabCommand::List => {
            let all = experiments::all();
            let width = all.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
            for experiment in all {
                say!("{:width$}  {}", experiment.id, experiment.shows);
            }
            Ok(())
        }
        LabCommand::Run(options) => run_all(&options),
        LabCommand::Plot(options) => plot_curves(options),
    }
}

fn plot_curves(options: LabPlot) -> Result<(), Failure> {
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = vec![];
    for (at, line) in std::io::stdin().lines().enumerate() {
        let line = line.map_err(|e| Failure::Message(format!("cannot read standard input: {e}")))?;
        let parts: Vec<&str> = line.split(',').collect();
        let point = match parts.as_slice() {
            [_, x, y] => x.trim().parse::<f64>().ok().zip(y.trim().parse::<f64>().ok()),
            _ => None,
        };
        let Some(point) = point.filter(|(x, y)| x.is_finite() && y.is_finite() && (*y > 0.0 || !options.logarithmic))
        else {
            return Err(Failure::Message(format!("line {}: {line:?} is not a curve's name, x and y", at + 1)));
        };
        match curves.iter_mut().find(|(name, _)| name == parts[0]) {
            Some((_, points)) => points.push(point),
            None => curves.push((parts[0].to_string(), vec![point])),
        }
    }
    if curves.is_empty() {
        return Err(Failure::Message("there is nothing to draw on standard input".into()));
    }
    for (_, points) in &mut curves {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let LabPlot { title, x, y, logarithmic } = options;
    say!("{}", plot::svg(&Figure { title, x, y, logarithmic, content: Content::Lines(curves) }));
    Ok(())
}

fn run_all(options: &LabRun) -> Result<(), Failure> {
    let chosen = match options.ids.as_slice() {
        [all] if all == "all" => experiments::all(),
        ids => ids.iter().map(|id| experiments::named(id)).collect::<Result<_, _>>().map_err(Failure::Message)?,
    };
    if chosen.len() > 1 && (options.json.is_some() || options.html.is_some()) {
        return Err(Failure::Message("--json and --html take one experiment; for several use --out DIR".into()));
    }
    let files = [&options.json, &options.html].into_iter().flatten();
    let parents = files.filter_map(|file| file.parent()).filter(|dir| !dir.as_os_str().is_empty() && !dir.is_dir());
    if let Some(missing) = parents.into_iter().next() {
        return Err(Failure::Message(format!("there is no directory {}", missing.display()))); // Now, not after the run.
    }
    if let Some(dir) = &options.out {
        std::fs::create_dir_all(dir).map_err(|e| Failure::Message(format!("cannot make {}: {e}", dir.display())))?;
    }
    for (at, experiment) in chosen.iter().enumerate() {
        if at > 0 {
            say!();
        }
        let finished = run_one(experiment, options)?;
        print(&finished);
        write_files(&finished, options)?;
    }
    Ok(())
}

fn run_one(experiment: &Experiment, options: &LabRun) -> Result<Finished, Failure> {
    let scale = match options.scale {
        Size::Quick => Scale::Quick,
        Size::Full => Scale::Full,
    };
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    };
    let seeds = options.seeds.unwrap_or(scale.seeds());
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
    // A constant template.
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}%  {elapsed}, {eta} left");
    bar.set_style(style.expect("a valid template"));
    bar.set_message(experiment.id);
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let options = run::Options { scale, seed: options.seed, seeds, threads };
    let finished = run::run(experiment, options, &|part| bar.set_position((part * 1000.0) as u64));
    bar.finish_and_clear();
    finished.map_err(|why| Failure::Message(format!("{}: {why}", experiment.id)))
}

fn print(finished: &Finished) {
    let experiment = &finished.experiment;
    let seeds = finished.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    say!("{}: {}", experiment.id, experiment.shows);
    say!("{}; scale {}, seeds {seeds}; {VIRTUAL}", experiment.source, finished.scale.name());
    let config: Vec<String> = finished.config.iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect();
    say!("{}", config.join("; "));
    say!();
    let mut table = vec![["case", "metric", "ours", "95% interval", "paper", "unit"].map(String::from)];
    for row in &finished.findings.rows {
        let paper = row.paper.map_or_else(|| "-".into(), number);
        let (ours, range) = (number(row.ours.mean), interval(row.ours));
        table.push([row.label.clone(), row.metric.clone(), ours, range, paper, row.unit.into()]);
    }
    print_table(&table);
    say!();
    for shape in &finished.findings.shapes {
        say!("{}: {}", verdict(shape), shape.statement);
    }
    for note in &finished.findings.notes {
        say!("{note}");
    }
}

/// Text to the left, numbers to the right.
fn print_table(table: &[[String; 6]]) {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for row in table {
        let [case, metric, ours, range, paper, unit] = row;
        let [a, b, c, d, e, _] = widths;
        say!("{}", format!("{case:a$}  {metric:b$}  {ours:>c$}  {range:>d$}  {paper:>e$}  {unit}").trim_end());
    }
}

fn write_files(finished: &Finished, options: &LabRun) -> Result<(), Failure> {
    let json = || format!("{:#}\n", finished.json());
    if let Some(file) = &options.json {
        write(file, &json())?;
    }
    if let Some(file) = &options.html {
        write(file, &finished.html())?;
    }
    if let Some(dir) = &options.out {
        let name = finished.file_name();
        write(&dir.join(format!("{name}.json")), &json())?;
        write(&dir.join(format!("{name}.html")), &finished.html())?;
        write(&dir.join(format!("{name}.md")), &finished.markdown())?;
        for (at, figure) in finished.findings.figures.iter().enumerate() {
            write(&dir.join(format!("{name}-{}.svg", at + 1)), &plot::svg(figure))?;
        }
    }
    Ok(())
}

// Reports are the user's files, not the database's.
#[allow(clippy::disallowed_methods)]
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::File::create(file).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| Failure::Message(format!("cannot write {}: {e}", file.display())))
}
