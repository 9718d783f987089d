//! The extended protocol: statements and portals by name. The unnamed ones are named "".
use crate::connection::{Connection, FLUSH_AT, Wire, complete};
use crate::decode::parameter;
use crate::encode::Shown;
use crate::error::{Failure, protocol};
use crate::frontend::Target;
use crate::rows::Rows;
use crate::types::{BPCHAR, BPCHAR_ARRAY, VARCHAR, VARCHAR_ARRAY, row_description};
use bytes::Bytes;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Datum, EngineError};
use terrace_sql::pgcatalog::data_type_of_oid;
use terrace_sql::{LOOSE, Named, Outcome, are_changed};

/// A bound statement.
pub(crate) struct Portal {
    statement: Arc<Named>,
    values: Vec<Datum>,
    formats: Vec<bool>,
    state: State,
}

/// Bound statements by name. The unnamed one, which most clients use alone, is not in a map.
#[derive(Default)]
pub(crate) struct Portals {
    unnamed: Option<Portal>,
    named: BTreeMap<String, Portal>,
}

impl Portals {
    fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) }
    }

    fn insert(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.to_owned(), portal);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
    }
}

enum State {
    Bound,
    Running(Box<Rows>),
    /// It ran to its end; `rows`: it returned rows (running it again returns none).
    Done {
        rows: bool,
    },
}

impl Connection {
    pub(crate) async fn parse(
        &mut self,
        wire: &mut Wire,
        name: String,
        sql: &str,
        types: &[u32],
    ) -> Result<(), Failure> {
        self.check_length(sql)?;
        // A failed Parse of the unnamed statement leaves none.
        self.session.refuse_taken(&name)?;
        let catalog = self.session.catalog().await;
        let stated = types.iter().map(|oid| stated_type(*oid, &catalog)).collect::<Result<Vec<_>, _>>()?;
        let prepared = self.session.prepare(sql, &stated).await?;
        let inferred = prepared.parameter_oids(&catalog);
        let oid = |(i, inferred): (usize, u32)| match types.get(i) {
            // Its conditions would not be looked at.
            Some(oid) if catalog.domain_of_oid(*oid).is_some() && *oid != inferred => Err(unknown_type(*oid)),
            Some(oid) if stated[i].is_some() => Ok(*oid),
            _ => Ok(inferred),
        };
        let parameters = inferred.into_iter().enumerate().map(oid).collect::<Result<_, _>>()?;
        wire.notices(&prepared.notices);
        self.session.keep(name, Named { prepared, parameters, by_prepare: None })?;
        wire.put(Answer::ParseComplete(ParseComplete::new()));
        Ok(())
    }

    pub(crate) async fn bind(
        &mut self,
        wire: &mut Wire,
        name: String,
        statement: &str,
        formats: &[i16],
        values: &[Option<Bytes>],
        result_formats: &[i16],
    ) -> Result<(), Failure> {
        let target = self.session.named(statement)?.clone();
        if !name.is_empty() && self.portals.get(&name).is_some() {
            return Err(EngineError::new("42P03", format!("portal \"{name}\" already exists")).into());
        }
        let wanted = target.parameters.len();
        if values.len() != wanted {
            let given = values.len();
            let message = format!(
                "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {wanted}"
            );
            return Err(protocol(message).into());
        }
        let binary = spread(formats, wanted, "parameter")?;
        let types = self.session.types_now(&target.prepared.parameters).await;
        let oids = self.session.sent_as(&target.parameters).await;
        let decode = |i: usize| parameter(values[i].as_ref(), binary[i], oids[i], types[i], i + 1);
        let values = self.session.reading(|| (0..wanted).map(decode).collect::<Result<Vec<_>, _>>()).await?;
        let columns = target.prepared.columns.as_ref().map_or(0, |c| c.fields().len());
        // Formats of a statement without columns mean nothing.
        let formats = if columns == 0 { vec![] } else { spread(result_formats, columns, "result")? };
        self.portals.insert(&name, Portal { statement: target, values, formats, state: State::Bound });
        wire.put(Answer::BindComplete(BindComplete::new()));
        Ok(())
    }

    pub(crate) fn describe(&mut self, wire: &mut Wire, target: Target) -> Result<(), Failure> {
        let (prepared, formats): (_, &[bool]) = match &target {
            Target::Statement(name) => {
                let statement = self.session.named(name)?;
                let parameters = ParameterDescription::new(statement.parameters.clone());
                wire.put(Answer::ParameterDescription(parameters));
                (&statement.prepared, &[])
            }
            Target::Portal(name) => match (self.portals.get(name), self.session.cursor_columns(name)) {
                (Some(portal), _) => (&portal.statement.prepared, &portal.formats),
                // Cursors and portals are one to clients.
                (None, Some(schema)) => {
                    wire.put(Answer::RowDescription(row_description(&schema, |_| false)));
                    return Ok(());
                }
                (None, None) => return Err(no_portal(name).into()),
            },
        };
        match (&prepared.columns, Shown::of(prepared)) {
            (Some(_), Some(shown)) if !formats.contains(&true) => wire.output.extend_from_slice(&shown.description),
            (Some(schema), _) => {
                let binary = |i: usize| formats.get(i).copied().unwrap_or(false);
                wire.put(Answer::RowDescription(row_description(schema, binary)));
            }
            (None, _) => wire.put(Answer::NoData(NoData::new())),
        }
        Ok(())
    }

