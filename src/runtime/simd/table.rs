//! Lookup tables of 256 values, indexed by bytes.

/// Values that a lookup by byte shuffles (AVX2) keeps in registers.
const REGISTER_VALUES: usize = 32;

/// Index of the last of them.
const LAST_IN_REGISTERS: u8 = 31;

/// 256 values by byte.
#[derive(Clone, Debug)]
pub struct ByteTable {
    values: [f32; 256],
    fits_registers: bool,
    /// Byte b of the values 0 to 15 (`planes[b][0]`) and 16 to 31 (`planes[b][1]`), each twice: the
    /// halves of a vector of 32 bytes are shuffled separately.
    #[cfg(target_arch = "x86_64")]
    planes: [[[u8; 32]; 2]; 4],
}

impl ByteTable {
    /// A table for codes up to `largest`.
    pub fn new(values: &[f32; 256], largest: u8) -> Self {
        #[cfg(target_arch = "x86_64")]
        let plane = |byte: usize| {
            let byte_of = |code: usize| values[code].to_le_bytes()[byte];
            [0, REGISTER_VALUES / 2]
                .map(|first| std::array::from_fn(|at| byte_of(first + at % (REGISTER_VALUES / 2))))
        };
        Self {
            #[cfg(target_arch = "x86_64")]
            planes: std::array::from_fn(plane),
            fits_registers: (LAST_IN_REGISTERS..=largest).all(|code| {
                let (value, last) = (
                    values[usize::from(code)],
                    values[usize::from(LAST_IN_REGISTERS)],
                );
                value.to_bits() == last.to_bits()
            }),
            values: *values,
        }
    }

    /// Returns true if lookups need registers only: there are at most 32 codes, or all others share one
    /// value, such as the 0 of an RBF kernel.
    pub fn fits_registers(&self) -> bool {
        self.fits_registers
    }

    /// The value of a code.
    #[inline(always)]
    pub fn value(&self, code: u8) -> f32 {
        self.values[usize::from(code)]
    }

    /// out ← the value of each code.
    ///
    /// # Panics
    /// When the lengths differ.
    #[inline]
    pub fn look_up(&self, codes: &[u8], out: &mut [f32]) {
        assert_eq!(codes.len(), out.len());
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new().filter(|_| self.fits_registers()) {
            return simd.vectorize(x86::RegisterLookup {
                simd,
                table: self,
                codes,
                out,
            });
        }
        self.look_up_each(codes, out);
    }

    #[inline(always)]
    fn look_up_each(&self, codes: &[u8], out: &mut [f32]) {
        for (out, &code) in out.iter_mut().zip(codes) {
            *out = self.value(code);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::__m256i;

    use pulp::x86::V3;

    use super::{ByteTable, LAST_IN_REGISTERS};

    pub(super) struct RegisterLookup<'a> {
        pub(super) simd: V3,
        pub(super) table: &'a ByteTable,
        pub(super) codes: &'a [u8],
        pub(super) out: &'a mut [f32],
    }

    impl pulp::NullaryFnOnce for RegisterLookup<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let avx2 = self.simd.avx2;
            let planes: [[__m256i; 2]; 4] = bytemuck::cast(self.table.planes);
            // Vectors are interleaved by halves: what stands in the upper half comes after it.
            let order: __m256i = bytemuck::cast([0, 2, 4, 6, 1, 3, 5, 7]);
            let last = bytemuck::cast([LAST_IN_REGISTERS; 32]);
            let (codes, last_codes) = self.codes.as_chunks::<32>();
            let (out, last_out) = self.out.as_chunks_mut::<32>();
            for (out, &codes) in out.iter_mut().zip(codes) {
                let codes = avx2._mm256_min_epu8(bytemuck::cast(codes), last);
                let codes = avx2._mm256_permutevar8x32_epi32(codes, order);
                // A shuffle looks at bits 0 to 3; bit 4 says which sixteen values are meant.
                let bit_4 = avx2._mm256_slli_epi16::<3>(codes);
                let [a, b, c, d] = planes.map(|[low, high]| {
                    let low = avx2._mm256_shuffle_epi8(low, codes);
                    let high = avx2._mm256_shuffle_epi8(high, codes);
                    avx2._mm256_blendv_epi8(low, high, bit_4)
                });
                let ab = avx2._mm256_unpacklo_epi8(a, b);
                let cd = avx2._mm256_unpacklo_epi8(c, d);
                let next_ab = avx2._mm256_unpackhi_epi8(a, b);
                let next_cd = avx2._mm256_unpackhi_epi8(c, d);
                *out = bytemuck::cast([
                    avx2._mm256_unpacklo_epi16(ab, cd),
                    avx2._mm256_unpackhi_epi16(ab, cd),
                    avx2._mm256_unpacklo_epi16(next_ab, next_cd),
                    avx2._mm256_unpackhi_epi16(next_ab, next_cd),
                ]);
            }
            self.table.look_up_each(last_codes, last_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_short_and_long_are_looked_up_alike() {
        let all: [f32; 256] = std::array::from_fn(|code| (code as f32).sqrt());
        let most_alike = std::array::from_fn(|code| all[code.min(31)]);
        let cases = [0, 1, 7, 8, 15, 16, 31, 32, 255].map(|largest| (all, largest));
        for (values, largest) in cases.into_iter().chain([(most_alike, 255)]) {
            let table = ByteTable::new(&values, largest);
            assert_eq!(table.fits_registers(), values == most_alike || largest < 32);
            for n in [0_usize, 1, 8, 32, 40, 77, 512] {
                let codes: Vec<u8> = (0..=largest).cycle().step_by(7).take(n).collect();
                let mut out = vec![0.0; n];
                table.look_up(&codes, &mut out);
                let expected = codes.iter().map(|&code| values[usize::from(code)]);
                assert!(
                    out.iter().copied().eq(expected),
                    "{n} codes up to {largest}"
                );
            }
        }
    }
}
