//! What the parts in Rust share.
use std::error::Error;
use std::fmt::Debug;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub fn same<T: PartialEq<W> + Debug, W: Debug>(found: T, wanted: W) -> Result {
    if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}").into()) }
}

/// Prints how a check went.
pub fn check(name: &str, result: Result) {
    let Err(error) = result else { return println!("ok {name}") };
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(deeper) = source {
        text = format!("{text}: {deeper}");
        source = deeper.source();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    println!("no {name}: {}", words.join(" ").chars().take(300).collect::<String>());
}

/// Runs checks, which are functions, one after another.
#[macro_export]
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        $($crate::check(stringify!($name), $name().await);)*
    };
}

/// The version of a crate that the part was built with.
pub fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("\nname = \"{name}\"\n")));
    package.and_then(|package| package.split("\nversion = \"").nth(1)?.split('"').next()).unwrap_or("?")
}

/// A setting of libpq's environment.
pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