    pub(crate) async fn execute(&mut self, wire: &mut Wire, name: &str, max_rows: u32) -> Result<(), Failure> {
        // Zero (and what would be negative) means all.
        let limit = if max_rows == 0 || max_rows > i32::MAX as u32 { usize::MAX } else { max_rows as usize };
        // Taken out while it runs: if it fails, it is gone with its stream.
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        if let (State::Bound, usize::MAX) = (&portal.state, limit)
            && self.look_up(wire, &portal.statement.prepared, &portal.values, Some(&portal.formats))
        {
            portal.state = State::Done { rows: true };
            self.portals.insert(name, portal);
            return if wire.output.len() >= FLUSH_AT { wire.flush().await } else { Ok(()) };
        }
        if let State::Bound = portal.state {
            self.begin(wire, &mut portal).await?;
            if let State::Done { rows: false } = portal.state {
                self.portals.insert(name, portal);
                return Ok(());
            }
        }
        match &mut portal.state {
            State::Running(rows) => {
                let sent = self.session.style().over(pin!(rows.send(wire, limit))).await?;
                if sent.suspended {
                    wire.put(Answer::PortalSuspended(PortalSuspended::new()));
                } else {
                    wire.put(complete(portal.statement.prepared.tag(sent.count)));
                    portal.state = State::Done { rows: true };
                }
            }
            State::Done { rows: true } => wire.put(complete(portal.statement.prepared.tag(0))),
            State::Done { rows: false } | State::Bound => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(EngineError::new("55000", message).into());
            }
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Runs the statement of a portal that is only bound, up to its rows if it has any.
    async fn begin(&mut self, wire: &mut Wire, portal: &mut Portal) -> Result<(), Failure> {
        let values = std::mem::take(&mut portal.values);
        self.session.begin_pipeline();
        let outcome = wire.watch(pin!(self.session.execute(&portal.statement.prepared, values))).await??;
        if let Outcome::Rows { schema, .. } = &outcome
            && portal.statement.prepared.columns.as_ref().is_some_and(|described| are_changed(described, schema))
        {
            // A definition has changed since the client was told the columns.
            return Err(EngineError::new("0A000", "cached plan must not change result type").into());
        }
        let formats = portal.formats.clone();
        let binary = |i: usize| formats.get(i).copied().unwrap_or(false);
        portal.state = match self.answer(wire, outcome, &portal.statement.prepared, binary).await? {
            Some(rows) => State::Running(Box::new(rows)),
            None => State::Done { rows: false },
        };
        Ok(())
    }

    /// MOVE over rows of a portal, at most so many. False: there is none of that name.
    pub(crate) async fn pass_over(&mut self, wire: &mut Wire, name: &str, count: usize) -> Result<bool, Failure> {
        let Some(mut portal) = self.portals.remove(name) else { return Ok(false) };
        if let State::Bound = portal.state
            && portal.statement.prepared.columns.is_some()
        {
            self.begin(wire, &mut portal).await?;
        }
        let mut passed = 0;
        if let State::Running(rows) = &mut portal.state {
            let sent = self.session.style().over(pin!(rows.pass(wire, count))).await?;
            passed = sent.count;
            if !sent.suspended {
                portal.state = State::Done { rows: true };
            }
        }
        self.portals.insert(name, portal);
        wire.put(complete(format!("MOVE {passed}")));
        Ok(true)
    }

    pub(crate) fn close(&mut self, wire: &mut Wire, target: Target) -> Result<(), Failure> {
        match target {
            Target::Statement(name) => self.session.forget(&name),
            Target::Portal(name) => drop(self.portals.remove(&name)),
        }
        wire.put(Answer::CloseComplete(CloseComplete::new()));
        Ok(())
    }
}

fn no_portal(name: &str) -> EngineError {
    EngineError::new("34000", format!("portal \"{name}\" does not exist"))
}

/// The type of a parameter that the client states by OID; 0 and `unknown` leave it to the server.
fn stated_type(oid: u32, catalog: &Catalog) -> Result<Option<DataType>, EngineError> {
    match oid {
        0 | 705 => Ok(None),
        BPCHAR => Ok(Some(LOOSE)),
        // Beside a char, blanks at its end count for nothing. Those of a text do.
        VARCHAR => Ok(Some(DataType::Varchar(0))),
        BPCHAR_ARRAY => Ok(LOOSE.array()),
        VARCHAR_ARRAY => Ok(DataType::Varchar(0).array()),
        oid if let Some(domain) = catalog.domain_of_oid(oid) => stated_type(domain.base.pg_oid(), catalog),
        oid => data_type_of_oid(oid).or_else(|| catalog.type_of_oid(oid)).map(Some).ok_or_else(|| unknown_type(oid)),
    }
}

fn unknown_type(oid: u32) -> EngineError {
    EngineError::new("0A000", format!("parameters of the type with OID {oid} are not supported"))
}

/// Format codes as Bind gives them (none: text; one: for all; else one each) to one flag each: binary?
fn spread(codes: &[i16], wanted: usize, what: &str) -> Result<Vec<bool>, EngineError> {
    match codes {
        [] => Ok(vec![false; wanted]),
        [code] => Ok(vec![*code == 1; wanted]),
        codes if codes.len() == wanted => Ok(codes.iter().map(|c| *c == 1).collect()),
        codes => {
            let given = codes.len();
            Err(protocol(format!("bind message has {given} {what} formats but {wanted} {what} values")))
        }
    }
}
