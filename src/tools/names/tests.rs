use super::*;

#[test]
fn camel_case_forms() {
    let check = |name: &str, expected: &str| assert_eq!(camel_case(name), expected);
    check("read_file", "readFile");
    check("create-issue", "createIssue");
    check("a.b_c-d", "aBCD");
    check("readFile", "readFile");
    check("get-URL", "getURL");
    check("_private", "private");
    check("trailing_", "trailing");
    check("a__b", "aB");
    check("2fa", "2fa");
    check("", "");
}

#[test]
fn full_names_split_in_every_way() {
    let check = |name: &str, expected: &[(&str, &str)]| {
        assert_eq!(split_full_name(name).collect::<Vec<_>>(), expected);
    };
    check("mcp__fs__read_file", &[("fs", "read_file")]);
    check("mcp__a__b__c", &[("a", "b__c"), ("a__b", "c")]);
    check("mcp____x", &[]);
    check("mcp__fs", &[]);
    check("fs__read", &[]);
    check("", &[]);
    assert_eq!(full_name("fs", "read_file"), "mcp__fs__read_file");
}

/// Threat 522.
#[test]
fn v_522_a_name_of_separators_is_not_split_everywhere() {
    let longest = format!("mcp__{}a", "__".repeat((MAX_FULL_NAME - 6) / 2));
    assert!(split_full_name(&longest).count() < MAX_FULL_NAME);
    assert_eq!(split_full_name(&format!("mcp__{}a", "__".repeat(5_000_000))).count(), 0);
}

#[test]
fn forms_of_every_kind_of_name() {
    // name, TypeScript property, TypeScript variable, Python
    for (name, typescript, binding, python) in [
        ("read_file", "readFile", "readFile", "read_file"),
        ("readFile", "readFile", "readFile", "read_file"),
        ("read-file", "readFile", "readFile", "read_file"),
        ("read.file", "readFile", "readFile", "read_file"),
        ("read file", "readFile", "readFile", "read_file"),
        ("files/read", "filesRead", "filesRead", "files_read"),
        ("HTTPServer", "HTTPServer", "HTTPServer", "http_server"),
        ("getURL", "getURL", "getURL", "get_url"),
        ("get-URL", "getURL", "getURL", "get_url"),
        ("sha256Sum", "sha256Sum", "sha256Sum", "sha256_sum"),
        ("2fa", "_2fa", "_2fa", "_2fa"),
        ("-2fa", "_2fa", "_2fa", "_2fa"),
        ("delete", "delete", "delete_", "delete"),
        ("class", "class", "class_", "class_"),
        ("match", "match", "match", "match"),
        ("None", "None", "None", "none"),
        ("lambda", "lambda", "lambda", "lambda_"),
        ("await", "await", "await_", "await_"),
        ("arguments", "arguments", "arguments_", "arguments"),
        ("$ref", "$ref", "$ref", "ref"),
        ("_private", "private", "private_", "private"),
        ("__init__", "init", "init", "init"),
        ("größe_ändern", "größeÄndern", "größeÄndern", "größe_ändern"),
        ("搜索", "搜索", "搜索", "搜索"),
        ("a½b", "ab", "ab", "a_b"),
        ("\u{24b6}b", "b", "b", "b"),
        ("x\u{200b}y", "xY", "xY", "x_y"),
        ("\"];evil();[\"", "evil", "evil", "evil"),
        ("a\nb\u{2028}c", "aBC", "aBC", "a_b_c"),
        ("", "_", "_", "_"),
        ("---", "_", "_", "_"),
        ("🎉", "_", "_", "_"),
    ] {
        assert_eq!(typescript_name(name), typescript, "{name:?}");
        assert_eq!(typescript_binding(name), binding, "{name:?}");
        assert_eq!(python_name(name), python, "{name:?}");
        for form in [typescript_name(name), typescript_binding(name), python_name(name)] {
            assert!(is_identifier(&form), "{form:?}");
        }
    }
}

#[test]
fn nobody_gets_a_form_that_two_have_or_that_is_a_name() {
    let names = ["read_file", "read-file", "write_file", "writeFile", "list_all", "search"];
    let forms = forms(names.into_iter(), typescript_name);
    assert_eq!(forms, [None, None, None, None, Some("listAll".to_owned()), None]);
}
