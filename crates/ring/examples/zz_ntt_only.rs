use taciturn_ring::*;
fn main() {
    let m = primes_near(2f64.powi(50), 16, 1, &[]).unwrap();
    let ring = Ring::new(16, &m).unwrap();
    let mut a = ring.uniform(&[1; 32], Basis::single(0));
    for _ in 0..3 {
        let (mut f, mut b) = (vec![], vec![]);
        for _ in 0..4000 {
            let s = std::time::Instant::now();
            ring.intt(&mut a);
            let t = std::time::Instant::now();
            ring.ntt(&mut a);
            b.push((t - s).as_nanos());
            f.push(t.elapsed().as_nanos());
        }
        f.sort();
        b.sort();
        println!(
            "fwd med {} min {}  inv med {} min {}",
            f[2000], f[0], b[2000], b[0]
        );
    }
}
