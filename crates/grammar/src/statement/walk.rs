//! Going through a tree: every expression and every query that stands in another.
//!
//! Invariant: the order is that of the text, as far as the tree keeps it. High trees get the stack that they need.

use super::{
    Argument, Body, Distinct, Expr, ExprKind, FrameBound, FromItem, Group, Item, JoinOn, Members, Over, Query, Select,
    Sort, Statement, Subscript, Window, With,
};

/// What is met on the way.
#[derive(Clone, Copy, Debug)]
pub enum Node<'t> {
    Expr(&'t Expr),
    Query(&'t Query),
}

/// Goes through what stands within a node, and the node itself first. `visit` says whether to go in.
pub fn walk<'t>(node: Node<'t>, visit: &mut dyn FnMut(Node<'t>) -> bool) {
    stacker::maybe_grow(RED_ZONE, MORE_STACK, || {
        if !visit(node) {
            return;
        }
        let mut walk = Walk { visit };
        match node {
            Node::Expr(expr) => walk.within(expr),
            Node::Query(query) => walk.within_query(query),
        }
    });
}

/// Bytes of stack that one level takes at most, and how much is added when there is less.
const RED_ZONE: usize = 16 << 10;
const MORE_STACK: usize = 1 << 20;

struct Walk<'v, 't> {
    visit: &'v mut dyn FnMut(Node<'t>) -> bool,
}

impl<'t> Walk<'_, 't> {
    fn expr(&mut self, expr: &'t Expr) {
        walk(Node::Expr(expr), self.visit);
    }

    fn query(&mut self, query: &'t Query) {
        walk(Node::Query(query), self.visit);
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'t Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn sorts(&mut self, sorts: &'t [Sort]) {
        self.exprs(sorts.iter().map(|sort| &sort.expr));
    }

    fn items(&mut self, items: &'t [Item]) {
        self.exprs(items.iter().map(|item| &item.expr));
    }

    fn within(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Column(_)
            | ExprKind::Star(_)
            | ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Default
            | ExprKind::CurrentOf(_) => {}
            ExprKind::Unary { arg, .. }
            | ExprKind::Not(arg)
            | ExprKind::Is { arg, .. }
            | ExprKind::Collate { arg, .. }
            | ExprKind::Field { arg, .. }
            | ExprKind::AllFields(arg) => self.expr(arg),
            ExprKind::Cast { arg, .. } => self.expr(arg),
            ExprKind::Binary { args, .. } | ExprKind::Distinct { args, .. } | ExprKind::AtTimeZone { args, .. } => {
                self.exprs(args.iter());
            }
            ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Array(all) | ExprKind::Grouping(all) => self.exprs(all),
            ExprKind::Row { fields, .. } => self.exprs(fields),
            ExprKind::Special { args, .. } => self.exprs(args),
            ExprKind::Between { args, .. } => self.exprs(args.iter()),
            ExprKind::InList { arg, list, .. } => self.exprs([arg.as_ref()].into_iter().chain(list)),
            ExprKind::InQuery { arg, query, .. } => {
                self.expr(arg);
                self.query(query);
            }
            ExprKind::Quantified { left, right, .. } => {
                self.expr(left);
                match right {
                    Members::Query(query) => self.query(query),
                    Members::Array(array) => self.expr(array),
                }
            }
            ExprKind::Match { args, escape, .. } => {
                self.exprs(args.iter().chain(escape.as_deref()));
            }
            ExprKind::Case { operand, whens, otherwise } => {
                self.exprs(operand.as_deref());
                whens.iter().for_each(|when| self.exprs([&when.condition, &when.result]));
                self.exprs(otherwise.as_deref());
            }
            ExprKind::Call(call) => {
                self.exprs(call.args.iter().map(|Argument { value, .. }| value));
                self.sorts(&call.order);
                self.sorts(&call.within);
                self.exprs(&call.filter);
                if let Some(Over::Window(window)) = &call.over {
                    self.window(window);
                }
            }
            ExprKind::ArrayQuery(query) | ExprKind::Exists(query) | ExprKind::Scalar(query) => self.query(query),
            ExprKind::Subscript { arg, subscript, .. } => {
                self.expr(arg);
                self.subscript(subscript);
            }
            ExprKind::WithField { arg, value, .. } => self.exprs([arg.as_ref(), value.as_ref()]),
            ExprKind::With { column: _, arg, subscripts, value } => {
                self.exprs([arg.as_ref(), value.as_ref()]);
                subscripts.iter().for_each(|subscript| self.subscript(subscript));
            }
        }
    }

    fn subscript(&mut self, subscript: &'t Subscript) {
        match subscript {
            Subscript::Index(index) => self.expr(index),
            Subscript::Slice(from, to) => self.exprs(from.as_deref().into_iter().chain(to.as_deref())),
        }
    }

    fn window(&mut self, window: &'t Window) {
        self.exprs(&window.partition);
        self.sorts(&window.order);
        for bound in window.frame.iter().flat_map(|frame| [&frame.start, &frame.end]) {
            if let FrameBound::Preceding(offset) | FrameBound::Following(offset) = bound {
                self.expr(offset);
            }
        }
    }

    fn within_query(&mut self, query: &'t Query) {
        self.with(query.with.as_ref());
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Values(rows) => self.exprs(rows.iter().flatten()),
            Body::Set { branches, .. } => branches.iter().for_each(|branch| self.query(branch)),
        }
        self.sorts(&query.order);
        self.exprs(query.limit.iter().chain(&query.offset));
    }

    fn with(&mut self, with: Option<&'t With>) {
        for cte in with.iter().flat_map(|with| &with.ctes) {
            match cte.statement.as_ref() {
                Statement::Query(query) => self.query(query),
                Statement::Insert(insert) => {
                    self.with(insert.with.as_ref());
                    insert.source.iter().for_each(|query| self.query(query));
                    self.items(&insert.returning);
                }
                Statement::Update(update) => {
                    self.with(update.with.as_ref());
                    self.exprs(&update.filter);
                    self.items(&update.returning);
                }
                Statement::Delete(delete) => {
                    self.with(delete.with.as_ref());
                    self.exprs(&delete.filter);
                    self.items(&delete.returning);
                }
                _ => {}
            }
        }
    }

    fn select(&mut self, select: &'t Select) {
        if let Distinct::On(exprs) = &select.distinct {
            self.exprs(exprs);
        }
        self.items(&select.items);
        select.from.iter().for_each(|item| self.from(item));
        self.exprs(&select.filter);
        select.group.iter().flat_map(|group| &group.items).for_each(|group| self.group(group));
        self.exprs(&select.having);
        select.windows.iter().for_each(|named| self.window(&named.window));
    }

    fn group(&mut self, group: &'t Group) {
        match group {
            Group::Expr(expr) => self.expr(expr),
            Group::Empty(_) => {}
            Group::Cube(_, exprs) | Group::Rollup(_, exprs) => self.exprs(exprs),
            Group::Sets(_, sets) => sets.iter().for_each(|set| self.group(set)),
        }
    }

    fn from(&mut self, item: &'t FromItem) {
        match item {
            FromItem::Table { .. } | FromItem::File { .. } => {}
            FromItem::Query { query, .. } => self.query(query),
            FromItem::Functions { functions, .. } => self.exprs(functions.iter().map(|function| &function.call)),
            FromItem::Join { sides, on, .. } => {
                stacker::maybe_grow(RED_ZONE, MORE_STACK, || sides.iter().for_each(|side| self.from(side)));
                if let JoinOn::On(condition) = on {
                    self.expr(condition);
                }
            }
        }
    }
}

