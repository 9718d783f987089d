//! Reading the catalogue from the system tables.
use super::comments::{self, Comments};
use super::domains;
use super::enums;
use super::foreign;
use super::temporary::{self, Placements, space_of};
use super::views::{self, ViewUse};
use super::{Catalog, ColumnDef, Table, access, roles, schemas, system};
use crate::error::{EngineError, Result};
use crate::row::RowView;
use crate::txn::Version;
use crate::types::Datum;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_storage::heap::{CHAINED, DELETED, Heap};
use terrace_storage::page::slotted;
use terrace_storage::pool::Access;
use terrace_storage::{DATA, ObjectId, PageId, Rid, Store, TxnId};

/// Which rows count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// Newest versions that are not deleted. Once no loser has changed any: the committed catalogue. In the only
    /// transaction that defines anything: its own.
    Newest,
    /// Deleted rows as well, as long as they are there, and half a definition: what rollback needs to find definitions
    /// by object id.
    WithDeleted,
}

impl Catalog {
    /// Reads the system tables: the newest version of every row, committed or not (invariant 3 of the catalogue).
    pub(crate) async fn load(store: &Store, view: View) -> Result<Catalog> {
        read_ahead(store).await;
        let mut rows = Vec::with_capacity(system::ALL.len());
        for object in system::ALL {
            let table = system::table(object).expect("a system table");
            let mut values = Vec::new();
            walk(store, table, view, |row| {
                values.push(RowView::checked(table, row.bytes)?.to_datums());
                Ok(())
            })
            .await?;
            rows.push(values);
        }
        let rows: [Rows; system::ALL.len()] = rows.try_into().expect("all tables were read");
        let mut named = Vec::new();
        let table = roles::table();
        walk(store, table, view, |row| {
            let role = roles::read_role(&RowView::checked(table, row.bytes)?.to_datums())?;
            named.push((role.name.clone(), role));
            Ok(())
        })
        .await?;
        Ok(assemble(rows, view == View::Newest)?.with_roles(named.into_iter().collect()))
    }
}

type Rows = Vec<Vec<Datum>>;

/// Puts tables together from their rows; `whole`: refuses parts of definitions.
fn assemble(rows: [Rows; system::ALL.len()], whole: bool) -> Result<Catalog> {
    let [tables, column_rows, index_rows, check_rows, key_rows, view_rows, use_rows, comments, others @ ..] = rows;
    let [enum_rows, placed, access_rows, member_rows, domain_rows, schema_rows] = others;
    let places = placed.iter().map(|row| temporary::read(row)).collect::<Result<Placements>>()?;
    let types = enums::read_all(&enum_rows, &places, whole)?;
    let domains = domains::read_all(&domain_rows, &types, &places)?;
    let mut columns: BTreeMap<ObjectId, BTreeMap<usize, ColumnDef>> = BTreeMap::new();
    for row in column_rows {
        let (table, position, column) = system::read_column(&row, &types, &domains, whole)?;
        columns.entry(table).or_default().insert(position, column);
    }
    let index = |row: &Vec<Datum>| system::read_index(row).map(|index| (index.table, Arc::new(index)));
    let mut indexes = grouped(index_rows.iter().map(index))?;
    let mut checks = grouped(check_rows.iter().filter_map(|row| system::read_check(row).transpose()))?;
    let key = |row: &Vec<Datum>| foreign::read(row).map(|key| (key.table, Arc::new(key)));
    let mut foreign_keys = grouped(key_rows.iter().map(key))?;
    let mut out: BTreeMap<ObjectId, Arc<Table>> = BTreeMap::new();
    for row in tables {
        let (oid, name, statistics) = system::read_table(&row)?;
        let columns = columns.remove(&oid).unwrap_or_default();
        if whole && columns.keys().copied().ne(0..columns.len()) {
            return Err(EngineError::damaged(format!("the catalogue lacks columns of table \"{name}\"")));
        }
        let indexes = indexes.remove(&oid).unwrap_or_default();
        let mut table = Table::new(oid, name, columns.into_values().collect(), indexes);
        table.checks = checks.remove(&oid).unwrap_or_default();
        table.checks.sort_by(|a, b| a.name.cmp(&b.name));
        table.foreign_keys = foreign_keys.remove(&oid).unwrap_or_default();
        table.foreign_keys.sort_by_key(|key| key.oid);
        table.statistics = statistics;
        table.space = space_of(&places, oid);
        table.temporary = places.get(&oid).and_then(|placement| placement.on_commit);
        out.insert(oid, Arc::new(table));
    }
    let views = assemble_views(view_rows, use_rows, &mut columns, &places)?;
    let is_there = |of: &ObjectId| out.contains_key(of) || views.iter().any(|view| view.oid == *of);
    if whole && places.iter().any(|(of, place)| place.on_commit.is_some() && !is_there(of)) {
        return Err(EngineError::damaged("the catalogue lacks a table or view that it calls temporary"));
    }
    if whole && !(columns.is_empty() && indexes.is_empty() && checks.is_empty() && foreign_keys.is_empty()) {
        return Err(EngineError::damaged(
            "the catalogue has columns, indexes or constraints of tables that it does not have",
        ));
    }
    let catalog = Catalog::of(out.into_values()).with_schemas(schemas::read_all(&schema_rows)?);
    if whole {
        refuse_lost_keys(&catalog)?;
        refuse_lost_schemas(&catalog, &places)?;
    }
    let comments = comments.iter().map(|row| comments::read(row)).collect::<Result<Comments>>()?;
    let catalog = catalog.with_views(views).with_comments(comments).with_own_types(types).with_domains(domains);
    let catalog = assemble_access(catalog, &access_rows, &member_rows)?;
    if let Some(view) = catalog.views().find(|view| whole && catalog.missing_of(view).is_some()) {
        return Err(EngineError::damaged(format!("the catalogue lacks what view \"{}\" reads", view.name)));
    }
    Ok(catalog)
}

