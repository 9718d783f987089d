//! Where CREATE puts a new relation: among the permanent ones, or in the session's space of temporary ones.
use crate::parse::relation;
use terrace_engine::{Among, Catalog, EngineError, OnCommit, Result, Table};
use terrace_grammar::statement::{self as tree, CreateTable, Name};

/// A relation that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `None`: it is permanent.
    pub(crate) on_commit: Option<OnCommit>,
}

impl Target {
    pub(crate) fn of_table(create: &CreateTable) -> Result<Target> {
        Target::of(&create.name, create.temporary, create.on_commit)
    }

    /// 42P16 where the name's schema is not one for such a relation.
    pub(crate) fn of(name: &Name, temporary: bool, on_commit: Option<tree::OnCommit>) -> Result<Target> {
        let invalid = |message: &str| Err(EngineError::new("42P16", message));
        let named = relation(name)?;
        let in_space = match named.among {
            Among::All => temporary,
            Among::Permanent if temporary => {
                return invalid("cannot create temporary relation in non-temporary schema");
            }
            Among::Permanent => false,
            Among::Own | Among::OwnIf(_) | Among::Of(_) | Among::In(_) => true,
        };
        let on_commit = match (in_space, on_commit) {
            (false, Some(_)) => return invalid("ON COMMIT can only be used on temporary tables"),
            (false, None) => None,
            (true, None | Some(tree::OnCommit::PreserveRows)) => Some(OnCommit::PreserveRows),
            (true, Some(tree::OnCommit::DeleteRows)) => Some(OnCommit::DeleteRows),
            (true, Some(tree::OnCommit::Drop)) => Some(OnCommit::Drop),
        };
        Ok(Target { name: named.name, on_commit })
    }

    /// A relation that is made with this one: it goes with it, and has no rows of its own to lose.
    pub(crate) fn beside(&self, name: String) -> Target {
        let on_commit = self.on_commit.map(|on_commit| match on_commit {
            OnCommit::Drop => OnCommit::Drop,
            OnCommit::PreserveRows | OnCommit::DeleteRows => OnCommit::PreserveRows,
        });
        Target { name, on_commit }
    }

    /// A relation that is made for a table that there is.
    pub(crate) fn of_part(table: &Table, name: String) -> Target {
        Target { name: table.name.clone(), on_commit: table.temporary.map(|t| t.on_commit) }.beside(name)
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.on_commit.is_some()
    }

    /// Whether a relation that stands where this one goes has the name.
    pub(crate) fn is_taken(&self, name: &str, catalog: &Catalog) -> bool {
        match (self.is_temporary(), catalog.own_space()) {
            (false, _) => catalog.name_taken(None, name),
            (true, Some(own)) => catalog.name_taken(Some(own), name),
            (true, None) => false,
        }
    }
}
