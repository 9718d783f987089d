//! Where CREATE puts what is new: in a schema, or in the session's space of temporary tables.
use crate::error::undefined_schema;
use crate::parse::relation;
use terrace_engine::{Among, Catalog, EngineError, OnCommit, Placing, RelationName, Result, Space, Step, Table};
use terrace_grammar::statement::{self as tree, CreateTable, Name};

/// A relation that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) placing: Placing,
}

impl Target {
    pub(crate) fn of_table(create: &CreateTable, catalog: &Catalog) -> Result<Target> {
        Target::of(&create.name, create.temporary, create.on_commit, catalog)
    }

    /// 42P16 where the name's schema is not one for such a relation, 3F000 where there is none.
    pub(crate) fn of(
        name: &Name,
        temporary: bool,
        on_commit: Option<tree::OnCommit>,
        catalog: &Catalog,
    ) -> Result<Target> {
        let invalid = |message: &str| Err(EngineError::new("42P16", message));
        let named = relation(name)?;
        let place = match &named.among {
            Among::All if temporary => Step::Own,
            among => place(among, &named.name, catalog)?,
        };
        let placing = match (place, on_commit) {
            (Step::In(_), _) if temporary => {
                return invalid("cannot create temporary relation in non-temporary schema");
            }
            (Step::In(_), Some(_)) => return invalid("ON COMMIT can only be used on temporary tables"),
            (Step::In(space), None) => Placing::In(space),
            (_, None | Some(tree::OnCommit::PreserveRows)) => Placing::Temporary(OnCommit::PreserveRows),
            (_, Some(tree::OnCommit::DeleteRows)) => Placing::Temporary(OnCommit::DeleteRows),
            (_, Some(tree::OnCommit::Drop)) => Placing::Temporary(OnCommit::Drop),
        };
        Ok(Target { name: named.name, placing })
    }

    /// A relation that is made with this one: it goes with it, and has no rows of its own to lose.
    pub(crate) fn beside(&self, name: String) -> Target {
        let placing = match self.placing {
            Placing::Temporary(OnCommit::DeleteRows) => Placing::Temporary(OnCommit::PreserveRows),
            other => other,
        };
        Target { name, placing }
    }

    /// A relation that is made for a table that there is.
    pub(crate) fn of_part(table: &Table, name: String) -> Target {
        let placing = table.temporary.map_or(Placing::In(table.space), Placing::Temporary);
        Target { name: table.name.clone(), placing }.beside(name)
    }

    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self.placing, Placing::Temporary(_))
    }

    /// The space that it will be in, as far as there is one.
    pub(crate) fn space(&self, catalog: &Catalog) -> Option<Space> {
        match self.placing {
            Placing::In(space) => Some(space),
            Placing::Temporary(_) => catalog.own_space(),
        }
    }

    /// Whether a relation that stands where this one goes has the name.
    pub(crate) fn is_taken(&self, name: &str, catalog: &Catalog) -> bool {
        self.space(catalog).is_some_and(|space| catalog.name_taken(space, name))
    }
}

/// Where a new thing of that name goes. 3F000, 42501
fn place(among: &Among, name: &str, catalog: &Catalog) -> Result<Step> {
    match among {
        Among::All => match catalog.said_steps().first() {
            None => Err(EngineError::new("3F000", "no schema has been selected to create in")),
            Some(Step::System(schema)) => {
                let error = EngineError::new("42501", format!("permission denied to create \"{schema}.{name}\""));
                Err(error.with_detail("System catalog modifications are currently disallowed."))
            }
            Some(step) => Ok(*step),
        },
        Among::Schema(schema) => Ok(Step::In(catalog.schema(schema).ok_or_else(|| undefined_schema(schema))?)),
        Among::In(space) => Ok(Step::In(*space)),
        Among::Own | Among::OwnIf(_) => Ok(Step::Own),
    }
}

/// The schema in which a permanent thing is made. 0A000 where it would be temporary.
pub(crate) fn schema_of_new(named: &RelationName, what: &str, catalog: &Catalog) -> Result<Space> {
    match place(&named.among, &named.name, catalog)? {
        Step::In(space) => Ok(space),
        Step::Own | Step::System(_) => Err(crate::error::unsupported(format!("a temporary {what}"))),
    }
}
