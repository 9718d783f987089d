//! The keywords, and which of them can be which kind of name.
//!
//! The table is that of `pg_get_keywords()`, which PostgreSQL's documentation explains under "SQL Key Words".

/// What a keyword can be besides a keyword.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Category {
    /// Any name.
    Unreserved,
    /// A column or a table, but no function or type.
    Column,
    /// A function or a type, but no column or table.
    TypeFunction,
    /// A name behind AS only.
    Reserved,
}

macro_rules! keywords {
    ($($category:ident $bare:literal: $($name:ident $word:literal)*;)*) => {
        /// A keyword.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Keyword {
            $($($name,)*)*
        }

        /// Each keyword with its text, its category, and whether it can be a title of a column without AS.
        const KEYWORDS: &[(Keyword, &str, Category, bool)] = &[
            $($((Keyword::$name, $word, Category::$category, $bare),)*)*
        ];
    };
}

keywords! {
    Unreserved true:
        Abort "abort" Absolute "absolute" Access "access" Action "action" Add "add" Admin "admin" After "after"
        Aggregate "aggregate" Also "also" Alter "alter" Always "always" Asensitive "asensitive" Assertion "assertion"
        Assignment "assignment" At "at" Atomic "atomic" Attach "attach" Attribute "attribute" Backward "backward"
        Before "before" Begin "begin" Breadth "breadth" By "by" Cache "cache" Call "call" Called "called"
        Cascade "cascade" Cascaded "cascaded" Catalog "catalog" Chain "chain" Characteristics "characteristics"
        Checkpoint "checkpoint" Class "class" Close "close" Cluster "cluster" Columns "columns" Comment "comment"
        Comments "comments" Commit "commit" Committed "committed" Compression "compression"
        Configuration "configuration" Conflict "conflict" Connection "connection" Constraints "constraints"
        Content "content" Continue "continue" Conversion "conversion" Copy "copy" Cost "cost" Csv "csv" Cube "cube"
        Current "current" Cursor "cursor" Cycle "cycle" Data "data" Database "database" Deallocate "deallocate"
        Declare "declare" Defaults "defaults" Deferred "deferred" Definer "definer" Delete "delete"
        Delimiter "delimiter" Delimiters "delimiters" Depends "depends" Depth "depth" Detach "detach"
        Dictionary "dictionary" Disable "disable" Discard "discard" Document "document" Domain "domain"
        Double "double" Drop "drop" Each "each" Enable "enable" Encoding "encoding" Encrypted "encrypted" Enum "enum"
        Escape "escape" Event "event" Exclude "exclude" Excluding "excluding" Exclusive "exclusive" Execute "execute"
        Explain "explain" Expression "expression" Extension "extension" External "external" Family "family"
        Finalize "finalize" First "first" Following "following" Force "force" Forward "forward" Function "function"
        Functions "functions" Generated "generated" Global "global" Granted "granted" Groups "groups"
        Handler "handler" Header "header" Hold "hold" Identity "identity" If "if" Immediate "immediate"
        Immutable "immutable" Implicit "implicit" Import "import" Include "include" Including "including"
        Increment "increment" Index "index" Indexes "indexes" Inherit "inherit" Inherits "inherits" Inline "inline"
        Input "input" Insensitive "insensitive" Insert "insert" Instead "instead" Invoker "invoker"
        Isolation "isolation" Key "key" Label "label" Language "language" Large "large" Last "last"
        Leakproof "leakproof" Level "level" Listen "listen" Load "load" Local "local" Location "location" Lock "lock"
        Locked "locked" Logged "logged" Mapping "mapping" Match "match" Matched "matched" Materialized "materialized"
        Maxvalue "maxvalue" Merge "merge" Method "method" Minvalue "minvalue" Mode "mode" Move "move" Name "name"
        Names "names" New "new" Next "next" Nfc "nfc" Nfd "nfd" Nfkc "nfkc" Nfkd "nfkd" No "no"
        Normalized "normalized" Nothing "nothing" Notify "notify" Nowait "nowait" Nulls "nulls" Object "object"
        Of "of" Off "off" Oids "oids" Old "old" Operator "operator" Option "option" Options "options"
        Ordinality "ordinality" Others "others" Overriding "overriding" Owned "owned" Owner "owner"
        Parallel "parallel" Parameter "parameter" Parser "parser" Partial "partial" Partition "partition"
        Passing "passing" Password "password" Plans "plans" Policy "policy" Preceding "preceding" Prepare "prepare"
        Prepared "prepared" Preserve "preserve" Prior "prior" Privileges "privileges" Procedural "procedural"
        Procedure "procedure" Procedures "procedures" Program "program" Publication "publication" Quote "quote"
        Range "range" Read "read" Reassign "reassign" Recheck "recheck" Recursive "recursive" Ref "ref"
        Referencing "referencing" Refresh "refresh" Reindex "reindex" Relative "relative" Release "release"
        Rename "rename" Repeatable "repeatable" Replace "replace" Replica "replica" Reset "reset" Restart "restart"
        Restrict "restrict" Return "return" Returns "returns" Revoke "revoke" Role "role" Rollback "rollback"
        Rollup "rollup" Routine "routine" Routines "routines" Rows "rows" Rule "rule" Savepoint "savepoint"
        Schema "schema" Schemas "schemas" Scroll "scroll" Search "search" Security "security" Sequence "sequence"
        Sequences "sequences" Serializable "serializable" Server "server" Session "session" Set "set" Sets "sets"
        Share "share" Show "show" Simple "simple" Skip "skip" Snapshot "snapshot" Sql "sql" Stable "stable"
        Standalone "standalone" Start "start" Statement "statement" Statistics "statistics" Stdin "stdin"
        Stdout "stdout" Storage "storage" Stored "stored" Strict "strict" Strip "strip" Subscription "subscription"
        Support "support" Sysid "sysid" System "system" Tables "tables" Tablespace "tablespace" Temp "temp"
        Template "template" Temporary "temporary" Text "text" Ties "ties" Transaction "transaction"
        Transform "transform" Trigger "trigger" Truncate "truncate" Trusted "trusted" Type "type" Types "types"
        Uescape "uescape" Unbounded "unbounded" Uncommitted "uncommitted" Unencrypted "unencrypted" Unknown "unknown"
        Unlisten "unlisten" Unlogged "unlogged" Until "until" Update "update" Vacuum "vacuum" Valid "valid"
        Validate "validate" Validator "validator" Value "value" Version "version" View "view" Views "views"
        Volatile "volatile" Whitespace "whitespace" Work "work" Wrapper "wrapper" Write "write" Xml "xml" Yes "yes"
        Zone "zone";
    Unreserved false:
        Day "day" Filter "filter" Hour "hour" Minute "minute" Month "month" Over "over" Second "second"
        Varying "varying" Within "within" Without "without" Year "year";
    Column true:
        Between "between" Bigint "bigint" Bit "bit" Boolean "boolean" Coalesce "coalesce" Dec "dec" Decimal "decimal"
        Exists "exists" Extract "extract" Float "float" Greatest "greatest" Grouping "grouping" Inout "inout"
        Int "int" Integer "integer" Interval "interval" Least "least" National "national" Nchar "nchar" None "none"
        Normalize "normalize" Nullif "nullif" Numeric "numeric" Out "out" Overlay "overlay" Position "position"
        Real "real" Row "row" Setof "setof" Smallint "smallint" Substring "substring" Time "time"
        Timestamp "timestamp" Treat "treat" Trim "trim" Values "values" Varchar "varchar"
        Xmlattributes "xmlattributes" Xmlconcat "xmlconcat" Xmlelement "xmlelement" Xmlexists "xmlexists"
        Xmlforest "xmlforest" Xmlnamespaces "xmlnamespaces" Xmlparse "xmlparse" Xmlpi "xmlpi" Xmlroot "xmlroot"
        Xmlserialize "xmlserialize" Xmltable "xmltable";
    Column false:
        Char "char" Character "character" Precision "precision";
    TypeFunction true:
        Authorization "authorization" Binary "binary" Collation "collation" Concurrently "concurrently" Cross "cross"
        CurrentSchema "current_schema" Freeze "freeze" Full "full" Ilike "ilike" Inner "inner" Is "is" Join "join"
        Left "left" Like "like" Natural "natural" Outer "outer" Right "right" Similar "similar"
        Tablesample "tablesample" Verbose "verbose";
    TypeFunction false:
        Isnull "isnull" Notnull "notnull" Overlaps "overlaps";
    Reserved true:
        All "all" Analyse "analyse" Analyze "analyze" And "and" Any "any" Asc "asc" Asymmetric "asymmetric"
        Both "both" Case "case" Cast "cast" Check "check" Collate "collate" Column "column" Constraint "constraint"
        CurrentCatalog "current_catalog" CurrentDate "current_date" CurrentRole "current_role"
        CurrentTime "current_time" CurrentTimestamp "current_timestamp" CurrentUser "current_user" Default "default"
        Deferrable "deferrable" Desc "desc" Distinct "distinct" Do "do" Else "else" End "end" False "false"
        Foreign "foreign" In "in" Initially "initially" Lateral "lateral" Leading "leading" Localtime "localtime"
        Localtimestamp "localtimestamp" Not "not" Null "null" Only "only" Or "or" Placing "placing" Primary "primary"
        References "references" Select "select" SessionUser "session_user" Some "some" Symmetric "symmetric"
        Table "table" Then "then" Trailing "trailing" True "true" Unique "unique" User "user" Using "using"
        Variadic "variadic" When "when";
    Reserved false:
        Array "array" As "as" Create "create" Except "except" Fetch "fetch" For "for" From "from" Grant "grant"
        Group "group" Having "having" Intersect "intersect" Into "into" Limit "limit" Offset "offset" On "on"
        Order "order" Returning "returning" To "to" Union "union" Where "where" Window "window" With "with";
}

