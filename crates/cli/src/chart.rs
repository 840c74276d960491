//! Charts as SVG: stacked bars, and lines over an axis.

use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 720.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 450.0;
const COLOURS: [&str; 7] = [
    "#0b6e4f", "#b5432c", "#2f5d9b", "#c98a1b", "#7a4e9c", "#4f7d8c", "#8c6d4f",
];
/// Rules across a chart, roughly.
const RULES: f64 = 6.0;

/// What a chart says beside its data.
pub struct Labels<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Above the vertical axis.
    pub y: &'a str,
}

/// One bar: its name and its parts from below.
pub struct Bar {
    pub name: String,
    pub parts: Vec<f64>,
}

/// One line: its name, and its parts of points that hang together.
pub struct Line {
    pub name: String,
    pub parts: Vec<Vec<(f64, f64)>>,
}

/// A name along the horizontal axis, from where on it holds.
pub struct Mark {
    pub at: f64,
    pub name: String,
}

/// Bars whose parts are named by `parts`.
pub fn stacked_bars(labels: &Labels<'_>, parts: &[&str], bars: &[Bar]) -> String {
    let highest = bars.iter().map(|bar| bar.parts.iter().sum::<f64>());
    let y = Axis::new(highest.fold(0.0, f64::max), BOTTOM, TOP);
    let mut out = begin(labels, &y);
    let slot = (RIGHT - LEFT) / bars.len().max(1) as f64;
    for (i, bar) in bars.iter().enumerate() {
        let left = LEFT + (i as f64 + 0.2) * slot;
        let mut below = 0.0;
        for (part, colour) in bar.parts.iter().zip(COLOURS.iter().cycle()) {
            let (from, to) = (y.place(below), y.place(below + part));
            put(
                &mut out,
                format_args!(
                    "<rect x=\"{left:.1}\" y=\"{to:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                    0.6 * slot,
                    from - to
                ),
            );
            below += part;
        }
        text(
            &mut out,
            left + 0.3 * slot,
            BOTTOM + 18.0,
            "middle",
            &bar.name,
        );
    }
    legend(&mut out, parts);
    out.push_str("</svg>\n");
    out
}

/// Lines over one axis that begins at 0; marks replace its numbers where there are any.
pub fn lines(labels: &Labels<'_>, lines: &[Line], marks: &[Mark]) -> String {
    let all = || lines.iter().flat_map(|line| line.parts.iter().flatten());
    let x = Axis::new(all().map(|p| p.0).fold(0.0, f64::max), LEFT, RIGHT);
    let y = Axis::new(all().map(|p| p.1).fold(0.0, f64::max), BOTTOM, TOP);
    let mut out = begin(labels, &y);
    if marks.is_empty() {
        for value in x.rules() {
            text(
                &mut out,
                x.place(value),
                BOTTOM + 18.0,
                "middle",
                &number(value),
            );
        }
    }
    for mark in marks {
        let at = x.place(mark.at);
        rule(&mut out, (at, TOP), (at, BOTTOM));
        put(
            &mut out,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" transform=\"rotate(30 {:.1} {:.1})\" fill=\"#222\">{}</text>",
                at,
                BOTTOM + 14.0,
                at,
                BOTTOM + 14.0,
                escaped(&mark.name)
            ),
        );
    }
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        for part in &line.parts {
            let points: Vec<String> = (part.iter())
                .map(|&(px, py)| format!("{:.1},{:.1}", x.place(px), y.place(py)))
                .collect();
            put(
                &mut out,
                format_args!(
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                    points.join(" ")
                ),
            );
        }
    }
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    legend(&mut out, &names);
    out.push_str("</svg>\n");
    out
}

/// From 0 to a round number.
struct Axis {
    high: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(highest: f64, from: f64, to: f64) -> Self {
        let rough = (highest.max(1e-9)) / RULES;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        let high = (highest / step).ceil().max(1.0) * step;
        Axis {
            high,
            step,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + value / self.high * (self.to - self.from)
    }

    fn rules(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=(self.high / self.step).round() as u32).map(|i| f64::from(i) * self.step)
    }
}

fn begin(labels: &Labels<'_>, y: &Axis) -> String {
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
        ),
    );
    text(&mut out, LEFT, 24.0, "start", labels.title);
    text(&mut out, LEFT - 8.0, TOP - 10.0, "end", labels.y);
    text(
        &mut out,
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 12.0,
        "middle",
        labels.x,
    );
    for value in y.rules() {
        let at = y.place(value);
        rule(&mut out, (LEFT, at), (RIGHT, at));
        text(&mut out, LEFT - 8.0, at + 4.0, "end", &number(value));
    }
    out
}

fn legend(out: &mut String, names: &[&str]) {
    for (i, (name, colour)) in names.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let at = TOP + 20.0 * i as f64;
        put(
            out,
            format_args!(
                "<rect x=\"{:.1}\" y=\"{at:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
                RIGHT + 24.0
            ),
        );
        text(out, RIGHT + 42.0, at + 10.0, "start", name);
    }
}

fn rule(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    put(
        out,
        format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
            from.0, from.1, to.0, to.1
        ),
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    put(
        out,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222\">{}</text>",
            escaped(what)
        ),
    );
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}");
}

fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'_> = Labels {
        title: "a < b",
        x: "x",
        y: "y",
    };

    #[test]
    fn bars_have_all_parts_and_text_is_escaped() {
        let bars = [3.0, 5.0].map(|height| Bar {
            name: format!("{height}"),
            parts: vec![height, 1.0],
        });
        let picture = stacked_bars(&LABELS, &["one", "two"], &bars);
        // Two parts of two bars, two entries of the legend, the background.
        assert_eq!(picture.matches("<rect").count(), 7);
        assert!(picture.contains("a &lt; b") && !picture.contains("NaN"));
        let nothing = stacked_bars(&LABELS, &[], &[]);
        assert!(!nothing.contains("NaN") && !nothing.contains("inf"));
    }

    #[test]
    fn lines_have_their_points_and_marks() {
        let line = |parts: usize| Line {
            name: "levels".to_owned(),
            parts: vec![vec![(0.0, 1.0), (2.0, 13.0)]; parts],
        };
        let mark = Mark {
            at: 1.0,
            name: "here".to_owned(),
        };
        let picture = lines(&LABELS, &[line(1), line(2)], &[mark]);
        assert_eq!(picture.matches("<polyline").count(), 3);
        assert!(picture.contains("here") && !picture.contains("NaN"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (highest, high) in [(0.0, 1e-9), (13.0, 15.0), (24.0, 25.0), (1024.0, 1200.0)] {
            let axis = Axis::new(highest, 0.0, 1.0);
            assert!(
                axis.high >= highest && axis.high <= high * 1.7 + 1e-6,
                "{highest}: {}",
                axis.high
            );
            assert!(axis.rules().count() < 14);
        }
    }
}
