//! How deep a statement's tree will be, told from its tokens.
//!
//! The parser counts the levels it descends, but chains such as `a OR b OR c` and `q UNION q UNION q` grow to the left without
//! descending, and everything that walks the tree later (clone, drop, planner) recurses over them. So the chains are bounded before
//! there is a tree: the operators since the last separator, summed over the open parentheses, bound the depth from above.
//!
//! DataFusion protects most of its recursions, not all; a level may cost 10 KiB of stack. What is deeper than [`SHALLOW`] therefore runs
//! on a stack of its own.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::BoxFuture;
use std::future::poll_fn;
use terrace_engine::{EngineError, Result};

/// Operators in one chain, set operations and joins in one query, each counted along the nesting.
const CHAIN_MAX: usize = 300;

/// What one pair of parentheses holds so far.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Since the last comma, clause, AND or OR: operators bind tighter than those.
    operators: usize,
    /// AND and OR since the last comma or clause.
    logic: usize,
    /// UNION, JOIN and the like, and IS (whose `DISTINCT FROM` is no clause): nothing but the parenthesis ends their chain.
    queries: usize,
}

/// Depth that any thread's stack can take.
pub(crate) const SHALLOW: usize = 40;

/// Bytes; only what is touched becomes memory.
const DEEP_STACK: usize = 64 << 20;

/// Polls a future on a stack that suits a statement of the given depth. (Boxed: a statement's future is a big one, and would be copied
/// from frame to frame.)
pub(crate) async fn on_stack_for<T>(depth: usize, mut work: BoxFuture<'_, T>) -> T {
    if depth <= SHALLOW {
        return work.await;
    }
    poll_fn(|context| stacker::grow(DEEP_STACK, || work.as_mut().poll(context))).await
}

/// A bound on the tree's depth, at most [`CHAIN_MAX`].
pub(crate) fn measure<'t>(tokens: impl Iterator<Item = &'t Token>) -> Result<usize> {
    let mut deepest = 0;
    let mut levels = vec![Level::default()];
    // The sum over `levels`.
    let mut total = 0;
    for token in tokens {
        let depth = levels.len();
        let top = levels.last_mut().expect("the outermost level is never closed");
        match token {
            Token::LParen | Token::LBracket => {
                total += 1;
                levels.push(Level { operators: 1, ..Level::default() });
            }
            Token::RParen | Token::RBracket if depth > 1 => {
                // What the parentheses held hangs off the chain around them: `(a)::t` goes on.
                let closed = levels.pop().expect("more than one level");
                total -= closed.total();
            }
            Token::SemiColon => {
                levels = vec![Level::default()];
                total = 0;
            }
            Token::Comma => total -= top.end_expression(),
            Token::Word(word) => match kind(word.keyword) {
                Kind::Open => {
                    total += 1;
                    levels.push(Level { operators: 1, ..Level::default() });
                }
                Kind::Close if depth > 1 => {
                    let closed = levels.pop().expect("more than one level");
                    total -= closed.total();
                }
                Kind::Close => {}
                Kind::Separator => total -= top.end_expression(),
                Kind::Operator => {
                    top.operators += 1;
                    total += 1;
                }
                Kind::Logic => {
                    total -= std::mem::take(&mut top.operators);
                    top.logic += 1;
                    total += 1;
                }
                Kind::Query => {
                    top.queries += 1;
                    total += 1;
                }
                Kind::Other => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::RParen
            | Token::RBracket
            | Token::EOF => {}
            _ => {
                top.operators += 1;
                total += 1;
            }
        }
        deepest = deepest.max(total);
        if total > CHAIN_MAX {
            let mut error = EngineError::new("54001", format!("statement chains more than {CHAIN_MAX} operators"));
            error.hint = Some("Use IN (...) or a list of VALUES.".into());
            return Err(error);
        }
    }
    Ok(deepest)
}

impl Level {
    fn total(&self) -> usize {
        self.operators + self.logic + self.queries
    }

    /// Forgets the chain of the expression that ends here; answers its length.
    fn end_expression(&mut self) -> usize {
        std::mem::take(&mut self.operators) + std::mem::take(&mut self.logic)
    }
}

enum Kind {
    Open,
    Close,
    Logic,
    Operator,
    Separator,
    Query,
    Other,
}

fn kind(keyword: Keyword) -> Kind {
    use Keyword::*;
    match keyword {
        UNION | INTERSECT | EXCEPT | JOIN | IS => Kind::Query,
        CASE => Kind::Open,
        END => Kind::Close,
        SELECT | FROM | WHERE | HAVING | ORDER | LIMIT | ON | VALUES | WHEN | THEN | ELSE => Kind::Separator,
        AND | OR | XOR => Kind::Logic,
        NOT | DIV | LIKE | ILIKE | RLIKE | REGEXP | SIMILAR | BETWEEN | IN | COLLATE | AT | OVERLAPS | OPERATOR
        | MEMBER | NOTNULL | INTERVAL | ESCAPE => Kind::Operator,
        _ => Kind::Other,
    }
}
