//! Tables, indexes and sequences: what makes, changes and drops them.

use super::{At, ColumnDefinition, Expr, Ident, IndexElement, Name, Query, Statement, TypeName, Written};
use std::ops::Range;

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub at: At,
    pub temporary: bool,
    pub on_commit: Option<OnCommit>,
    pub if_not_exists: bool,
    pub name: Name,
    pub columns: Vec<Column>,
    pub constraints: Vec<TableConstraint>,
    pub likes: Vec<TableLike>,
    /// `WITH (a = 1)`.
    pub storage: Vec<StorageOption>,
}

/// ON COMMIT of a temporary table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnCommit {
    PreserveRows,
    DeleteRows,
    Drop,
}

/// `LIKE t INCLUDING DEFAULTS` in CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLike {
    pub name: Name,
    /// So many of the table's columns stand before it.
    pub columns_before: usize,
    /// What is copied beside columns and their NOT NULL.
    pub including: Vec<LikeOption>,
}

/// What LIKE can copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LikeOption {
    Comments,
    Compression,
    Constraints,
    Defaults,
    Generated,
    Identity,
    Indexes,
    Statistics,
    Storage,
}

impl LikeOption {
    /// All, by their names.
    pub const ALL: [(&str, LikeOption); 9] = [
        ("comments", LikeOption::Comments),
        ("compression", LikeOption::Compression),
        ("constraints", LikeOption::Constraints),
        ("defaults", LikeOption::Defaults),
        ("generated", LikeOption::Generated),
        ("identity", LikeOption::Identity),
        ("indexes", LikeOption::Indexes),
        ("statistics", LikeOption::Statistics),
        ("storage", LikeOption::Storage),
    ];
}

/// CREATE TABLE AS, or SELECT INTO.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs {
    pub at: At,
    pub temporary: bool,
    pub on_commit: Option<OnCommit>,
    pub if_not_exists: bool,
    pub name: Name,
    /// Names of the first columns, in place of the query's.
    pub columns: Vec<Ident>,
    pub storage: Vec<StorageOption>,
    pub query: Query,
    /// Not WITH NO DATA.
    pub with_data: bool,
    /// SELECT INTO.
    pub select_into: bool,
}

/// CREATE VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub at: At,
    pub or_replace: bool,
    pub temporary: bool,
    /// RECURSIVE: the query may read the view, and all columns have names.
    pub recursive: bool,
    pub name: Name,
    /// Names of the first columns, in place of the query's.
    pub columns: Vec<Ident>,
    pub query: Query,
    /// Where the query stands in the text.
    pub place: Range<At>,
    /// As WITH has them, before AS.
    pub options: Vec<StorageOption>,
    /// WITH CHECK OPTION.
    pub check: Option<ViewCheck>,
}

/// Which views' conditions the rows must meet that a change of a view makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    /// The view's own, and those of the views below that say so.
    Local,
    /// The view's own, and those of all views below.
    Cascaded,
}

/// A column's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: Ident,
    pub data_type: TypeName,
    pub collation: Option<Name>,
    /// In the order in which they are written. One kind may be there twice: PostgreSQL finds that later.
    pub constraints: Vec<ColumnConstraint>,
}

/// What a column is bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnConstraint {
    pub at: At,
    pub name: Option<Ident>,
    pub kind: ColumnConstraintKind,
    pub deferral: Deferral,
}

/// The kinds of [`ColumnConstraint`].
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnConstraintKind {
    NotNull,
    /// NULL: nothing.
    Null,
    Default(Written),
    Check {
        expr: Written,
        no_inherit: bool,
    },
    Unique(Index),
    PrimaryKey(Index),
    References(Reference),
    /// `GENERATED ALWAYS AS IDENTITY`, or `BY DEFAULT`.
    Identity {
        always: bool,
        options: Vec<SequenceOption>,
    },
    /// `GENERATED ALWAYS AS (...) STORED`.
    Generated(Written),
}

/// What a table is bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct TableConstraint {
    pub at: At,
    pub name: Option<Ident>,
    pub kind: TableConstraintKind,
    pub deferral: Deferral,
    /// NOT VALID: the rows that are there are not checked.
    pub not_valid: bool,
}

