//! What DataFusion's planner says of mistakes, as PostgreSQL says it.
use super::unsupported;
use terrace_engine::EngineError;

/// What DataFusion has not, in the words of SQL where it shows its own structures.
pub(super) fn not_implemented(message: &str) -> EngineError {
    let has = |needle: &str| message.contains(needle);
    // What a membership has become refers to its value (see `plan::rules`).
    if has("\\0member") {
        return unsupported("a query in this place");
    }
    if has("OuterReferenceColumn(") || has("undecorrelated Subquery") {
        return unsupported("a subquery that refers to the outer query in this place");
    }
    if ["InSubquery(", "Exists(", "ScalarSubquery(", "SetComparison("].into_iter().any(has) {
        return unsupported("a query in this place");
    }
    EngineError::new("0A000", super::strip(message))
}

/// `None`: it is no mistake that PostgreSQL has a code of its own for.
pub(super) fn error(message: &str) -> Option<EngineError> {
    let message = message.strip_prefix("Error during planning: ").unwrap_or(message);
    let error = |state, text: String| Some(EngineError::new(state, text));
    if let Some(rest) = message.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let (condition, of) = rest.rsplit_once("' returning ").unwrap_or((rest, "another"));
        return error("42804", format!("the condition {condition} must be type boolean, not type {of}"));
    }
    if message.contains("negative count not allowed") {
        return error("22011", "negative substring length not allowed".into());
    }
    if let Some(error) = of_limits(message) {
        return Some(error);
    }
    if message.starts_with("SELECT DISTINCT ON expressions must match") || message.starts_with("For SELECT DISTINCT, ")
    {
        return error("42P10", message.into());
    }
    let of_values = message.starts_with("Inconsistent data type across values list");
    if of_values || message.starts_with("Incompatible inputs for Union") {
        let what = if of_values { "VALUES" } else { "UNION" };
        // A constant in quotes is a text by then.
        if !message.contains("Utf8") {
            return error("42804", format!("{what} types cannot be matched: {message}"));
        }
        let message = format!("{what} of these types in one column is not supported: {message}");
        return Some(EngineError::unsupported(message).with_hint("Cast what is in quotes to the type of the others."));
    }
    if message.starts_with("Inconsistent metadata across values list") {
        let message = "VALUES with texts of different types or lengths in one column are not supported";
        return Some(EngineError::unsupported(message).with_hint("Cast all of them to one type."));
    }
    if message.contains("ScalarSubqueryExpr evaluated before the subquery was executed") {
        return Some(unsupported("a query in VALUES"));
    }
    if message.starts_with("In/Exist/SetComparison subquery can only be used in ")
        || message.starts_with("Correlated scalar subquery can only be used in ")
    {
        return Some(unsupported("a query in this place"));
    }
    if message.contains("can not be used as a sliding accumulator") {
        return Some(unsupported("this aggregate over a frame whose beginning moves"));
    }
    if message.starts_with("Accessing outer reference columns is not allowed in the plan") {
        return Some(unsupported("a column of the outer query in this place"));
    }
    if message.starts_with("Window expressions should not contain a mixed of outer references") {
        return Some(unsupported("a window function of columns of the outer query and of the subquery"));
    }
    if message.contains("does not satisfy order requirements")
        || message.contains("Expects PARTITION BY expression to be ordered")
    {
        return Some(unsupported("the order of rows that this statement needs"));
    }
    None
}

/// What DataFusion's optimizer loses of valid plans, as it notices itself when they run.
pub(super) fn lost(message: &str) -> Option<EngineError> {
    let has = |needle: &str| message.contains(needle);
    match () {
        _ if has("row count or at least one column") => Some(unsupported("a window over rows without columns")),
        _ if has("does not match with the projection expression") => {
            Some(unsupported("this join with columns of one name on both sides"))
        }
        _ if has("Invalid comparison operation") => Some(unsupported("a comparison of aggregates of two types here")),
        _ if has("scalar_subquery(<pending>)") => Some(unsupported("a query in ORDER BY of an aggregate here")),
        _ => None,
    }
}

/// LIMIT and OFFSET.
fn of_limits(message: &str) -> Option<EngineError> {
    if message.starts_with("LIMIT must be >= 0") {
        return Some(EngineError::new("2201W", "LIMIT must not be negative"));
    }
    if message.starts_with("OFFSET must be >=0") {
        return Some(EngineError::new("2201X", "OFFSET must not be negative"));
    }
    let (clause, of) = message.strip_prefix("Expected ")?.split_once(" to be an integer or null, but got ")?;
    Some(match of.starts_with("Decimal") || of.starts_with("Float") {
        true => unsupported(format!("a {clause} that is no integer")),
        false => EngineError::new("42804", format!("argument of {clause} must be type bigint, not type {of}")),
    })
}
