//! ALTER VIEW, and the options of views.
//!
//! 1. A default of a view's column is kept as that of a table's. It names no sequence and no type of the user's, nor is
//!    it of one: nothing would keep these there.
use crate::error::{undefined_column, unsupported};
use crate::parse::qualified::kept_edits;
use crate::statement::run::Run;
use crate::through::refuse_check;
use std::sync::Arc;
use terrace_engine::{ColumnDef, EngineError, Result, View, ViewCheck};
use terrace_grammar::statement::{self as tree, AlterAction, ExprKind, Ident, Literal, Node, StorageOption, Written};
use terrace_storage::{FIRST_OBJECT, ObjectId};

/// The options that PostgreSQL's views have beside `check_option`.
const OTHERS: [&str; 2] = ["security_barrier", "security_invoker"];

/// What a view's options, and the clause WITH CHECK OPTION, say of the rows that are written through it. 22023
pub(crate) fn check_option(options: &[StorageOption], clause: Option<tree::ViewCheck>) -> Result<Option<ViewCheck>> {
    let wrong = |message: String| EngineError::new("22023", message);
    let of_clause = clause.map(|_| "check_option");
    let named: Vec<&str> = options.iter().map(|option| option.name.name.as_str()).chain(of_clause).collect();
    if let Some((_, twice)) = named.iter().enumerate().find(|(at, name)| named[..*at].contains(name)) {
        return Err(wrong(format!("parameter \"{twice}\" specified more than once")));
    }
    let mut check = clause.map(|check| match check {
        tree::ViewCheck::Local => ViewCheck::Local,
        tree::ViewCheck::Cascaded => ViewCheck::Cascaded,
    });
    for StorageOption { name: Ident { name, .. }, value } in options {
        let value = value_of(value.as_ref());
        check = Some(match (name.as_str(), value.to_ascii_lowercase().as_str()) {
            ("check_option", "local") => ViewCheck::Local,
            ("check_option", "cascaded") => ViewCheck::Cascaded,
            ("check_option", _) => {
                let error = wrong(format!("invalid value for enum option \"check_option\": {value}"));
                return Err(error.with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
            (name, _) if OTHERS.contains(&name) => return Err(unsupported(format!("the option {name} of a view"))),
            _ => return Err(wrong(format!("unrecognized parameter \"{name}\""))),
        });
    }
    Ok(check)
}

/// The text of an option's value; without one, it is true.
fn value_of(value: Option<&tree::Expr>) -> String {
    match value.map(|value| &value.kind) {
        None => "true".to_owned(),
        Some(ExprKind::Literal(Literal::Int(number))) => number.to_string(),
        Some(ExprKind::Literal(Literal::Number(text) | Literal::Text(text))) => text.clone(),
        Some(ExprKind::Column(word)) => word.last().name.clone(),
        Some(_) => String::new(),
    }
}

impl Run<'_> {
    /// The actions of ALTER VIEW, or of ALTER TABLE of a view.
    pub(crate) async fn alter_view(&self, view: ObjectId, actions: &[AlterAction]) -> Result<Vec<EngineError>> {
        self.lock_definitions().await?;
        for action in actions {
            let catalog = self.begin_statement().await;
            let found = catalog.views().find(|one| one.oid == view);
            let view = found.ok_or_else(|| EngineError::new("XX000", "the view has gone"))?;
            self.info.actor(&catalog).require_owner(&catalog, view.oid, ("view", &view.name))?;
            let changed = Box::pin(self.altered_view(view, action)).await?;
            if changed.check.is_some() && changed.check != view.check {
                refuse_check(&catalog, &changed)?;
            }
            let put = async { self.cell.lock().await.open().put_view(changed).await };
            self.cancel.run(put).await?;
        }
        Ok(vec![])
    }

    async fn altered_view(&self, view: &Arc<View>, action: &AlterAction) -> Result<View> {
        let changed = View::clone(view);
        match action {
            AlterAction::SetStorage(options) => {
                let stated = check_option(options, None)?;
                Ok(View { check: stated.or(view.check), ..changed })
            }
            AlterAction::ResetStorage(options) if options.iter().any(|option| option.value.is_some()) => {
                Err(EngineError::new("42601", "RESET must not include values for parameters"))
            }
            AlterAction::ResetStorage(options) => {
                let resets = options.iter().any(|option| option.name.name == "check_option");
                Ok(View { check: view.check.filter(|_| !resets), ..changed })
            }
            AlterAction::SetDefault { column, value } => self.with_view_default(changed, column, Some(value)).await,
            AlterAction::DropDefault { column } => self.with_view_default(changed, column, None).await,
            other => {
                let message = format!("ALTER action {} cannot be performed on relation \"{}\"", of(other), view.name);
                Err(EngineError::new("42809", message).with_detail("This operation is not supported for views."))
            }
        }
    }

    /// Invariant 1.
    async fn with_view_default(&self, mut view: View, column: &Ident, value: Option<&Written>) -> Result<View> {
        let at = view.columns.iter().position(|own| own.name == column.name);
        let at = at.ok_or_else(|| undefined_column(&column.name, &view.name))?;
        let default_sql = match value {
            None => None,
            Some(value) => {
                let definition = &view.columns[at];
                let own = definition.data_type.item().unwrap_or(definition.data_type).pg_oid() >= FIRST_OBJECT;
                let catalog = self.begin_statement().await;
                if own || !kept_edits(Node::Expr(&value.expr), "", &catalog).is_empty() {
                    return Err(unsupported("a default of a view's column with a sequence or a type of the user's")
                        .with_hint("Give the column of the table a default."));
                }
                self.check_default(value, definition, view.temporary).await?;
                Some(self.kept_default(definition, &value.text).await?)
            }
        };
        view.columns[at] = ColumnDef { default_sql, ..view.columns[at].clone() };
        Ok(view)
    }
}

/// An action, as PostgreSQL calls it.
fn of(action: &AlterAction) -> &'static str {
    use AlterAction as A;
    match action {
        A::AddColumn { .. } => "ADD COLUMN",
        A::DropColumn { .. } => "DROP COLUMN",
        A::SetNotNull { .. } => "ALTER COLUMN ... SET NOT NULL",
        A::DropNotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        A::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        A::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        A::SetIdentity { .. } => "ALTER COLUMN ... SET",
        A::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        A::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        A::AddConstraint(_) => "ADD CONSTRAINT",
        A::DropConstraint { .. } => "DROP CONSTRAINT",
        A::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        A::AlterConstraint { .. } => "ALTER CONSTRAINT",
        A::Owner(_) => "OWNER TO",
        A::SetDefault { .. } | A::DropDefault { .. } | A::SetStorage(_) | A::ResetStorage(_) => "of a view",
    }
}
