//! Operations on single limbs, as slices of words: what a CPU backend is made of.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod portable;

use crate::{Automorphism, Modulus, automorphism::MapPart, conversion::Target, tables::NttTable};

/// The most products in a sum that is not reduced.
pub(crate) const UNREDUCED: usize = 32;

/// For each half `c` of a limb the sum of `digits·keys_c`, and `value` in the first; digits and value mapped first if a map is given. Keys may
/// then be a part of a limb, and digits and value are whole.
#[derive(Clone, Copy)]
pub(crate) struct KeyProducts<'a> {
    pub(crate) digits: &'a [&'a [u64]],
    pub(crate) keys: &'a [[&'a [u64]; 2]],
    pub(crate) value: Option<&'a [u64]>,
    pub(crate) map: Option<MapPart<'a>>,
}

/// Kernels over one limb. Slices of one call have equal length, a multiple of eight. Words are canonical before and after.
pub(crate) trait Kernels: Copy + Send + Sync + 'static {
    const NAME: &'static str;

    fn reduce_signed(self, q: Modulus, out: &mut [u64], x: &[i64]);
    /// The same for integers that lie below every modulus.
    fn reduce_narrow(self, q: Modulus, out: &mut [u64], x: &[i32]);

    fn ntt(self, table: NttTable<'_>, a: &mut [u64]);
    /// The transform of integers that lie below every modulus.
    fn ntt_narrow(self, table: NttTable<'_>, out: &mut [u64], x: &[i32]);
    /// `out_c = terms_c` times the transform of the words in `scratch`, or of integers that lie below every modulus; or `out_c` plus it.
    /// `scratch` holds anything afterwards.
    fn ntt_mul(
        self,
        table: NttTable<'_>,
        scratch: &mut [u64],
        integers: Option<&[i32]>,
        out: [&mut [u64]; 2],
        terms: [&[u64]; 2],
        accumulate: bool,
    );
    /// `out = (a - ntt(out))·factor`, the factor in Montgomery form: how divisions end.
    fn ntt_sub_scale(self, table: NttTable<'_>, out: &mut [u64], a: &[u64], factor: u64);
    fn intt(self, table: NttTable<'_>, a: &mut [u64]);
    fn intt_into(self, table: NttTable<'_>, out: &mut [u64], a: &[u64]);

    fn add(self, q: Modulus, a: &mut [u64], b: &[u64]);
    fn sub(self, q: Modulus, a: &mut [u64], b: &[u64]);
    fn neg(self, q: Modulus, a: &mut [u64]);
    fn mul(self, q: Modulus, a: &mut [u64], b: &[u64]);
    fn mul_add(self, q: Modulus, acc: &mut [u64], a: &[u64], b: &[u64]);
    fn mul_into(self, q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]);
    /// `a·factor`, the factor canonical.
    fn scale(self, q: Modulus, a: &mut [u64], factor: u64);
    /// `a + term`, the term canonical.
    fn shift(self, q: Modulus, a: &mut [u64], term: u64);
    /// `out = (a - out)·factor`, the factor in Montgomery form.
    fn sub_scale(self, q: Modulus, out: &mut [u64], a: &[u64], factor: u64);

    /// `acc + a·factor`, the factor canonical.
    fn scale_add(self, q: Modulus, acc: &mut [u64], a: &[u64], factor: u64);

    /// Evaluation form.
    fn automorphism(self, out: &mut [u64], a: &[u64], map: &Automorphism);
    /// `acc`, a part of a limb, plus that part of the mapped `a`, a whole limb; evaluation form.
    fn automorphism_add(self, q: Modulus, acc: &mut [u64], a: &[u64], map: MapPart<'_>);

    /// `out_c = ` the products' sums, or `out_c` plus them.
    fn key_product(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        products: KeyProducts<'_>,
        accumulate: bool,
    );

    /// `sums += ` the products, not reduced: each half's sums are low words and high words, in a form of their own in which a canonical
    /// word is the low word and 0. At most [`UNREDUCED`] products may be added.
    fn add_products(self, sums: [&mut [u64]; 4], products: KeyProducts<'_>);
    /// `out_c = ` the sums.
    fn reduce_sums(self, q: Modulus, out: [&mut [u64]; 2], sums: [&[u64]; 4]);

    /// `out_c = sum of weights·terms_c`, a weight standing for `stride` words (a multiple of eight).
    fn weighted_sum(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        weights: &[&[u64]],
        terms: &[[&[u64]; 2]],
        stride: usize,
    );

    /// Of a base conversion, for one source limb: `quotient += floor(y·weight / 2^52)`.
    fn add_quotient(self, quotient: &mut [u64], y: &[u64], weight: u64);
    /// `quotient = floor((quotient + 2^31) / 2^32)`.
    fn convert_quotient(self, quotient: &mut [u64]);
    /// Second half, for one target limb. `ys` holds rows as long as `out`: those of all source limbs, then the quotient.
    fn convert_target(self, p: Modulus, out: &mut [u64], ys: &[&[u64]], target: &Target);
}

impl<'a> KeyProducts<'a> {
    /// The same in parts of at most `most` digits.
    pub(crate) fn parts(self, most: usize) -> impl Iterator<Item = Self> {
        let parts = self.digits.chunks(most).zip(self.keys.chunks(most));
        parts.enumerate().map(move |(i, (digits, keys))| Self {
            digits,
            keys,
            value: self.value.filter(|_| i == 0),
            map: self.map,
        })
    }
}
