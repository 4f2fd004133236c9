//! Decimal numbers without allocation.

/// A number in decimal digits, without allocation.
pub struct Decimal {
    digits: [u8; 20],
    begin: usize,
}

impl Decimal {
    /// Converts `number` to digits.
    pub const fn new(mut number: u64) -> Decimal {
        let mut digits = [b'0'; 20];
        let mut begin = digits.len();
        loop {
            begin -= 1;
            digits[begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Decimal { digits, begin };
            }
        }
    }

    /// Returns the digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
