use super::*;

#[test]
fn each_language_sees_its_own_examples() {
    for (language, own, other) in
        [(Language::TypeScript, "```ts", "```py"), (Language::Python, "```py", "```ts")]
    {
        let text = whole(language, false);
        assert_eq!(text.matches(own).count(), GUIDE.matches(own).count());
        assert!(!text.contains(other) && !text.contains("\n\n\n"), "{text}");
        // Fences come in pairs, so no part of a removed example is left.
        assert_eq!(text.matches("```").count(), 2 * text.matches(own).count());
    }
}

#[test]
fn sentences_have_the_names_of_the_language() {
    let (typescript, python) = (whole(Language::TypeScript, true), whole(Language::Python, true));
    for (name, python_name) in PYTHON_NAMES {
        assert!(typescript.contains(name) && !typescript.contains(python_name), "{name}: {typescript}");
        assert!(python.contains(python_name) && !python.contains(name), "{python_name}: {python}");
    }
}

#[test]
fn sections_by_what_they_are_about() {
    let of =
        |topic| section(topic, Language::TypeScript).map(|text| text.lines().next().unwrap_or("").to_owned());
    assert_eq!(of("state").as_deref(), Some("State between runs"));
    assert_eq!(of("FAILS").as_deref(), Some("When a call fails"));
    assert_eq!(of("emit").as_deref(), Some("What else there is"));
    assert_eq!(of("no such thing"), None);
    assert_eq!(of(" "), None);
    for heading in headings() {
        assert_eq!(of(heading).as_deref(), Some(heading));
    }
    assert!(headings().count() >= 5);
}
