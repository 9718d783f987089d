//! The syntax of FOR UPDATE and FOR SHARE.
use datafusion::sql::sqlparser::ast::{Expr, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The parser does not know `FOR NO KEY UPDATE` and `FOR KEY SHARE`: the words that make them weaker are taken out. Nor
/// does it know LIMIT and OFFSET behind FOR UPDATE: they change places.
pub(crate) fn normalize(tokens: &mut [TokenWithSpan]) {
    take_out_weaker(tokens);
    put_last(tokens);
}

/// A `FOR UPDATE` that LIMIT or OFFSET follows goes behind them, in each pair of parentheses and outside of all.
fn put_last(tokens: &mut [TokenWithSpan]) {
    let end = tokens.iter().rposition(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF | Token::SemiColon));
    let Some(end) = end.map(|last| last + 1) else { return };
    // The words of what is open, outermost first.
    let mut open: Vec<Vec<(usize, Keyword)>> = vec![vec![]];
    for at in 0..end {
        match &tokens[at].token {
            Token::LParen => open.push(vec![]),
            Token::RParen if open.len() > 1 => {
                let words = open.pop().unwrap_or_default();
                put_last_of(&mut tokens[..at], &words);
            }
            Token::Whitespace(_) => {}
            token => open.last_mut().expect("the outermost stays").push((at, keyword(token))),
        }
    }
    put_last_of(&mut tokens[..end], &open[0]);
}

/// `words`: those of one query, which ends with the tokens, each with its place among them.
fn put_last_of(tokens: &mut [TokenWithSpan], words: &[(usize, Keyword)]) {
    let locks = words.windows(2).find(|w| w[0].1 == Keyword::FOR && matches!(w[1].1, Keyword::UPDATE | Keyword::SHARE));
    let Some(&[(from, _), ..]) = locks else { return };
    let limits = |(at, word): &&(usize, Keyword)| *at > from && matches!(word, Keyword::LIMIT | Keyword::OFFSET);
    if let Some((to, _)) = words.iter().find(limits) {
        tokens[from..].rotate_left(to - from);
    }
}

fn take_out_weaker(tokens: &mut [TokenWithSpan]) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for start in 0..words.len() {
        let rest: Vec<Keyword> = words[start..].iter().take(4).map(|at| keyword(&tokens[*at].token)).collect();
        let weaker = match rest.as_slice() {
            [Keyword::FOR, Keyword::NO, Keyword::KEY, Keyword::UPDATE] => 1..3,
            [Keyword::FOR, Keyword::KEY, Keyword::SHARE, ..] => 1..2,
            _ => continue,
        };
        weaker.for_each(|n| tokens[words[start + n]].token = Token::Whitespace(Whitespace::Space));
    }
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The query that an expression is the value or the list of.
pub(crate) fn query_of(expr: &mut Expr) -> Option<&mut Query> {
    match expr {
        Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } => Some(query),
        _ => None,
    }
}