fn assemble_access(catalog: Catalog, access: &Rows, members: &Rows) -> Result<Catalog> {
    if access.is_empty() && members.is_empty() {
        return Ok(catalog);
    }
    let (mut own, mut defaults) = (BTreeMap::new(), access::Defaults::new());
    let mut columns = vec![];
    for row in access {
        if let Some(of_column) = access::read_column(row)? {
            columns.push(of_column);
            continue;
        }
        match access::read_default(row)? {
            Some((of, acl)) => drop(defaults.insert(of, acl)),
            None => own.extend([access::read(row)?]),
        }
    }
    for (object, at, acl) in columns {
        let of: &mut access::Access = own.get_mut(&object).ok_or_else(|| system::bad("access"))?;
        of.columns.insert(at, acl);
    }
    let members = members.iter().map(|row| access::read_member(row)).collect::<Result<_>>()?;
    Ok(catalog.with_access(own, members).with_defaults(defaults))
}

fn refuse_lost_keys(catalog: &Catalog) -> Result<()> {
    for key in catalog.tables().flat_map(|table| &table.foreign_keys) {
        let referenced = catalog.table_by_oid(key.referenced);
        if !referenced.is_some_and(|table| table.index(key.index).is_some_and(|index| index.unique)) {
            let message = format!("the catalogue lacks the key that foreign key \"{}\" refers to", key.name);
            return Err(EngineError::damaged(message));
        }
    }
    Ok(())
}

fn refuse_lost_schemas(catalog: &Catalog, places: &Placements) -> Result<()> {
    match places.values().find(|place| place.on_commit.is_none() && !catalog.is_schema(place.space)) {
        Some(place) => Err(EngineError::damaged(format!("the catalogue lacks schema {}", place.space.0.0))),
        None => Ok(()),
    }
}

/// What belongs to tables, by table.
fn grouped<T>(items: impl Iterator<Item = Result<(ObjectId, T)>>) -> Result<BTreeMap<ObjectId, Vec<T>>> {
    let mut all: BTreeMap<ObjectId, Vec<T>> = BTreeMap::new();
    for item in items {
        let (table, item) = item?;
        all.entry(table).or_default().push(item);
    }
    Ok(all)
}

