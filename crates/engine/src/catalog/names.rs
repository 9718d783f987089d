//! What a name means: in which name spaces it is looked up, and in which order.
//!
//! 1. A [`Space`] is a schema, or the name space of a session's temporary tables. Each relation and each type is in
//!    one. Tables, indexes and views of a space share its names; so do its types.
//! 2. A name without a schema is looked up along the path of who sees the catalogue ([`super::path`]): the first space
//!    that has a relation (a type) of the name decides.
//! 3. A definition's names do not depend on a path: one without a schema means what is in the schema that `public` was
//!    when the database was made, others name the schema by its number ([`RelationName::of_definition`]).
use super::path::Step;
use super::views::View;
use super::{Catalog, Index, Table};
use crate::types::{CompositeType, DataType, EnumType};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use terrace_storage::ObjectId;

/// A schema, or the name space of a session's temporary tables (invariant 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Space(pub ObjectId);

impl Space {
    /// The schema that a new database has.
    pub const PUBLIC: Space = Space(super::access::PUBLIC_SCHEMA);
}

/// As the name space of a session's temporary tables is called.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pg_temp_{}", self.0.0)
    }
}

/// Where a table is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    In(Space),
    /// In the session's space.
    Temporary(super::temporary::OnCommit),
}

/// Where a name is looked up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Among {
    /// Along the path.
    All,
    /// In the schema of that name.
    Schema(Arc<str>),
    /// In a space.
    In(Space),
    /// In the session's space of temporary tables.
    Own,
    /// The same, if it is that space.
    OwnIf(Space),
}

/// A relation's name, or a type's, and where it is looked up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RelationName {
    pub among: Among,
    pub name: String,
}

impl RelationName {
    pub fn new(among: Among, name: impl Into<String>) -> RelationName {
        RelationName { among, name: name.into() }
    }
    /// Of the schema `public`.
    pub fn public(name: impl Into<String>) -> RelationName {
        RelationName::new(Among::In(Space::PUBLIC), name)
    }
    /// The same name, as a definition means it, whoever reads it (invariant 3).
    pub fn of_definition(self) -> RelationName {
        match &self.among {
            Among::All => RelationName { among: Among::In(Space::PUBLIC), ..self },
            Among::Schema(name) if &**name == "public" => RelationName { among: Among::In(Space::PUBLIC), ..self },
            _ => self,
        }
    }
}

/// As PostgreSQL shows the name in errors.
impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.among {
            Among::Schema(schema) => write!(f, "{schema}.{}", self.name),
            _ => f.write_str(&self.name),
        }
    }
}

/// What names a relation, or a type: a text does it as a statement without a schema does.
pub trait Names {
    fn among(&self) -> &Among;
    fn name(&self) -> &str;
}

impl Names for str {
    fn among(&self) -> &Among {
        &Among::All
    }
    fn name(&self) -> &str {
        self
    }
}

impl Names for String {
    fn among(&self) -> &Among {
        &Among::All
    }
    fn name(&self) -> &str {
        self
    }
}

