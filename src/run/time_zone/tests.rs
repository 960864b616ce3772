use super::{NAMES, TimeZone};

#[test]
fn names_are_sorted_and_short() {
    let names: Vec<&str> = NAMES.lines().collect();
    assert!(names.is_sorted() && names.len() > 500, "{}", names.len());
    assert!(names.iter().all(|name| name.len() <= super::MAX_COMPARED && !name.contains(' ')));
    assert_eq!(TimeZone::find("UTC").unwrap(), TimeZone::UTC);
    assert_eq!(
        TimeZone::find("America/Argentina/Buenos_Aires").unwrap().name(),
        "America/Argentina/Buenos_Aires"
    );
}

#[test]
fn a_wrong_name_is_answered_with_a_similar_one() {
    for (wrong, near) in [
        ("Europe/Berln", Some("Europe/Berlin")),
        ("europe/berlin", Some("Europe/Berlin")),
        ("Berlin", Some("Europe/Berlin")),
        ("new york", Some("America/New_York")),
        ("America/NewYork", Some("America/New_York")),
        ("Tokio", Some("Asia/Tokyo")),
        ("utc", Some("UTC")),
        ("Middle-earth", None),
        ("", None),
    ] {
        assert_eq!(TimeZone::nearest(wrong), near, "{wrong}");
    }
    let error = |name: &str| TimeZone::find(name).unwrap_err().to_string();
    assert!(error("Berlin").ends_with("such as `Europe/Berlin`: `Berlin`; did you mean `Europe/Berlin`?"));
    assert!(error("+02:00").contains("`Etc/GMT-1`, with the sign reversed"));
    // Neither long nor slow.
    assert!(error(&"x/".repeat(1 << 20)).len() < 200);
    assert!(TimeZone::find("Europe/Berlin\nUTC").is_err() && TimeZone::find("").is_err());
}
