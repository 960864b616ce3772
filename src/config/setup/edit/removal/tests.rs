//! What is left of a list, as a person would have left it.

use super::remove;

/// The list after `gone` went. The lists here are all below `s`.
fn without(list: &str, gone: &[&str]) -> String {
    let gone: Vec<String> = gone.iter().map(|name| (*name).to_owned()).collect();
    let text = format!("{{\n  \"s\": {list}\n}}\n");
    let rest = remove(&text, &["s".to_owned()], &gone).unwrap();
    rest.strip_prefix("{\n  \"s\": ").unwrap().strip_suffix("\n}\n").unwrap().to_owned()
}

#[test]
fn a_list_is_left_as_a_person_would_leave_it() {
    for (before, gone, after) in [
        // The first, one between, the last, several, and all.
        ("{\n    \"a\": {},\n    \"b\": {}\n  }", &["a"][..], "{\n    \"b\": {}\n  }"),
        (
            "{\n    \"b\": {},\n    \"a\": {\n      \"x\": 1\n    },\n    \"c\": {}\n  }",
            &["a"],
            "{\n    \"b\": {},\n    \"c\": {}\n  }",
        ),
        ("{\n    \"b\": {},\n    \"a\": {\n      \"x\": 1\n    }\n  }", &["a"], "{\n    \"b\": {}\n  }"),
        (
            "{\n    \"a\": {},\n    \"b\": {},\n    \"c\": {},\n    \"d\": {}\n  }",
            &["d", "a", "c"],
            "{\n    \"b\": {}\n  }",
        ),
        ("{\n    \"a\": {},\n    \"b\": {}\n  }", &["a", "b"], "{}"),
        // A comma at the end stays where there was one.
        ("{\n    \"b\": {},\n    \"a\": {},\n  }", &["a"], "{\n    \"b\": {},\n  }"),
        ("{\n    \"a\": {},\n  }", &["a"], "{}"),
        // Blank lines stay as they separate the others.
        (
            "{\n    \"b\": {},\n\n    \"a\": {},\n\n    \"c\": {}\n  }",
            &["a"],
            "{\n    \"b\": {},\n\n    \"c\": {}\n  }",
        ),
        (
            "{\n    \"b\": {},\n    \"a\": {},\n\n    \"c\": {}\n  }",
            &["a"],
            "{\n    \"b\": {},\n\n    \"c\": {}\n  }",
        ),
        (
            "{\n    \"a\": {},\n\n    \"b\": {},\n\n    \"c\": {}\n  }",
            &["a"],
            "{\n    \"b\": {},\n\n    \"c\": {}\n  }",
        ),
        ("{\n    \"b\": {},\n\n    \"a\": {},\n\n    \"c\": {}\n  }", &["a", "c"], "{\n    \"b\": {}\n  }"),
        ("{\n\n    \"b\": {},\n\n    \"a\": {}\n\n  }", &["a"], "{\n\n    \"b\": {}\n\n  }"),
        // Several in one line, also where the list is in several.
        ("{\n    \"a\": {}, \"b\": {},\n    \"c\": {}\n  }", &["a"], "{\n    \"b\": {},\n    \"c\": {}\n  }"),
        ("{\n    \"b\": {}, \"a\": {},\n    \"c\": {}\n  }", &["a"], "{\n    \"b\": {},\n    \"c\": {}\n  }"),
        ("{\n    \"b\": {}, \"a\": {}\n  }", &["a"], "{\n    \"b\": {}\n  }"),
        ("{\n    \"a\": {}, \"c\": {},\n    \"b\": {}\n  }", &["a", "c"], "{\n    \"b\": {}\n  }"),
        ("{ \"a\": {\n    \"x\": 1\n  }, \"b\": {} }", &["a"], "{ \"b\": {} }"),
        ("{ \"b\": {\n    \"x\": 1\n  }, \"a\": {} }", &["a"], "{ \"b\": {\n    \"x\": 1\n  } }"),
        ("{\"b\":{},\"a\":{},\"c\":{}}", &["a"], "{\"b\":{},\"c\":{}}"),
        // Commas before the members.
        (
            "{\n    \"b\": {}\n    , \"a\": {}\n    , \"c\": {}\n  }",
            &["a"],
            "{\n    \"b\": {}\n    , \"c\": {}\n  }",
        ),
        ("{\n    \"b\": {}\n    , \"a\": {}\n  }", &["a"], "{\n    \"b\": {}\n  }"),
        ("{\n    \"a\": {}\n    , \"b\": {}\n  }", &["a"], "{\n    \"b\": {}\n  }"),
        // Tabs, and line ends of Windows.
        (
            "{\r\n\t\"b\": {},\r\n\r\n\t\"a\": {},\r\n\r\n\t\"c\": {}\r\n}",
            &["a"],
            "{\r\n\t\"b\": {},\r\n\r\n\t\"c\": {}\r\n}",
        ),
    ] {
        assert_eq!(without(before, gone), after, "{before} without {gone:?}");
    }
}

#[test]
fn comments_of_others_stay_with_them() {
    for (before, after) in [
        // Those in the same line are about it.
        (
            "{\n    \"b\": {}, // b\n    \"a\": {}, // a\n    \"c\": {} // c\n  }",
            "{\n    \"b\": {}, // b\n    \"c\": {} // c\n  }",
        ),
        ("{\n    \"b\": {}, // b\n    \"a\": {} // a\n  }", "{\n    \"b\": {} // b\n  }"),
        (
            "{\n    /* a */ \"a\": {} /* a */, // a\n    /* b */ \"b\": {}\n  }",
            "{\n    /* b */ \"b\": {}\n  }",
        ),
        ("{\"a\": {}, /* b */ \"b\": {}}", "{/* b */ \"b\": {}}"),
        ("{\"b\": {} /* b */, /* a */ \"a\": {}}", "{\"b\": {} /* b */}"),
        // Those in lines of their own may be about more.
        (
            "{\n    // Mine, all of them.\n    \"a\": {},\n    \"b\": {}\n  }",
            "{\n    // Mine, all of them.\n    \"b\": {}\n  }",
        ),
        (
            "{\n    \"b\": {},\n    /* \"old\": {\n    }, */\n    \"a\": {}\n    // end\n  }",
            "{\n    \"b\": {}\n    /* \"old\": {\n    }, */\n    // end\n  }",
        ),
        ("{\n    // none yet\n    \"a\": {}\n  }", "{\n    // none yet\n  }"),
        // Those that begin or end in another line, too.
        ("{\n    \"b\": {},\n    /* of\n all */ \"a\": {}\n  }", "{\n    \"b\": {}\n    /* of\n all */\n  }"),
        ("{\n    \"a\": {}, /* of\n all */\n    \"b\": {}\n  }", "{\n    /* of\n all */\n    \"b\": {}\n  }"),
        // What looks like a comma or the end of a comment is none.
        ("{\n    \"b\": {}, // , }\n    \"a\": {} /* , */\n  }", "{\n    \"b\": {} // , }\n  }"),
        ("{\n    \"b\": {}, /*/ , */\n    \"a\": {} /**/\n  }", "{\n    \"b\": {} /*/ , */\n  }"),
        ("{\n    \"b\": {} /*/ , */,\n    \"a\": {}\n  }", "{\n    \"b\": {} /*/ , */\n  }"),
    ] {
        assert_eq!(without(before, &["a"]), after, "{before}");
    }
}
