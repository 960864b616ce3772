use super::*;

type Members<'a> = &'a [(&'a str, &'a str)];

/// Server, name, description, parameters and results.
type Tool<'a> = (&'a str, &'a str, &'a str, Members<'a>, Members<'a>);

fn owned(members: Members<'_>) -> Vec<(String, String)> {
    members.iter().map(|(name, description)| ((*name).to_owned(), (*description).to_owned())).collect()
}

/// The related tools of each.
fn related(tools: &[Tool<'_>]) -> Vec<Vec<u32>> {
    let members: Vec<_> = tools.iter().map(|tool| (owned(tool.3), owned(tool.4))).collect();
    let documents: Vec<Document<'_>> = tools
        .iter()
        .zip(&members)
        .map(|(&(server, tool, description, ..), (parameters, results))| Document {
            server,
            tool,
            shared: "",
            description,
            parameters,
            results,
        })
        .collect();
    let related = Related::new(&documents);
    (0..tools.len())
        .map(|position| related.neighbors(position).iter().map(|(other, _)| *other).collect())
        .collect()
}

#[test]
fn a_tool_is_used_with_those_that_its_texts_name() {
    let found = related(&[
        ("docs", "query-docs", "Call resolve-library-id first.", &[], &[]),
        ("docs", "resolve-library-id", "Finds a library", &[], &[]),
        ("docs", "read", "Not a name but a word: query", &[("id", "As list_issues returns it")], &[]),
        ("docs", "query", "Resolve the library", &[], &[]),
        ("other", "list_issues", "Like query-docs", &[], &[]),
    ]);
    assert_eq!(found, [vec![1], vec![], vec![], vec![], vec![]]);
}

#[test]
fn a_tool_is_used_with_those_that_return_what_it_takes() {
    let found = related(&[
        ("cars", "distance", "", &[("cityA", "The zipcode of the first city.")], &[("distance", "")]),
        ("cars", "zipcode_of", "", &[("city", "Name of the city")], &[("zipcode", "")]),
        ("cars", "can_drive", "", &[("distance", "Miles")], &[]),
        ("cars", "echo", "", &[("zipcode", "")], &[("zipcode", "")]),
        ("other", "weather", "", &[("zipcode", "")], &[]),
    ]);
    assert_eq!(found, [vec![1], vec![], vec![0], vec![1], vec![]]);
}

#[test]
fn what_many_return_or_take_relates_nothing() {
    let returning: Vec<String> = (0..3).map(|number| format!("returning{number}")).collect();
    let mut tools: Vec<Tool<'_>> =
        returning.iter().map(|name| ("s", &**name, "", &[][..], &[("status", "")][..])).collect();
    tools.push(("s", "taking", "", &[("status", "")], &[]));
    assert_eq!(related(&tools), vec![Vec::<u32>::new(); 4]);

    let taking: Vec<String> = (0..5).map(|number| format!("taking{number}")).collect();
    let mut tools: Vec<Tool<'_>> =
        taking.iter().map(|name| ("s", &**name, "", &[("path", "")][..], &[][..])).collect();
    tools.push(("s", "returning", "", &[], &[("path", "")]));
    assert_eq!(related(&tools), vec![Vec::<u32>::new(); 6]);
}

#[test]
fn hostile_lists_are_bounded() {
    let names: Vec<String> = (0..5_000).map(|number| format!("tool_{number}")).collect();
    let text = names.join(" ");
    let fields: Vec<(String, String)> =
        (0..64).map(|number| (format!("word{number} id"), names[number..].join(" "))).collect();
    let documents: Vec<Document<'_>> = names
        .iter()
        .map(|tool| Document {
            server: "s",
            tool,
            shared: "",
            description: &text,
            parameters: &fields[..4],
            results: &fields,
        })
        .collect();
    crate::growth::assert_linear(
        "related tools",
        250,
        |count| &documents[..count],
        |documents| Related::new(documents),
    );
    let related = Related::new(&documents);
    assert!(related.bytes() < 1_000_000, "{} bytes", related.bytes());
}

#[test]
fn a_tool_is_used_with_those_that_list_what_it_takes() {
    let found = related(&[
        ("drive", "list_files", "", &[], &[]),
        ("drive", "searchFilesByName", "", &[("text", "")], &[]),
        ("drive", "share", "", &[("file_id", ""), ("user", "")], &[]),
        ("drive", "delete_file", "", &[("sourceFile", "")], &[]),
        ("drive", "get_users", "", &[], &[]),
        ("drive", "get_address", "", &[], &[]),
        ("drive", "write", "", &[("address", ""), ("id", "")], &[]),
        ("drive", "find_file", "", &[("file", "")], &[]),
        ("travel", "get_all_hotels_in_city", "", &[("city", "")], &[]),
        ("travel", "prices", "", &[("hotel_names", "")], &[]),
        ("travel", "get_hotels", "", &[("city", "")], &[]),
        ("travel", "list", "", &[("list", "")], &[]),
    ]);
    let nothing = Vec::new;
    let expected = [
        nothing(),
        nothing(),
        // The only list of users says more than each of three lists of files.
        vec![4, 0, 1, 7],
        vec![0, 1, 7],
        nothing(),
        nothing(),
        nothing(),
        vec![0, 1],
        nothing(),
        vec![8],
        nothing(),
        nothing(),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_many_tools_list_relates_nothing() {
    let listing: Vec<String> = (0..5).map(|number| format!("list_v{number}_files")).collect();
    let mut tools: Vec<Tool<'_>> = listing.iter().map(|name| ("s", &**name, "", &[][..], &[][..])).collect();
    tools.push(("s", "share", "", &[("file", "")], &[]));
    assert_eq!(related(&tools), vec![Vec::<u32>::new(); 6]);
}
