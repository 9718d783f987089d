//! CREATE TYPE ... AS (...), and ALTER TYPE of its attributes.
//!
//! 1. Stored values outlive a change of their type ([`terrace_engine::types::composites`]): attributes are added,
//!    dropped and renamed without a look at them. What would write values anew is refused, as in PostgreSQL.
//! 2. Texts (defaults, conditions, views) read attributes by name, and all of them by `(x).*`. So a type that such a
//!    text may be about changes no attribute (0A000); nor does one of which there are keys in an index.
//! 3. A type is no part of itself (42P16), and types are nested to a depth that every stack has room for.
use crate::error::unsupported;
use crate::parse;
use crate::parse::types::of_column;
use crate::statement::ddl::check_name;
use crate::statement::enums::{columns_of, is_of, new_name, refuse_named};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::target::schema_of_new;
use terrace_engine::ddl::enums::AttributeChange as Change;
use terrace_engine::types::CompositeType;
use terrace_engine::types::composites::Attribute;
use terrace_engine::{Catalog, DataType, EngineError, Placing, Result};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    AlterComposite, AttributeChange, ColumnDefinition, CreateComposite, Ident, Name, TypeName,
};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

/// Composite types within each other (invariant 3).
const DEEPEST: usize = 32;

impl Run<'_> {
    pub(crate) async fn create_composite(&self, create: &CreateComposite) -> Result<Notices> {
        let named = parse::relation(&create.name)?;
        let name = new_name(&named.name)?;
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let space = schema_of_new(&named, "type", &catalog)?;
        self.info.actor(&catalog).permit_creation(&catalog, Placing::In(space))?;
        if create.attributes.is_empty() {
            return Err(unsupported("a composite type without attributes"));
        }
        let made = create.attributes.iter().map(|attribute| self.attribute_of(attribute, &catalog));
        let attributes = made.collect::<Result<Vec<Attribute>>>()?;
        let make = async { self.cell.lock().await.open().create_composite(space, &name, attributes).await };
        let of = self.cancel.run(make).await?;
        self.own(ObjectId(of.def().oid)).await?;
        Ok(vec![])
    }

    pub(crate) async fn alter_composite(&self, alter: &AlterComposite) -> Result<Notices> {
        let mut notices = vec![];
        for change in &alter.changes {
            let (name, of, catalog) = self.found(&alter.name).await?;
            let DataType::Composite(of) = of else {
                return Err(EngineError::new("42809", format!("{} is not a composite type", quoted(&name))));
            };
            let missing = |attribute: &Ident| {
                let message = format!("column \"{}\" of relation \"{name}\" does not exist", attribute.name);
                if of.def().attribute(&attribute.name).is_none() { Some(message) } else { None }
            };
            let change = match change {
                AttributeChange::Add(attribute) => {
                    let attribute = self.attribute_of(attribute, &catalog)?;
                    refuse_itself(of, attribute.data_type)?;
                    Change::Add(attribute)
                }
                AttributeChange::Drop { if_exists, name: attribute } => match missing(attribute) {
                    Some(message) if *if_exists => {
                        notices.push(notice("00000", format!("{message}, skipping")));
                        continue;
                    }
                    Some(message) => return Err(EngineError::new("42703", message)),
                    None if of.def().attributes().count() == 1 => {
                        return Err(unsupported("a composite type without attributes"));
                    }
                    None => Change::Drop(attribute.name.clone()),
                },
                AttributeChange::Rename { from, to } => {
                    check_name(&to.name)?;
                    Change::Rename { from: from.name.clone(), to: to.name.clone() }
                }
                AttributeChange::SetType { name: attribute, data_type, collation } => {
                    if let Some(message) = missing(attribute) {
                        return Err(EngineError::new("42703", message));
                    }
                    self.info.permit_type(&catalog, data_type)?;
                    let to = type_of(data_type, collation.as_ref(), &catalog)?;
                    refuse_itself(of, to)?;
                    refuse_used(of, &catalog)?;
                    Change::SetType { name: attribute.name.clone(), to }
                }
            };
            refuse_read(&name, of, &change, &catalog)?;
            self.change_attribute(of, change).await?;
        }
        Ok(notices)
    }

    /// An attribute of a type that goes is dropped with it.
    pub(super) async fn drop_attribute(&self, of: CompositeType, name: String) -> Result<()> {
        let catalog = self.begin_statement().await;
        if of.def().attributes().count() == 1 {
            return Err(unsupported("a composite type without attributes"));
        }
        let change = Change::Drop(name);
        refuse_read(&of.def().name, of, &change, &catalog)?;
        self.change_attribute(of, change).await
    }

    async fn change_attribute(&self, of: CompositeType, change: Change) -> Result<()> {
        let alter = async { self.cell.lock().await.open().alter_composite(of, change).await };
        self.cancel.run(alter).await
    }

    fn attribute_of(&self, definition: &ColumnDefinition, catalog: &Catalog) -> Result<Attribute> {
        check_name(&definition.name.name)?;
        self.info.permit_type(catalog, &definition.data_type)?;
        let data_type = type_of(&definition.data_type, definition.collation.as_ref(), catalog)?;
        Ok(Attribute { name: definition.name.name.clone(), data_type })
    }
}

