//! Certificates that no authority has signed.

use super::*;

/// Encodes a DER value.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut value = vec![tag];
    match u16::try_from(length).unwrap().to_be_bytes() {
        [0, short] if short < 0x80 => value.push(short),
        [0, short] => value.extend_from_slice(&[0x81, short]),
        [high, low] => value.extend_from_slice(&[0x82, high, low]),
    }
    value.extend(content);
    value
}

/// A self-signed certificate for `localhost` that is valid until `year`, and its key.
fn self_signed(year: u16) -> (Vec<u8>, Vec<u8>) {
    let ed25519 = der(0x30, &[&[0x06, 3, 0x2b, 0x65, 0x70]]);
    // Any 32 bytes are a key.
    let private = der(0x30, &[&[0x02, 1, 0], &ed25519, &der(0x04, &[&der(0x04, &[&[7; 32]])])]);
    let key = rustls::pki_types::PrivateKeyDer::try_from(private.clone()).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let public = key.public_key().unwrap();
    let common_name = der(0x30, &[&[0x06, 3, 0x55, 4, 3], &der(0x0c, &[b"localhost"])]);
    let name = der(0x30, &[&der(0x31, &[&common_name])]);
    let until = format!("{year}0101000000Z");
    let validity = der(0x30, &[&der(0x18, &[b"20000101000000Z"]), &der(0x18, &[until.as_bytes()])]);
    let names = der(0x30, &[&der(0x82, &[b"localhost"])]);
    let extension = der(0x30, &[&[0x06, 3, 0x55, 0x1d, 0x11], &der(0x04, &[&names])]);
    let extensions = der(0xa3, &[&der(0x30, &[&extension])]);
    let body = der(
        0x30,
        &[
            &der(0xa0, &[&[0x02, 1, 2]]),
            &[0x02, 1, 1],
            &ed25519,
            &name,
            &validity,
            &name,
            public.as_ref(),
            &extensions,
        ],
    );
    let signer = key.choose_scheme(&[rustls::SignatureScheme::ED25519]).unwrap();
    let signature = signer.sign(&body).unwrap();
    (der(0x30, &[&body, &ed25519, &der(0x03, &[&[0], &signature])]), private)
}

#[tokio::test]
async fn up_224_certificates_of_unknown_issuers_are_refused() {
    for year in [2001, 2999] {
        let (certificate, key) = self_signed(year);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key.try_into().unwrap())
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
            let mut handshake = Ok((0, 0));
            while tls.is_handshaking() && handshake.is_ok() {
                handshake = tls.complete_io(&mut stream);
            }
            handshake.err().map(|error| error.to_string())
        });
        let url = Url::parse(&format!("https://localhost:{port}/mcp")).unwrap();
        let error = start_error(&url).await;
        assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
        assert!(error.message.contains("certificate"), "{}", error.message);
        // The client has sent an alert, so the server's certificate was parsed.
        let alert = server.join().unwrap().unwrap();
        assert!(alert.contains("received fatal alert: "), "{alert}");
    }
}