impl Names for RelationName {
    fn among(&self) -> &Among {
        &self.among
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Names + ?Sized> Names for &T {
    fn among(&self) -> &Among {
        (**self).among()
    }
    fn name(&self) -> &str {
        (**self).name()
    }
}

/// What has names, by space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed<T>(BTreeMap<Space, BTreeMap<String, T>>);

impl<T> Default for Placed<T> {
    fn default() -> Placed<T> {
        Placed(BTreeMap::new())
    }
}

impl<T> Placed<T> {
    pub(crate) fn get(&self, space: Space, name: &str) -> Option<&T> {
        self.0.get(&space)?.get(name)
    }
    pub(crate) fn insert(&mut self, space: Space, name: &str, one: T) {
        self.0.entry(space).or_default().insert(name.to_owned(), one);
    }
    /// Takes out those that `which` picks, and answers how many they were.
    pub(crate) fn take(&mut self, which: impl Fn(&T) -> bool) -> usize {
        let count = self.0.values_mut().map(|named| named.extract_if(.., |_, one| which(one)).count()).sum();
        self.0.retain(|_, named| !named.is_empty());
        count
    }
    /// By space, then by name.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values().flat_map(BTreeMap::values)
    }
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Space, &T)> {
        self.0.iter().flat_map(|(space, named)| named.values().map(|one| (*space, one)))
    }
    pub(crate) fn has(&self, space: Space) -> bool {
        self.0.contains_key(&space)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Named {
    Table(Arc<Table>),
    Index(Arc<Index>),
}

/// A relation of a name.
enum Relation<'c> {
    Named(&'c Named),
    View(&'c Arc<View>),
}

/// A type of a name.
enum Type<'c> {
    Own(DataType),
    Domain(&'c Arc<super::domains::Domain>),
}

impl Table {
    /// The name that means this table to every session.
    pub fn full_name(&self) -> RelationName {
        RelationName::new(Among::In(self.space), self.name.as_str())
    }
}

impl View {
    /// The name that means this view to every session.
    pub fn full_name(&self) -> RelationName {
        RelationName::new(Among::In(self.space), self.name.as_str())
    }
}

impl Catalog {
    /// What the first of the spaces has in which a name is looked up.
    fn first<T>(&self, among: &Among, at: impl Fn(Space) -> Option<T>) -> Option<T> {
        match among {
            Among::All => self.path.steps.iter().find_map(|step| match step {
                Step::Own => at(self.own?),
                Step::In(space) => at(*space),
                Step::System(_) => None,
            }),
            Among::Schema(name) => at(self.schema(name)?),
            Among::In(space) => at(*space),
            Among::Own => at(self.own?),
            Among::OwnIf(space) => at(self.own.filter(|own| own == space)?),
        }
    }

    fn relation<N: Names + ?Sized>(&self, name: &N) -> Option<Relation<'_>> {
        self.first(name.among(), |space| {
            let view = || self.views.get(space, name.name()).map(Relation::View);
            self.named.get(space, name.name()).map(Relation::Named).or_else(view)
        })
    }

    pub fn table<N: Names + ?Sized>(&self, name: &N) -> Option<&Arc<Table>> {
        match self.relation(name)? {
            Relation::Named(Named::Table(table)) => Some(table),
            _ => None,
        }
    }

    pub fn index<N: Names + ?Sized>(&self, name: &N) -> Option<&Arc<Index>> {
        match self.relation(name)? {
            Relation::Named(Named::Index(index)) => Some(index),
            _ => None,
        }
    }

    pub fn view<N: Names + ?Sized>(&self, name: &N) -> Option<&Arc<View>> {
        match self.relation(name)? {
            Relation::View(view) => Some(view),
            _ => None,
        }
    }

    /// Whether the name means a relation of any kind.
    pub fn relation_exists<N: Names + ?Sized>(&self, name: &N) -> bool {
        self.relation(name).is_some()
    }

    /// Where the relation is that the name alone means.
    pub fn space_of_relation(&self, name: &str) -> Option<Space> {
        self.first(&Among::All, |space| self.name_taken(space, name).then_some(space))
    }

    /// Whether a relation of a space has the name.
    pub fn name_taken(&self, space: Space, name: &str) -> bool {
        let is_composite = matches!(self.enums.get(space, name), Some(DataType::Composite(_)));
        is_composite || self.named.get(space, name).is_some() || self.views.get(space, name).is_some()
    }

    fn type_named<N: Names + ?Sized>(&self, name: &N) -> Option<Type<'_>> {
        self.first(name.among(), |space| {
            let domain = || self.domains.get(space, name.name()).map(Type::Domain);
            self.enums.get(space, name.name()).map(|of| Type::Own(*of)).or_else(domain)
        })
    }

    pub fn enum_type<N: Names + ?Sized>(&self, name: &N) -> Option<EnumType> {
        match self.own_type(name)? {
            DataType::Enum(of) => Some(of),
            _ => None,
        }
    }

    pub fn composite_type<N: Names + ?Sized>(&self, name: &N) -> Option<CompositeType> {
        match self.own_type(name)? {
            DataType::Composite(of) => Some(of),
            _ => None,
        }
    }

    /// An enum, or a composite type.
    pub fn own_type<N: Names + ?Sized>(&self, name: &N) -> Option<DataType> {
        match self.type_named(name)? {
            Type::Own(of) => Some(of),
            Type::Domain(_) => None,
        }
    }

    pub fn domain<N: Names + ?Sized>(&self, name: &N) -> Option<&Arc<super::domains::Domain>> {
        match self.type_named(name)? {
            Type::Domain(domain) => Some(domain),
            Type::Own(_) => None,
        }
    }

    /// Whether a type of a space has the name.
    pub(crate) fn type_name_taken(&self, space: Space, name: &str) -> bool {
        self.enums.get(space, name).is_some() || self.domains.get(space, name).is_some()
    }

    /// Where an enum is, or a composite type, or a domain.
    pub fn space_of_type(&self, oid: u32) -> Option<Space> {
        let is_own = |of: &DataType| of.own().is_some_and(|own| own.oid == oid || own.array == oid);
        let of_own = self.enums.entries().find(|(_, of)| is_own(of));
        let of_domain = || self.domains.values().find(|domain| domain.oid == oid).map(|domain| domain.space);
        of_own.map(|(space, _)| space).or_else(of_domain)
    }
}
