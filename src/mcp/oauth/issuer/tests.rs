use super::*;

fn document(location: &str, issuer: Option<&str>) -> Document {
    Document {
        location: Url::parse(location).unwrap(),
        endpoints: Endpoints {
            issuer: issuer.map(str::to_owned),
            authorization_endpoint: "https://honest.example/authorize".to_owned(),
            token_endpoint: "https://token.example:8443/token".to_owned(),
            registration_endpoint: None,
        },
    }
}

#[test]
fn a_document_is_of_the_issuer_that_its_location_stands_for() {
    for (location, issuer) in [
        ("https://a.example/.well-known/oauth-authorization-server", "https://a.example"),
        ("https://a.example/.well-known/oauth-authorization-server", "https://a.example/"),
        ("https://a.example:443/.well-known/openid-configuration", "https://a.example"),
        ("https://a.example:8443/.well-known/openid-configuration", "https://a.example:8443"),
        ("https://a.example/.well-known/oauth-authorization-server/x", "https://a.example/x"),
        ("https://a.example/.well-known/oauth-authorization-server/x", "https://a.example/x/"),
        ("https://a.example/.well-known/openid-configuration/x/y", "https://a.example/x/y"),
        ("https://a.example/x/y/.well-known/openid-configuration", "https://a.example/x/y"),
        ("https://a.example/x/.well-known/oauth-authorization-server", "https://a.example/x"),
        ("https://a.example/.well-known/oauth-authorization-server/a%2Fb", "https://a.example/a%2Fb"),
        ("http://127.0.0.1:1/.well-known/oauth-authorization-server", "http://127.0.0.1:1"),
    ] {
        let binding = document(location, Some(issuer)).binding().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (binding.issuer.as_str(), binding.token_origin.as_str()),
            (issuer, "https://token.example:8443")
        );
    }
}

/// Threat 341.
#[test]
fn v_341_no_location_proves_another_issuer() {
    let honest = "https://honest.example";
    for location in [
        "https://evil.example/x/.well-known/anything",
        "https://evil.example/.well-known/anything",
        "https://evil.example/.well-known/",
        "https://evil.example/.well-known/oauth-authorization-serverx",
        "https://evil.example/.well-known/oauth-authorization-server-x",
        "https://evil.example/.well-known/oauth-authorization-server",
        "https://evil.example/.well-known/openid-configuration",
        "https://evil.example/.well-known/openid-configuration/https://honest.example",
        "https://evil.example/https://honest.example/.well-known/openid-configuration",
        "https://evil.example//honest.example/.well-known/openid-configuration",
        "https://evil.example/.well-known/oauth-authorization-server//honest.example",
        "https://honest.example.evil.example/.well-known/oauth-authorization-server",
        "https://honest.example@evil.example/.well-known/oauth-authorization-server",
        // Locations on the honest host that belong to another issuer there, or to none.
        "https://honest.example/users/evil/.well-known/anything",
        "https://honest.example/users/evil/.well-known/openid-configuration",
        "https://honest.example/.well-known/oauth-authorization-server/users/evil",
        "https://honest.example/.well-known/oauth-authorization-server?user=evil",
        "https://honest.example/.well-known/oauth-authorization-server#evil",
        "https://evil@honest.example/.well-known/oauth-authorization-server",
        "https://honest.example/.well-known/%6fauth-authorization-server",
        "https://honest.example/.Well-Known/oauth-authorization-server",
        "https://honest.example:8443/.well-known/oauth-authorization-server",
        "http://honest.example/.well-known/oauth-authorization-server",
        "https://honest.example./.well-known/oauth-authorization-server",
    ] {
        // It is the location of another issuer, or of none.
        let named = document(location, Some(honest)).binding();
        let is_refused = matches!(named, Err(IssuerError::Elsewhere { .. } | IssuerError::Location(_)));
        assert!(is_refused, "{location}: {named:?}");
        let unnamed = document(location, None).binding();
        let is_refused = matches!(unnamed, Err(IssuerError::Missing(_) | IssuerError::Location(_)));
        assert!(is_refused, "{location}: {unnamed:?}");
    }
    let location = "https://honest.example/.well-known/oauth-authorization-server/tenant";
    for issuer in [
        "https://HONEST.example/tenant",
        "HTTPS://honest.example/tenant",
        "http://honest.example/tenant",
        "https://honest.example:443/tenant",
        "https://honest.example:8443/tenant",
        "https://honest.example./tenant",
        "https://honest.example/Tenant",
        "https://honest.example/%74enant",
        "https://honest.example/tenant//",
        "https://honest.example/tenant/.",
        "https://honest.example/x/../tenant",
        "https://honest.example/tenant?",
        "https://honest.example/tenant#",
        "https://honest.example/tenant?x",
        "https://@honest.example/tenant",
        "https://evil@honest.example/tenant",
        "https://honest.example\\tenant",
        "https://honest.example\t/tenant",
        " https://honest.example/tenant",
        "https://honest.example/tenant ",
        "https:honest.example/tenant",
        "https://honest.example",
        "",
    ] {
        let named = document(location, Some(issuer)).binding();
        assert!(matches!(named, Err(IssuerError::Elsewhere { .. })), "{issuer}: {named:?}");
    }
}