/// Puts views together from their rows and from their columns, which are taken.
fn assemble_views(
    view_rows: Rows,
    use_rows: Rows,
    columns: &mut BTreeMap<ObjectId, BTreeMap<usize, ColumnDef>>,
    places: &Placements,
) -> Result<Vec<Arc<views::View>>> {
    let mut uses: BTreeMap<ObjectId, Vec<ViewUse>> = BTreeMap::new();
    for row in use_rows {
        let (view, used) = views::read_use(&row)?;
        uses.entry(view).or_default().push(used);
    }
    let mut views = vec![];
    for row in view_rows {
        let mut view = views::read(&row)?;
        view.columns = columns.remove(&view.oid).unwrap_or_default().into_values().collect();
        view.uses = uses.remove(&view.oid).unwrap_or_default();
        view.space = space_of(places, view.oid);
        view.temporary = places.get(&view.oid).is_some_and(|place| place.on_commit.is_some());
        views.push(Arc::new(view));
    }
    Ok(views)
}

/// How many pages of a system table are listed, and read ahead, at a time.
const LISTED: usize = 64;

/// Reads the first pages of all system tables at the same time: a restart waits for them, perhaps on a slow disk.
async fn read_ahead(store: &Store) {
    let objects = system::ALL.into_iter().chain([roles::ROLES]);
    let mut pages: Vec<u32> = objects.flat_map(|object| store.space(DATA).pages(object, 0, LISTED)).collect();
    pages.sort_unstable();
    store.pool().prefetch_pages(DATA, &pages).await;
}

/// Who wrote the newest versions of all definitions, deleted ones included.
pub(crate) async fn writers(store: &Store) -> Result<FxHashSet<TxnId>> {
    read_ahead(store).await;
    let mut writers = FxHashSet::default();
    for object in system::ALL.into_iter().chain([roles::ROLES]) {
        for page in store.space(DATA).pages(object, 0, usize::MAX) {
            let pin = store.pool().fetch(PageId::new(DATA, page), Access::Sequential).await?;
            Heap::read_page(&pin, |_, header, _| {
                writers.insert(header.writer);
            });
        }
    }
    Ok(writers)
}

/// A row's newest version.
pub(crate) struct NewestRow<'a> {
    pub(crate) rid: Rid,
    pub(crate) version: Version,
    pub(crate) bytes: &'a [u8],
}

/// Calls `each` with the newest version of every row of a table, in address order, unless that is a deletion. Right
/// only under a lock that keeps other writers away.
pub(crate) async fn newest_rows(
    store: &Store,
    table: &Table,
    each: impl FnMut(NewestRow<'_>) -> Result<()>,
) -> Result<()> {
    walk(store, table, View::Newest, each).await
}

async fn walk(
    store: &Store,
    table: &Table,
    view: View,
    mut each: impl FnMut(NewestRow<'_>) -> Result<()>,
) -> Result<()> {
    let heap = Heap { object: table.oid, space: DATA };
    let mut from = 0;
    loop {
        let pages = store.space(DATA).pages(table.oid, from, LISTED);
        let Some(&last) = pages.last() else { return Ok(()) };
        store.pool().prefetch_pages(DATA, &pages).await;
        for page in pages {
            let pin = store.pool().fetch(PageId::new(DATA, page), Access::Sequential).await?;
            let slots = slotted::slot_count(&pin.read());
            for slot in 0..slots {
                let Some(row) = Heap::read(&pin, slot) else { continue };
                if view == View::Newest && row.header.flags & DELETED != 0 {
                    continue;
                }
                let bytes = match row.header.flags & CHAINED {
                    0 => row.bytes,
                    _ => heap.read_chain(store, &row.bytes).await?,
                };
                let version = Version { writer: row.header.writer, undo: row.header.undo };
                each(NewestRow { rid: Rid { page, slot }, version, bytes: &bytes })?;
            }
        }
        from = last + 1;
    }
}