/// The kinds of [`TableConstraint`].
#[derive(Clone, Debug, PartialEq)]
pub enum TableConstraintKind {
    Check {
        expr: Written,
        no_inherit: bool,
    },
    Unique {
        columns: Vec<Ident>,
        index: Index,
    },
    PrimaryKey {
        columns: Vec<Ident>,
        index: Index,
    },
    ForeignKey {
        columns: Vec<Ident>,
        reference: Reference,
    },
    /// UNIQUE or PRIMARY KEY by an index that is there. Of ALTER TABLE only, as PostgreSQL finds later.
    UsingIndex {
        index: Ident,
        primary: bool,
    },
}

/// The index of a UNIQUE or PRIMARY KEY.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    pub nulls_not_distinct: bool,
    pub include: Vec<Ident>,
    pub storage: Vec<StorageOption>,
}

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deferral {
    pub deferrable: bool,
    pub initially_deferred: bool,
}

/// REFERENCES.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub table: Name,
    /// Empty: the table's primary key.
    pub columns: Vec<Ident>,
    /// MATCH FULL.
    pub full: bool,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

/// What a change of a referenced row does.
#[derive(Clone, Debug, PartialEq)]
pub enum ReferenceAction {
    NoAction,
    Restrict,
    Cascade,
    /// The columns, or none for all.
    SetNull(Vec<Ident>),
    SetDefault(Vec<Ident>),
}

/// `a = 1`, as WITH has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageOption {
    /// With a dot in it where there is one: `toast.autovacuum_enabled`.
    pub name: Ident,
    /// A literal, or a word as `ExprKind::Column`.
    pub value: Option<Expr>,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub at: At,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub name: Option<Ident>,
    pub table: Name,
    pub only: bool,
    /// USING.
    pub method: Option<Ident>,
    pub elements: Vec<IndexElement>,
    pub include: Vec<IndexElement>,
    pub nulls_not_distinct: bool,
    pub storage: Vec<StorageOption>,
    pub filter: Option<Written>,
}

/// CREATE SEQUENCE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSequence {
    pub at: At,
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: Name,
    pub options: Vec<SequenceOption>,
}

/// ALTER SEQUENCE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSequence {
    pub at: At,
    pub if_exists: bool,
    pub name: Name,
    /// At least one.
    pub options: Vec<SequenceOption>,
}

/// An option of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceOption {
    pub at: At,
    pub kind: SequenceOptionKind,
}

/// The kinds of [`SequenceOption`]. Numbers are literals. None stands for NO.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceOptionKind {
    As(TypeName),
    Increment(Expr),
    MinValue(Option<Expr>),
    MaxValue(Option<Expr>),
    Start(Expr),
    /// Where it begins again; None: where it began.
    Restart(Option<Expr>),
    Cache(Expr),
    Cycle(bool),
    OwnedBy(Name),
    SequenceName(Name),
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub at: At,
    /// A table, or of ALTER VIEW a view.
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub only: bool,
    pub name: Name,
    /// At least one.
    pub actions: Vec<AlterAction>,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    AddColumn {
        if_not_exists: bool,
        column: Box<Column>,
    },
    DropColumn {
        if_exists: bool,
        column: Ident,
        cascade: bool,
    },
    SetDefault {
        column: Ident,
        value: Written,
    },
    DropDefault {
        column: Ident,
    },
    SetNotNull {
        column: Ident,
    },
    DropNotNull {
        column: Ident,
    },
    SetType {
        column: Ident,
        data_type: Box<TypeName>,
        collation: Option<Name>,
        using: Option<Written>,
    },
    AddIdentity {
        column: Ident,
        always: bool,
        options: Vec<SequenceOption>,
    },
    /// SET GENERATED (`always`: ALWAYS, or else BY DEFAULT), RESTART, and SET of a sequence's options.
    SetIdentity {
        column: Ident,
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    /// DROP EXPRESSION.
    DropExpression {
        column: Ident,
        if_exists: bool,
    },
    DropIdentity {
        column: Ident,
        if_exists: bool,
    },
    AddConstraint(Box<TableConstraint>),
    DropConstraint {
        if_exists: bool,
        name: Ident,
        cascade: bool,
    },
    ValidateConstraint(Ident),
    AlterConstraint {
        name: Ident,
        deferral: Deferral,
    },
    /// `OWNER TO`.
    Owner(Ident),
    SetStorage(Vec<StorageOption>),
    ResetStorage(Vec<StorageOption>),
}

