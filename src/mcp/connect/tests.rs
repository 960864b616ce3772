use super::inherited;

#[test]
fn only_listed_variables_are_inherited() {
    let variables =
        ["PATH", "LC_ALL", "XDG_CACHE_HOME", "GITHUB_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "path", ""];
    let passed: Vec<_> = inherited(variables.iter().map(|name| (name.into(), "x".into())))
        .map(|(name, _)| name.into_string().unwrap())
        .collect();
    assert_eq!(passed, ["PATH", "LC_ALL", "XDG_CACHE_HOME"]);
}
