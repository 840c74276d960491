//! The evaluator and the circuits without bootstrapping, on a small ring.

use crate::fixture::{client, encrypt, model_keys, precision, uniform};
use taciturn_circuits::{Diagonals, LinearTransform, depth_of_degree, evaluate_chebyshev};
use taciturn_ckks::{Complex64, Level};

const PARAMS: &str = "insecure-n11";

fn complex(seed: u64, count: usize) -> Vec<Complex64> {
    uniform(seed, count)
        .into_iter()
        .zip(uniform(seed + 99, count))
        .map(|(a, b)| Complex64::new(a, b))
        .collect()
}

#[test]
fn products_rotations_and_conjugation() {
    let mut client = client(PARAMS);
    let level = Level(5);
    let ev = client
        .evaluator(&model_keys(
            &client.params().clone(),
            &[1, 3, -7, 512],
            level,
        ))
        .unwrap();
    let d = client.params().slots();
    let (a, b) = (complex(1, d), complex(2, d));
    let (x, y) = (
        encrypt(&mut client, &a, level),
        encrypt(&mut client, &b, level),
    );

    let product = ev.relinearize_rescale(&ev.mul(&x, &y).unwrap()).unwrap();
    assert!(product.scale.matches(client.params().scale(Level(4))));
    let want: Vec<_> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    let (worst, mean) = precision(&client.decrypt(&product, d).unwrap(), &want);
    assert!(
        worst > 20.0 && mean > 22.0,
        "product: {worst:.1} {mean:.1} bits"
    );

    for k in [1i64, 3, -7, 512] {
        let turned = ev.rotate(&x, k).unwrap();
        let want: Vec<_> = (0..d as i64)
            .map(|i| a[(i + k).rem_euclid(d as i64) as usize])
            .collect();
        assert!(
            precision(&client.decrypt(&turned, d).unwrap(), &want).0 > 20.0,
            "rotation by {k}"
        );
    }
    let many = ev.rotate_many(&x, &[0, 1, 3]).unwrap();
    let want: Vec<_> = (0..d).map(|i| a[(i + 3) % d]).collect();
    assert!(precision(&client.decrypt(&many[2], d).unwrap(), &want).0 > 20.0);

    let want: Vec<_> = a.iter().map(Complex64::conj).collect();
    assert!(
        precision(
            &client.decrypt(&ev.conjugate(&x).unwrap(), d).unwrap(),
            &want
        )
        .0 > 20.0
    );
    assert!(ev.rotate(&x, 2).is_err(), "a missing key is an error");

    let low = ev.drop_to(&x, Level(1)).unwrap();
    assert!(low.scale.matches(client.params().scale(Level(1))));
    assert!(precision(&client.decrypt(&low, d).unwrap(), &a).0 > 20.0);
    assert!(
        ev.clone().add_assign(&mut low.clone(), &x).is_err(),
        "levels must agree"
    );
}

#[test]
fn linear_transforms_match_the_clear() {
    let mut client = client(PARAMS);
    for (d, offsets) in [
        (16usize, vec![0i64, 1, 5, -3]),
        (64, (-15..16).collect()),
        (1024, vec![0, 32, -64, 96, 512]),
    ] {
        let mut matrix = Diagonals::new(d);
        for (seed, &k) in offsets.iter().enumerate() {
            for (i, value) in complex(seed as u64 + 5, d).into_iter().enumerate() {
                matrix.add(k, i, value);
            }
        }
        let level = Level(3);
        let scale = client.params().scale(level);
        let transform = LinearTransform::new(
            client.encoder(),
            &matrix,
            scale,
            client.params().ring().full_basis(),
        )
        .unwrap();
        let rotations: Vec<i64> = transform.rotations().collect();
        let ev = client
            .evaluator(&model_keys(&client.params().clone(), &rotations, level))
            .unwrap();
        let v = complex(77, d);
        let ct = encrypt(&mut client, &v, level);
        let out = transform.apply(client.encoder(), &ev, &ct).unwrap();
        assert!(out.scale.matches(client.params().scale(Level(2))));
        let (worst, _) = precision(&client.decrypt(&out, d).unwrap(), &matrix.apply(&v));
        assert!(worst > 17.0, "d = {d}: {worst:.1} bits");
    }
}

#[test]
fn polynomials_match_the_clear_at_every_degree() {
    let mut client = client(PARAMS);
    let level = Level(9);
    let ev = client
        .evaluator(&model_keys(&client.params().clone(), &[], level))
        .unwrap();
    let d = 64;
    let x = uniform(3, d);
    let ct = encrypt(
        &mut client,
        &x.iter().map(|&v| v.into()).collect::<Vec<_>>(),
        level,
    );
    for degree in [1usize, 2, 3, 4, 5, 7, 8, 11, 15, 16, 23, 31, 47, 63, 127] {
        let mut coefficients = uniform(degree as u64, degree + 1);
        if degree % 2 == 1 && degree > 10 {
            coefficients.iter_mut().step_by(2).for_each(|c| *c = 0.0);
        }
        let landing = Level(level.0 - depth_of_degree(degree));
        let out =
            evaluate_chebyshev(&ev, &ct, &coefficients, client.params().scale(landing)).unwrap();
        assert_eq!(
            client.params().level_of(out.basis()),
            Some(landing),
            "degree {degree}"
        );
        let want: Vec<Complex64> = x
            .iter()
            .map(|&x| {
                coefficients
                    .iter()
                    .enumerate()
                    .map(|(k, c)| c * (k as f64 * x.acos()).cos())
                    .sum::<f64>()
                    .into()
            })
            .collect();
        let (worst, _) = precision(&client.decrypt(&out, d).unwrap(), &want);
        assert!(worst > 15.0, "degree {degree}: {worst:.1} bits");
    }
}
