//! The roofline as an SVG picture: operations per byte against operations per second, both on logarithmic axes.

use std::fmt::Write;

use super::limits::Limits;

const WIDTH: f64 = 1120.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 760.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 580.0;
const COLOURS: [&str; 2] = ["#0b6e4f", "#b5432c"];

/// One operation with one number of threads.
pub struct Point<'a> {
    /// Its number in the legend.
    pub number: usize,
    /// What it is.
    pub label: &'a str,
    /// Which of the limits it belongs to.
    pub limits: usize,
    /// Multiply-adds per byte.
    pub intensity: f64,
    /// Multiply-adds per second.
    pub rate: f64,
}

/// A logarithmic axis over whole decades.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = values.fold(0.0, f64::max).log10().ceil();
        Self {
            low,
            high: high.max(low + 1.0),
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (value.log10() - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = i32> {
        self.low as i32..=self.high as i32
    }
}

/// Draws the points under the limits.
pub fn svg(title: &str, limits: &[Limits], points: &[Point<'_>]) -> String {
    let positive = points.iter().filter(|p| p.rate > 0.0 && p.intensity > 0.0);
    let points: Vec<&Point<'_>> = positive.collect();
    let ridges = limits
        .iter()
        .map(|l| l.multiply_adds_per_second / l.bytes_per_second);
    let x = Axis::new(
        points
            .iter()
            .map(|p| p.intensity)
            .chain(ridges.map(|r| 2.0 * r)),
        LEFT,
        RIGHT,
    );
    let roofs = limits.iter().map(|l| l.multiply_adds_per_second);
    let y = Axis::new(points.iter().map(|p| p.rate).chain(roofs), BOTTOM, TOP);

    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
    );
    text(&mut out, LEFT, 28.0, "start", "#222", title);
    grid(&mut out, &x, &y);
    for (limits, colour) in limits.iter().zip(COLOURS) {
        roof(&mut out, &x, &y, limits, colour);
    }
    let mut line = TOP + 6.0;
    let mut named = 0;
    for point in points {
        let (px, py) = (x.place(point.intensity), y.place(point.rate));
        let colour = COLOURS[point.limits % COLOURS.len()];
        let _ = writeln!(
            out,
            "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"4\" fill=\"{colour}\"><title>{}</title></circle>",
            escaped(point.label)
        );
        let number = point.number.to_string();
        text(&mut out, px + 6.0, py - 5.0, "start", colour, &number);
        if point.number > named {
            named = point.number;
            let entry = format!("{number}  {}", point.label);
            text(&mut out, RIGHT + 30.0, line, "start", "#222", &entry);
            line += 18.0;
        }
    }
    out.push_str("</svg>\n");
    out
}

fn grid(out: &mut String, x: &Axis, y: &Axis) {
    for decade in x.decades() {
        let at = x.place(10f64.powi(decade));
        rule(out, (at, TOP), (at, BOTTOM), "#ddd", 1.0);
        text(out, at, BOTTOM + 18.0, "middle", "#222", &power(decade));
    }
    for decade in y.decades() {
        let at = y.place(10f64.powi(decade));
        rule(out, (LEFT, at), (RIGHT, at), "#ddd", 1.0);
        text(out, LEFT - 8.0, at + 4.0, "end", "#222", &power(decade));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    text(
        out,
        middle,
        BOTTOM + 42.0,
        "middle",
        "#222",
        "52-bit multiply-adds per byte",
    );
    text(
        out,
        LEFT,
        TOP - 6.0,
        "middle",
        "#222",
        "multiply-adds per second",
    );
}

/// The bandwidth's slope up to the multiplier's ceiling.
fn roof(out: &mut String, x: &Axis, y: &Axis, limits: &Limits, colour: &str) {
    let (bandwidth, peak) = (limits.bytes_per_second, limits.multiply_adds_per_second);
    let ridge = peak / bandwidth;
    // The slope enters from the left edge or from below.
    let start = 10f64.powf(x.low).max(10f64.powf(y.low) / bandwidth);
    let place = |intensity: f64, rate: f64| (x.place(intensity), y.place(rate));
    rule(
        out,
        place(start, start * bandwidth),
        place(ridge, peak),
        colour,
        2.0,
    );
    rule(
        out,
        place(ridge, peak),
        place(10f64.powf(x.high), peak),
        colour,
        2.0,
    );
    let (threads, word) = match limits.threads {
        1 => (1, "thread"),
        threads => (threads, "threads"),
    };
    let label = format!(
        "{threads} {word}: {:.1} GB/s, {:.1} G multiply-adds/s",
        bandwidth / 1e9,
        peak / 1e9
    );
    text(out, RIGHT - 4.0, y.place(peak) - 6.0, "end", colour, &label);
}

fn rule(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, colour: &str, what: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
        escaped(what)
    );
}

fn power(decade: i32) -> String {
    format!("1e{decade}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_every_point_once_and_escapes() {
        let limits = [Limits {
            threads: 1,
            bytes_per_second: 1e10,
            multiply_adds_per_second: 5e10,
            instruction: "test",
        }];
        let point = |number, label| Point {
            number,
            label,
            limits: 0,
            intensity: number as f64,
            rate: 1e9,
        };
        let picture = svg("title", &limits, &[point(1, "a < b"), point(2, "c")]);
        assert_eq!(picture.matches("<circle").count(), 2);
        assert!(picture.contains("a &lt; b") && !picture.contains("NaN"));
    }
}
