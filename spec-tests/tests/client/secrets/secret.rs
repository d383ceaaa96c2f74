//! Random secrets, and the search for their pieces.

use std::array;
use std::collections::HashMap;

use rcgen::{CertificateParams, KeyPair};

/// 32 letters and digits, which are a key of Ed25519, too.
pub(super) struct Secret(pub(super) String);

impl Secret {
    /// Each piece of eight bytes: as it is, in base64 behind 0, 1 or 2 other bytes, and in hexadecimal digits. Decimal
    /// numbers are read where the pieces are looked for.
    fn pieces(&self) -> Vec<Vec<u8>> {
        let bytes = self.0.as_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut forms = vec![(8, self.0.clone()), (16, hex.to_uppercase()), (16, hex)];
        for before in 0..3 {
            let encoded = base64(&[&[0; 2][..before], bytes].concat());
            forms.push((10, encoded.replace('+', "-").replace('/', "_")));
            forms.push((10, encoded));
        }
        let pieces = forms.iter().flat_map(|(length, form)| form.as_bytes().windows(*length));
        pieces.map(<[u8]>::to_vec).collect()
    }

    /// A key of these bytes, and a certificate of it.
    pub(super) fn pem(&self) -> String {
        let head = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
        let body = base64(&[head, self.0.as_bytes()].concat());
        let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let pair = KeyPair::from_pem(&key).expect("a key");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a host");
        key + &params.self_signed(&pair).expect("a certificate").pem()
    }
}

/// Without padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encoded = bytes.chunks(3).flat_map(|chunk| {
        let [a, b, c] = array::from_fn(|index| chunk.get(index).copied().unwrap_or_default());
        let bits = u32::from_be_bytes([0, a, b, c]);
        (0..=chunk.len()).map(move |index| digits[(bits >> (18 - 6 * index)) as usize & 63])
    });
    encoded.map(char::from).collect()
}

/// The pieces of all secrets.
pub(super) struct Pieces {
    whose: HashMap<Vec<u8>, &'static str>,
    /// By the first two bytes, so that not each place of a text is looked up.
    begins: Vec<bool>,
}

impl Pieces {
    pub(super) fn of<'a>(secrets: impl Iterator<Item = (&'static str, &'a Secret)>) -> Self {
        let each =
            |(what, secret): (_, &Secret)| secret.pieces().into_iter().map(move |it| (it, what));
        let whose: HashMap<_, _> = secrets.flat_map(each).collect();
        let mut begins = vec![false; 1 << 16];
        whose.keys().for_each(|piece| begins[begin(piece)] = true);
        Self { whose, begins }
    }

    /// The first piece that is in the text: whose it is, and what stands around it.
    pub(super) fn find_in(&self, text: &[u8]) -> Option<String> {
        let numbers = text.split(|byte| !byte.is_ascii_digit());
        let numbers = numbers.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let numbers: Vec<u8> = numbers.collect();
        let (piece, whose) = [text, &numbers].into_iter().find_map(|bytes| {
            let places = 0..bytes.len().saturating_sub(7);
            let mut places = places.filter(|place| self.begins[begin(&bytes[*place..])]);
            let of = |place, length| self.whose.get_key_value(bytes.get(place..place + length)?);
            places.find_map(|place| [8, 10, 16].into_iter().find_map(|length| of(place, length)))
        })?;
        let Some(place) = text.windows(piece.len()).position(|it| it == piece) else {
            return Some(format!("a piece of {whose}, in decimal numbers"));
        };
        let around = &text[place.saturating_sub(200)..text.len().min(place + 100)];
        Some(format!("a piece of {whose}: {}", String::from_utf8_lossy(around)))
    }
}

fn begin(piece: &[u8]) -> usize {
    usize::from(piece[0]) << 8 | usize::from(piece[1])
}

/// Numbers of a seed: SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize >> 1
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() % of.len()]
    }

    pub(super) fn secret(&mut self) -> Secret {
        let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
        Secret((0..32).map(|_| self.pick(&letters)).collect())
    }
}

/// So that the search is known to find what is there.
#[test]
fn a_piece_is_found_in_each_form() {
    let secret = Random(1).secret();
    let pieces = Pieces::of([("it", &secret)].into_iter());
    let bytes = &secret.0.as_bytes()[3..11];
    let mut shown: Vec<_> = super::ECHOES.iter().map(|echo| echo(bytes)).collect();
    shown.extend((0..3).map(|before| base64(&[&[7; 2][..before], bytes].concat())));
    shown.push(format!("{bytes:#?}"));
    for shown in shown {
        assert!(pieces.find_in(shown.as_bytes()).is_some(), "{shown}");
    }
    for shown in [&secret.0[3..10], "a text", ""] {
        assert_eq!(pieces.find_in(shown.as_bytes()), None);
    }
}
