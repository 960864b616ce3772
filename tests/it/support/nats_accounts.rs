//! Accounts of a NATS server in operator mode, and a credentials file of a user, as the tool `nsc` makes them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

/// The kind of a key: the first byte of its public form.
#[derive(Clone, Copy)]
enum Kind {
    Operator = 14 << 3,
    Account = 0,
    User = 20 << 3,
}

/// The first bits of a seed, which is a private key.
const SEED: u8 = 18 << 3;

/// A key. Every number gives another one.
struct Key {
    kind: Kind,
    seed: [u8; 32],
}

impl Key {
    fn new(kind: Kind, number: u8) -> Self {
        Self { kind, seed: [number; 32] }
    }

    fn pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.seed).unwrap()
    }

    fn public(&self) -> String {
        let pair = self.pair();
        encode(&[&[self.kind as u8], pair.public_key().as_ref()].concat())
    }

    fn private(&self) -> String {
        let kind = self.kind as u8;
        let prefix = [SEED | (kind >> 5), (kind & 31) << 3];
        encode(&[&prefix[..], &self.seed[..]].concat())
    }

    /// A token in which this key makes a statement about another key.
    fn says(&self, of: &Self, name: &str, claims: Value) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "jti": name, "iat": 1, "iss": self.public(), "sub": of.public(), "name": name, "nats": claims,
        });
        let signed = format!("{}.{}", part(json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.pair().sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// Base32 of bytes and their checksum.
fn encode(bytes: &[u8]) -> String {
    let mut checksum = 0_u16;
    for &byte in bytes {
        checksum ^= u16::from(byte) << 8;
        for _ in 0..8 {
            checksum = if checksum & 0x8000 == 0 { checksum << 1 } else { (checksum << 1) ^ 0x1021 };
        }
    }
    let all = [bytes, &checksum.to_le_bytes()].concat();
    let bits = all.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect::<Vec<_>>();
    let digit = |bits: &[u8]| {
        let padded = bits.iter().copied().chain(std::iter::repeat(0)).take(5);
        char::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(padded.fold(0, |all, bit| all << 1 | bit))],
        )
    };
    bits.chunks(5).map(digit).collect()
}

/// Keys of the accounts: the server's own, and that of cx.
struct Accounts {
    operator: Key,
    system: Key,
    cx: Key,
}

fn accounts() -> Accounts {
    Accounts {
        operator: Key::new(Kind::Operator, 1),
        system: Key::new(Kind::Account, 2),
        cx: Key::new(Kind::Account, 3),
    }
}

/// The configuration of a server that trusts an operator, and by its token the account of cx.
pub(crate) fn config(directory: &Path) -> String {
    let Accounts { operator, system, cx } = accounts();
    let account = |key: &Key, name: &str| {
        let all = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
            "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        });
        // The server's own account has no JetStream.
        let mut limits = all.clone();
        if name == "SYS" {
            for name in ["mem_storage", "disk_storage", "streams", "consumer"] {
                limits[name] = json!(0);
            }
        }
        operator.says(key, name, json!({ "type": "account", "version": 2, "limits": limits }))
    };
    let of_operator = operator.says(&operator, "operator", json!({ "type": "operator", "version": 2 }));
    format!(
        "operator: \"{of_operator}\"\nresolver: MEMORY\nsystem_account: {}\n\
         resolver_preload: {{ {}: \"{}\", {}: \"{}\" }}\njetstream {{ store_dir: \"{}\" }}\n",
        system.public(),
        system.public(),
        account(&system, "SYS"),
        cx.public(),
        account(&cx, "cx"),
        directory.join("jetstream").display(),
    )
}

/// A credentials file of a user of cx's account, or, with `is_strange`, of an account that the server does not know.
pub(crate) fn credentials(is_strange: bool) -> String {
    let user = Key::new(Kind::User, 4);
    let account = if is_strange { Key::new(Kind::Account, 5) } else { accounts().cx };
    let claims = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         ************************* IMPORTANT *************************\n\
         NKEY Seed printed below can be used to sign and prove identity.\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        account.says(&user, "worker", claims),
        user.private(),
    )
}