/// Each expression that stands right in another one, in the order of [`walk`]. Queries are not gone into.
pub fn children_mut(expr: &mut Expr, each: &mut dyn FnMut(&mut Expr)) {
    match &mut expr.kind {
        ExprKind::Column(_)
        | ExprKind::Star(_)
        | ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Default
        | ExprKind::CurrentOf(_)
        | ExprKind::ArrayQuery(_)
        | ExprKind::Exists(_)
        | ExprKind::Scalar(_) => {}
        ExprKind::Unary { arg, .. }
        | ExprKind::Not(arg)
        | ExprKind::Is { arg, .. }
        | ExprKind::Collate { arg, .. }
        | ExprKind::Field { arg, .. }
        | ExprKind::InQuery { arg, .. }
        | ExprKind::AllFields(arg)
        | ExprKind::Cast { arg, .. } => each(arg),
        ExprKind::Binary { args, .. } | ExprKind::Distinct { args, .. } | ExprKind::AtTimeZone { args, .. } => {
            args.iter_mut().for_each(each);
        }
        ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Array(all) | ExprKind::Grouping(all) => {
            all.iter_mut().for_each(each);
        }
        ExprKind::Row { fields, .. } => fields.iter_mut().for_each(each),
        ExprKind::Special { args, .. } => args.iter_mut().for_each(each),
        ExprKind::Between { args, .. } => args.iter_mut().for_each(each),
        ExprKind::InList { arg, list, .. } => [arg.as_mut()].into_iter().chain(list).for_each(each),
        ExprKind::Quantified { left, right, .. } => {
            each(left);
            if let Members::Array(array) = right {
                each(array);
            }
        }
        ExprKind::Match { args, escape, .. } => args.iter_mut().chain(escape.as_deref_mut()).for_each(each),
        ExprKind::Case { operand, whens, otherwise } => {
            operand.as_deref_mut().into_iter().for_each(&mut *each);
            whens.iter_mut().flat_map(|when| [&mut when.condition, &mut when.result]).for_each(&mut *each);
            otherwise.as_deref_mut().into_iter().for_each(each);
        }
        ExprKind::Call(call) => {
            call.args.iter_mut().map(|arg| &mut arg.value).for_each(&mut *each);
            call.order.iter_mut().chain(&mut call.within).map(|sort| &mut sort.expr).for_each(&mut *each);
            call.filter.iter_mut().for_each(each);
        }
        ExprKind::Subscript { arg, subscript, .. } => {
            each(arg);
            each_of_subscript(subscript, each);
        }
        ExprKind::WithField { arg, value, .. } => {
            each(arg);
            each(value);
        }
        ExprKind::With { column: _, arg, subscripts, value } => {
            each(arg);
            each(value);
            subscripts.iter_mut().for_each(|subscript| each_of_subscript(subscript, each));
        }
    }
}

fn each_of_subscript(subscript: &mut Subscript, each: &mut dyn FnMut(&mut Expr)) {
    match subscript {
        Subscript::Index(index) => each(index),
        Subscript::Slice(from, to) => from.as_deref_mut().into_iter().chain(to.as_deref_mut()).for_each(each),
    }
}
