use ring::signature::{
    ECDSA_P384_SHA384_FIXED, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};

use super::*;

/// Test keys, made for these tests and used nowhere else.
const TEST_KEY_P384: &str = "-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD6bPXFgok6gW7C9g5O
bxD7AABwPwcuhYd79UvgsyNwUCMtFMu9Pz7GUs2VP0VdBg2hZANiAARBJyAVpI5T
p4sNI5R2TCFol+qAaBiKTiD67R4bDNKRL/gEslG7eGhoHZ15Msd3syfXONkgN7sM
ZsfT5PjLW9TqZXRXlVGhvOAjkWTwGtbQ9OgHYm7QSg8vEJZzl+UcmRQ=
-----END PRIVATE KEY-----
";
const TEST_KEY_RSA: &str = "-----BEGIN PRIVATE KEY-----
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDqz5XJA0cphytO
/aPbBusOSMJBMeYw2gwbHu3R6obE2II2RNATeTDTZCI4+0GLUjuCVTrhctg5slpS
fCrHuJ9V85DWQJYbQ2byTdp0ONkk2YsRu9uEk9vZMdSzqctv+j3mbYuJFI9YqW2b
Q91eVS9SSz/hEg8tN27AIazBYNUmnnUHiefUAspRu+09WKneTuJ+vRm4NTNAHrNk
nFFu+iba97KKni3H8/+lXvPJm/cNRfafSSK8WdlCkt6/DkSOkHP2qXcWBHqATb+B
NGutVo9p8oZSO02nZ865AMqYIOO6Y0NkqDjUh1KQ/ruZWzCfv6botzQnFBDpG/bq
v4AJTKD7AgMBAAECggEANuUf/fYLuXw11ko69/Y2lsjQzUAWsj4PzXleHRDIwBVj
378XrC3NieYjkBHBgYpQikhVsyZPwbFeJ2GK+NVDPutp5YUE8su/sg8cbsZpkZFg
T12NVQHiSHU7ZmNgQcYNmaTrlbkeSBqYGs/zXV3p6cHY5cv8i1Qlyro0sqLqQhQf
yG/EpJdQv6jrPlHUC2Kg4HO9dlCa6uYhitYjIcdAl5I4JykQsD85XRrqXt3uMzQw
gvPY5FyE56BjLNj4CAVw/hp50NcnesOoeY2KmAU+XhaX8+A1ToT1CkyUnPNIpDOI
Pwt7t5YDjjA2BD+ZsbV9/f8vHeld6gAa1dtedBIw7QKBgQD/ijumIB6iaexveezT
kRoK74ymGzMnFM2qO3nXef70X+kcVrARhlzJIVCJ4nb7MyxL2JmeGh4Rx9L1Mvwa
Y7YKa7yYeh3vPAtc/FB8Mmf7sTGsjR33dWi8V99ljQ2uf5k6iWiJrBt5M/Cz9zOq
aylAfNDhb1wA6bn472R96TJSjQKBgQDrO8yJ3GS48+vhdZMt/inrKlwN0uzkAHVT
5ge32u0bDun/5zNpXoopZwmJAm7PNFhP68fsbHmpyTVGxMCWVrSIpRdk6DE50nrs
LWMvcIIupWnwwu5zEFlsGZuE2PN8N1YC5gfBnqOFA+9w/4lYazipaiJODestRe8u
nNtd1M2jpwKBgQCJ3ex8nkuo2HkFU8SgCGMCj2dUnswkQ6cKNvhvdpRFCBHehi6L
5e/dW6n2GkaTFHLLoNqQYArlEOgR/iXhnvYx/RpNMWVBEyYWTtKljxRmyJzCOYh3
X9LX+pi+UzGUeacT29qYnFBePdWZYr9vLE2fSzfuyIPcwjzhv1Z6T/wkaQKBgAK/
2i4qU0sOHs2t0CCTfe3vus+2jWpEzxpB8AkoF+lfDUEedK1gm4DMYYImcyEc3YNh
oB6VTf68CVFgb1fSf52xQEq/pAOnACTOiwA88miVKl3UCXFy2Xi3++dbmczz4J98
DM8oiYS+fQf3FKXh6vGf+fKrmvoWfSswTigUmqq1AoGBAKo2fcJRmEa2UWl3e01o
bEmKB2UqIgzw1Wr5WnPRBoWeB7Y155ynbILDwJ45WLUDG+G69pNa80G8NKiax68r
O8j0IvAwS8YrGo9+gA0CyvmZBQrDS8MszjGTWzy8xwUVt+Z5mkRgDMtaE/zi9KKY
LK1DsGethrDvyBIIH+k0c8Df
-----END PRIVATE KEY-----
";
const TEST_KEY_ED25519: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIOONB37wOItUQP9aToTdXherhAVjXcRLYd76fQPPk5cH
-----END PRIVATE KEY-----
";

const ISSUER: &str = "https://login.example";

#[test]
fn each_kind_of_key_signs_as_the_header_says() {
    for (pem, name) in [(TEST_KEY_P384, "ES384"), (TEST_KEY_RSA, "RS256")] {
        let shown = assertion(pem, "robot", ISSUER).unwrap();
        let (signed, signature) = shown.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        assert_eq!(header, json!({ "alg": name, "typ": "JWT" }));
        let (algorithm, public): (&'static dyn VerificationAlgorithm, Vec<u8>) =
            match SigningKey::read(pem).unwrap() {
                SigningKey::Es384(key) => (&ECDSA_P384_SHA384_FIXED, key.public_key().as_ref().to_vec()),
                SigningKey::Rs256(key) => (&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref().to_vec()),
                SigningKey::Es256(_) => panic!("{name}: a key for P-256"),
            };
        UnparsedPublicKey::new(algorithm, public).verify(signed.as_bytes(), &signature).unwrap();
    }
}

#[test]
fn what_is_no_key_is_refused_with_what_was_expected() {
    for pem in [
        "",
        "secret",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
        TEST_KEY_ED25519,
    ] {
        let error = assertion(pem, "robot", ISSUER).unwrap_err().to_string();
        for expected in [
            "`oauth.privateKey` cannot be used: expected `BEGIN PRIVATE KEY`",
            "P-256, P-384, or RSA of 2,048 to 4,096 bits",
        ] {
            assert!(error.contains(expected), "{error}");
        }
        assert!(pem.is_empty() || !error.contains(pem), "{error}");
    }
}

#[test]
fn a_refusal_says_what_the_authorization_server_said_if_anything() {
    for (status, body, expected) in [
        (StatusCode::UNAUTHORIZED, json!({ "error": "invalid_client" }), "401: invalid_client"),
        (
            StatusCode::BAD_REQUEST,
            json!({ "error": "invalid_grant", "error_description": "It has expired." }),
            "400: invalid_grant It has expired.",
        ),
        (StatusCode::BAD_GATEWAY, Value::Null, "502"),
        (StatusCode::FOUND, json!({}), "302: it redirects, which is not followed"),
    ] {
        assert_eq!(refusal(status, &body), format!("the authorization server answers {expected}"));
    }
}
