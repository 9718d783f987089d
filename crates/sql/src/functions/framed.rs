//! Window functions over the frames that DataFusion does not have: EXCLUDE, RANGE with an offset, offsets that are
//! computed, aggregates that take no value back where a frame's beginning moves. Also `lag`, `lead` and `nth_value` of
//! a number that is computed.
//!
//! 1. One call has, behind the arguments of the function itself, all that its frames need: its FILTER, the keys of
//!    ORDER BY, and what its edges are counted by ([`Shape`] says which of these are there). So DataFusion's own frame
//!    is not looked at.
//! 2. Rows whose keys are equal are peers. Keys are compared by what `crate::plan::comparable` says.
//! 3. The edges of the frames of a partition never go back from one row to the next. EXCLUDE takes rows out of a frame
//!    whose edges are found already.
//! 4. With RANGE and an offset there is one key, and a row's bound is as the key moved by the offset ([`edges`]). Rows
//!    whose key is NULL have their peers for a frame, on the sides that have an offset.
//! 5. An aggregate is fed on while the frames only grow. Where their beginning moves it takes values back if it can,
//!    and else begins anew.
use crate::error::tunnel;
use crate::functions::compared::compared_by;
use crate::values::decimal::is_decimal;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DynComparator, UInt32Array, make_comparator};
use datafusion::arrow::compute::{SortOptions, concat, filter, interleave, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Int64Type, Schema};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::EngineError;

