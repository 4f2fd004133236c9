//! The client's side of the test layer, and its last word.

/// The closing record of the test layer, before it is changed.
pub(crate) const CLOSING_RECORD: u8 = 0xff;

/// The test layer: byte `n` of a direction is XORed with `0x5a ^ (n mod 256)`.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// Bytes that went by, modulo 256.
    pub(crate) sent: u8,
    pub(crate) received: u8,
}

/// Puts the layer on, or takes it off: the first byte has this place in its direction.
pub(crate) fn change(bytes: &mut [u8], place: &mut u8) {
    let mut eights = bytes.chunks_exact_mut(8);
    for eight in &mut eights {
        let word = u64::from_ne_bytes((&*eight).try_into().expect("a chunk of eight has eight"));
        eight.copy_from_slice(&(word ^ KEYS[usize::from(*place)]).to_ne_bytes());
        *place = place.wrapping_add(8);
    }
    for byte in eights.into_remainder() {
        *byte ^= 0x5a ^ *place;
        *place = place.wrapping_add(1);
    }
}

/// The keys of eight bytes from each place on: a byte at a time is slow where nothing is optimised.
static KEYS: [u64; 256] = {
    let mut keys = [0; 256];
    let mut place = 0;
    while place < 256 {
        let mut eight = [0; 8];
        let mut at = 0;
        while at < 8 {
            eight[at] = 0x5a ^ ((place + at) % 256) as u8;
            at += 1;
        }
        keys[place] = u64::from_ne_bytes(eight);
        place += 1;
    }
    keys
};