fn type_of(name: &TypeName, collation: Option<&Name>, catalog: &Catalog) -> Result<DataType> {
    if collation.is_some_and(|collation| !matches!(collation.last().name.as_str(), "default" | "C" | "POSIX")) {
        return Err(unsupported("a collation other than C"));
    }
    match of_column(name, catalog)? {
        (_, _, Some(domain)) => {
            let error = unsupported(format!("an attribute of the domain {}", domain.name));
            Err(error.with_hint("Use the domain's base type."))
        }
        (of, Some(_), None) => Err(unsupported(format!("an attribute of type {} with such digits", of.base_name()))),
        (of, None, None) if depth(of) >= DEEPEST => {
            Err(unsupported(format!("composite types within each other, more than {DEEPEST} deep,")))
        }
        (of, None, None) => Ok(of),
    }
}

/// How many composite types are within each other.
fn depth(of: DataType) -> usize {
    match of.item().unwrap_or(of) {
        DataType::Composite(of) => {
            1 + of.def().attributes().map(|attribute| depth(attribute.data_type)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Whether a type is another, or has values of it within.
pub(super) fn has_within(of: DataType, within: DataType) -> bool {
    is_of(of, within)
        || match of.item().unwrap_or(of) {
            DataType::Composite(of) => of.def().attributes().any(|attribute| has_within(attribute.data_type, within)),
            _ => false,
        }
}

/// 42P16 (invariant 3).
fn refuse_itself(of: CompositeType, added: DataType) -> Result<()> {
    if !has_within(added, DataType::Composite(of)) {
        return Ok(());
    }
    let message = format!("composite type {} cannot be made a member of itself", of.def().name);
    Err(EngineError::new("42P16", message))
}

/// 0A000 where a column has values of a type (invariant 1).
fn refuse_used(of: CompositeType, catalog: &Catalog) -> Result<()> {
    for table in catalog.tables() {
        let is_used = |column: &&terrace_engine::ColumnDef| {
            !column.dropped && has_within(column.data_type, DataType::Composite(of))
        };
        if let Some(column) = table.columns.iter().find(is_used) {
            let message = format!(
                "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                of.def().name,
                table.name,
                column.name
            );
            return Err(EngineError::new("0A000", message));
        }
    }
    Ok(())
}

/// 0A000 (invariant 2).
fn refuse_read(name: &str, of: CompositeType, change: &Change, catalog: &Catalog) -> Result<()> {
    let own = DataType::Composite(of);
    if !matches!(change, Change::Rename { .. }) {
        for (table, at) in columns_of(catalog, own) {
            if table.indexes.iter().any(|index| index.columns.contains(&at)) {
                let error = unsupported(format!("altering type {name}, which an index of table {} has,", table.name));
                return Err(error.with_hint("Drop the index, alter the type, and create it again."));
            }
        }
    }
    let doing = format!("altering type {name}");
    let reads = |domain: &&std::sync::Arc<terrace_engine::Domain>| {
        has_within(domain.base, own) && !(domain.checks.is_empty() && domain.default_sql.is_none())
    };
    if let Some(domain) = catalog.domains().find(reads) {
        return Err(unsupported(format!("{doing}, which domain {} has in it,", domain.name)));
    }
    refuse_named(catalog, &doing, |text| text.casts_to((own.pg_oid(), name), catalog) || text.reads(own, catalog))
}