pub(crate) mod edges;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Inner {
    Aggregate(Arc<AggregateUDF>),
    First,
    Last,
    Nth,
    Lag,
    Lead,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Units {
    Rows,
    Range,
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Edge {
    Unbounded,
    Current,
    Preceding,
    Following,
}

impl Edge {
    pub(crate) fn has_offset(self) -> bool {
        matches!(self, Edge::Preceding | Edge::Following)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Exclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// What a call has (invariant 1), in this order: `args` arguments, the filter, `keys` keys, with RANGE and an offset
/// the key that bounds are compared with, and an offset (with RANGE: a bound) of each edge that has one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub(crate) args: usize,
    pub(crate) filtered: bool,
    pub(crate) keys: usize,
    pub(crate) units: Units,
    pub(crate) edges: [Edge; 2],
    pub(crate) exclude: Exclude,
    /// Of the one key of RANGE with an offset.
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl Shape {
    fn has_bounds(&self) -> bool {
        self.units == Units::Range && self.edges.iter().any(|edge| edge.has_offset())
    }

    fn arguments(&self) -> usize {
        let offsets = self.edges.iter().filter(|edge| edge.has_offset()).count();
        self.args + usize::from(self.filtered) + self.keys + usize::from(self.has_bounds()) + offsets
    }
}

/// The function of such a call.
pub(crate) fn function(inner: Inner, shape: Shape) -> Arc<WindowUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(WindowUDF::from(Framed { inner, shape, signature }))
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Framed {
    inner: Inner,
    shape: Shape,
    signature: Signature,
}

impl WindowUDFImpl for Framed {
    fn name(&self) -> &str {
        match &self.inner {
            Inner::Aggregate(_) => "framed_aggregate",
            Inner::First => "framed_first_value",
            Inner::Last => "framed_last_value",
            Inner::Nth => "framed_nth_value",
            Inner::Lag => "lag_by",
            Inner::Lead => "lead_by",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let mut types = types.to_vec();
        if let Inner::Aggregate(function) = &self.inner {
            let own = types.iter().take(self.shape.args).map(|of| Arc::new(Field::new("", of.clone(), true)));
            let own = fields_with_udf(&own.collect::<Vec<FieldRef>>(), function.as_ref())?;
            types.iter_mut().zip(own).for_each(|(of, own)| *of = own.data_type().clone());
        }
        Ok(types)
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let Some(fields) = args.input_fields().get(..self.shape.args) else {
            return internal_err!("invariant 1: a call has its arguments");
        };
        let field = match &self.inner {
            Inner::Aggregate(function) => function.return_field(fields)?,
            _ => fields[0].clone(),
        };
        let nullable = field.is_nullable() || !matches!(self.inner, Inner::Aggregate(_));
        Ok(Arc::new(field.as_ref().clone().with_name(args.name()).with_nullable(nullable)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        if args.input_exprs().len() != self.shape.arguments() {
            return internal_err!("invariant 1: a call has what its frames need");
        }
        let own = self.shape.args;
        let fields = args.input_fields()[..own].to_vec();
        let field = self.field(WindowUDFFieldArgs::new(args.input_fields(), self.name()))?;
        Ok(Box::new(Frames {
            inner: self.inner.clone(),
            shape: self.shape.clone(),
            exprs: args.input_exprs()[..own].to_vec(),
            fields,
            field,
        }))
    }
}

#[derive(Debug)]
struct Frames {
    inner: Inner,
    shape: Shape,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    field: FieldRef,
}

impl PartitionEvaluator for Frames {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        if u32::try_from(rows).is_err() {
            return Err(tunnel(EngineError::new("54000", format!("a partition of a window has {rows} rows"))));
        }
        let value = &values[0];
        match &self.inner {
            Inner::Lag | Inner::Lead => return self.beside(values, rows),
            Inner::Aggregate(function) => {
                let mut fed = Fed::new(self, function, values)?;
                let results = self.frames(values, rows)?.map(|frame| fed.over(&frame?)).collect::<Result<Vec<_>>>()?;
                return ScalarValue::iter_to_array(results);
            }
            Inner::First | Inner::Last | Inner::Nth => {}
        }
        let mut places = Vec::with_capacity(rows);
        for (row, frame) in self.frames(values, rows)?.enumerate() {
            let parts = frame?.parts;
            places.push(match self.inner {
                Inner::First => parts.iter().find(|part| !part.is_empty()).map(|part| part.start as u32),
                Inner::Last => parts.iter().rev().find(|part| !part.is_empty()).map(|part| part.end as u32 - 1),
                _ => match nth(&values[1], row)? {
                    Some(number) => parts.into_iter().flatten().nth(number).map(|place| place as u32),
                    None => None,
                },
            });
        }
        Ok(take(value, &UInt32Array::from(places), None)?)
    }
}

/// Which value of the frame `nth_value` asks for, from zero; `None`: NULL.
fn nth(numbers: &ArrayRef, row: usize) -> Result<Option<usize>> {
    let numbers = numbers.as_primitive::<Int32Type>();
    match numbers.is_valid(row).then(|| numbers.value(row)) {
        Some(number @ 1..) => Ok(Some(number as usize - 1)),
        Some(_) => Err(tunnel(EngineError::new("22016", "argument of nth_value must be greater than zero"))),
        None => Ok(None),
    }
}

/// The rows of a frame: of up to three parts, in order.
struct Frame {
    whole: Range<usize>,
    parts: [Range<usize>; 3],
}

impl Frames {
    /// `lag` and `lead`: of the value so many rows before or behind, or the default.
    fn beside(&self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let by = values[1].as_primitive::<Int32Type>();
        let none = datafusion::arrow::array::new_null_array(self.field.data_type(), 1);
        let (defaults, given) = match values.get(2).filter(|_| self.shape.args > 2) {
            Some(defaults) => (defaults, true),
            None => (&none, false),
        };
        let places: Vec<(usize, usize)> = (0..rows)
            .map(|row| {
                if by.is_null(row) {
                    return (2, 0);
                }
                let step = i64::from(by.value(row)) * if self.inner == Inner::Lag { -1 } else { 1 };
                match usize::try_from(row as i64 + step) {
                    Ok(place) if place < rows => (0, place),
                    _ => (1, if given { row } else { 0 }),
                }
            })
            .collect();
        Ok(interleave(&[values[0].as_ref(), defaults.as_ref(), none.as_ref()], &places)?)
    }

    /// The frames of the rows of a partition, one after the other.
    fn frames<'f>(&'f self, values: &[ArrayRef], rows: usize) -> Result<impl Iterator<Item = Result<Frame>> + 'f> {
        let shape = &self.shape;
        let mut rest = values[shape.args + usize::from(shape.filtered)..].iter();
        let keys: Vec<&ArrayRef> = rest.by_ref().take(shape.keys).collect();
        let peers = Peers::of(&keys, rows)?;
        let key = if shape.has_bounds() { rest.next() } else { None };
        let mut edges = vec![];
        for (number, edge) in shape.edges.into_iter().enumerate() {
            let offset = if edge.has_offset() { rest.next() } else { None };
            edges.push(match (offset, key) {
                (Some(bounds), Some(key)) => Counted::Bound(shape.bound(number, key, bounds)?),
                (Some(offset), None) => Counted::By(offset_of(offset, number, rows)?),
                (None, _) => Counted::Plain,
            });
        }
        let mut whole = 0..0;
        Ok((0..rows).map(move |row| {
            if row % 1024 == 0 {
                crate::memory::check().map_err(tunnel)?;
            }
            let start = shape.start(row, &edges[0], &peers, whole.start, rows);
            let end = shape.end(row, &edges[1], &peers, whole.end, rows);
            debug_assert!(start >= whole.start && end >= whole.end, "invariant 3: edges do not go back");
            whole = start..end;
            Ok(Frame { whole: start..end.max(start), parts: shape.without(start..end.max(start), row, &peers) })
        }))
    }
}

/// How an edge is found.
enum Counted {
    Plain,
    /// So many rows or groups.
    By(i64),
    Bound(Bound),
}

/// The bounds of RANGE.
struct Bound {
    /// Of the key of one row beside the bound of another.
    compare: DynComparator,
    nulls: Option<datafusion::arrow::buffer::NullBuffer>,
}

impl Bound {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

/// 22004, 22013
fn offset_of(offsets: &ArrayRef, number: usize, rows: usize) -> Result<i64> {
    let side = if number == 0 { "starting" } else { "ending" };
    let offsets = offsets.as_primitive::<Int64Type>();
    if rows == 0 {
        return Ok(0);
    }
    if offsets.is_null(0) {
        return Err(tunnel(EngineError::new("22004", format!("frame {side} offset must not be null"))));
    }
    match offsets.value(0) {
        offset @ 0.. => Ok(offset),
        _ => Err(tunnel(EngineError::new("22013", format!("frame {side} offset must not be negative")))),
    }
}

impl Shape {
    fn bound(&self, number: usize, key: &ArrayRef, bounds: &ArrayRef) -> Result<Bound> {
        debug_assert!(self.edges[number].has_offset());
        let (keys, bounds) = (compared_by(key)?, compared_by(bounds)?);
        let compare = make_comparator(&keys, &bounds, SortOptions::default())?;
        Ok(Bound { compare, nulls: key.nulls().cloned() })
    }

    fn start(&self, row: usize, counted: &Counted, peers: &Peers, before: usize, rows: usize) -> usize {
        match (self.edges[0], self.units, counted) {
            (Edge::Unbounded, ..) => 0,
            (Edge::Current, Units::Rows, _) => row,
            (Edge::Current, ..) => peers.starts[peers.group[row] as usize],
            (edge, Units::Rows, Counted::By(offset)) => moved(row, *offset, edge).clamp(0, rows as i64) as usize,
            (edge, _, Counted::By(offset)) => match usize::try_from(moved(peers.group[row] as usize, *offset, edge)) {
                Ok(group) => peers.starts.get(group).copied().unwrap_or(rows),
                Err(_) => 0,
            },
            (_, _, Counted::Bound(bound)) => {
                // As in PostgreSQL's update_frameheadpos.
                let within = |at: usize| match (bound.is_null(at), bound.is_null(row)) {
                    (false, false) => (bound.compare)(at, row) != self.ordering(Ordering::Less),
                    (at, row) if self.nulls_first => !at || row,
                    (at, row) => at || !row,
                };
                (before..rows).find(|at| within(*at)).unwrap_or(rows)
            }
            (_, _, Counted::Plain) => unreachable!("invariant 1: an edge with an offset is counted"),
        }
    }

    /// One behind the frame's last row.
    fn end(&self, row: usize, counted: &Counted, peers: &Peers, before: usize, rows: usize) -> usize {
        match (self.edges[1], self.units, counted) {
            (Edge::Unbounded, ..) => rows,
            (Edge::Current, Units::Rows, _) => row + 1,
            (Edge::Current, ..) => peers.end(peers.group[row] as usize, rows),
            (edge, Units::Rows, Counted::By(offset)) => {
                moved(row, *offset, edge).saturating_add(1).clamp(0, rows as i64) as usize
            }
            (edge, _, Counted::By(offset)) => match usize::try_from(moved(peers.group[row] as usize, *offset, edge)) {
                Ok(group) => peers.end(group, rows),
                Err(_) => 0,
            },
            (_, _, Counted::Bound(bound)) => {
                let beyond = |at: usize| match (bound.is_null(at), bound.is_null(row)) {
                    (false, false) => (bound.compare)(at, row) == self.ordering(Ordering::Greater),
                    (at, _) if self.nulls_first => !at,
                    (_, row) => !row,
                };
                (before..rows).find(|at| beyond(*at)).unwrap_or(rows)
            }
            (_, _, Counted::Plain) => unreachable!("invariant 1: an edge with an offset is counted"),
        }
    }

    fn ordering(&self, ascending: Ordering) -> Ordering {
        if self.descending { ascending.reverse() } else { ascending }
    }

    /// A frame without what EXCLUDE takes out of it.
    fn without(&self, frame: Range<usize>, row: usize, peers: &Peers) -> [Range<usize>; 3] {
        let out = match self.exclude {
            Exclude::NoOthers => return [frame, 0..0, 0..0],
            Exclude::CurrentRow => row..row + 1,
            Exclude::Group | Exclude::Ties => peers.rows(row),
        };
        let cut = |part: Range<usize>| part.start.max(frame.start)..part.end.min(frame.end).max(frame.start);
        let kept = if self.exclude == Exclude::Ties { row..row + 1 } else { out.start..out.start };
        let not_back = |part: Range<usize>| part.start.min(part.end)..part.end;
        [0..out.start, kept, out.end..frame.end.max(out.end)].map(|part| not_back(cut(part)))
    }
}

fn moved(place: usize, offset: i64, edge: Edge) -> i64 {
    match edge {
        Edge::Preceding => place as i64 - offset,
        _ => (place as i64).saturating_add(offset),
    }
}

/// Which rows are peers (invariant 2).
struct Peers {
    /// Of each row.
    group: Vec<u32>,
    /// The first row of each group.
    starts: Vec<usize>,
}

impl Peers {
    fn of(keys: &[&ArrayRef], rows: usize) -> Result<Peers> {
        let mut compare = vec![];
        for key in keys {
            let key = compared_by(key)?;
            compare.push(make_comparator(&key, &key, SortOptions::default())?);
        }
        let (mut group, mut starts) = (Vec::with_capacity(rows), vec![]);
        for row in 0..rows {
            if row == 0 || compare.iter().any(|compare| compare(row - 1, row) != Ordering::Equal) {
                starts.push(row);
            }
            group.push(starts.len() as u32 - 1);
        }
        Ok(Peers { group, starts })
    }

    fn end(&self, group: usize, rows: usize) -> usize {
        group.checked_add(1).and_then(|next| self.starts.get(next)).copied().unwrap_or(rows)
    }

    /// The peers of a row.
    fn rows(&self, row: usize) -> Range<usize> {
        let group = self.group[row] as usize;
        self.starts[group]..self.end(group, self.group.len())
    }
}

/// An aggregate and the frame that it has been fed (invariant 5).
struct Fed<'f> {
    frames: &'f Frames,
    function: &'f Arc<AggregateUDF>,
    values: Vec<ArrayRef>,
    filter: Option<BooleanArray>,
    schema: Schema,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// What has been fed, where no row was excluded from it.
    has: Option<(Box<dyn Accumulator>, Range<usize>)>,
    takes_back: bool,
}

impl<'f> Fed<'f> {
    fn new(frames: &'f Frames, function: &'f Arc<AggregateUDF>, values: &[ArrayRef]) -> Result<Fed<'f>> {
        let own = frames.shape.args;
        let filter = frames.shape.filtered.then(|| {
            let given = values[own].as_boolean();
            BooleanArray::from_iter(given.iter().map(|wanted| Some(wanted == Some(true))))
        });
        // Columns of the arguments; what is constant stays so, for an aggregate may ask for its value.
        let fields = frames.fields.iter().enumerate();
        let fields = fields.map(|(at, field)| field.as_ref().clone().with_name(at.to_string()));
        let exprs = frames.exprs.iter().enumerate().map(|(at, expr)| match expr.downcast_ref::<Literal>() {
            Some(_) => expr.clone(),
            None => Arc::new(Column::new(&at.to_string(), at)) as Arc<dyn PhysicalExpr>,
        });
        let mut fed = Fed {
            frames,
            function,
            values: values[..own].to_vec(),
            filter,
            schema: Schema::new(fields.collect::<Vec<Field>>()),
            exprs: exprs.collect(),
            has: None,
            takes_back: false,
        };
        // Upstream: bit_xor takes values back, and has 0 then where no value is left, which is NULL. Plain numerics are
        // added up anew by themselves.
        let moves = frames.shape.edges[0] != Edge::Unbounded && frames.shape.exclude == Exclude::NoOthers;
        let plain = values[..own].iter().any(|value| is_decimal(value.data_type()));
        if moves && function.name() != "bit_xor" && !plain {
            fed.takes_back = function.create_sliding_accumulator(fed.args())?.supports_retract_batch();
        }
        Ok(fed)
    }

    fn args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.frames.field.clone(),
            schema: &self.schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.frames.fields,
        }
    }

    fn begun(&self) -> Result<Box<dyn Accumulator>> {
        match self.takes_back {
            true => self.function.create_sliding_accumulator(self.args()),
            false => self.function.accumulator(self.args()),
        }
    }

    /// The arguments of the rows that are wanted of these.
    fn rows(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>> {
        let wanted = self.filter.as_ref().map(|filter| filter.slice(rows.start, rows.len()));
        let cut = self.values.iter().map(|values| {
            let part = values.slice(rows.start, rows.len());
            Ok(match &wanted {
                Some(wanted) => filter(&part, wanted)?,
                None => part,
            })
        });
        cut.collect()
    }

    fn over(&mut self, frame: &Frame) -> Result<ScalarValue> {
        if self.frames.shape.exclude != Exclude::NoOthers {
            let mut made = self.begun()?;
            let parts = frame.parts.iter().filter(|part| !part.is_empty()).cloned();
            let parts = parts.map(|part| self.rows(part)).collect::<Result<Vec<_>>>()?;
            if let Some((first, rest)) = parts.split_first() {
                // Some aggregates find what they are fed later of another kind: they get it at once.
                let whole = (0..first.len()).map(|at| {
                    let pieces = std::iter::once(first).chain(rest).map(|part| part[at].as_ref());
                    concat(&pieces.collect::<Vec<&dyn Array>>())
                });
                made.update_batch(&whole.collect::<std::result::Result<Vec<ArrayRef>, _>>()?)?;
            }
            return made.evaluate();
        }
        let whole = frame.whole.clone();
        let kept = self.has.take().filter(|(_, has)| {
            has.start == whole.start || self.takes_back && whole.start <= has.end && whole.start < whole.end
        });
        let (mut made, mut has) = match kept {
            Some(kept) => kept,
            None => (self.begun()?, whole.start..whole.start),
        };
        if has.start < whole.start {
            made.retract_batch(&self.rows(has.start..whole.start)?)?;
            has.start = whole.start;
        }
        if has.end < whole.end {
            made.update_batch(&self.rows(has.end..whole.end)?)?;
            has.end = whole.end;
        }
        assert_eq!(has, whole, "invariant 5: the frame is what was fed");
        let value = made.evaluate()?;
        self.has = Some((made, has));
        Ok(value)
    }
}
