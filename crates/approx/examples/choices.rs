//! Prints what the choosers pick for typical intervals: `cargo run -p taciturn-approx --example choices`.

use taciturn_approx::{ApproxError, Exp, Gelu, GeluForm, Inverse, InverseSqrt, Silu};

fn main() -> Result<(), ApproxError> {
    println!("function | interval | asked | degree | steps | depth | products | measured bits");
    for bits in [12.0, 16.0, 20.0] {
        for ratio in [4.0, 16.0, 128.0, 1024.0, 16384.0] {
            let f = InverseSqrt::choose(1.0 / ratio, 1.0, bits)?;
            row(
                "1/sqrt",
                1.0 / ratio,
                1.0,
                bits,
                (f.start.degree(), f.newton, f.depth(), f.products()),
                f.worst_error_bits(),
            );
            let f = Inverse::choose(1.0 / ratio, 1.0, bits)?;
            row(
                "1/x",
                1.0 / ratio,
                1.0,
                bits,
                (f.start.degree(), f.newton, f.depth(), f.products()),
                f.worst_error_bits(),
            );
        }
        for width in [4.0, 16.0, 32.0, 64.0] {
            let f = Exp::choose(-width, 0.0, bits)?;
            row(
                "exp",
                -width,
                0.0,
                bits,
                (f.poly.degree(), f.squarings, f.depth(), f.products()),
                f.worst_error_bits(),
            );
        }
        for end in [4.0, 8.0, 16.0, 32.0] {
            match Gelu::choose(GeluForm::Tanh, -end, end, bits) {
                Ok(f) => row(
                    "gelu",
                    -end,
                    end,
                    bits,
                    (f.poly.degree(), 0, f.depth(), f.products()),
                    f.worst_error_bits(),
                ),
                Err(error) => println!("{error}"),
            }
            match Silu::choose(-end, end, bits) {
                Ok(f) => row(
                    "silu",
                    -end,
                    end,
                    bits,
                    (f.poly.degree(), 0, f.depth(), f.products()),
                    f.worst_error_bits(),
                ),
                Err(error) => println!("{error}"),
            }
        }
    }
    Ok(())
}

fn row(
    name: &str,
    low: f64,
    high: f64,
    bits: f64,
    (degree, steps, depth, products): (usize, u32, u32, u32),
    got: f64,
) {
    println!(
        "{name} | [{low:.5}, {high}] | {bits} | {degree} | {steps} | {depth} | {products} | {got:.1}"
    );
}
