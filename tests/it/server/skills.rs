//! Saved scripts and the guide as skills (SEP-2640), and runs of saved scripts by name.

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, save_script};

const GREET: &str = "// ---\n// name: greet\n// description: \"Greets a person\\nby name\"\n// ---\n\
    export const input = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };\n\
    export default ({ name }) => `hi ${name}`;\n";
const SUM: &str = "\"\"\"Adds numbers.\"\"\"\nsum(inputs['numbers'])\n";

fn client() -> Client {
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    save_script(directory.path(), "greet.ts", GREET);
    save_script(directory.path(), "sum.py", SUM);
    Start::new().within(directory).spawn().shaken()
}

#[test]
fn a_call_names_a_saved_script_in_place_of_code() {
    let mut client = client();
    let list = client.request("tools/list", json!({}));
    for tool in &list["result"]["tools"].as_array().unwrap()[..2] {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["properties"]["script"]["type"], "string");
        assert!(schema.get("required").is_none(), "{schema}");
    }
    let greeted = client.call("executeTypescript", json!({ "script": "greet", "input": { "name": "you" } }));
    assert_eq!(greeted["structuredContent"]["value"], "hi you");
    // A script runs in its own language, whichever tool is called. Strict modes give every parameter.
    let sum = json!({ "code": "", "script": "sum", "input": { "numbers": [1, 2, 39] } });
    assert_eq!(client.call("executeTypescript", sum)["structuredContent"]["value"], 42);
    for (arguments, part) in [
        (json!({ "script": "greet", "input": { "nam": "you" } }), "unknown field `nam`"),
        (json!({ "script": "greet" }), "name"),
        (json!({ "script": "gret" }), "did you mean `greet`"),
        (json!({ "script": "../greet" }), "no saved script"),
        (json!({ "script": "__proto__" }), "no saved script"),
        (json!({ "script": "greet", "code": "return 1" }), "both given"),
        (json!({ "script": 5 }), "the name of a saved script"),
        (json!({}), "`code` is missing"),
    ] {
        let refused = client.call("executeTypescript", arguments.clone());
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{arguments}: {refused}");
        assert!(error["message"].as_str().unwrap().contains(part), "{arguments}: {error}");
    }
    assert_eq!(client.run("return await scripts.greet({ name: 'us' })")["value"], "hi us");
    client.end();
}

