//! Puts the options of CREATE SEQUENCE into the order that the parser takes: PostgreSQL (and pg_dump) has them in any.
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The word that a token is, in lower case.
fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(w) if w.quote_style.is_none() => Some(w.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// The place of the option that begins with these words.
fn rank(first: &str, second: &str) -> Option<usize> {
    let option = if first == "no" { second } else { first };
    ["increment", "minvalue", "maxvalue", "start", "cache", "cycle", "owned"].iter().position(|name| *name == option)
}

pub(crate) fn normalize(tokens: &mut Vec<TokenWithSpan>) {
    let end = |t: &Token| matches!(t, Token::EOF | Token::SemiColon);
    let last = tokens.iter().position(|t| end(&t.token)).unwrap_or(tokens.len());
    let places: Vec<usize> = (0..last).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let words: Vec<String> = places.iter().map(|at| word(&tokens[*at].token).unwrap_or_default()).collect();
    let of = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let mut at = match (of(0), of(1), of(2)) {
        ("create", "sequence", _) => 2,
        ("create", "temp" | "temporary", "sequence") => 3,
        _ => return,
    };
    if (of(at), of(at + 1), of(at + 2)) == ("if", "not", "exists") {
        at += 3;
    }
    // The name may be any word.
    at += 1;
    while places.get(at).is_some_and(|place| tokens[*place].token == Token::Period) {
        at += 2;
    }
    // (rank, where it begins among the words)
    let mut options: Vec<(usize, usize)> = vec![];
    while at < words.len() {
        match rank(of(at), of(at + 1)) {
            Some(rank) => {
                options.push((rank, at));
                at += if of(at) == "no" { 2 } else { 1 };
            }
            None => at += 1,
        }
    }
    if options.is_sorted() {
        return;
    }
    let starts: Vec<usize> = options.iter().map(|(_, at)| places[*at]).chain([last]).collect();
    let mut parts: Vec<(usize, Vec<TokenWithSpan>)> =
        options.iter().zip(starts.windows(2)).map(|((rank, _), s)| (*rank, tokens[s[0]..s[1]].to_vec())).collect();
    // What is given twice stays twice: the parser refuses it.
    parts.sort_by_key(|(rank, _)| *rank);
    let space = TokenWithSpan::wrap(Token::Whitespace(Whitespace::Space));
    let ordered = parts.into_iter().flat_map(|(_, part)| part.into_iter().chain([space.clone()]));
    let ordered: Vec<TokenWithSpan> = ordered.collect();
    tokens.splice(starts[0]..last, ordered);
}
