//! The page of the recipes.

use super::*;

/// The page has the unchanged code of every recipe, and the tests beside it run every recipe.
#[test]
fn the_page_has_the_code_of_the_files() {
    let tests = fs::read_to_string(root().join("tests/it/docs/recipes.rs")).unwrap();
    let mut recipes: Vec<String> = [".ts", ".py"]
        .iter()
        .flat_map(|ending| files("examples/recipes", ending))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    assert!(recipes.len() >= 15, "{recipes:?}");
    for recipe in &recipes {
        let name = recipe.rsplit('/').next().unwrap();
        assert!(tests.contains(&format!("\"{name}\"")), "no test runs {recipe}");
    }
    for (_, line) in prose(Path::new(PAGE)) {
        // A link to a recipe in its own line, above its code.
        let Some(path) = line.strip_prefix("[`").and_then(|rest| Some(rest.split_once("`]")?.0)) else {
            continue;
        };
        // Read again: the code above may have been written.
        let (blocks, lines) = (blocks(Path::new(PAGE)), prose(Path::new(PAGE)));
        let (at, _) = lines.iter().find(|(_, found)| *found == line).unwrap();
        let block = blocks.iter().find(|block| block.line > *at);
        let block = block.unwrap_or_else(|| panic!("{PAGE}: no code below {path}"));
        check_block(PAGE, block, &read(Path::new(path)), &format!("the code of {path}"));
        recipes.retain(|recipe| recipe != path);
    }
    assert!(recipes.is_empty(), "not in {PAGE}: {recipes:?}");
}

/// The configuration that people copy is read unchanged, and has the servers that the tests use.
#[test]
fn the_configuration_is_valid() {
    let path = root().join("examples/recipes/mcp.json");
    let executor = Executor::builder().mcp_config_file(path).build().unwrap();
    let mut names = executor.server_names();
    names.sort();
    let place = Place::new();
    let mut known = place.executor().build().unwrap().server_names();
    known.sort();
    assert_eq!(names, known);
}
