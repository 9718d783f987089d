//! Who a client is.
//!
//! 1. A client that must prove its role does so with SCRAM-SHA-256; there is no other way, and no way down.
//! 2. A client cannot tell these apart: the role does not exist, it may not log in, it has no password, the password is
//!    wrong. In each case the exchange runs to its end, with a verifier that no password satisfies.
//!
//! Channel binding is not offered.
//!
//! Source: RFC 5802; PostgreSQL 15 documentation, 55.3 (SASL Authentication).
use crate::connection::Wire;
use crate::error::{Failure, fatal, protocol};
use crate::frontend::{Frame, Refused, next_frame};
use crate::serve::Shared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::startup::Authentication;
use std::net::IpAddr;
use terrace_engine::EngineError;
use terrace_sql::scram::Verifier;

/// Longest message before a client is known.
const MAX_MESSAGE: usize = 8 << 10;
const MECHANISM: &str = "SCRAM-SHA-256";

/// Who must prove who they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Auth {
    /// Clients on this machine (loopback addresses) are believed; all others need a password.
    #[default]
    TrustLoopback,
    /// Everybody needs a password.
    Password,
}

impl Auth {
    pub(crate) fn trusts(self, peer: IpAddr) -> bool {
        self == Auth::TrustLoopback && peer.to_canonical().is_loopback()
    }
}

/// A message of type `p`, without its kind and length.
async fn response(wire: &mut Wire) -> Result<Bytes, Failure> {
    loop {
        match next_frame(&mut wire.input, MAX_MESSAGE).map_err(refused)? {
            Some(Frame { kind: b'p', body }) => return Ok(body),
            Some(_) => return Err(Failure::Fatal(protocol("expected a SASL response"))),
            None => wire.read(None).await?,
        }
    }
}

fn refused(refused: Refused) -> Failure {
    Failure::Fatal(match refused {
        Refused::Stream(error) => error,
        Refused::TooLong(_) => protocol("invalid message length"),
    })
}

/// Has the client prove that it knows the role's password.
pub(crate) async fn authenticate(shared: &Shared, wire: &mut Wire, role: &str) -> Result<(), Failure> {
    let known = shared.db.engine.catalog().role(role).filter(|r| r.login);
    let verifier = known.as_ref().and_then(|r| r.verifier.as_deref()).and_then(Verifier::parse);
    let real = verifier.is_some();
    let verifier = verifier.unwrap_or_else(|| Verifier::mock(&shared.mock_salt, role));
    wire.put(Answer::Authentication(Authentication::SASL(vec![MECHANISM.to_owned()])));
    wire.flush().await?;
    let first = initial_response(response(wire).await?).map_err(Failure::Fatal)?;
    let exchange = Exchange::begin(&first, &random_nonce(shared), &verifier).map_err(Failure::Fatal)?;
    wire.put(Answer::Authentication(Authentication::SASLContinue(exchange.server_first.clone().into())));
    wire.flush().await?;
    let last = text(response(wire).await?).map_err(Failure::Fatal)?;
    let (message, proof) = exchange.client_last(&last).map_err(Failure::Fatal)?;
    if !(verifier.is_proved_by(message.as_bytes(), &proof) && real) {
        return Err(fatal("28P01", format!("password authentication failed for user \"{role}\"")));
    }
    let signature = STANDARD.encode(verifier.server_signature(message.as_bytes()));
    wire.put(Answer::Authentication(Authentication::SASLFinal(format!("v={signature}").into())));
    Ok(())
}

fn random_nonce(shared: &Shared) -> String {
    let random: Vec<u8> = (0..3).flat_map(|_| shared.env.random_u64().to_be_bytes()).collect();
    STANDARD.encode(random)
}

fn malformed(detail: &str) -> EngineError {
    protocol("malformed SCRAM message").with_detail(detail)
}

fn text(bytes: Bytes) -> Result<String, EngineError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("It is not UTF-8."))
}

/// SASLInitialResponse: the mechanism's name, and the first message in it.
fn initial_response(mut body: Bytes) -> Result<String, EngineError> {
    let end = body.iter().position(|b| *b == 0).ok_or_else(|| malformed("The mechanism's name has no end."))?;
    let mechanism = body.split_to(end);
    body.advance(1);
    if mechanism != MECHANISM.as_bytes() {
        return Err(protocol("client selected an invalid SASL authentication mechanism"));
    }
    if body.len() < 4 || body.get_u32() as usize != body.len() {
        return Err(malformed("The length of the initial response is wrong."));
    }
    text(body)
}

/// The exchange once both sides' first messages are there.
struct Exchange {
    /// `n,,` or `y,,`.
    gs2_header: String,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

impl Exchange {
    fn begin(client_first: &str, random: &str, verifier: &Verifier) -> Result<Exchange, EngineError> {
        let mut parts = client_first.splitn(3, ',');
        let (Some(flag), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(malformed("The first message has no GS2 header."));
        };
        match flag {
            "n" | "y" => {}
            _ if flag.starts_with("p=") => {
                return Err(EngineError::new("0A000", "SCRAM channel binding is not supported")
                    .with_hint("Connect with channel_binding=disable."));
            }
            _ => return Err(malformed("The channel binding flag is unknown.")),
        }
        if !identity.is_empty() {
            return Err(EngineError::new("0A000", "client uses authorization identity, but it is not supported"));
        }
        // The user's name here is passed over, as in PostgreSQL: the startup packet's counts.
        let mut fields = bare.split(',');
        let user = fields.next().is_some_and(|f| f.starts_with("n="));
        let nonce = fields.next().and_then(|f| f.strip_prefix("r="));
        let (true, Some(nonce)) = (user, nonce) else { return Err(malformed("It lacks a name or a nonce.")) };
        if nonce.is_empty() || !nonce.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
            return Err(malformed("The nonce is not printable."));
        }
        let nonce = format!("{nonce}{random}");
        let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&verifier.salt), verifier.iterations);
        let gs2_header = format!("{flag},,");
        Ok(Exchange { gs2_header, client_first_bare: bare.to_owned(), server_first, nonce })
    }

    /// Checks the client's last message; answers RFC 5802's AuthMessage and the proof.
    fn client_last(&self, last: &str) -> Result<(String, Vec<u8>), EngineError> {
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(|| malformed("It has no proof."))?;
        let proof = STANDARD.decode(proof).map_err(|_| malformed("The proof is not base64."))?;
        let mut fields = without_proof.split(',');
        let binding = fields.next().and_then(|f| f.strip_prefix("c=")).and_then(|c| STANDARD.decode(c).ok());
        if binding.as_deref() != Some(self.gs2_header.as_bytes()) {
            return Err(protocol("unexpected SCRAM channel-binding attribute in client-final-message"));
        }
        if fields.next().and_then(|f| f.strip_prefix("r=")) != Some(self.nonce.as_str()) {
            return Err(malformed("The nonce is not the one that was sent."));
        }
        Ok((format!("{},{},{without_proof}", self.client_first_bare, self.server_first), proof))
    }
}
