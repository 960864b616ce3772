use super::Question;

/// The problem of a question, as its script's author reads it.
fn problem(text: &str) -> String {
    match Question::read(text).and_then(Question::prepare) {
        Ok(_) => String::new(),
        Err(problem) => problem,
    }
}

#[test]
fn a_wrong_option_is_named_with_what_it_must_be() {
    let options = "there are `schema`, `model`, `maxTokens`, `systemPrompt` and `stream`";
    let no_option = format!("there is no option `temperature`; {options}");
    for (text, expected) in [
        (r#"{"prompt":"x","maxTokens":20}"#, ""),
        (r#"{"prompt":"x","max_tokens":20,"model":null,"schema":null,"system_prompt":"s"}"#, ""),
        (r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}"#, ""),
        (r#"{"prompt":"x","maxTokens":"5"}"#, r#"`maxTokens` must be a number: "5""#),
        (r#"{"prompt":"x","maxTokens":0.5}"#, "`maxTokens` must be a whole number from 1 to 1000000: 0.5"),
        (r#"{"prompt":"x","model":["m"]}"#, r#"`model` must be a string: ["m"]"#),
        (r#"{"prompt":"x","temperature":null}"#, no_option.as_str()),
        (r#"{"messages":"x"}"#, r#"`messages` must be a list of { role, content }: "x""#),
        (r#"{"messages":["x"]}"#, r#"`messages[0]` must be { role, content }: "x""#),
        (
            r#"{"messages":[{"role":"tool","content":"x"}]}"#,
            r#"`messages[0].role` must be `system`, `user` or `assistant`: "tool""#,
        ),
        (
            r#"{"messages":[{"role":"user","content":["x"]}]}"#,
            r#"`messages[0].content` must be a string: ["x"]"#,
        ),
        (
            r#"{"messages":[{"role":"user","content":"x","name":"y"}]}"#,
            "`messages[0]` has `role` and `content`, and no `name`",
        ),
        ("[]", "expected an object with options"),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
}