impl Keyword {
    /// The keyword in lower case.
    pub(crate) fn text(self) -> &'static str {
        KEYWORDS[self as usize].1
    }

    pub(crate) fn category(self) -> Category {
        KEYWORDS[self as usize].2
    }

    /// Whether it can be a title of a column without AS.
    pub(crate) fn is_bare_label(self) -> bool {
        KEYWORDS[self as usize].3
    }

    /// The keyword that a word is.
    pub(crate) fn find(word: &[u8]) -> Option<Keyword> {
        if word.len() < SHORTEST || word.len() > LONGEST {
            return None;
        }
        let mut slot = slot_of(word);
        loop {
            let found = SLOTS[slot];
            if found == EMPTY {
                return None;
            }
            let (keyword, text, ..) = KEYWORDS[found as usize];
            if text.len() == word.len() && text.as_bytes().eq_ignore_ascii_case(word) {
                return Some(keyword);
            }
            slot = (slot + 1) % SLOT_COUNT;
        }
    }
}

/// A keyword, as `pg_get_keywords()` lists it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    pub word: &'static str,
    /// `U`: any name; `C`: no function or type; `T`: a function or a type; `R`: no name.
    pub category: char,
    /// It can be a title of a column without AS.
    pub bare_label: bool,
}

/// All keywords, by name.
pub fn keywords() -> Vec<Listed> {
    let listed = |(_, word, category, bare_label): &(Keyword, &'static str, Category, bool)| {
        let category = match category {
            Category::Unreserved => 'U',
            Category::Column => 'C',
            Category::TypeFunction => 'T',
            Category::Reserved => 'R',
        };
        Listed { word, category, bare_label: *bare_label }
    };
    let mut all: Vec<Listed> = KEYWORDS.iter().map(listed).collect();
    all.sort_by_key(|keyword| keyword.word);
    all
}

