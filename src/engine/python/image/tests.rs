use super::*;

/// A component with these modules, which are in WebAssembly's text format.
fn component(modules: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {modules})")).unwrap()
}

fn apart(modules: &str) -> Parts {
    take_apart(component(modules)).unwrap()
}

#[test]
fn the_data_becomes_the_image_and_nothing_else_changes() {
    let with = |data: &str| {
        format!(
            r#"(core module (func (export "f")))
               (core module $m (memory (export "memory") 2) (func (export "g") nop) {data})
               (core instance $i (instantiate $m))"#
        )
    };
    let Parts { component: found, image } = apart(&with(
        r#"(data (i32.const 16) "first") (data (i32.const 65536) "second") (data (i32.const 18) "X")"#,
    ));
    assert_eq!(found, component(&with("")));
    let image = image.unwrap();
    assert_eq!(image.len(), 2 * 65536);
    assert_eq!(&image[16..21], b"fiXst");
    assert_eq!(&image[65536..65542], b"second");
    assert_eq!(image.iter().filter(|byte| **byte != 0).count(), 11);
}

#[test]
fn what_cannot_be_moved_stays() {
    let data = r#"(data (i32.const 0) "x")"#;
    for modules in [
        String::new(),
        "(core module (memory 1))".to_owned(),
        // Two memories with data.
        format!("(core module (memory 1) {data}) (core module (memory 1) {data})"),
        // The memory belongs to another module.
        format!(r#"(core module (import "a" "b" (memory 1)) {data})"#),
        // Code that can use the data later.
        format!("(core module (memory 1) {data} (func (data.drop 0)))"),
        // An offset that is not a constant, and offsets out of bounds.
        r#"(core module (import "a" "b" (global i32)) (memory 1) (data (global.get 0) "x"))"#.to_owned(),
        r#"(core module (memory 1) (data (i32.const 65536) "x"))"#.to_owned(),
        r#"(core module (memory 1) (data (i32.const -1) "x"))"#.to_owned(),
    ] {
        let Parts { component: found, image } = apart(&modules);
        assert!(image.is_none(), "{modules}");
        assert_eq!(found, component(&modules), "{modules}");
    }
}

#[test]
fn half_a_component_is_an_error() {
    let whole = component(r#"(core module (memory 1) (data (i32.const 0) "some data"))"#);
    for length in HEADER + 1..whole.len() {
        let _ = take_apart(whole[..length].to_vec());
    }
    assert!(take_apart(whole[..whole.len() - 1].to_vec()).is_err());
}