/// `ALTER ... RENAME`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    pub at: At,
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub name: Name,
    pub part: RenamedPart,
    pub to: Ident,
}

/// `ALTER ... OWNER TO`, of what is no table.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    pub at: At,
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub name: Name,
    pub to: Ident,
}

/// What gets another name.
#[derive(Clone, Debug, PartialEq)]
pub enum RenamedPart {
    Whole,
    Column(Ident),
    Constraint(Ident),
}

/// `CREATE TYPE ... AS ENUM`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEnum {
    pub at: At,
    pub name: Name,
    pub labels: Vec<String>,
}

/// `CREATE TYPE ... AS (...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateComposite {
    pub at: At,
    pub name: Name,
    pub attributes: Vec<ColumnDefinition>,
}

/// `ALTER TYPE` of a composite type's attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterComposite {
    pub at: At,
    pub name: Name,
    pub changes: Vec<AttributeChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeChange {
    Add(ColumnDefinition),
    Drop { if_exists: bool, name: Ident },
    SetType { name: Ident, data_type: TypeName, collation: Option<Name> },
    Rename { from: Ident, to: Ident },
}

/// `ALTER TYPE` of an enum's labels.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEnum {
    pub at: At,
    pub name: Name,
    pub change: EnumChange,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EnumChange {
    Add {
        if_not_exists: bool,
        label: String,
        /// Beside which label; whether behind it. None: as the last.
        beside: Option<(String, bool)>,
    },
    Rename {
        from: String,
        to: String,
    },
}

/// `CREATE DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomain {
    pub at: At,
    pub name: Name,
    pub data_type: TypeName,
    pub collation: Option<Name>,
    /// DEFAULT, NOT NULL, NULL and CHECK; others PostgreSQL refuses later.
    pub constraints: Vec<ColumnConstraint>,
}

/// `ALTER DOMAIN`, but for its name and its owner.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDomain {
    pub at: At,
    pub name: Name,
    pub change: DomainChange,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DomainChange {
    /// None: no default any more.
    Default(Option<Written>),
    NotNull(bool),
    Check {
        name: Option<Ident>,
        condition: Written,
        not_valid: bool,
    },
    DropConstraint {
        if_exists: bool,
        name: Ident,
    },
    Validate(Ident),
}

/// Kinds of what has a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectKind {
    Table,
    Index,
    Sequence,
    View,
    Schema,
    Type,
    Domain,
    Role,
}

/// CREATE SCHEMA.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchema {
    pub at: At,
    pub if_not_exists: bool,
    /// None: the owner's.
    pub name: Option<Ident>,
    /// AUTHORIZATION.
    pub owner: Option<Ident>,
    /// CREATE of tables, views, indexes and sequences, and GRANT.
    pub elements: Vec<Statement>,
}

/// `ALTER ... SET SCHEMA`.
#[derive(Clone, Debug, PartialEq)]
pub struct SetSchema {
    pub at: At,
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub name: Name,
    pub to: Ident,
}

/// COMMENT.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    pub at: At,
    /// None: of a column, whose name is the last part.
    pub kind: Option<ObjectKind>,
    pub name: Name,
    /// It is of this constraint of the table, or the domain.
    pub constraint: Option<Ident>,
    /// None: NULL.
    pub text: Option<String>,
}

/// DROP.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    pub at: At,
    pub kind: ObjectKind,
    pub concurrently: bool,
    pub if_exists: bool,
    /// At least one.
    pub names: Vec<Name>,
    pub cascade: bool,
}

/// TRUNCATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncate {
    pub at: At,
    /// At least one; with ONLY, or not.
    pub tables: Vec<(Name, bool)>,
    pub restart_identity: bool,
    pub cascade: bool,
}
