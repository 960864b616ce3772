//! Compiles the product's modules with what is there for fuzzing only, also without `cargo fuzz`.

fn main() {
    println!("cargo::rustc-cfg=fuzzing");
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rerun-if-changed=build.rs");
}
