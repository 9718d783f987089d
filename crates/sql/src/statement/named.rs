//! Names in statements about definitions: what has one is looked up only in a schema that the current role may use, and
//! dropped by its owner, or by its schema's.
use crate::access::Actor;
use crate::parse::among;
use crate::statement::kind::Task;
use crate::statement::run::Run;
use terrace_engine::{Catalog, RelationName, Result, Space};
use terrace_grammar::statement::{Ident, Name, ObjectKind};
use terrace_storage::ObjectId;

impl Run<'_> {
    /// 42501 where the current role may not use the schema that a name says.
    pub(super) async fn permit_names(&self, task: Task<'_>) -> Result<()> {
        let schemas = schemas_of(task);
        if schemas.is_empty() {
            return Ok(());
        }
        let catalog = self.begin_statement().await;
        for schema in schemas {
            if let Some(among) = among(&schema.name) {
                self.info.permit_lookup(&catalog, &RelationName::new(among, ""))?;
            }
        }
        Ok(())
    }
}

impl Actor {
    /// 42501 where it owns neither something nor its schema.
    pub(crate) fn require_dropper(
        &self,
        catalog: &Catalog,
        (object, space): (ObjectId, Space),
        named: (&str, &str),
    ) -> Result<()> {
        match self.owns(catalog, space.0) {
            true => Ok(()),
            false => self.require_owner(catalog, object, named),
        }
    }
}

/// The schemas that a statement's names say.
fn schemas_of<'s>(task: Task<'s>) -> Vec<&'s Ident> {
    let names: Vec<&'s Name> = match task {
        Task::AlterTable(alter) => vec![&alter.name],
        Task::AlterSequence(alter) => vec![&alter.name],
        Task::AlterEnum(alter) => vec![&alter.name],
        Task::AlterComposite(alter) => vec![&alter.name],
        Task::AlterDomain(alter) => vec![&alter.name],
        Task::CreateIndex(create) => vec![&create.table],
        Task::SetSchema(set) => vec![&set.name],
        Task::Rename(rename) => vec![&rename.name],
        Task::Owner(owner) => vec![&owner.name],
        Task::Drop(drop) if drop.kind != ObjectKind::Role => drop.names.iter().collect(),
        Task::Truncate(truncate) => truncate.tables.iter().map(|(name, _)| name).collect(),
        Task::Lock(lock) => lock.tables.iter().collect(),
        Task::Analyze(maintain) => maintain.tables.iter().map(|table| &table.name).collect(),
        Task::Comment(comment) => {
            // Of a column's name the last part is the column.
            let (behind, qualifier) = (usize::from(comment.kind.is_none()), comment.name.qualifier());
            return qualifier.len().checked_sub(1 + behind).and_then(|at| qualifier.get(at)).into_iter().collect();
        }
        _ => vec![],
    };
    names.into_iter().filter_map(|name| name.qualifier().last()).collect()
}
