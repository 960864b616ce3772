//! Words that look like secrets, wherever text is shown or written down.

/// The replacement of a secret.
pub(crate) const MASK: &str = "***";

/// Token prefixes of well-known services.
const TOKEN_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "lin_api_",
    "ntn_",
    "secret_",
    "dop_v1_",
    "shpat_",
];

/// Words after which a secret follows.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api-key",
    "api_key",
    "authorization",
    "bearer",
    "credential",
    "access-key",
    "private-key",
    "-pat",
    "cookie",
];

/// Whether a name is one after which a secret follows.
pub(crate) fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || name.trim_start_matches('-') == "key"
}

/// Whether a word has a known prefix, or is a long run of letters and digits that no user would
/// type.
pub(crate) fn looks_like_token(word: &str) -> bool {
    let of_token = |character: char| character.is_ascii_alphanumeric() || "_-+=.~".contains(character);
    if word.len() >= 12 && TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
        return true;
    }
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    word.len() >= 24 && word.chars().all(of_token) && digits >= 4 && letters >= 4 && !word.contains("..")
}

/// An address that need not be one, or several with commas between them, without what may be a user's name, a password
/// or a token. More may be masked than is secret.
pub(crate) fn masked_address(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let scheme = &text[..text.len() - rest.len()];
    // First the user's name and password, which end at an `@`: a password may have a `?`, a `/` and a comma.
    let (user, place) = match rest.rsplit_once('@') {
        Some((_, place)) => (format!("{MASK}@"), place),
        None => (String::new(), rest),
    };
    let place = place.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}{user}{}", without_tokens(place))
}

/// A path with the segments masked that look like tokens.
pub(crate) fn without_tokens(path: &str) -> String {
    let segments = path.split('/').map(|segment| if looks_like_token(segment) { MASK } else { segment });
    segments.collect::<Vec<_>>().join("/")
}
