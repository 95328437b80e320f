//! Varies inputs without knowing their form: flips, cuts, repeats, joins, and the words that formats are made of.

use svc_core::testing::Dice;

/// The longest input, but for one in some hundred.
const LEN_MAX: usize = 4 * 1024;
/// The longest input at all.
const LONG_MAX: usize = 128 * 1024;
/// What means something to one reader or another.
const WORDS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\0",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"-",
    b"+",
    b".",
    b"..",
    b"/",
    b"@",
    b"#",
    b"%",
    b"%00",
    b"=",
    b"==",
    b"0",
    b"-0",
    b"-1",
    b"1.5",
    b"1e3",
    b"1E400",
    b"9007199254740991",
    b"9007199254740992",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"null",
    b"true",
    b"\"\"",
    b"{}",
    b"[]",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\uD83D\\uDE00",
    "\u{feff}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{130}".as_bytes(),
    "\u{df}".as_bytes(),
    "\u{3002}".as_bytes(),
    "\u{ff10}".as_bytes(),
    "\u{1f600}".as_bytes(),
    "\u{200d}".as_bytes(),
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"xn--",
    b"xn--a",
    b"localhost",
    b"127.0.0.1",
    b"[::1]",
    b"0x7f",
    b"https://",
    b"00-",
    b"ff-",
    b"eyJ",
    b"EUR",
    b"act_",
    b"z",
    b"7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
];

/// Makes inputs out of others, the same ones for the same seed.
#[derive(Debug)]
pub struct Mutator {
    dice: Dice,
}

impl Mutator {
    /// A mutator.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed) }
    }

    /// One input, most often a variation of one of `from`.
    pub fn input(&mut self, from: &[Vec<u8>]) -> Vec<u8> {
        if from.is_empty() || self.dice.chance(20) {
            return self.noise(512);
        }
        let mut input = self.dice.pick(from).clone();
        let long = self.dice.chance(8);
        for _ in 0..=self.dice.below(6) {
            self.change(&mut input, from);
        }
        if long {
            self.repeat(&mut input, LONG_MAX);
        }
        input.truncate(if long { LONG_MAX } else { LEN_MAX.max(from.iter().map(Vec::len).max().unwrap_or(0)) });
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, from: &[Vec<u8>]) {
        let at = self.dice.below(input.len().max(1)).min(input.len());
        match self.dice.below(11) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.dice.below(8);
                }
            }
            1 => {
                let byte = self.byte();
                if let Some(it) = input.get_mut(at) {
                    *it = byte;
                }
            }
            2 => {
                let byte = self.byte();
                input.insert(at, byte);
            }
            3 | 4 => {
                let word = *self.dice.pick(WORDS);
                input.splice(at..at, word.iter().copied());
            }
            5 => {
                let word = *self.dice.pick(WORDS);
                let to = (at + word.len()).min(input.len());
                input.splice(at..to, word.iter().copied());
            }
            6 => {
                let to = (at + 1 + self.dice.below(16)).min(input.len());
                input.drain(at..to);
            }
            7 => input.truncate(at),
            8 => {
                let other = self.dice.pick(from);
                let begin = self.dice.below(other.len().max(1)).min(other.len());
                let end = (begin + self.dice.below(64)).min(other.len());
                input.splice(at..at, other[begin..end].iter().copied());
            }
            9 => self.repeat(input, LEN_MAX),
            _ => {
                let noise = self.noise(32);
                input.splice(at..at, noise);
            }
        }
    }

    /// Repeats a part of the input in place until it has up to `max` bytes.
    fn repeat(&mut self, input: &mut Vec<u8>, max: usize) {
        let at = self.dice.below(input.len().max(1)).min(input.len());
        let to = (at + 1 + self.dice.below(24)).min(input.len());
        let part = input[at..to].to_vec();
        let room = max.saturating_sub(input.len()) / part.len().max(1);
        let times = self.dice.below(room.max(1)).min(if max > LEN_MAX { room } else { 256 });
        let repeated = part.repeat(times);
        input.splice(to..to, repeated);
    }

    fn byte(&mut self) -> u8 {
        self.dice.bytes()[0]
    }

    fn noise(&mut self, max: usize) -> Vec<u8> {
        let len = self.dice.below(max) + 1;
        let mut noise: Vec<u8> = std::iter::repeat_with(|| self.dice.bytes()).take(len / 32 + 1).flatten().collect();
        noise.truncate(len);
        noise
    }
}
