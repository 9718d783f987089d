//! `terrace inspect`: what lies in the files, in words.

use crate::Failure;
use crate::cli::report;
use crate::cli::serve::say;
use std::path::Path;
use terrace::Instance;
use terrace::config::Size;
use terrace::device::{ErrorKind, IoBuf, Purpose};
use terrace::instance::Closed;
use terrace::storage::control::Control;
use terrace::storage::home::PAGES_AT;
use terrace::storage::page::{HEADER, PageKind, header, slotted};
use terrace::storage::{DATA, PageId, UNDO, log};

#[derive(clap::Subcommand)]
pub(crate) enum InspectCommand {
    /// The control file: identity, formats, where restart begins.
    Control,
    /// The segments on the log device.
    Log,
    /// One page: header, checksum, slots.
    Page {
        /// Its number within the tablespace.
        number: u32,
        #[arg(long, value_enum, default_value = "data")]
        space: SpaceName,
        /// Also print the bytes.
        #[arg(long)]
        bytes: bool,
    },
    /// Pages by table and index. Opens (recovers) the database.
    Space,
    /// Tables with columns, indexes and sizes. Opens (recovers) the database.
    Tables,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum SpaceName {
    Data,
    Undo,
}

pub(crate) async fn inspect(dir: &Path, what: InspectCommand) -> Result<(), Failure> {
    match what {
        InspectCommand::Control => control(&Closed::open(dir)?).await,
        InspectCommand::Log => segments(&Closed::open(dir)?).await,
        InspectCommand::Page { number, space, bytes } => page(&Closed::open(dir)?, number, space, bytes).await,
        InspectCommand::Space => opened(dir, space).await,
        InspectCommand::Tables => opened(dir, tables).await,
    }
}

async fn opened(dir: &Path, show: fn(&Instance)) -> Result<(), Failure> {
    let instance = Instance::open(dir).await?;
    show(&instance);
    Ok(instance.close().await?)
}

async fn control(closed: &Closed) -> Result<(), Failure> {
    let control = Control::read(&closed.set.control).await?;
    say!("database id      {:032x}", control.database);
    say!("created          {}", timestamp(control.created));
    say!("opened           {} times", control.epoch);
    say!("page size        {}", Size(control.page_size.into()));
    say!("segment size     {}", Size(control.segment_size));
    say!("creation         {}", if control.complete { "complete" } else { "interrupted: run `terrace init` again" });
    say!(
        "last run         {}",
        if control.clean { "ended cleanly" } else { "did not end cleanly: the next start recovers" }
    );
    say!("restart begins   {} (redo LSN)", control.redo_lsn);
    say!("log kept from    {} (retain LSN)", control.retain_lsn);
    say!("next object id   {}", control.next_object);
    Ok(())
}

/// Microseconds since 1970 as `YYYY-MM-DD hh:mm:ss UTC` (proleptic Gregorian calendar).
fn timestamp(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while day < 0 || day >= 365 + i64::from(leap(year)) {
        if day < 0 {
            year -= 1;
            day += 365 + i64::from(leap(year));
        } else {
            day -= 365 + i64::from(leap(year));
            year += 1;
        }
    }
    let mut month = 1;
    for days in [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", day + 1)
}

async fn segments(closed: &Closed) -> Result<(), Failure> {
    let control = Control::read(&closed.set.control).await?;
    let segments = log::inspect::segments(&closed.set.log, control.segment_size, control.database).await?;
    let rows: Vec<Vec<String>> = segments
        .iter()
        .map(|segment| {
            vec![
                segment.number.to_string(),
                segment.slot.to_string(),
                segment.epoch.to_string(),
                segment.start.to_string(),
                segment
                    .sealed
                    .map_or("open, or sealed badly".into(), |(end, pages)| format!("to {end}, {pages} pages")),
            ]
        })
        .collect();
    report::table(&["segment", "slot", "epoch", "begins", "sealed"], &rows);
    say!("restart begins at {}, the log is kept from {}", control.redo_lsn, control.retain_lsn);
    Ok(())
}

async fn page(closed: &Closed, number: u32, space: SpaceName, bytes: bool) -> Result<(), Failure> {
    let control = Control::read(&closed.set.control).await?;
    let (id, device) = match space {
        SpaceName::Data => (DATA, &closed.set.data),
        SpaceName::Undo => (UNDO, &closed.set.undo),
    };
    let size = control.page_size as usize;
    let offset = PAGES_AT + u64::from(number) * size as u64;
    let page = match device.read(offset, IoBuf::zeroed(size), Purpose::Data).await {
        Err(error) if error.kind == ErrorKind::PastEnd => {
            let pages = device.size().saturating_sub(PAGES_AT) / size as u64;
            return Err(Failure::Message(format!(
                "page {number} is beyond the end: {} has {pages} pages",
                device.name()
            )));
        }
        page => page?,
    };
    print_page(&page, PageId::new(id, number));
    if bytes {
        dump(&page);
    }
    Ok(())
}

fn print_page(page: &[u8], id: PageId) {
    let verdict = header::verify(page, id);
    say!("page {id}: {}", verdict.map_or_else(|why| format!("DAMAGED: {why}"), |()| "sound".to_string()));
    say!("kind     {}", header::kind(page).map_or("unknown".into(), |kind| format!("{kind:?}")));
    say!("owner    object {}", header::owner(page).0);
    say!("LSN      {}", header::lsn(page));
    // A damaged directory must not be followed.
    if verdict.is_err() || header::kind(page).is_none_or(|kind| !is_slotted(kind)) {
        return;
    }
    say!("room     {} bytes; special area {} bytes", slotted::room(page), slotted::special(page).len());
    say!("slots    {}", slotted::slot_count(page));
    for slot in 0..slotted::slot_count(page) {
        match slotted::cell(page, slot) {
            Some(cell) => say!("  {slot:>4}  {:>5} bytes  {}", cell.len(), preview(cell)),
            None => say!("  {slot:>4}  free"),
        }
    }
}

/// Whether the body has a slot directory.
fn is_slotted(kind: PageKind) -> bool {
    matches!(kind, PageKind::Heap | PageKind::BTree)
}

/// The first bytes, readable ones as they are.
fn preview(cell: &[u8]) -> String {
    cell.iter().take(60).map(|b| if (32..127).contains(b) { *b as char } else { '.' }).collect()
}

fn dump(page: &[u8]) {
    for (row, bytes) in page.chunks(16).enumerate() {
        let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let mark = if row * 16 < HEADER { "header" } else { "" };
        say!("{:06x}  {}  {} {mark}", row * 16, hex.join(" "), preview(bytes));
    }
}

fn space(instance: &Instance) {
    let space = instance.database.store().space(DATA);
    let catalog = instance.database.catalog();
    let mut names = std::collections::BTreeMap::new();
    for table in catalog.tables() {
        names.insert(table.oid, format!("table {}", table.name));
        names.extend(table.indexes.iter().map(|index| (index.oid, format!("index {}", index.name))));
    }
    let page_size = instance.config.page_size.0;
    let row = |(object, name): (terrace::storage::ObjectId, String)| {
        let pages = space.page_count(object);
        vec![name, object.0.to_string(), pages.to_string(), report::bytes(pages * page_size)]
    };
    let unnamed = |object| names.get(&object).cloned().unwrap_or_else(|| "(not in the catalogue)".into());
    let rows: Vec<_> = space.objects().into_iter().map(|object| row((object, unnamed(object)))).collect();
    report::table(&["owner", "object", "pages", "bytes"], &rows);
}

fn tables(instance: &Instance) {
    let catalog = instance.database.catalog();
    let space = instance.database.store().space(DATA);
    for table in catalog.tables() {
        say!("table {} (object {}, {} pages)", table.name, table.oid.0, space.page_count(table.oid));
        for column in table.columns.iter().filter(|column| !column.dropped) {
            let not_null = if column.not_null { " not null" } else { "" };
            let default = column.default_sql.as_ref().map(|sql| format!(" default {sql}")).unwrap_or_default();
            say!("  {} {:?}{not_null}{default}", column.name, column.data_type);
        }
        for index in &table.indexes {
            let names: Vec<&str> = index.columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
            let what = match (index.primary, index.unique) {
                (true, _) => "primary key",
                (_, true) => "unique",
                _ => "index",
            };
            let pages = space.page_count(index.oid);
            say!("  {what} {} ({}) (object {}, {pages} pages)", index.name, names.join(", "), index.oid.0);
        }
    }
}
