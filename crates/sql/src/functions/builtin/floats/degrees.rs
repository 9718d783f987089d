//! Functions of angles in degrees: exact where the answer is (0, 30, 45, 60 and 90 degrees, and those like them).
//!
//! 1. An angle is first brought into the first quadrant. There a function is measured against its own value at the
//!    angle whose answer is known, so that this one comes out exactly.
use super::RADIANS_PER_DEGREE;
use std::hint::black_box;

fn radians(degrees: f64) -> f64 {
    // The known angles go through the library's functions when the program runs, as all others do.
    black_box(degrees * RADIANS_PER_DEGREE)
}

/// Up to 30 degrees.
fn sin_of_small(x: f64) -> f64 {
    (radians(x).sin() / radians(30.0).sin()) / 2.0
}

/// Up to 60 degrees.
fn cos_of_small(x: f64) -> f64 {
    1.0 - ((1.0 - radians(x).cos()) / (1.0 - radians(60.0).cos())) / 2.0
}

/// Of the first quadrant.
fn sin_of_first(x: f64) -> f64 {
    if x <= 30.0 { sin_of_small(x) } else { cos_of_small(90.0 - x) }
}

fn cos_of_first(x: f64) -> f64 {
    if x <= 60.0 { cos_of_small(x) } else { sin_of_small(90.0 - x) }
}

pub(super) fn sin(x: f64) -> f64 {
    let (mut x, mut sign) = (x % 360.0, 1.0);
    if x < 0.0 {
        (x, sign) = (-x, -sign);
    }
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    sign * sin_of_first(if x > 90.0 { 180.0 - x } else { x })
}

pub(super) fn cos(x: f64) -> f64 {
    let (mut x, mut sign) = ((x % 360.0).abs(), 1.0);
    if x > 180.0 {
        x = 360.0 - x;
    }
    if x > 90.0 {
        (x, sign) = (180.0 - x, -sign);
    }
    sign * cos_of_first(x)
}

/// The angle of the first quadrant with this tangent or cotangent, but for its sign.
fn folded(x: f64) -> (f64, f64) {
    let (mut x, mut sign) = (x % 360.0, 1.0);
    if x < 0.0 {
        (x, sign) = (-x, -sign);
    }
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    if x > 90.0 {
        (x, sign) = (180.0 - x, -sign);
    }
    (x, sign)
}

pub(super) fn tan(x: f64) -> f64 {
    let (x, sign) = folded(x);
    let of_known = sin_of_first(45.0) / cos_of_first(45.0);
    // No negative zero.
    sign * ((sin_of_first(x) / cos_of_first(x)) / of_known) + 0.0
}

pub(super) fn cot(x: f64) -> f64 {
    let (x, sign) = folded(x);
    let of_known = cos_of_first(45.0) / sin_of_first(45.0);
    sign * ((cos_of_first(x) / sin_of_first(x)) / of_known) + 0.0
}

/// From 0 to 1.
fn asin_of_first(x: f64) -> f64 {
    let x = black_box(x);
    match x <= 0.5 {
        true => (x.asin() / black_box(0.5f64).asin()) * 30.0,
        false => 90.0 - (x.acos() / black_box(0.5f64).acos()) * 60.0,
    }
}

fn acos_of_first(x: f64) -> f64 {
    let x = black_box(x);
    match x <= 0.5 {
        true => 90.0 - (x.asin() / black_box(0.5f64).asin()) * 30.0,
        false => (x.acos() / black_box(0.5f64).acos()) * 60.0,
    }
}

pub(super) fn asin(x: f64) -> f64 {
    if x >= 0.0 { asin_of_first(x) } else { -asin_of_first(-x) }
}

pub(super) fn acos(x: f64) -> f64 {
    if x >= 0.0 { acos_of_first(x) } else { 90.0 + asin_of_first(-x) }
}

pub(super) fn atan(x: f64) -> f64 {
    (black_box(x).atan() / black_box(1.0f64).atan()) * 45.0
}

pub(super) fn atan2(y: f64, x: f64) -> f64 {
    if y.is_nan() || x.is_nan() {
        return f64::NAN;
    }
    (black_box(y).atan2(x) / black_box(1.0f64).atan()) * 45.0
}
