//! Statements as Terrace sees them: a tree of plain values that can be sent between threads.
//!
//! Invariants:
//! 1. Every node that an error can point at has its place `at`: the byte offset in the text that was parsed.
//! 2. Names are folded to lower case unless they were quoted, and cut at 63 bytes. Strings are decoded.
//! 3. Chains of AND, of OR and of one set operation are flat.
//! 4. Nothing of the text is lost. What has no place in the tree was refused when the tree was made.
//! 5. Keywords that PostgreSQL turns into functions or types of `pg_catalog` are those functions and types here:
//!    `position(a in b)` is `pg_catalog.position(b, a)`, `int` is `pg_catalog.int4`.

mod change;
mod expr;
mod grant;
mod query;
mod session;
mod table;
mod walk;

pub use change::{
    Assignment, Conflict, ConflictAction, ConflictTarget, Delete, IndexElement, Insert, Overriding, PARTS_MAX, Step,
    Update, multiplies, with_part,
};
pub use expr::{
    Argument, Call, Exclude, Expr, ExprKind, Frame, FrameBound, Literal, Match, Members, NullsOrder, Operator, Over,
    Quantifier, Sort, SpecialFunction, Subscript, Test, TypeName, Units, When, Window, Written,
};
pub use grant::{DefaultPrivileges, Grant, GrantRole, Granted, Grantee, Privilege};
pub use query::{
    Alias, Body, ColumnDefinition, Cte, Distinct, FromItem, Group, GroupBy, Item, JoinKind, JoinOn, LockStrength,
    LockWait, Locking, NamedWindow, Query, Select, SetOperator, TableFunction, With,
};

pub use session::{
    AlterSystem, Copy, CopySource, CopyTarget, Declare, Direction, Discard, Execute, Explain, Fetch, Isolation,
    LockTables, Maintain, MaintainedTable, NamedOption, OfSetting, OptionValue, Prepare, Role, RoleOption,
    RoleOptionKind, Set, SetConstraints, SetTransaction, Setting, SettingValue, SettingValueKind, TableLock,
    Transaction, TransactionKind, TransactionMode,
};
pub use table::{
    AlterAction, AlterComposite, AlterDomain, AlterEnum, AlterSequence, AlterTable, AttributeChange, Column,
    ColumnConstraint, ColumnConstraintKind, Comment, CreateComposite, CreateDomain, CreateEnum, CreateIndex,
    CreateSchema, CreateSequence, CreateTable, CreateTableAs, CreateView, Deferral, DomainChange, Drop, EnumChange,
    Index, LikeOption, ObjectKind, OnCommit, Owner, Reference, ReferenceAction, Rename, RenamedPart, SequenceOption,
    SequenceOptionKind, SetSchema, StorageOption, TableConstraint, TableConstraintKind, TableLike, Truncate, ViewCheck,
};
pub use walk::{Node, children_mut, walk};

/// A place in the text: the offset of a byte.
pub type At = u32;

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, TABLE.
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    /// CREATE TABLE AS and SELECT INTO.
    CreateTableAs(Box<CreateTableAs>),
    CreateView(Box<CreateView>),
    CreateIndex(Box<CreateIndex>),
    CreateSequence(Box<CreateSequence>),
    CreateEnum(CreateEnum),
    CreateComposite(CreateComposite),
    CreateDomain(Box<CreateDomain>),
    CreateRole(Role),
    CreateSchema(Box<CreateSchema>),
    AlterTable(Box<AlterTable>),
    AlterSequence(Box<AlterSequence>),
    AlterEnum(AlterEnum),
    AlterComposite(Box<AlterComposite>),
    AlterDomain(Box<AlterDomain>),
    AlterRole(Role),
    AlterSystem(AlterSystem),
    Rename(Rename),
    Owner(Owner),
    SetSchema(SetSchema),
    Drop(Drop),
    Comment(Comment),
    /// GRANT or REVOKE of privileges.
    Grant(Box<Grant>),
    /// GRANT or REVOKE of roles.
    GrantRole(Box<GrantRole>),
    DefaultPrivileges(Box<DefaultPrivileges>),
    Truncate(Truncate),
    Lock(LockTables),
    Vacuum(Maintain),
    Analyze(Maintain),
    Checkpoint(At),
    Copy(Box<Copy>),
    Explain(Box<Explain>),
    Prepare(Box<Prepare>),
    Execute(Execute),
    /// None: ALL.
    Deallocate(Option<Ident>),
    Declare(Box<Declare>),
    /// FETCH and MOVE.
    Fetch(Fetch),
    /// None: ALL.
    Close(Option<Ident>),
    /// BEGIN, COMMIT, ROLLBACK, savepoints.
    Transaction(Transaction),
    SetTransaction(SetTransaction),
    SetConstraints(SetConstraints),
    Set(Set),
    Reset(OfSetting),
    Show(OfSetting),
    Discard(Discard),
    Listen(Ident),
    /// With the payload.
    Notify(Ident, String),
    /// UNLISTEN. None: `*`.
    Unlisten(Option<Ident>),
    /// PostgreSQL has it, Terrace has not.
    Refused(Refused),
}

/// A name of one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    pub at: At,
    pub name: String,
}

/// A name of one or more parts: `t`, `public.t`, `t.a`.
///
/// Invariant: there is at least one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    parts: Vec<Ident>,
}

impl Name {
    /// The name of these parts.
    pub fn new(parts: Vec<Ident>) -> Name {
        assert!(!parts.is_empty(), "a name has at least one part");
        Name { parts }
    }

    /// A name of one part.
    pub fn one(part: Ident) -> Name {
        Name { parts: vec![part] }
    }

    /// A name in `pg_catalog`: what a keyword stands for.
    pub fn system(at: At, name: &str) -> Name {
        let schema = Ident { at, name: "pg_catalog".to_owned() };
        Name { parts: vec![schema, Ident { at, name: name.to_owned() }] }
    }

    /// The parts, the schema before the object.
    pub fn parts(&self) -> &[Ident] {
        &self.parts
    }

    /// The parts for themselves.
    pub fn into_parts(self) -> Vec<Ident> {
        self.parts
    }

    /// The last part: the object's own name.
    pub fn last(&self) -> &Ident {
        self.parts.last().expect("a name has at least one part")
    }

    /// What stands before the last part.
    pub fn qualifier(&self) -> &[Ident] {
        &self.parts[..self.parts.len() - 1]
    }

    /// Where the name begins.
    pub fn at(&self) -> At {
        self.parts[0].at
    }

    /// The name as messages show it: the parts with dots between them.
    pub fn shown(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        names.join(".")
    }
}

/// What PostgreSQL has and Terrace has not.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub at: At,
    /// The SQLSTATE, nearly always 0A000.
    pub sqlstate: &'static str,
    /// The whole message: "LISTEN is not supported".
    pub message: String,
    /// The way out, where there is one.
    pub hint: Option<String>,
}
