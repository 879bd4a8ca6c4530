//! Second factor: TOTP codes (RFC 6238: SHA-1, six digits, 30 seconds), and backup codes for a lost device.
//!
//! The hub needs the TOTP secret to check a code, so it stores the secret sealed and bound to its owner.

use super::seal::Seal;
use super::secrets;
use hmac::{Hmac, Mac};
use parlor_model::{SecondFactor, SecondProof, Time, UserId};
use sha1::Sha1;

const STEP_SECONDS: u64 = 30;
const DIGITS: usize = 6;
/// Length of a TOTP secret: that of a SHA-1 digest, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
const BACKUP_CODES: usize = 10;

pub struct SecondFactors {
    seal: Seal,
}

impl SecondFactors {
    pub fn new(hub_secret: &[u8]) -> Self {
        Self { seal: Seal::new(hub_secret, "parlor second factors 1") }
    }

    /// Generates a secret; returns it as base32 text for the device, and sealed for the store.
    pub fn generate(&self, user: &UserId) -> (String, Box<[u8]>) {
        let secret: [u8; SECRET_BYTES] = secrets::random_bytes();
        (base32(&secret), self.seal(user, &secret))
    }

    /// Checks a typed code. Six digits must match the device's code now, or one step earlier or later. Any
    /// other text is returned as a backup code, which the engine checks.
    pub fn prove(&self, factor: &SecondFactor, typed: &str, now: Time) -> Option<SecondProof> {
        let typed = normalize(typed);
        if typed.len() != DIGITS {
            return Some(SecondProof::Backup(secrets::hash(&typed)));
        }
        let secret = self.open(factor)?;
        let step = u64::try_from(now.seconds()).ok()? / STEP_SECONDS;
        // Allow one step of clock difference and typing time.
        let mut steps = step.saturating_sub(1)..=step + 1;
        let step = steps.find(|step| code(&secret, *step) == typed)?;
        Some(SecondProof::Code { sealed: factor.sealed.clone(), step })
    }

    fn seal(&self, user: &UserId, secret: &[u8]) -> Box<[u8]> {
        self.seal.close(user.as_str(), secret)
    }

    fn open(&self, factor: &SecondFactor) -> Option<Vec<u8>> {
        self.seal.open(factor.user.as_str(), &factor.sealed)
    }
}

/// `otpauth://` URI, which authenticator apps read as a QR code.
pub fn uri(issuer: &str, username: &str, secret: &str) -> String {
    let issuer = percent_encode(issuer);
    format!("otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}", percent_encode(username))
}

/// Generates ten backup codes of 80 random bits each, which is too many to find a code from its plain hash.
pub fn backup_codes() -> Vec<String> {
    let code = || base32(&secrets::random_bytes::<10>()).to_lowercase();
    let spaced = |code: String| [&code[..4], &code[4..8], &code[8..12], &code[12..]].join("-");
    (0..BACKUP_CODES).map(|_| spaced(code())).collect()
}

/// Hash under which a backup code is stored.
pub fn backup_hash(code: &str) -> parlor_model::SecretHash {
    secrets::hash(&normalize(code))
}

/// Removes spaces and hyphens, which users type or leave out, and converts to lower case.
fn normalize(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn code(secret: &[u8], step: u64) -> String {
    let mac = <Hmac<Sha1> as hmac::KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    let mac = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let offset = usize::from(mac[19] & 0xf);
    let bytes = [mac[offset], mac[offset + 1], mac[offset + 2], mac[offset + 3]];
    format!("{:06}", (u32::from_be_bytes(bytes) & 0x7fff_ffff) % 1_000_000)
}

/// Base32 of RFC 4648 without padding. The length must be a multiple of five bytes.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let group = |five: &[u8]| {
        let bits = five.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        (0..8).map(move |place| char::from(LETTERS[(bits >> (35 - 5 * place) & 31) as usize]))
    };
    bytes.chunks_exact(5).flat_map(group).collect()
}

/// Percent-encodes all characters except those that RFC 3986 calls unreserved.
fn percent_encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn factor(factors: &SecondFactors, user: &str) -> SecondFactor {
        let user = UserId::stored(user);
        SecondFactor { sealed: factors.seal(&user, SECRET), user, confirmed: true, last_step: 0 }
    }

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn codes_match_the_test_vectors_of_rfc_6238() {
        // RFC 6238, appendix B, the last six digits.
        for (seconds, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code(SECRET, seconds / STEP_SECONDS), expected);
        }
    }

    #[test]
    fn a_code_is_valid_for_one_step_on_either_side() {
        let factors = SecondFactors::new(b"of this hub");
        let factor = factor(&factors, "ada");
        let step = |typed, seconds| match factors.prove(&factor, typed, at(seconds)) {
            Some(SecondProof::Code { step, .. }) => Some(step),
            _ => None,
        };
        // The code of step 1, which covers seconds 30 to 59.
        for seconds in [0, 29, 30, 59, 60, 89] {
            assert_eq!(step("287 082", seconds), Some(1), "{seconds}");
        }
        assert_eq!((step("287082", 90), step("287083", 59), step("", 59)), (None, None, None));
        assert_eq!(factors.prove(&factor, "287082", at(-60)), None, "a clock before 1970");
    }

    #[test]
    fn a_sealed_secret_opens_only_with_this_hubs_key_and_for_its_owner() {
        let factors = SecondFactors::new(b"of this hub");
        let ada = factor(&factors, "ada");
        assert_eq!(factors.open(&ada).as_deref(), Some(SECRET));
        assert_eq!(SecondFactors::new(b"of another hub").open(&ada), None);
        let moved = SecondFactor { user: UserId::stored("eve"), ..ada.clone() };
        assert_eq!(factors.open(&moved), None);
        let cut = SecondFactor { sealed: ada.sealed[..10].into(), ..ada.clone() };
        assert_eq!(factors.open(&cut), None);
        assert!(!ada.sealed.windows(SECRET.len()).any(|window| window == SECRET));
        assert_ne!(factor(&factors, "ada").sealed, ada.sealed, "each sealed value has its own nonce");
    }

    #[test]
    fn backup_codes_are_accepted_with_or_without_separators() {
        let codes = backup_codes();
        assert_eq!(codes.len(), 10);
        let typed = codes[0].to_uppercase().replace('-', " ");
        assert_eq!(backup_hash(&typed), backup_hash(&codes[0]));
        assert_ne!(backup_hash(&codes[1]), backup_hash(&codes[0]));
        assert!(codes.iter().all(|code| code.len() == 19), "{codes:?}");
    }

    #[test]
    fn secrets_are_encoded_as_authenticator_apps_expect() {
        assert_eq!(base32(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = uri("Our Parlor", "ada", "GEZD");
        assert_eq!(uri, "otpauth://totp/Our%20Parlor:ada?secret=GEZD&issuer=Our%20Parlor");
    }
}
