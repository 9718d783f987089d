//! Figures as SVG (crate `plotters`, its SVG backend alone: no fonts, no native code).
use super::{Content, Figure, Interval};
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

const SIZE: (u32, u32) = (860, 440);
/// Pixels at the right of curves that their names take.
const LEGEND: u32 = 240;
/// Pixels of a dash, and between dashes.
const DASH: u32 = 5;
/// So many points of a curve are marked; more would hide the line.
const FEW: usize = 20;
/// Told apart by people who do not tell red from green (Okabe & Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];
const PAPER: RGBColor = RGBColor(170, 170, 170);

type Curves = [(String, Vec<(f64, f64)>)];
type Bars = [(String, Interval, Option<f64>)];
type Drawn<'a> = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Chart<'a, 'b, Y> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, Y>>;
type Area<'a> = plotters::drawing::DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// An `<svg>` element.
pub fn svg(figure: &Figure) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let drawn = match &figure.content {
            Content::Lines(curves) => lines(&area, figure, curves),
            Content::Bars(bars) => self::bars(&area, figure, bars),
        };
        drawn.and_then(|()| area.present()).expect("a string takes all that is written to it");
    }
    text
}

/// A curve's line: where there are more curves than colours, the colours come again, dashed.
fn style(curve: usize) -> ShapeStyle {
    COLOURS[curve % COLOURS.len()].stroke_width(2)
}

fn dashed(curve: usize) -> bool {
    curve / COLOURS.len() % 2 == 1
}

fn top(values: impl Iterator<Item = f64>) -> f64 {
    let highest = values.fold(0.0, f64::max);
    if highest > 0.0 { highest * 1.1 } else { 1.0 }
}

fn lines<'a>(area: &Area<'a>, figure: &Figure, curves: &Curves) -> Drawn<'a> {
    area.fill(&WHITE)?;
    let (chart, legend) = area.split_horizontally(SIZE.0 - LEGEND);
    let points = || curves.iter().flat_map(|(_, points)| points);
    let (right, highest) = (top(points().map(|p| p.0)) / 1.1, top(points().map(|p| p.1)));
    let mut builder = ChartBuilder::on(&chart);
    builder.caption(&figure.title, ("sans-serif", 18)).margin(12).x_label_area_size(44).y_label_area_size(64);
    if figure.logarithmic {
        let lowest = points().map(|p| p.1).filter(|y| *y > 0.0).fold(highest, f64::min);
        let decades = 10f64.powf(lowest.log10().floor())..10f64.powf(highest.log10().ceil());
        draw(builder.build_cartesian_2d(0.0..right, decades.log_scale())?, figure, curves)?;
    } else {
        draw(builder.build_cartesian_2d(0.0..right, 0.0..highest)?, figure, curves)?;
    }
    for (at, (name, _)) in curves.iter().enumerate() {
        let y = 60 + 20 * at as i32;
        legend.draw(&Text::new(name.as_str(), (36, y - 6), ("sans-serif", 13)))?;
        let line = [(6, y), (30, y)];
        match dashed(at) {
            false => legend.draw(&PathElement::new(line, style(at)))?,
            true => legend.draw(&DashedPathElement::new(line, DASH, DASH, style(at)))?,
        }
    }
    Ok(())
}

/// The curves in their chart.
fn draw<'a, Y>(mut chart: Chart<'a, '_, Y>, figure: &Figure, curves: &Curves) -> Drawn<'a>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart.configure_mesh().light_line_style(WHITE).x_desc(&figure.x).y_desc(&figure.y).draw()?;
    for (at, (_, points)) in curves.iter().enumerate() {
        match dashed(at) {
            false => chart.draw_series(LineSeries::new(points.iter().copied(), style(at)))?,
            true => chart.draw_series(DashedLineSeries::new(points.iter().copied(), DASH, DASH, style(at)))?,
        };
        if points.len() < FEW {
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, style(at).filled())))?;
        }
    }
    Ok(())
}

/// Ours in colour with its interval, the paper's grey beside it.
fn bars<'a>(area: &Area<'a>, figure: &Figure, bars: &Bars) -> Drawn<'a> {
    area.fill(&WHITE)?;
    let highest = top(bars.iter().flat_map(|(_, ours, paper)| [ours.high, paper.unwrap_or(0.0)]));
    let name = |x: &f64| {
        let at = x.floor();
        let middle = (x - at - 0.5).abs() < 1e-9;
        let bar = if middle { bars.get(at as usize) } else { None };
        bar.map_or_else(String::new, |(label, ..)| label.clone())
    };
    let mut chart = ChartBuilder::on(area)
        .caption(&figure.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d((0.0..bars.len() as f64).step(0.5), 0.0..highest)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh().light_line_style(WHITE).x_labels(bars.len() * 2 + 1).x_label_formatter(&name);
    mesh.x_desc("ours (95% interval) in blue, the paper's in grey").y_desc(&figure.y).draw()?;
    for (at, (_, ours, paper)) in bars.iter().enumerate() {
        let bar = |from: f64, to: f64, height: f64, colour: RGBColor| {
            Rectangle::new([(at as f64 + from, 0.0), (at as f64 + to, height)], colour.filled())
        };
        chart.draw_series([bar(0.16, 0.48, ours.mean, COLOURS[0])])?;
        if let Some(paper) = paper {
            chart.draw_series([bar(0.52, 0.84, *paper, PAPER)])?;
        }
        if ours.seeds > 1 {
            let x = at as f64 + 0.32;
            let whisker = PathElement::new(vec![(x, ours.low.max(0.0)), (x, ours.high)], BLACK.stroke_width(2));
            chart.draw_series([whisker])?;
        }
    }
    Ok(())
}