#[test]
fn only_the_slash_of_an_origin_makes_no_difference() {
    assert!(is_same_issuer("https://a.example", "https://a.example/"));
    assert!(is_same_issuer("https://a.example:8443/", "https://a.example:8443"));
    for (one, other) in [
        ("https://a.example/x", "https://a.example/x/"),
        ("https://a.example", "https://A.example"),
        ("https://a.example", "https://a.example:443"),
        ("https://a.example", "http://a.example"),
        ("https://a.example", "https://a.example//"),
        ("https://a.example", "https://a.example."),
        ("https://a.example/%61", "https://a.example/a"),
        ("", "/"),
        ("https:/", "https://"),
    ] {
        assert!(!is_same_issuer(one, other), "{one} {other}");
    }
}

#[test]
fn an_issuer_is_looked_for_where_its_document_would_prove_it() {
    for issuer in
        ["https://a.example", "https://a.example/", "https://a.example:8443/x/y", "https://a.example/x/"]
    {
        let locations = locations(issuer);
        assert!(locations.len() >= 2);
        for location in &locations {
            let binding = document(location.as_str(), Some(issuer)).binding();
            assert_eq!(binding.unwrap_or_else(|error| panic!("{error}")).issuer, issuer);
            assert!(names(location.as_str(), issuer));
        }
    }
    assert!(!names("https://evil.example/.well-known/oauth-authorization-server", "https://a.example"));
    assert!(locations("no address").is_empty());
}

/// Threat 345: the stored binding is compared as a whole.
#[test]
fn v_345_a_binding_is_the_issuer_and_the_origin_of_its_token_endpoint() {
    let bound =
        Binding { issuer: "https://a.example".to_owned(), token_origin: "https://t.example".to_owned() };
    assert!(bound.check(&bound).is_ok());
    for token_origin in [
        "https://t.example.evil.example",
        "http://t.example",
        "https://t.example:8443",
        "https://a.example",
        "null",
    ] {
        let found = Binding { token_origin: token_origin.to_owned(), ..bound.clone() };
        assert!(matches!(found.check(&bound), Err(IssuerError::TokenEndpointMoved { .. })), "{token_origin}");
    }
    for issuer in ["https://evil.example", "https://A.example", "http://a.example", "https://a.example/x"] {
        let found = Binding { issuer: issuer.to_owned(), ..bound.clone() };
        assert!(matches!(found.check(&bound), Err(IssuerError::Changed { .. })), "{issuer}");
    }
    for endpoint in ["data:,x", "/token", "", "mailto:a@b.example"] {
        let mut document =
            document("https://a.example/.well-known/openid-configuration", Some("https://a.example"));
        document.endpoints.token_endpoint = endpoint.to_owned();
        assert!(matches!(document.binding(), Err(IssuerError::Endpoint(_))), "{endpoint}");
    }
}

#[test]
fn an_assertion_is_for_a_client_that_signs_in_as_itself() {
    let issuer = Some("https://login.example".to_owned());
    let with_key = OAuth { private_key: Some("key".to_owned()), issuer: issuer.clone(), ..OAuth::default() };
    let with_file =
        OAuth { assertion_file: Some("/run/token".into()), issuer: issuer.clone(), ..OAuth::default() };
    let with_id_token = OAuth { id_token_file: Some("/run/token".into()), issuer, ..OAuth::default() };
    for config in [with_key, with_file, with_id_token] {
        let error = check_secret(&config).unwrap_err();
        assert!(matches!(error, IssuerError::AssertionWithoutClientCredentials), "{error}");
        check_secret(&OAuth { client_credentials: true, ..config }).unwrap();
    }
}