#[test]
fn skills_are_listed_with_their_digests_and_read() {
    let mut client = client();
    let listed = client.request("skills/list", json!({}));
    let skills = listed["result"]["skills"].as_array().unwrap().clone();
    let names: Vec<&str> =
        skills.iter().map(|skill| skill["frontmatter"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cx-guide", "greet", "sum"]);
    for skill in &skills {
        let uri = skill["uri"].as_str().unwrap();
        let name = skill["frontmatter"]["name"].as_str().unwrap();
        assert_eq!(uri, format!("skill://cx/{name}/SKILL.md"));
        assert_eq!(client.request("skills/get", json!({ "uri": uri }))["result"]["skill"], *skill);
        for file in skill["resources"].as_array().unwrap() {
            let read = client.request("resources/read", json!({ "uri": file["uri"] }));
            let text = read["result"]["contents"][0]["text"].as_str().unwrap();
            assert_eq!(file["size"], text.len(), "{file}");
            assert_eq!(file["digest"], format!("sha256:{}", sha256(text)), "{file}");
        }
    }
    let read = |client: &mut Client, uri: &str| client.request("resources/read", json!({ "uri": uri }));
    let skill = read(&mut client, "skill://cx/greet/SKILL.md");
    let text = skill["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("---\nname: greet\ndescription: \"Greets a person\\nby name\"\n---\n"),
        "{text}"
    );
    assert!(text.contains("\"required\":[\"name\"]"), "{text}");
    let code = read(&mut client, "skill://cx/greet/script.ts");
    assert_eq!(code["result"]["contents"][0]["text"], GREET);
    let resources = client.request("resources/list", json!({}));
    let uris: Vec<&Value> =
        resources["result"]["resources"].as_array().unwrap().iter().map(|one| &one["uri"]).collect();
    assert_eq!(
        uris,
        [
            "cx://guide",
            "skill://cx/greet/SKILL.md",
            "skill://cx/greet/script.ts",
            "skill://cx/sum/SKILL.md",
            "skill://cx/sum/script.py"
        ]
    );
    for wrong in
        ["skill://cx/none/SKILL.md", "skill://cx/greet/../sum/SKILL.md", "skill://cx/greet", "skill://cx/"]
    {
        assert!(read(&mut client, wrong)["error"]["code"].is_i64(), "{wrong}");
    }
    assert_eq!(
        client.request("skills/get", json!({ "uri": "skill://cx/none/SKILL.md" }))["error"]["code"],
        -32602
    );
    client.end();
}

#[test]
fn directories_of_skills_are_read() {
    let mut client = client();
    let read =
        |client: &mut Client, uri: &str| client.request("resources/directory/read", json!({ "uri": uri }));
    for root in ["skill://cx", "skill://cx/"] {
        let answer = read(&mut client, root);
        let found: Vec<(&Value, &Value)> = answer["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (&one["uri"], &one["mimeType"]))
            .collect();
        let directory = json!("inode/directory");
        let uris = [json!("skill://cx/cx-guide"), json!("skill://cx/greet"), json!("skill://cx/sum")];
        let expected: Vec<(&Value, &Value)> = uris.iter().map(|uri| (uri, &directory)).collect();
        assert_eq!(found, expected, "{root}");
    }
    let answer = read(&mut client, "skill://cx/greet");
    let files = answer["result"]["resources"].as_array().unwrap();
    let uris: Vec<&Value> = files.iter().map(|one| &one["uri"]).collect();
    assert_eq!(uris, ["skill://cx/greet/SKILL.md", "skill://cx/greet/script.ts"]);
    for wrong in ["skill://cx/greet/SKILL.md", "skill://cx/none", "skill://c", "cx://guide", ""] {
        assert_eq!(read(&mut client, wrong)["error"]["code"], -32602, "{wrong}");
    }
    client.end();
}

/// A script's description of itself cannot add fields to the front matter of its skill.
#[test]
fn a_hostile_description_stays_one_field() {
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let hostile = "# ---\n# description: \"x\\n---\\nname: other\"\n# ---\n1\n";
    save_script(directory.path(), "a.py", hostile);
    let mut client = Start::new().within(directory).spawn().shaken();
    let read = client.request("resources/read", json!({ "uri": "skill://cx/a/SKILL.md" }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("---\nname: a\ndescription: \"x\\n---\\nname: other\"\n---\n"), "{text}");
    client.end();
}

#[test]
fn what_is_saved_later_is_listed_and_run() {
    let mut client = Client::plain();
    assert!(
        client.request("tools/list", json!({}))["result"]["tools"][0]["inputSchema"]["required"].is_array()
    );
    let directory = client.directory().to_owned();
    save_script(&directory, "greet.ts", GREET);
    let names = |client: &mut Client| {
        client.request("skills/list", json!({}))["result"]["skills"].as_array().unwrap().len()
    };
    assert_eq!(names(&mut client), 2);
    let greeted = client.call("executePython", json!({ "script": "greet", "input": { "name": "you" } }));
    assert_eq!(greeted["structuredContent"]["value"], "hi you");
    client.end();
}

/// Agents do not see a script of the workspace until a user has trusted exactly its content.
#[test]
fn a_script_of_the_workspace_is_used_once_it_is_trusted() {
    let mut client = Client::plain();
    let directory = client.directory().to_owned();
    let file = directory.join(".cx/scripts/build.ts");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "return 'built'").unwrap();
    let refused = |client: &mut Client| {
        let answer = client.call("executeTypescript", json!({ "script": "build" }));
        let error = &answer["structuredContent"]["error"];
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{answer}");
        assert!(error["message"].as_str().unwrap().contains("`cx trust`"), "{answer}");
        let skills = client.request("skills/list", json!({}))["result"]["skills"].clone();
        assert_eq!(skills.as_array().unwrap().len(), 1, "{skills}");
    };
    refused(&mut client);
    let trusted = std::process::Command::new(env!("CARGO_BIN_EXE_cx"))
        .args(["trust", ".cx/scripts/build.ts", "--yes"])
        .current_dir(&directory)
        .env("HOME", &directory)
        .env("XDG_STATE_HOME", &directory)
        .env("XDG_CONFIG_HOME", &directory)
        .output()
        .unwrap();
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let built = client.call("executePython", json!({ "script": "build" }));
    assert_eq!(built["structuredContent"]["value"], "built", "{built}");
    std::fs::write(&file, "return 'something else'").unwrap();
    refused(&mut client);
    client.end();
}

fn sha256(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The upstream server is another cx, whose guide is in `skills/list` and not in `resources/list`.
#[test]
fn skills_of_an_upstream_server_are_among_its_resources() {
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let home = directory.path().join("inner");
    save_script(&home, "greet.ts", GREET);
    let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    let variables: serde_json::Map<_, _> =
        variables.iter().map(|name| ((*name).to_owned(), json!(home.to_str().unwrap()))).collect();
    let inner = json!({ "command": env!("CARGO_BIN_EXE_cx"), "args": ["serve"], "env": variables });
    let file = directory.path().join("servers.json");
    std::fs::write(&file, json!({ "mcpServers": { "inner": inner } }).to_string()).unwrap();
    let start = Start::new().within(directory).arguments(&["--mcp-config", file.to_str().unwrap()]);
    let mut client = start.spawn().shaken();
    let code = "const all = await mcp.listResources('inner');
                const uris = all.map((one) => one.uri).filter((uri) => uri.startsWith('skill:'));
                const guide = await mcp.readResource('inner', 'skill://cx/cx-guide/SKILL.md');
                return { uris, guide: guide.contents[0].text.slice(0, 3) }";
    let answer = client.run(code);
    let uris: Vec<&str> =
        answer["value"]["uris"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for uri in ["skill://cx/cx-guide/SKILL.md", "skill://cx/greet/SKILL.md", "skill://cx/greet/script.ts"] {
        assert_eq!(uris.iter().filter(|one| **one == uri).count(), 1, "{uri}: {answer}");
    }
    assert_eq!(answer["value"]["guide"], "---", "{answer}");
    let code = "
all = await mcp.list_resources('inner')
guide = await mcp.read_resource('inner', 'skill://cx/cx-guide/SKILL.md')
return ['skill://cx/greet/SKILL.md' in [one['uri'] for one in all], guide['contents'][0]['text'][:3]]";
    let answer = client.call("executePython", json!({ "code": code }));
    assert_eq!(answer["structuredContent"]["value"], json!([true, "---"]), "{answer}");
    client.end();
}
