//! What is stored of a password, and how knowing it is proved: SCRAM-SHA-256.
//!
//! 1. A verifier is `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`, PostgreSQL's own form, so that one
//!    can be moved, and made by the client (psql's `\password`).
//! 2. Nothing here or stored can be turned into the password, or into a proof of it.
//! 3. Comparisons take as long where they fail as where they succeed.
//!
//! Source: RFC 5802, RFC 7677 (SCRAM-SHA-256), RFC 4013 (SASLprep).
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;
use terrace_engine::{EngineError, Result};

type Key = [u8; 32];

const NAME: &str = "SCRAM-SHA-256";
/// As PostgreSQL 15 makes them.
pub const ITERATIONS: u32 = 4096;
/// A verifier that a client made may ask for more work, but not for any amount.
const ITERATIONS_MAX: u32 = 1_000_000;

#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub iterations: u32,
    pub salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// `Hi` of RFC 5802: PBKDF2 with one block of output.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let mut last = hmac(password, &[salt, &1u32.to_be_bytes()]);
    let mut sum = last;
    for _ in 1..iterations {
        last = hmac(password, &[&last]);
        sum.iter_mut().zip(last).for_each(|(s, l)| *s ^= l);
    }
    sum
}

impl Verifier {
    pub fn of_password(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        // As PostgreSQL: text that SASLprep refuses is taken as it is.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let salted = salted(prepared.as_bytes(), salt, iterations);
        let client_key = hmac(&salted, &[b"Client Key"]);
        let stored_key = Sha256::digest(client_key).into();
        Verifier { iterations, salt: salt.to_vec(), stored_key, server_key: hmac(&salted, &[b"Server Key"]) }
    }

    /// For a role that has no password: the same salt each time it is asked for, as a real one is, and keys of nothing.
    /// It takes as long to make as reading a real one.
    pub fn mock(secret: &[u8], role: &str) -> Verifier {
        let salt = hmac(secret, &[role.as_bytes()])[..16].to_vec();
        Verifier { iterations: ITERATIONS, salt, stored_key: [0; 32], server_key: [0; 32] }
    }

    /// Reads the stored form; `None` where the text is something else.
    pub fn parse(text: &str) -> Option<Verifier> {
        let mut parts = text.strip_prefix(NAME)?.strip_prefix('$')?.split('$');
        let ((iterations, salt), (stored, server)) = (parts.next()?.split_once(':')?, parts.next()?.split_once(':')?);
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        let iterations = iterations.parse().ok().filter(|n| (1..=ITERATIONS_MAX).contains(n))?;
        let verifier = Verifier {
            iterations,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        };
        parts.next().is_none().then_some(verifier)
    }

    /// Whether the client's proof shows that it knows the password. `exchange`: the AuthMessage of RFC 5802.
    pub fn is_proved_by(&self, exchange: &[u8], proof: &[u8]) -> bool {
        let signature = hmac(&self.stored_key, &[exchange]);
        let Ok(proof) = Key::try_from(proof) else { return false };
        let client_key: Vec<u8> = proof.iter().zip(signature).map(|(p, s)| p ^ s).collect();
        let given: Key = Sha256::digest(client_key).into();
        given[..].ct_eq(&self.stored_key[..]).into()
    }

    /// What proves to the client that the server knows the verifier.
    pub fn server_signature(&self, exchange: &[u8]) -> [u8; 32] {
        hmac(&self.server_key, &[exchange])
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (salt, stored) = (STANDARD.encode(&self.salt), STANDARD.encode(self.stored_key));
        write!(f, "{NAME}${}:{salt}${stored}:{}", self.iterations, STANDARD.encode(self.server_key))
    }
}

/// What to store for `PASSWORD '...'`: the verifier of a password, or the verifier that was given itself. `None`: the
/// empty password, which is none. `random`: 16 bytes of salt.
pub(crate) fn stored(password: &str, random: [u8; 16]) -> Result<Option<String>> {
    if password.is_empty() {
        return Ok(None);
    }
    if Verifier::parse(password).is_some() {
        return Ok(Some(password.to_owned()));
    }
    if password.len() == 35 && password.starts_with("md5") && password[3..].bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(EngineError::new("0A000", "MD5 passwords are not supported").with_hint("Give the password itself."));
    }
    Ok(Some(Verifier::of_password(password, &random, ITERATIONS).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_rfc() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::of_password("pencil", &salt, 4096);
        let exchange = b"n=user,r=rOprNGfwEbeRWgbNEkqO,\
            r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
            c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = STANDARD.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").unwrap();
        assert!(verifier.is_proved_by(exchange, &proof));
        assert!(!verifier.is_proved_by(b"another exchange", &proof));
        assert!(!verifier.is_proved_by(exchange, &proof[1..]));
        let signature = STANDARD.encode(verifier.server_signature(exchange));
        assert_eq!(signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(!Verifier::of_password("Pencil", &salt, 4096).is_proved_by(exchange, &proof));
    }

    #[test]
    fn stored_forms() {
        let text = stored("secret", [7; 16]).unwrap().unwrap();
        assert_eq!(Verifier::parse(&text).unwrap().to_string(), text);
        assert_eq!(stored(&text, [8; 16]).unwrap(), Some(text.clone()), "a verifier is stored as it is");
        assert_eq!(stored("", [7; 16]).unwrap(), None);
        assert_eq!(stored("md5d41d8cd98f00b204e9800998ecf8427e", [7; 16]).unwrap_err().state.0, "0A000");
        for broken in
            ["", "SCRAM-SHA-256", "SCRAM-SHA-256$0:AA==$AA==:AA==", &text[..text.len() - 3], &format!("{text}$")]
        {
            assert!(Verifier::parse(broken).is_none(), "{broken}");
        }
        assert_ne!(stored("secret", [1; 16]).unwrap().unwrap(), text, "salted");
    }
}
