//! Runs an experiment from a program, without the command line, and prints its JSON; or, with `markdown`, its section
//! of the results: `cargo run -p terrace-lab --example experiment -- do/fig3.7 full 5 markdown`.
use std::error::Error;
use terrace_lab::experiment::Scale;
use terrace_lab::experiment::run::{Options, run};
use terrace_lab::experiments;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let id = arguments.next().ok_or("name an experiment")?;
    let scale = if arguments.next().as_deref() == Some("full") { Scale::Full } else { Scale::Quick };
    let seeds = arguments.next().map_or(Ok(scale.seeds()), |n| n.parse())?;
    let threads = std::thread::available_parallelism()?.get();
    let finished = run(&experiments::named(&id)?, Options { scale, seed: 1, seeds, threads }, &|_| {})?;
    match arguments.next().as_deref() {
        Some("markdown") => print!("{}", finished.markdown()),
        _ => println!("{:#}", finished.json()),
    }
    Ok(())
}