/// A name as SQL's text has it: in quotes where it would not be read as the same name without.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
        && Keyword::find(name.as_bytes()).is_none_or(|word| word.category() == Category::Unreserved);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Bytes of the shortest and of the longest keyword.
const SHORTEST: usize = 2;
const LONGEST: usize = 17;

/// A hash table of the keywords, made when the program is built. It is mostly empty, so that a name that is no keyword
/// seldom meets one.
const SLOT_COUNT: usize = 4096;
const EMPTY: u16 = u16::MAX;
static SLOTS: [u16; SLOT_COUNT] = slots();

const fn slots() -> [u16; SLOT_COUNT] {
    let mut slots = [EMPTY; SLOT_COUNT];
    let mut index = 0;
    while index < KEYWORDS.len() {
        let word = KEYWORDS[index].1.as_bytes();
        assert!(SHORTEST <= word.len() && word.len() <= LONGEST);
        let mut slot = slot_of(word);
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOT_COUNT;
        }
        slots[slot] = index as u16;
        index += 1;
    }
    slots
}

/// Where the search for a word of at least two bytes begins. Upper and lower case are the same.
const fn slot_of(word: &[u8]) -> usize {
    let lower = 0x20;
    let first = (word[0] | lower) as usize;
    let second = (word[1] | lower) as usize;
    let middle = (word[word.len() / 2] | lower) as usize;
    let last = (word[word.len() - 1] | lower) as usize;
    (first * 31 + second * 577 + middle * 1171 + last * 1009 + word.len() * 2971) % SLOT_COUNT
}
